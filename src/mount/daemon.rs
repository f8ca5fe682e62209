//! The daemon: the process that continues in the background when the command returns. It is forked before there are
//! threads, and reports to the command when the mount is ready.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid};
use thiserror::Error;

use super::fork::{self, ProcessError};
use super::mountinfo::{is_mount_of, unmount};
use super::side_process::{Link, MAX_MESSAGE};

/// The daemon's message when the mount is ready; any other message is the reason why the mount failed.
const READY: &[u8] = b"ready\n";

/// The question to a daemon whether its mount still is one, and the answer that it is.
const IS_MOUNTED: &[u8] = b"is mounted?";
const MOUNTED: &[u8] = b"mounted";

/// How long a daemon takes to answer that, unless it was stopped.
const SOON: Duration = Duration::from_secs(1);

/// The message to a daemon that it need not end with the process that started it.
const RELEASED: &[u8] = b"released";

/// Why there is no daemon.
#[derive(Debug, Error)]
pub(crate) enum DaemonError {
    #[error("cannot start in the background: {0}; --foreground does without")]
    System(#[from] ProcessError),
    #[error("{0}")]
    Refused(String),
    #[error("the daemon ended before the mount was ready ({0}); --foreground shows more")]
    Died(String),
    #[error("the mount did not answer within {} s and was given up; is the source reachable?", .0.as_secs())]
    TimedOut(Duration),
}

/// The role of this process after [`detach`].
#[derive(Debug)]
pub(crate) enum Role {
    /// The command, which waits for the daemon and returns.
    Starter(Started),
    /// The process that continues in the background.
    Daemon(Ready),
}

/// Forks a daemon, which has its own session, `/` as its working directory, and none of the open files of this process.
pub(crate) fn detach() -> Result<Role, DaemonError> {
    let (ours, theirs) = fork::pair()?;
    match fork::fork()? {
        ForkResult::Parent { child } => Ok(Role::Starter(Started { child, link: Link(ours) })),
        ForkResult::Child => {
            drop(ours);
            let ready = Ready(Link(theirs));
            match fork::detach_from_parent(ready.0.0.as_raw_fd()) {
                Ok(()) => Ok(Role::Daemon(ready)),
                Err(error) => {
                    ready.failed(&error.to_string());
                    exit(1);
                }
            }
        }
    }
}

/// A daemon that was started, and may be ready.
#[derive(Debug)]
pub(crate) struct Started {
    child: Pid,
    link: Link,
}

impl Started {
    /// Waits until the daemon is ready. Kills it and removes its mount of `source` if that takes longer than `limit`.
    pub(crate) fn wait(self, limit: Duration, source: &Path, mountpoint: &Path) -> Result<Self, DaemonError> {
        let deadline = Instant::now() + limit;
        match self.link.receive(deadline) {
            Some(message) if message == READY => Ok(self),
            Some(reason) => Err(DaemonError::Refused(String::from_utf8_lossy(&reason).into_owned())),
            None if Instant::now() < deadline => Err(DaemonError::Died(ending(self.child))),
            None => {
                self.give_up(source, mountpoint);
                Err(DaemonError::TimedOut(limit))
            }
        }
    }

    /// Returns whether the mount of a daemon that was bound to this process by [`Ready::succeeded_bound`] still is one:
    /// its device number is no proof, since the next mount gets it.
    pub(crate) fn is_mounted(&self) -> bool {
        self.link.send(IS_MOUNTED);
        let deadline = Instant::now() + SOON;
        match self.link.receive(deadline) {
            Some(answer) => answer == MOUNTED,
            // it does not answer, or it has ended
            None => Instant::now() >= deadline,
        }
    }

    /// Lets a daemon that was bound to this process by [`Ready::succeeded_bound`] live on.
    pub(crate) fn release(self) {
        self.link.send(RELEASED);
    }

