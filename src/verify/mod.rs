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
mod error_origin;
mod job;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread;

pub(crate) use self::datasets::{Datasets, Place};
pub(crate) use self::error_origin::ErrorOrigin;
pub(crate) use self::job::{BadBricks, Counts, DatasetReport, LevelReport};

use self::datasets::Opened;
use self::error_origin::HasOrigin;
use self::job::{Job, Level};
use crate::array::{CheckedBrick, Reader};
use crate::format::{Finding, FormatError};
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

/// How to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerifyOptions {
    /// Whether to check tables and headers alone, and not to read bricks.
    pub quick: bool,
    /// Workers.
    pub threads: usize,
    /// The most entries that are kept for one dataset.
    pub most: usize,
    /// A level with more bricks than this that cannot be read is abandoned.
    pub most_bad: u64,
}

/// Figures of a verification, which grow while it runs.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    counts: Mutex<Counts>,
    total: OnceLock<u64>,
}

impl Progress {
    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock()
    }

    /// Returns the number of all bricks if it is known by now.
    pub(crate) fn total(&self) -> Option<u64> {
        self.total.get().copied()
    }
}

/// A verification of all bricks of some datasets.
pub(crate) struct Verification {
    datasets: Datasets,
    options: VerifyOptions,
    reader: Arc<Reader>,
    progress: Progress,
    delivery: Delivery,
    /// The check ends early.
    stop: AtomicBool,
    interrupted: AtomicBool,
}

/// A part of a dataset to check.
struct Task {
    job: Arc<Job>,
    work: Work,
}

enum Work {
    Structure,
    /// Bricks `from` to before `to` of a set of bricks of a level.
    Bricks {
        level: usize,
        set: BrickSet,
        from: u64,
        to: u64,
    },
}

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
            progress: Progress::default(),
            delivery: Delivery::new(Box::new(sink)),
            stop: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
        }
    }

    /// Returns the figures so far.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Delivers the findings so far, and nothing more. For another thread: does not wait for bricks that are being read.
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        self.stop.store(true, Ordering::Relaxed);
        self.delivery.close();
    }

    /// Returns whether [`Verification::interrupt`] was called.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Acquire)
    }

    /// Opens every dataset to count the bricks, for [`Progress::total`]. May run beside [`Verification::run`].
    pub(crate) fn count(&self) {
        let mut total = 0u64;
        self.datasets.visit(&mut |_, found| {
            if let Ok(open) = self.datasets.open(found) {
                let levels = open.dataset.layers().iter().flat_map(|layer| &layer.levels);
                total = levels.fold(total, |sum, level| sum.saturating_add(level.info().grid.total()));
            }
            !self.is_stopped()
        });
        let _ = self.progress.total.set(total);
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
            self.make_tasks(&Tasks { sender, here: workers == 0 });
        });
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn make_tasks(&self, tasks: &Tasks) {
        let mut number = 0;
        self.datasets.visit(&mut |path, found| {
            self.make_tasks_of(tasks, number, path, self.datasets.open(found));
            number += 1;
            !self.is_stopped()
        });
    }

    fn make_tasks_of(&self, tasks: &Tasks, number: u64, path: PathBuf, opened: Opened) {
        let job = Arc::new(Job::new(number, path, opened, self.options.most));
        if !self.delivery.begin(&job) {
            return self.stop.store(true, Ordering::Relaxed);
        }
        self.submit(tasks, &job, Work::Structure);
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
                    if error.origin() == ErrorOrigin::System || error == SourceError::Changed.into() {
                        job.leave_out();
                    }
                    job.add_failure(&error, |found| level.place(found));
                }
            }
            self.progress.counts.lock().checked += rest;
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
            self.submit(tasks, job, Work::Bricks { level: number, set: set.clone(), from, to });
            from = to;
        }
        true
    }

    fn submit(&self, tasks: &Tasks, job: &Arc<Job>, work: Work) {
        job.begin_task();
        let task = Task { job: Arc::clone(job), work };
        if tasks.here {
            return self.do_task(&task);
        }
        // workers end last: without them no thread waits for the task
        let _ = tasks.sender.send(task);
    }

    fn work(&self, tasks: &Mutex<Receiver<Task>>) {
        loop {
            let task = tasks.lock().recv();
            let Ok(task) = task else { return };
            self.do_task(&task);
        }
    }

    fn do_task(&self, task: &Task) {
        if self.is_stopped() || task.job.is_over() {
            task.job.leave_out();
        } else {
            match &task.work {
                Work::Structure => {
                    let check = || task.job.check_structure(|| self.is_stopped());
                    if catch_unwind(AssertUnwindSafe(check)).is_err() {
                        task.job.add(Finding::unread("internal error: the check of its structure panicked"));
                    }
                }
                Work::Bricks { level, set, from, to } => self.check_bricks(&task.job, *level, set, *from, *to),
            }
        }
        self.end_task(&task.job);
    }

    fn check_bricks(&self, job: &Job, number: usize, set: &BrickSet, from: u64, to: u64) {
        let Some(level) = job.levels.get(number) else { return };
        let count = level.array.info().grid.count();
        let mut counts = Counts::default();
        for n in from..to {
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
                    counts.add_error(error.origin());
                }
            }
            counts.checked += 1;
        }
        level.add(counts);
        self.progress.counts.lock().add(counts);
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
        if job.end_task() && !self.delivery.end(job) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Where tasks go.
