//! A second process: made before there are threads, and cut off from whatever the first one has open.

#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{self, ForkResult, Pid};
use thiserror::Error;

/// Why there is no second process, or why it cannot go on.
#[derive(Debug, Error)]
#[error("{doing}: {error}")]
pub struct ProcessError {
    /// What was tried.
    doing: &'static str,
    /// The system's words.
    error: io::Error,
}

pub(super) fn failed<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> ProcessError {
    move |error| ProcessError { doing, error: error.into() }
}

/// Makes a second process, in which the call returns as well. One that ends keeps its number until this process waits for it or ends.
///
/// # Errors
/// [`ProcessError`]: if the system refuses, or if there are threads already, which a fork would lose.
pub fn fork() -> Result<ForkResult, ProcessError> {
    let threads = fs::read_dir("/proc/self/task").map_err(failed("cannot count threads"))?.count();
    if threads != 1 {
        return Err(failed("too late")(io::Error::other("there are other threads")));
    }
    // SAFETY: the default is no function that would have to be fit for a signal. Whoever has started this process may have had
    // the signal ignored; the system would then wait for children by itself.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }.map_err(failed("signals"))?;
    // SAFETY: there is no other thread (counted above), so that the child finds no lock held by a thread that it has not,
    // and may go on with any code.
    unsafe { unistd::fork() }.map_err(failed("fork"))
}

/// Has this process killed when its parent, the process `parent`, ends.
///
/// # Errors
/// [`ProcessError`] if the system refuses, or the parent has ended.
pub fn end_with(parent: Pid) -> Result<(), ProcessError> {
    set_pdeathsig(Signal::SIGKILL).map_err(failed("cannot be told of its parent's end"))?;
    if unistd::getppid() == parent { Ok(()) } else { Err(failed("too late")(io::Error::other("its parent has ended"))) }
}

/// Cuts a second process off: from the terminal, the folder and the files of the first. Only `kept` stays open, so that no other
/// descriptor may be used or closed afterwards.
///
/// # Errors
/// [`ProcessError`] if the system refuses.
pub fn leave_everything(kept: RawFd) -> Result<(), ProcessError> {
    unistd::setsid().map_err(failed("no session"))?;
    unistd::chdir("/").map_err(failed("cannot go to /"))?;
    close_inherited(kept).map_err(failed("cannot close files"))?;
    let null = File::options().read(true).write(true).open("/dev/null").map_err(failed("/dev/null"))?;
    unistd::dup2_stdin(&null).map_err(failed("/dev/null"))?;
    unistd::dup2_stdout(&null).map_err(failed("/dev/null"))?;
    unistd::dup2_stderr(&null).map_err(failed("/dev/null"))?;
    Ok(())
}

/// Closes every descriptor above 2 but `kept`.
fn close_inherited(kept: RawFd) -> io::Result<()> {
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&fd| fd > 2 && fd != kept)
        .collect();
    for fd in open {
        // the list has the descriptor that it was read with, which is closed by now
        match unistd::close(fd) {
            Ok(()) | Err(Errno::EBADF | Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_process_with_threads_does_not_fork() {
        // the test runner has threads
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(fork().unwrap_err().to_string(), "too late: there are other threads"));
        });
    }
}
