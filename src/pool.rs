//! Threads for whatever may take time: a disk, a decoder.
//!
//! The threads that talk to the kernel hand such work in here and go on. Work belongs to a *bulkhead* (a dataset, a folder), and a
//! bulkhead has a bounded number of threads at a time: a source that hangs stops its own bulkhead and nobody else's. Threads are made
//! when work waits and nobody is free, and go away when they have been idle for a while.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What work belongs to: bulkheads are told apart by a number, and a bulkhead has so many threads at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bulkhead {
    number: u64,
    width: usize,
}

impl Bulkhead {
    /// The bulkhead of this number, for work that somebody waits for.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self { number, width: BULKHEAD_THREADS }
    }

    /// The bulkhead beside this one for work that nobody waits for yet, `width` jobs at a time: it takes no thread from the work
    /// that somebody does wait for.
    #[must_use]
    pub fn ahead(self, width: usize) -> Self {
        Self { number: self.number, width: width.clamp(1, BULKHEAD_THREADS - 1) }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads of a bulkhead at a time.
const BULKHEAD_THREADS: usize = 12;
/// Threads in all.
const ALL_THREADS: usize = 160;
/// An idle thread waits so long for work.
const IDLE: Duration = Duration::from_secs(5);

/// Threads that wait for work.
#[derive(Default)]
pub struct Pool {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<(Bulkhead, Job)>,
    bulkheads: HashMap<Bulkhead, BulkheadState>,
    threads: usize,
    idle: usize,
}

#[derive(Default)]
struct BulkheadState {
    /// Jobs of the bulkhead that run or are ready to.
    admitted: usize,
    waiting: VecDeque<Job>,
}

impl Pool {
    /// A pool without threads; they come with the work.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Runs `job` on a thread of the pool, as soon as its bulkhead has one.
    pub fn submit(self: &Arc<Self>, bulkhead: Bulkhead, job: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        let of_lane = state.bulkheads.entry(bulkhead).or_default();
        if of_lane.admitted >= bulkhead.width {
            of_lane.waiting.push_back(Box::new(job));
            return;
        }
        of_lane.admitted += 1;
        state.ready.push_back((bulkhead, Box::new(job)));
        let missing = state.ready.len() > state.idle && state.threads < ALL_THREADS;
        if !missing {
            drop(state);
            self.work.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let pool = Arc::clone(self);
        if thread::Builder::new().name("volfs-pool".into()).spawn(move || pool.work()).is_err() {
            // no thread to be had: those that there are will come to it
            self.lock().threads -= 1;
            self.work.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn work(&self) {
        while let Some((bulkhead, job)) = self.next() {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                log::error!("internal error: a worker stopped in the middle of a request; the request fails");
            }
            self.finished(bulkhead);
        }
    }

    /// The next job, or `None` if the thread should end.
    fn next(&self) -> Option<(Bulkhead, Job)> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.ready.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            let (now, timed_out) = self.work.wait_timeout(state, IDLE);
            state = now;
            state.idle -= 1;
            if timed_out && state.ready.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }

    /// Gives the bulkhead's thread to the bulkhead's next job.
    fn finished(&self, bulkhead: Bulkhead) {
        let mut state = self.lock();
        let Some(of_lane) = state.bulkheads.get_mut(&bulkhead) else { return };
        match of_lane.waiting.pop_front() {
            Some(job) => state.ready.push_back((bulkhead, job)),
            None => {
                of_lane.admitted -= 1;
                if of_lane.admitted == 0 {
                    state.bulkheads.remove(&bulkhead);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_lane_that_hangs_does_not_stop_another() {
        let pool = Pool::new();
        let (release, hold) = mpsc::channel::<()>();
        let hold = Arc::new(Mutex::new(hold));
        for _ in 0..3 * BULKHEAD_THREADS {
            let hold = Arc::clone(&hold);
            pool.submit(Bulkhead::new(1), move || {
                let _ = hold.lock().recv();
            });
        }
        let (done, answer) = mpsc::channel();
        pool.submit(Bulkhead::new(2), move || done.send(7).unwrap());
        assert_eq!(answer.recv_timeout(Duration::from_secs(30)), Ok(7));
        assert!(pool.lock().threads <= BULKHEAD_THREADS + 1);
        drop(release);
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