    /// Kills the daemon and removes its mount of `source`, if there is one.
    pub(crate) fn give_up(&self, source: &Path, mountpoint: &Path) {
        // this fails if the process has ended already
        let _ = kill(self.child, Signal::SIGKILL);
        // Nothing was mounted there before the daemon started, so a mount of this source is its own; that of another
        // source was made meanwhile. If this fails, the error that the caller is about to report matters more.
        if is_mount_of(source, mountpoint) {
            let _ = unmount(mountpoint, true);
        }
        let _ = waitpid(self.child, Some(WaitPidFlag::WNOHANG));
    }
}

fn ending(child: Pid) -> String {
    match waitpid(child, None) {
        Ok(WaitStatus::Exited(_, status)) => format!("exit status {status}"),
        Ok(WaitStatus::Signaled(_, signal, _)) => signal.as_str().to_owned(),
        _ => "no status".to_owned(),
    }
}

/// The daemon's end of the connection, through which it reports that it is ready or why it is not.
#[derive(Debug)]
pub(crate) struct Ready(Link);

impl Ready {
    /// Reports that the mount is ready. Returns `false` if the command no longer waits: it was interrupted, and wants
    /// no mount.
    pub(crate) fn succeeded(self) -> bool {
        self.0.send(READY)
    }

    /// Like [`Ready::succeeded`]. If the command ends later without [`Started::release`], since it was killed, `lost`
    /// is called on a separate thread. `is_mounted` answers [`Started::is_mounted`]. Returns `false` also if the system
    /// has no more threads.
    pub(crate) fn succeeded_bound(
        self,
        is_mounted: impl Fn() -> bool + Send + 'static,
        lost: impl FnOnce() + Send + 'static,
    ) -> bool {
        let Self(link) = self;
        let is_sent = link.send(READY);
        let wait = move || {
            loop {
                match link.receive(None).as_deref() {
                    Some(IS_MOUNTED) => drop(link.send(if is_mounted() { MOUNTED } else { b"unmounted" })),
                    Some(RELEASED) => return,
                    _ => return lost(),
                }
            }
        };
        is_sent && thread::Builder::new().name("volfs-starter".into()).spawn(wait).is_ok()
    }

    /// Reports that there will be no mount; `reason` is one line for the user.
    pub(crate) fn failed(self, reason: &str) {
        self.0.send(reason.as_bytes().get(..MAX_MESSAGE).unwrap_or(reason.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::mount::fork::pair;

    const LATE: Duration = Duration::from_secs(10);

    fn links() -> (Started, Ready) {
        let (ours, theirs) = pair().unwrap();
        (Started { child: nix::unistd::getpid(), link: Link(ours) }, Ready(Link(theirs)))
    }

    fn wait(starter: Started) -> Result<Started, DaemonError> {
        starter.wait(LATE, Path::new("/none"), Path::new("/none"))
    }

    #[test]
    fn readiness_is_reported_to_the_command() {
        let (starter, ready) = links();
        assert!(ready.succeeded() && wait(starter).is_ok());

        let (starter, ready) = links();
        ready.failed("no für");
        assert!(matches!(wait(starter), Err(DaemonError::Refused(reason)) if reason == "no für"));

        let (starter, ready) = links();
        drop(ready);
        assert!(matches!(wait(starter), Err(DaemonError::Died(_))));

        let (starter, ready) = links();
        drop(starter);
        assert!(!ready.succeeded());
    }

    #[test]
    fn a_bound_daemon_notices_that_its_starter_ends_without_a_word() {
        for released in [false, true] {
            let (starter, ready) = links();
            let (sender, lost) = channel();
            assert!(ready.succeeded_bound(move || released, move || sender.send(()).unwrap()));
            let started = wait(starter).unwrap();
            assert_eq!(started.is_mounted(), released);
            if released {
                started.release()
            } else {
                drop(started)
            }
            // the thread ends without a call when it is released
            assert_eq!(lost.recv_timeout(LATE).is_ok(), !released);
        }
        let (starter, ready) = links();
        drop(ready);
        assert!(!starter.is_mounted());
    }
}
