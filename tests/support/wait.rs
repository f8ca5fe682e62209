//! Waiting for a condition, with a limit.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for anything on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The limit for a change that the mount shows within a second, on a busy machine.
pub const SOON: Duration = Duration::from_secs(10);

/// Waits until a condition holds; fails the test if it does not within [`PATIENCE`].
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(comes_true(PATIENCE, condition), "waited in vain until {what}");
}

/// Returns whether a condition comes to hold before the limit.
pub fn comes_true(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if began.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs something in a thread of its own and returns its outcome, or `None` if it takes longer than `limit`. The thread is
/// then left behind.
pub fn within<T: Send + 'static>(limit: Duration, run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(run()));
    outcome.recv_timeout(limit).ok()
}
