//! A thread pool for jobs that may block: reading from a disk, decoding.
//!
//! The threads that talk to the kernel submit such jobs and go on. Each job belongs to a *bulkhead* (one for each
//! dataset or folder), which limits how many of its jobs run at a time; further jobs wait in a queue of the bulkhead.
//! So a source that hangs blocks the jobs of its own bulkhead and no others; the pool tells which jobs run, on which
//! thread and since when, and how many requests wait for them. Worker threads are spawned when a job is
//! ready and no worker is idle, and end after an idle timeout, except a few that are kept. If the system has no more
//! threads, jobs wait for the workers that there are.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::thread::{Pid, gettid};

use crate::logging::LogLimit;
use crate::memory::claim;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, LazyPerProcess, Mutex, thread};

/// What tells threads apart where the system's numbers of them are not asked for.
#[cfg(not(target_os = "linux"))]
type Pid = std::thread::ThreadId;

#[cfg(not(target_os = "linux"))]
fn gettid() -> Pid {
    std::thread::current().id()
}

/// The concurrency limit of one source: at most `limit` jobs of the same bulkhead run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bulkhead {
    number: u64,
    limit: usize,
}

impl Bulkhead {
    /// Returns the bulkhead of this number, for jobs that a request waits for.
    pub(crate) fn new(number: u64) -> Self {
        Self { number, limit: JOBS_OF_BULKHEAD }
    }

    /// Returns a second bulkhead of the same source for prefetching, with at most `limit` jobs at a time. It is limited
    /// separately, so that prefetching does not delay jobs that a request waits for.
    pub(crate) fn for_prefetch(self, limit: usize) -> Self {
        Self { number: self.number, limit: limit.clamp(1, JOBS_OF_BULKHEAD - 1) }
    }
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RunningJob {
    /// The number of its bulkhead.
    pub number: u64,
    pub thread: Pid,
    pub since: Instant,
}

/// A request that waits for jobs of a bulkhead, for as long as this value lives.
pub(crate) struct WaitingRequest {
    pool: Arc<Pool>,
    number: u64,
}

const JOBS_OF_BULKHEAD: usize = 12;
const MAX_WORKERS: usize = 160;
/// A bulkhead gets at most this part of the workers that are not busy, and one at least: so some are left for others,
/// however many sources hang.
const SHARE_OF_FREE: usize = 8;
/// The most bytes that a thread takes before it does any work: its stack, another one for signals, and a heap.
const THREAD: usize = 8 << 20;
/// An idle worker ends after this time without a job.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest time between two log lines about missing threads.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is a worker of a pool, so that it may wait.
pub(crate) fn is_worker() -> bool {
    IS_WORKER.get()
}

#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    job_ready: Condvar,
    /// How many requests wait for the jobs of each bulkhead.
    waiting: Mutex<HashMap<u64, usize>>,
    /// Called at the first job after [`Pool::rest`].
    on_first_job: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Whether there was a job since then.
    is_busy: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Jobs that their bulkhead has admitted and no worker has taken yet.
    ready: VecDeque<(Bulkhead, Job)>,
    bulkheads: HashMap<Bulkhead, BulkheadState>,
    running: Vec<RunningJob>,
    workers: usize,
    idle: usize,
    /// Workers that do not end when they are idle.
    kept: usize,
}

impl State {
    /// Returns the number of jobs of one bulkhead that may be admitted now, if its own limit is not lower.
    fn share(&self) -> usize {
        let free = MAX_WORKERS.saturating_sub(self.workers.saturating_sub(self.idle));
        (free / SHARE_OF_FREE).max(1)
    }
}

#[derive(Default)]
struct BulkheadState {
    /// Jobs of the bulkhead that run or are ready; never more than its limit.
    admitted: usize,
    queue: VecDeque<Job>,
}

