//! SIGINT and SIGTERM end a long command at once, after its last words.

use std::process::exit;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use crate::cli::timeout::with_timeout;

/// How long the last words may take: the reader of a pipe may have stopped.
const GRACE: Duration = Duration::from_secs(2);

/// The signals that end the process.
pub struct Interrupts(Option<SigSet>);

/// Waits until the thread of the signals has ended the process, which gives the exit status.
pub fn wait_for_end() -> ! {
    loop {
        thread::park();
    }
}

impl Interrupts {
    /// Blocks the signals in this thread and those that it starts. If the system refuses, they end the process without
    /// a word.
    pub fn block() -> Self {
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        Self(set.thread_block().is_ok().then_some(set))
    }

    /// Starts a thread that waits for a signal, calls `finish`, and ends the process with the exit status that shells
    /// give: 128 and the number of the signal.
    pub fn on_arrival(self, finish: impl FnOnce() + Send + 'static) {
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
