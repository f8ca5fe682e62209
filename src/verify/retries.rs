//! Reads that failed by the system's fault are tried again: a file server may not answer for a moment, and descriptors
//! or memory may be short. A disk that is broken is not waited for again and again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The time before each retry.
const PAUSES: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(500)];
/// After this many reads in a row that no retry helped, none is tried again.
const PATIENCE: u32 = 32;

/// Tries again what failed, as long as that helps now and then.
#[derive(Debug)]
pub(super) struct Retries {
    left: AtomicU32,
}

impl Default for Retries {
    fn default() -> Self {
        Self { left: AtomicU32::new(PATIENCE) }
    }
}

impl Retries {
    /// Returns what `work` returns; calls it a few times if `failed` says that another try may help, until
    /// `is_stopped`.
    pub(super) fn run<T>(
        &self,
        is_stopped: impl Fn() -> bool,
        failed: impl Fn(&T) -> bool,
        mut work: impl FnMut() -> T,
    ) -> T {
        let mut result = work();
        if !failed(&result) {
            return result;
        }
        for pause in PAUSES {
            if self.left.load(Ordering::Relaxed) == 0 || is_stopped() {
                return result;
            }
            thread::sleep(pause);
            result = work();
            if !failed(&result) {
                self.left.store(PATIENCE, Ordering::Relaxed);
                return result;
            }
        }
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails so often, and then not. Returns whether it did not in the end, and the number of calls.
    fn run(retries: &Retries, failures: u32) -> (bool, u32) {
        let mut calls = 0;
        let work = || {
            calls += 1;
            calls > failures
        };
        (retries.run(|| false, |right| !right, work), calls)
    }

    #[test]
    fn a_failure_is_tried_again_as_long_as_that_helps_now_and_then() {
        let retries = Retries::default();
        assert_eq!([run(&retries, 0), run(&retries, 2)], [(true, 1), (true, 3)]);
        assert_eq!(run(&retries, u32::MAX), (false, 4));
        retries.left.store(1, Ordering::Relaxed);
        assert_eq!([run(&retries, u32::MAX), run(&retries, u32::MAX)], [(false, 4), (false, 1)]);
        retries.left.store(1, Ordering::Relaxed);
        assert_eq!(run(&retries, 1), (true, 2));
        assert_eq!(retries.left.load(Ordering::Relaxed), PATIENCE);
        assert!(!retries.run(|| true, |right: &bool| !right, || false), "interrupted");
    }
}