impl Pool {
    /// Creates a pool without threads; they are spawned when jobs are submitted.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Runs `job` on a worker thread, as soon as its bulkhead admits it.
    pub(crate) fn submit(self: &Arc<Self>, bulkhead: Bulkhead, job: impl FnOnce() + Send + 'static) {
        self.enqueue(bulkhead, Box::new(job));
        if !self.is_busy.load(Ordering::Relaxed)
            && !self.is_busy.swap(true, Ordering::Relaxed)
            && let Some(on_first_job) = self.on_first_job.get()
        {
            on_first_job();
        }
    }

    /// Has `call` called at the first job, and at the first one after each [`Pool::rest`]. Counts the first time only.
    pub(crate) fn on_first_job(&self, call: Box<dyn Fn() + Send + Sync>) {
        let _ = self.on_first_job.set(call);
    }

    /// Returns whether there are no jobs. Then the next one is told of.
    pub(crate) fn rest(&self) -> bool {
        self.is_busy.store(false, Ordering::Relaxed);
        // a job that this count misses is enqueued later, and finds what was stored
        let is_idle = self.jobs() == 0;
        if !is_idle {
            self.is_busy.store(true, Ordering::Relaxed);
        }
        is_idle
    }

    fn enqueue(self: &Arc<Self>, bulkhead: Bulkhead, job: Job) {
        let mut state = self.state.lock();
        let limit = bulkhead.limit.min(state.share());
        let jobs = state.bulkheads.entry(bulkhead).or_default();
        if jobs.admitted >= limit {
            jobs.queue.push_back(job);
            return;
        }
        jobs.admitted += 1;
        state.ready.push_back((bulkhead, job));
        let spawns = state.ready.len() > state.idle && state.workers < MAX_WORKERS;
        state.workers += usize::from(spawns);
        drop(state);
        if !spawns || !self.spawn_worker() {
            // an existing worker will take the job
            self.job_ready.notify_one();
        }
    }

    /// Returns the number of jobs that run, are ready or wait for their bulkhead.
    pub(crate) fn jobs(&self) -> usize {
        self.state.lock().bulkheads.values().map(|jobs| jobs.admitted + jobs.queue.len()).sum()
    }

    pub(crate) fn running(&self) -> Vec<RunningJob> {
        self.state.lock().running.clone()
    }

    /// Counts a request that waits for jobs of a bulkhead, until the returned value is dropped.
    pub(crate) fn request(self: &Arc<Self>, bulkhead: Bulkhead) -> WaitingRequest {
        *self.waiting.lock().entry(bulkhead.number).or_default() += 1;
        WaitingRequest { pool: Arc::clone(self), number: bulkhead.number }
    }

    /// Returns the number of requests that wait for jobs of the bulkheads of this number.
    pub(crate) fn requests(&self, number: u64) -> usize {
        self.waiting.lock().get(&number).copied().unwrap_or(0)
    }

    /// Spawns workers that do not end when they are idle, until there are `number` of them.
    pub(crate) fn keep_workers(self: &Arc<Self>, number: usize) {
        loop {
            let mut state = self.state.lock();
            state.kept = number;
            if state.workers >= number {
                return;
            }
            state.workers += 1;
            drop(state);
            if !self.spawn_worker() {
                return;
            }
        }
    }

    /// Spawns a worker, which is counted already. Returns `false` if the system has no more threads.
    fn spawn_worker(self: &Arc<Self>) -> bool {
        static LIMIT: LazyPerProcess<LogLimit> = LazyPerProcess::new(|| LogLimit::new(WARN_INTERVAL));
        let pool = Arc::clone(self);
        // a thread that cannot get the memory that it begins with ends the process
        let spawned = claim(THREAD).map_err(io::Error::from).and_then(|claim| {
            thread::Builder::new().name("volfs-pool".into()).spawn(move || {
                drop(claim);
                pool.work();
            })
        });
        let Err(error) = spawned else { return true };
        let mut state = self.state.lock();
        state.workers -= 1;
        let workers = state.workers;
        drop(state);
        let text = format!("no more threads ({error}): {workers} answer all requests; {}", remedy(&error));
        LIMIT.warn((), &text);
        if workers == 0 {
            // nobody else would ever do it
            let (next, thread) = (|| self.state.lock().ready.pop_front(), gettid());
            while let Some(job) = next() {
                self.run(job, thread);
            }
        }
        false
    }

