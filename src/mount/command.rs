//! A command that runs beside this process in the foreground, as one that a shell starts: with the same terminal,
//! process group and descriptors 0 to 2.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use thiserror::Error;

use super::fork::{Child, ProcessError, failed, signal_at_end_of_parent};
use super::side_process::Link;

/// The signals that would end this process. While the command runs they are the command's.
const FORWARDED: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];

/// The origin (`si_code`) of a signal from the kernel.
const SI_KERNEL: i32 = 0x80;

/// Why a command did not run.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    #[error("{0}")]
    NotStarted(io::Error),
    #[error(transparent)]
    System(#[from] ProcessError),
}

/// The signals that would end this process, held back until this value is dropped.
#[derive(Debug)]
pub(crate) struct HeldSignals(SigSet);

impl HeldSignals {
    /// Holds the signals back from this thread, and from the threads and processes that it starts.
    pub(crate) fn hold() -> Result<Self, ProcessError> {
        let signals: SigSet = FORWARDED.into_iter().collect();
        signals.thread_swap_mask(SigmaskHow::SIG_BLOCK).map(Self).map_err(failed("signals"))
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // a set that the system gave is one that it takes
        let _ = self.0.thread_set_mask();
    }
}

/// Runs a command, and waits for its end. Returns its exit status, or 128 and the number of the signal that ended it,
/// as shells do.
///
/// Signals to this process are sent on to the command; those of the terminal's keys it gets anyway. They stay
/// blocked afterwards, so that this process can clean up. The command gets SIGTERM if this process is killed. To be
/// called before there are threads.
pub(crate) fn run_command(command: &mut Command) -> Result<u8, CommandError> {
    let signals: SigSet = FORWARDED.into_iter().chain([Signal::SIGCHLD]).collect();
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed("signals"))?;
    let received = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC).map_err(failed("signals"))?;
    // the connection is closed when the command starts, and carries the reason if it does not
    let Child { pid, socket } = Child::start_attached(|this, socket| {
        let ready = signal_at_end_of_parent(this, Signal::SIGTERM).is_ok() && before.thread_set_mask().is_ok();
        let error = if ready { command.exec() } else { Errno::ESRCH.into() };
        Link(socket).send(&error.raw_os_error().unwrap_or(0).to_ne_bytes());
        exit(1)
    })?;
    if let Some(errno) = Link(socket).receive(None) {
        let _ = waitpid(pid, None);
        let errno = errno.try_into().map_or(0, i32::from_ne_bytes);
        return Err(CommandError::NotStarted(io::Error::from_raw_os_error(errno)));
    }
    Ok(status_at_end(pid, &received))
}

/// Waits for the end of `child`, and passes signals on to it until then.
fn status_at_end(child: Pid, received: &SignalFd) -> u8 {
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, status)) => return u8::try_from(status).unwrap_or(1),
            Ok(WaitStatus::Signaled(_, signal, _)) => return 128 + u8::try_from(signal as i32).unwrap_or(0),
            Ok(_) | Err(Errno::EINTR) => {}
            // nobody else waits for it, so it cannot be gone
            Err(_) => return 1,
        }
        // its end is among the signals, which are blocked and so wait to be read
        let Ok(Some(signal)) = received.read_signal() else { continue };
        let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
        match Signal::try_from(number) {
            Ok(Signal::SIGCHLD) | Err(_) => {}
            // a key of the terminal sends it to all processes in its foreground
            Ok(Signal::SIGINT | Signal::SIGQUIT) if signal.ssi_code == SI_KERNEL => {}
            // it may have ended just now
            Ok(signal) => drop(kill(child, signal)),
        }
    }
}