struct Tasks {
    sender: SyncSender<Task>,
    /// There are no workers: each task is done by the thread that makes it.
    here: bool,
}

/// Takes reports. Returns `false` when it wants no more.
type Sink = Box<dyn FnMut(DatasetReport) -> bool + Send>;

/// Delivers the reports in the order of the walk, although datasets are finished in any order: the jobs that were begun, and
/// the reports that wait for earlier ones.
struct Delivery {
    state: Mutex<State>,
}

struct State {
    /// By their numbers: those in progress, and those done that cannot be delivered yet.
    jobs: BTreeMap<u64, Entry>,
    next: u64,
    sink: Sink,
    /// The sink wants no more, or the rest was delivered.
    closed: bool,
}

enum Entry {
    InProgress(Arc<Job>),
    Done(Box<DatasetReport>),
}

impl Delivery {
    fn new(sink: Sink) -> Self {
        Self { state: Mutex::new(State { jobs: BTreeMap::new(), next: 0, sink, closed: false }) }
    }

    /// Adds a job that begins. Returns `false` if its report is not wanted any more.
    fn begin(&self, job: &Arc<Job>) -> bool {
        let mut state = self.state.lock();
        state.jobs.insert(job.number, Entry::InProgress(Arc::clone(job)));
        !state.closed
    }

    /// Adds the report of a job that is done, and delivers all that are next. Returns `false` if no more are wanted.
    fn end(&self, job: &Job) -> bool {
        let report = Box::new(job.report());
        let mut state = self.state.lock();
        let state = &mut *state;
        state.jobs.insert(job.number, Entry::Done(report));
        while !state.closed && matches!(state.jobs.get(&state.next), Some(Entry::Done(_))) {
            if let Some(Entry::Done(report)) = state.jobs.remove(&state.next) {
                state.next += 1;
                state.closed = !(state.sink)(*report);
            }
        }
        !state.closed
    }

    /// Delivers the findings so far, also of datasets that are not done; nothing is delivered afterwards.
    fn close(&self) {
        let mut state = self.state.lock();
        let state = &mut *state;
        if std::mem::replace(&mut state.closed, true) {
            return;
        }
        for entry in std::mem::take(&mut state.jobs).into_values() {
            let report = match entry {
                Entry::InProgress(job) => job.report(),
                Entry::Done(report) => *report,
            };
            if !(state.sink)(report) {
                return;
            }
        }
    }
}
