//! Checks every brick of every dataset below a path, on all cores.
//!
//! One thread walks the folders, opens the datasets and makes tasks of their bricks; workers do the tasks. Bricks are
//! read and decoded as in a mount, within the same budget of memory, then counted and dropped. The findings of a
//! dataset are kept until its last task is done, and delivered in the order of the walk. Everything is bounded: tasks wait
//! in a queue of fixed length, bad bricks that follow one another are one entry, and lists have a largest length. A level
//! that has too many bad bricks is abandoned: a file can claim more than anybody can count.
//!
//! Damage is told from parts that could not be read because the disk, the network or a limit of the system failed; those
//! are retried first.

mod datasets;
mod job;

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread;

pub(crate) use self::datasets::{Datasets, Place};
pub(crate) use self::job::{Counts, DatasetReport, LevelReport};

use self::datasets::{Opened, VerifyError};
use self::job::{Job, Level};
use crate::array::{CheckedBrick, Reader};
use crate::format::{Finding, FormatError, Severity};
use crate::memory::BufferPool;
use crate::pool::Pool;
use crate::source::SourceError;
use crate::sync::Mutex;
use crate::volume::{BrickSet, Dims};

/// Tasks that wait for a worker.
const QUEUE: usize = 64;
/// A task has bricks of about this many bytes, decoded; and at most this many bricks.
const TASK_BYTES: u64 = 4 << 20;
const TASK_BRICKS: u64 = 256;
/// The same where bricks are not read.
const QUICK_BRICKS: u64 = 1024;
/// Bytes of unused buffers that are kept.
const IDLE_BYTES: usize = 64 << 20;

pub(crate) struct VerifyOptions {
    /// Whether to check tables and headers alone, and not to read bricks.
    pub quick: bool,
    pub threads: usize,
    /// The most entries that are kept for one dataset.
    pub most: usize,
    /// A level with more bricks than this that cannot be read is abandoned.
    pub most_bad: u64,
}

/// A verification of all bricks of some datasets.
pub(crate) struct Verification {
    datasets: Datasets,
    options: VerifyOptions,
    reader: Arc<Reader>,
    counts: Mutex<Counts>,
    /// The number of all bricks, if it is known by now.
    total: OnceLock<u64>,
    delivery: Mutex<Delivery>,
    stop: AtomicBool,
    interrupted: AtomicBool,
}

type Work = Box<dyn FnOnce(&Verification, &Job) + Send>;

struct Task {
    job: Arc<Job>,
    work: Work,
}

/// Where tasks go; `None` if there are no workers: the thread that makes a task does it.
type Tasks = Option<SyncSender<Task>>;

