//! The signals that end a command after its last words, and timeouts within a process. Work that may wait uninterruptibly
//! needs another process: see [`deadline`](super::deadline).

use std::process::exit;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use super::processes::{status, status_field};

/// The time to print last words: the reader of a pipe may have stopped.
const GRACE: Duration = Duration::from_secs(2);

/// The signals that end a long command after its last words, unless its caller ignores them, as nohup does SIGHUP and
/// the shell of a script SIGINT for a command in the background.
const SIGNALS: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];

/// Waits until the thread of the signals ends the process.
pub(super) fn wait_for_end() -> ! {
    loop {
        thread::park();
    }
}

/// Starts a thread that waits for a signal, calls `finish`, and ends the process with the exit status that shells give: 128
/// and the number of the signal. Must be called before there are threads, which inherit the mask.
pub(super) fn on_signal(finish: impl FnOnce() + Send + 'static) {
    let set: SigSet = ending_signals().into_iter().collect();
    if set.thread_block().is_err() {
        // the signals end the process at once
        return;
    }
    let wait = move || {
        if let Ok(signal) = set.wait() {
            with_timeout(GRACE, finish);
            exit(128 + signal as i32);
        }
    };
    if thread::Builder::new().name("volfs-signals".into()).spawn(wait).is_err() {
        // without the thread the signals must end the process by themselves
        let _ = set.thread_unblock();
    }
}

pub(super) fn ending_signals() -> Vec<Signal> {
    let status = status("self");
    SIGNALS.into_iter().filter(|signal| !ignores(&status, *signal)).collect()
}

/// Returns whether a process ignores a signal, from the text of its /proc/PID/status.
fn ignores(status: &str, signal: Signal) -> bool {
    let mask = status_field(status, "SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    mask.unwrap_or(0) >> (signal as u32 - 1) & 1 == 1
}

/// Returns the result of `work`, or `None` if it takes longer than `limit` or the system has no more threads. A call that
/// hangs stays in its thread, which ends with the process.
pub(super) fn with_timeout<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    // the receiver is gone after a timeout; without a thread the sender is dropped, which ends the waiting
    let _ = thread::Builder::new().spawn(move || drop(sender.send(work())));
    receiver.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_found() {
        let status = "SigBlk:\t0000000000000007\nSigIgn:\t0000000000001003\nSigCgt:\t0000000000004000\n";
        assert_eq!(SIGNALS.map(|signal| ignores(status, signal)), [true, true, false]);
        assert_eq!(SIGNALS.map(|signal| ignores("nonsense", signal)), [false; 3]);
    }

    #[test]
    fn waiting_ends() {
        assert_eq!(with_timeout(Duration::from_secs(10), || 7), Some(7));
        assert_eq!(with_timeout(Duration::from_millis(5), || thread::sleep(Duration::from_secs(2))), None);
    }
}
