//! Waiting for a condition, with a timeout.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of [`wait_until`]: long enough for anything on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout, on a busy machine, for a change that the mount shows within a second.
pub const SOON: Duration = Duration::from_secs(10);

/// Waits until a condition holds; fails the test if it does not within [`TIMEOUT`].
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(comes_true(TIMEOUT, condition), "waited in vain until {what}");
}

/// Waits until a condition holds or `limit` has passed, and returns whether it holds.
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

/// Runs a closure in its own thread and returns its result, or `None` if it takes longer than `limit`. The thread then
/// goes on by itself.
pub fn within<T: Send + 'static>(limit: Duration, run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(run()));
    outcome.recv_timeout(limit).ok()
}

/// Waits until a value has stayed the same for `quiet`, and returns it; fails the test if it still changes after
/// [`TIMEOUT`].
pub fn settled<T: PartialEq>(quiet: Duration, value: impl Fn() -> T) -> T {
    let (mut last, mut since) = (value(), Instant::now());
    wait_until("a value stays the same", || {
        let now = value();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() >= quiet
    });
    last
}