    fn work(&self) {
        IS_WORKER.set(true);
        let thread = gettid();
        while let Some(job) = self.next(thread) {
            self.run(job, thread);
        }
    }

    fn run(&self, (bulkhead, job): (Bulkhead, Job), thread: Pid) {
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            log::error!("internal error: a worker stopped in the middle of a request; the request fails");
        }
        self.finished(bulkhead, thread);
    }

    /// Waits for the next ready job. Returns `None` after the idle timeout, unless this worker, which has this
    /// `thread`, is kept.
    fn next(&self, thread: Pid) -> Option<(Bulkhead, Job)> {
        let mut state = self.state.lock();
        loop {
            if let Some((bulkhead, job)) = state.ready.pop_front() {
                state.running.push(RunningJob { number: bulkhead.number, thread, since: Instant::now() });
                return Some((bulkhead, job));
            }
            state.idle += 1;
            let waited = self.job_ready.wait_for(&mut state, IDLE_TIMEOUT);
            state.idle -= 1;
            if waited.timed_out() && state.ready.is_empty() && state.workers > state.kept {
                state.workers -= 1;
                return None;
            }
        }
    }

    /// Admits the next queued job of a bulkhead after one of its jobs, which ran on this thread, has ended.
    fn finished(&self, bulkhead: Bulkhead, thread: Pid) {
        let mut state = self.state.lock();
        let limit = bulkhead.limit.min(state.share());
        let State { bulkheads, ready, running, .. } = &mut *state;
        if let Some(at) = running.iter().position(|job| job.thread == thread) {
            running.swap_remove(at);
        }
        let Some(jobs) = bulkheads.get_mut(&bulkhead) else { return };
        jobs.admitted -= 1;
        // two, if fewer than the limit were admitted when few workers were free
        for _ in 0..2 {
            if jobs.admitted < limit
                && let Some(job) = jobs.queue.pop_front()
            {
                jobs.admitted += 1;
                ready.push_back((bulkhead, job));
            }
        }
        if jobs.admitted == 0 {
            bulkheads.remove(&bulkhead);
        }
        // this thread takes one of them
        let has_another = ready.len() > 1 && state.idle > 0;
        drop(state);
        if has_another {
            self.job_ready.notify_one();
        }
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        let mut waiting = self.pool.waiting.lock();
        if let Some(requests) = waiting.get_mut(&self.number) {
            *requests -= 1;
            if *requests == 0 {
                waiting.remove(&self.number);
            }
        }
    }
}

