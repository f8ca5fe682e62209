//! Timeouts within a process. What may wait uninterruptibly belongs into another one: see [`deadline`](super::deadline).

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Returns the result of `work`, or `None` if it takes longer than `limit` or the system has no more threads. A call that
/// hangs is left behind in its thread, which ends with the process.
pub(crate) fn with_timeout<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    // the receiver is gone after a timeout; without a thread the sender is dropped, which ends the waiting
    let _ = thread::Builder::new().spawn(move || drop(sender.send(work())));
    receiver.recv_timeout(limit).ok()
}

/// Calls `done` again and again, with growing pauses, until it returns `true` or `limit` has passed. Returns its
/// last result.
pub(crate) fn poll_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends() {
        assert_eq!(with_timeout(Duration::from_secs(10), || 7), Some(7));
        assert_eq!(with_timeout(Duration::from_millis(5), || thread::sleep(Duration::from_secs(2))), None);
        assert!(!poll_until(Duration::from_millis(5), || false));
        let mut n = 0;
        assert!(poll_until(Duration::from_secs(10), || {
            n += 1;
            n == 3
        }));
    }
}