impl Verification {
    /// Prepares a verification. `sink` gets the report of each dataset, in order, and returns `false` to end it.
    pub(crate) fn new(
        datasets: Datasets,
        options: VerifyOptions,
        sink: impl FnMut(DatasetReport) -> bool + Send + 'static,
    ) -> Self {
        let buffers = BufferPool::for_bricks(IDLE_BYTES, 0);
        let reader = Reader::new(0, options.threads, buffers, Pool::new(), Arc::default());
        Self {
            datasets,
            options,
            reader,
            counts: Mutex::default(),
            total: OnceLock::new(),
            delivery: Mutex::new(Delivery { jobs: BTreeMap::new(), sink: Box::new(sink), closed: false }),
            stop: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock()
    }

    /// Returns the number of all bricks if it is known by now.
    pub(crate) fn total(&self) -> Option<u64> {
        self.total.get().copied()
    }

    /// Delivers the findings so far, and nothing more. For another thread: does not wait for bricks that are being read.
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        self.stop.store(true, Ordering::Relaxed);
        self.delivery.lock().close();
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Acquire)
    }

    /// Opens every dataset to count the bricks, for [`Verification::total`]. May run beside [`Verification::run`].
    pub(crate) fn count(&self) {
        let mut total = 0u64;
        self.datasets.visit(&mut |_, found| {
            if let Ok(open) = self.datasets.open(found) {
                let levels = open.dataset.layers().iter().flat_map(|layer| &layer.levels);
                total = levels.fold(total, |sum, level| sum.saturating_add(level.info().grid.total()));
            }
            !self.is_stopped()
        });
        let _ = self.total.set(total);
    }

    /// Checks everything, and returns when it is done.
    pub(crate) fn run(&self) {
        let (sender, receiver) = mpsc::sync_channel(QUEUE);
        let receiver = Mutex::new(receiver);
        thread::scope(|scope| {
            let mut workers = 0;
            for _ in 0..self.options.threads.max(1) {
                let worker = thread::Builder::new().name("volfs-verify".into());
                // fewer threads than wanted only take longer
                workers += usize::from(worker.spawn_scoped(scope, || self.work(&receiver)).is_ok());
            }
            let tasks = (workers > 0).then_some(sender);
            let mut number = 0;
            self.datasets.visit(&mut |path, found| {
                self.make_tasks(&tasks, number, path, self.datasets.open(found));
                number += 1;
                !self.is_stopped()
            });
        });
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn make_tasks(&self, tasks: &Tasks, number: u64, path: PathBuf, opened: Opened) {
        let job = Arc::new(Job::new(number, path, opened, self.options.most));
        if !self.delivery.lock().begin(&job) {
            return self.stop.store(true, Ordering::Relaxed);
        }
        self.submit(tasks, &job, Box::new(Self::check_structure));
        for (number, level) in job.levels.iter().enumerate() {
            // the bricks that tasks were made of: a retry goes on after them
            let mut done = 0u64;
            let visit = || {
                let mut seen = 0u64;
                level.array.visit_stored(&mut |set| {
                    let from = done.saturating_sub(seen).min(set.len());
                    seen = seen.saturating_add(set.len());
                    done = done.max(seen);
                    self.split(tasks, &job, number, &set, from)
                })
            };
            let result = job.with_retries(|| self.is_stopped(), visit);
            let rest = level.array.info().grid.total().saturating_sub(done);
            match result {
                Ok(()) if self.is_stopped() || job.is_over() || level.is_abandoned() => {
                    job.leave_out();
                    continue;
                }
                Ok(()) => level.add(Counts { checked: rest, constant: rest, ..Counts::default() }),
                Err(error) => {
                    if error.severity() == Severity::Unread || error == SourceError::Changed.into() {
                        job.leave_out();
                    }
                    job.add_failure(&error, |found| level.place(found));
                }
            }
            self.counts.lock().checked += rest;
        }
        self.end_task(&job);
    }

    /// Makes tasks of a set of bricks, beginning with its brick number `from`. Returns `false` if the check ends early.
    fn split(&self, tasks: &Tasks, job: &Arc<Job>, number: usize, set: &BrickSet, mut from: u64) -> bool {
        let Some(level) = job.levels.get(number) else { return false };
        let info = level.array.info();
        let brick = info.brick_shape.product().unwrap_or(u64::MAX).saturating_mul(info.dtype.size() as u64);
        let step = match self.options.quick {
            true => QUICK_BRICKS,
            false => (TASK_BYTES / brick.max(1)).clamp(1, TASK_BRICKS),
        };
        let end = set.len();
        while from < end {
            if self.is_stopped() || job.is_over() || level.is_abandoned() {
                return false;
            }
            let to = end.min(from + step);
            let set = set.clone();
            let check = move |this: &Self, job: &Job| this.check_bricks(job, number, &set, from..to);
            self.submit(tasks, job, Box::new(check));
            from = to;
        }
        true
    }

    fn submit(&self, tasks: &Tasks, job: &Arc<Job>, work: Work) {
        job.begin_task();
        let task = Task { job: Arc::clone(job), work };
        match tasks {
            // workers end last: without them no thread waits for the task
            Some(tasks) => drop(tasks.send(task)),
            None => self.do_task(task),
        }
    }

    fn work(&self, tasks: &Mutex<Receiver<Task>>) {
        loop {
            let task = tasks.lock().recv();
            let Ok(task) = task else { return };
            self.do_task(task);
        }
    }

    fn do_task(&self, Task { job, work }: Task) {
        if self.is_stopped() || job.is_over() {
            job.leave_out();
        } else {
            work(self, &job);
        }
        self.end_task(&job);
    }

    fn check_structure(&self, job: &Job) {
        let check = || job.check_structure(|| self.is_stopped());
        if catch_unwind(AssertUnwindSafe(check)).is_err() {
            job.add(Finding::unread("internal error: the check of its structure panicked"));
        }
    }

    fn check_bricks(&self, job: &Job, number: usize, set: &BrickSet, bricks: Range<u64>) {
        let Some(level) = job.levels.get(number) else { return };
        let count = level.array.info().grid.count();
        let mut counts = Counts::default();
        for n in bricks {
            if self.is_stopped() || job.is_over() || level.is_abandoned() {
                job.leave_out();
                break;
            }
            let at = set.nth(n, &count);
            match job.with_retries(|| self.is_stopped(), || self.check_brick(level, &at)) {
                Ok(brick) => {
                    counts.constant += u64::from(brick.constant);
                    counts.bytes += brick.stored;
                }
                Err(error) => {
                    job.add_bad(number, at, count.linear_of(&at), &error, self.options.most_bad);
                    counts.add_error(error.severity());
                }
            }
            counts.checked += 1;
        }
        level.add(counts);
        self.counts.lock().add(counts);
    }

    fn check_brick(&self, level: &Level, at: &Dims) -> Result<CheckedBrick, FormatError> {
        let check = || match self.options.quick {
            true => self.reader.locate_brick(&*level.array, at),
            false => self.reader.check_brick(&level.array, at),
        };
        catch_unwind(AssertUnwindSafe(check))
            .unwrap_or_else(|_| Err(FormatError::Internal("the decoder panicked".into())))
    }

    fn end_task(&self, job: &Job) {
        if job.end_task() {
            let report = job.report();
            if !self.delivery.lock().end(job.number, report) {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Takes reports. Returns `false` when it wants no more.
type Sink = Box<dyn FnMut(DatasetReport) -> bool + Send>;

/// Delivers the reports in the order of the walk, although datasets are finished in any order: the jobs that were begun, and
/// the reports that wait for earlier ones.
struct Delivery {
    /// By their numbers: those in progress, and those done that cannot be delivered yet.
    jobs: BTreeMap<u64, Entry>,
    sink: Sink,
    /// The sink wants no more, or the rest was delivered.
    closed: bool,
}

enum Entry {
    InProgress(Arc<Job>),
    Done(Box<DatasetReport>),
}

impl Entry {
    fn report(self) -> DatasetReport {
        match self {
            Self::InProgress(job) => job.report(),
            Self::Done(report) => *report,
        }
    }
}

impl Delivery {
    /// Adds a job that begins. Returns `false` if its report is not wanted any more.
    fn begin(&mut self, job: &Arc<Job>) -> bool {
        self.jobs.insert(job.number, Entry::InProgress(Arc::clone(job)));
        !self.closed
    }

    /// Adds the report of a job that is done, and delivers all that are next. Returns `false` if no more are wanted.
    fn end(&mut self, number: u64, report: DatasetReport) -> bool {
        self.jobs.insert(number, Entry::Done(Box::new(report)));
        while !self.closed
            && let Some(first) = self.jobs.first_entry()
            && matches!(first.get(), Entry::Done(_))
        {
            self.closed = !(self.sink)(first.remove().report());
        }
        !self.closed
    }

    /// Delivers the findings so far, also of datasets that are not done; nothing is delivered afterwards.
    fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        for entry in std::mem::take(&mut self.jobs).into_values() {
            if !(self.sink)(entry.report()) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_in_the_order_of_the_walk() {
        let delivered = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&delivered);
        let take = move |report: DatasetReport| {
            sink.lock().push(report.path);
            true
        };
        let mut delivery = Delivery { jobs: BTreeMap::new(), sink: Box::new(take), closed: false };
        let names = ["a", "b", "c"];
        let jobs: Vec<_> = (0..)
            .zip(names)
            .map(|(number, name)| Arc::new(Job::new(number, name.into(), Err(Finding::damage("x").into()), 1)))
            .collect();
        assert!(jobs.iter().all(|job| delivery.begin(job)));
        for (number, expected) in [(1, &names[..0]), (0, &names[..2]), (2, &names[..])] {
            assert!(delivery.end(number, jobs[number as usize].report()));
            assert_eq!(*delivered.lock(), expected.iter().map(PathBuf::from).collect::<Vec<_>>());
        }
    }
}
