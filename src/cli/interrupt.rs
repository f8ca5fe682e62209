//! SIGHUP, SIGINT and SIGTERM end a long command at once, after its last words, unless its caller has them ignored.

use std::fs;
use std::process::exit;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use crate::cli::timeout::with_timeout;

/// How long the last words may take: the reader of a pipe may have stopped.
const GRACE: Duration = Duration::from_secs(2);

/// The signals that end the process, unless they are ignored: the shell of a script has SIGINT ignored by what it runs
/// in the background, and nohup SIGHUP.
const SIGNALS: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];

/// The signals that end the process.
pub(crate) struct Interrupts(Option<SigSet>);

/// Waits until the thread of the signals has ended the process, which gives the exit status.
pub(crate) fn wait_for_end() -> ! {
    loop {
        thread::park();
    }
}

impl Interrupts {
    /// Blocks the signals in this thread and those that it starts. If the system refuses, they end the process without
    /// a word.
    pub(crate) fn block() -> Self {
        let set: SigSet = ending_signals().into_iter().collect();
        Self(set.thread_block().is_ok().then_some(set))
    }

    /// Starts a thread that waits for a signal, calls `finish`, and ends the process with the exit status that shells
    /// give: 128 and the number of the signal.
    pub(crate) fn on_arrival(self, finish: impl FnOnce() + Send + 'static) {
        let Some(set) = self.0 else { return };
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
}

/// Returns the signals that end the process.
pub(crate) fn ending_signals() -> Vec<Signal> {
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    SIGNALS.into_iter().filter(|signal| ignored & bit(*signal) == 0).collect()
}

/// Returns the mask of the signals that a process ignores, from the text of its /proc/PID/status.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Returns the bit of a signal in such a mask.
fn bit(signal: Signal) -> u64 {
    1 << (signal as u32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_found() {
        let ignored = ignored("SigBlk:\t0000000000000007\nSigIgn:\t0000000000001003\nSigCgt:\t0000000000004000\n");
        let is_ignored = SIGNALS.map(|signal| ignored & bit(signal) != 0);
        assert_eq!(is_ignored, [true, true, false]);
        assert_eq!(super::ignored("nonsense"), 0);
    }
}
