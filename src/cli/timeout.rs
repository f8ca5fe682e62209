//! Waiting no longer than one wants to.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The outcome of `work`, or `None` if it takes longer than `limit`. A call into a mount whose daemon hangs never returns:
/// it is left behind in its thread, which ends with the process.
pub fn with_timeout<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    spawn(work).wait_until(Instant::now() + limit)
}

/// Begins `work` in a thread of its own.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Pending<T> {
    let (sender, receiver) = mpsc::channel();
    // nobody listens any more if this took too long
    thread::spawn(move || drop(sender.send(work())));
    Pending(receiver)
}

/// The outcome of work that goes on elsewhere.
pub struct Pending<T>(mpsc::Receiver<T>);

impl<T> Pending<T> {
    /// The outcome, or `None` if it is not there by `deadline`.
    pub fn wait_until(self, deadline: Instant) -> Option<T> {
        self.0.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }
}

/// Asks again and again, in growing steps, until the answer is `true` or the time is over; whether it was.
pub fn poll_until(limit: Duration, mut answer: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if answer() {
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
    fn patience_ends() {
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
