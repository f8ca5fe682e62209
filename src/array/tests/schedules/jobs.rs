//! The pool of threads, and its bulkheads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::sync::mpsc;

use super::check;
use crate::pool::{Bulkhead, Pool};
use crate::sync::{Condvar, Mutex, thread};

/// Waits until the pool has no jobs; the last one may have to be put away after it has run.
fn wait_until_idle(pool: &Pool) {
    while pool.jobs() > 0 {
        thread::yield_now();
    }
}

#[test]
fn each_job_runs_once_and_no_more_than_the_limit_at_a_time() {
    check(|| {
        let (pool, (done, finished)) = (Pool::new(), mpsc::channel());
        let running: Arc<AtomicUsize> = Arc::default();
        let submitters: Vec<_> = (0..2)
            .map(|submitter| {
                let (pool, done, running) = (Arc::clone(&pool), done.clone(), Arc::clone(&running));
                thread::spawn(move || {
                    for n in 0..3 {
                        let (done, running) = (done.clone(), Arc::clone(&running));
                        pool.submit(Bulkhead::new(1).for_prefetch(2), move || {
                            let at_once = running.fetch_add(1, Ordering::SeqCst) + 1;
                            thread::yield_now();
                            running.fetch_sub(1, Ordering::SeqCst);
                            done.send((submitter * 3 + n, at_once)).unwrap();
                        });
                    }
                })
            })
            .collect();
        let mut jobs: Vec<(usize, usize)> = (0..6).map(|_| finished.recv().unwrap()).collect();
        submitters.into_iter().for_each(|submitter| submitter.join().unwrap());
        jobs.sort_unstable();
        assert!(jobs.iter().map(|(job, _)| *job).eq(0..6), "{jobs:?}");
        assert!(jobs.iter().all(|(_, at_once)| *at_once <= 2), "{jobs:?}");
        wait_until_idle(&pool);
    });
}

#[test]
fn a_bulkhead_that_hangs_does_not_hold_up_another() {
    check(|| {
        let pool = Pool::new();
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (done, finished) = mpsc::channel();
        for _ in 0..3 {
            let (gate, done) = (Arc::clone(&gate), done.clone());
            pool.submit(Bulkhead::new(1).for_prefetch(1), move || {
                let mut is_open = gate.0.lock();
                while !*is_open {
                    gate.1.wait(&mut is_open);
                }
                done.send(1).unwrap();
            });
        }
        for _ in 0..2 {
            let done = done.clone();
            pool.submit(Bulkhead::new(2), move || done.send(2).unwrap());
        }
        assert_eq!([finished.recv().unwrap(), finished.recv().unwrap()], [2, 2]);
        *gate.0.lock() = true;
        gate.1.notify_all();
        assert_eq!([1; 3].map(|_| finished.recv().unwrap()), [1, 1, 1]);
        wait_until_idle(&pool);
    });
}