/// Starts so many threads, which end at once: a runtime of tokio panics if the system refuses it one.
pub(crate) fn try_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    std::thread::scope(|scope| {
        let closed = gate.lock();
        let start = |_| {
            let (claim, gate) = (claim(THREAD)?, &gate);
            std::thread::Builder::new().spawn_scoped(scope, move || drop((claim, gate.lock())))
        };
        let started: io::Result<Vec<_>> = (0..count).map(start).collect();
        drop(closed);
        started.map(drop)
    })
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::OutOfMemory => "allow more memory (ulimit -v), or a smaller --cache-size",
        _ => "allow more processes (ulimit -u)",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_bulkhead_that_hangs_does_not_block_another() {
        let pool = Pool::new();
        let (release, hold) = mpsc::channel::<()>();
        let hold = Arc::new(Mutex::new(hold));
        for _ in 0..3 * JOBS_OF_BULKHEAD {
            let hold = Arc::clone(&hold);
            pool.submit(Bulkhead::new(1), move || {
                let _ = hold.lock().recv();
            });
        }
        let (done, answer) = mpsc::channel();
        pool.submit(Bulkhead::new(2), move || done.send(7).unwrap());
        assert_eq!(answer.recv_timeout(Duration::from_secs(30)), Ok(7));
        assert!(pool.state.lock().workers <= JOBS_OF_BULKHEAD + 1);
        let running = pool.running();
        let hung = running.iter().filter(|job| job.number == 1).count();
        assert!(hung == JOBS_OF_BULKHEAD && running.len() <= hung + 1, "{running:?}");
        drop(release);
        let began = Instant::now();
        while !pool.running().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(30), "{:?} still run", pool.running());
            thread::yield_now();
        }
    }

    #[test]
    fn prefetching_leaves_a_thread_to_requests() {
        let limit = |wanted| Bulkhead::new(1).for_prefetch(wanted).limit;
        assert_eq!([0, 1, 2, usize::MAX].map(limit), [1, 1, 2, JOBS_OF_BULKHEAD - 1]);
    }

    #[test]
    fn the_first_job_after_a_rest_is_told_of() {
        let (pool, calls) = (Pool::new(), Arc::new(Mutex::new(0)));
        let counted = Arc::clone(&calls);
        pool.on_first_job(Box::new(move || *counted.lock() += 1));
        let (release, hold) = mpsc::channel::<()>();
        pool.submit(Bulkhead::new(1), move || {
            let _ = hold.recv();
        });
        pool.submit(Bulkhead::new(2), || ());
        assert_eq!(*calls.lock(), 1);
        assert!(!pool.rest(), "a job runs");
        pool.submit(Bulkhead::new(2), || ());
        assert_eq!(*calls.lock(), 1);
        drop(release);
        let began = Instant::now();
        while !pool.rest() {
            assert!(began.elapsed() < Duration::from_secs(30), "{} jobs are left", pool.jobs());
            thread::yield_now();
        }
        pool.submit(Bulkhead::new(2), || ());
        assert_eq!(*calls.lock(), 2);
    }

    #[test]
    fn requests_are_counted_by_bulkhead_while_they_wait() {
        let pool = Pool::new();
        let (one, two) = (pool.request(Bulkhead::new(1)), pool.request(Bulkhead::new(1).for_prefetch(2)));
        assert_eq!((pool.requests(1), pool.requests(2)), (2, 0));
        drop((one, two));
        assert_eq!((pool.requests(1), pool.waiting.lock().len()), (0, 0));
    }

    #[test]
    fn many_bulkheads_that_hang_do_not_block_another() {
        let pool = Pool::new();
        let (release, hold) = mpsc::channel::<()>();
        let hold = Arc::new(Mutex::new(hold));
        let hung = 2 * MAX_WORKERS / JOBS_OF_BULKHEAD;
        for number in 0..hung as u64 {
            for _ in 0..JOBS_OF_BULKHEAD {
                let hold = Arc::clone(&hold);
                pool.submit(Bulkhead::new(number), move || {
                    let _ = hold.lock().recv();
                });
            }
        }
        let (done, answer) = mpsc::channel();
        for n in 0..100 {
            let done = done.clone();
            pool.submit(Bulkhead::new(1000), move || done.send(n).unwrap());
        }
        for _ in 0..100 {
            answer.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        assert!(pool.state.lock().workers < MAX_WORKERS);
        drop(release);
        let began = Instant::now();
        while pool.jobs() > 0 {
            assert!(began.elapsed() < Duration::from_secs(30), "{} jobs are left", pool.jobs());
            thread::yield_now();
        }
    }

    #[test]
    fn the_remedy_is_that_of_the_cause() {
        assert!(remedy(&io::ErrorKind::OutOfMemory.into()).contains("ulimit -v"));
        assert!(remedy(&io::ErrorKind::WouldBlock.into()).contains("ulimit -u"));
    }

    #[test]
    fn a_panic_costs_one_job() {
        let pool = Pool::new();
        pool.submit(Bulkhead::new(1), || panic!("on purpose"));
        let (done, answer) = mpsc::channel();
        for n in 0..100 {
            let done = done.clone();
            pool.submit(Bulkhead::new(1), move || done.send(n).unwrap());
        }
        let mut all: Vec<i32> = (0..100).map(|_| answer.recv_timeout(Duration::from_secs(30)).unwrap()).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..100));
    }
}
