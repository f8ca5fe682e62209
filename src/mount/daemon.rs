//! The daemon: the process that continues in the background when the command returns. It is forked before there are
//! threads, and reports through a socket when the mount is ready.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use thiserror::Error;

use super::fork::{self, ProcessError, failed};
use super::mountinfo::{is_mount_of, unmount};
use super::side_process::timespec;

/// The daemon's message when the mount is ready; any other message is the reason why the mount failed.
const READY: &str = "ready\n";

/// The message to a daemon that it need not end with the process that has started it.
const RELEASED: &[u8] = b"r";

/// The longest reason in bytes; the rest is not read.
const LONGEST_REASON: usize = 64 * 1024;

/// Why there is no daemon.
#[derive(Debug, Error)]
pub(crate) enum DaemonError {
    /// The operating system refuses.
    #[error("cannot start in the background: {0}; --foreground does without")]
    System(#[from] ProcessError),
    /// The daemon reported why it ended.
    #[error("{0}")]
    Refused(String),
    /// The daemon ended and reported nothing.
    #[error("the daemon ended before the mount was ready ({0}); --foreground shows more")]
    Died(String),
    /// The daemon neither ended nor became ready.
    #[error("the mount did not answer within {} s and was given up; is the source reachable?", .0.as_secs())]
    TimedOut(Duration),
}

/// The role of this process after [`detach`].
#[derive(Debug)]
pub(crate) enum Role {
    /// The command, which waits for the daemon and returns.
    Starter(Starter),
    /// The process that continues in the background.
    Daemon(Ready),
}

/// Forks a daemon, which has its own session, `/` as its working directory, and none of the open files of this process.
pub(crate) fn detach() -> Result<Role, DaemonError> {
    let (ours, theirs) = UnixStream::pair().map_err(failed("no sockets"))?;
    match fork::fork()? {
        ForkResult::Parent { child } => Ok(Role::Starter(Starter { child, link: ours })),
        ForkResult::Child => {
            drop(ours);
            let mut ready = Ready { link: theirs };
            match fork::detach_from_parent(ready.link.as_raw_fd()) {
                Ok(()) => Ok(Role::Daemon(ready)),
                Err(error) => {
                    ready.send(&error.to_string());
                    exit(1);
                }
            }
        }
    }
}

/// The command that was called, and its end of the socket.
#[derive(Debug)]
pub(crate) struct Starter {
    child: Pid,
    link: UnixStream,
}

impl Starter {
    /// Waits until the daemon is ready. Kills it and removes its mount of `source` if that takes longer than `limit`.
    pub(crate) fn wait(self, limit: Duration, source: &Path, mountpoint: &Path) -> Result<Started, DaemonError> {
        let Self { child, link } = self;
        let message = read_until(&link, Instant::now() + limit);
        let started = Started { child, link };
        match message {
            Some(message) if message == READY => Ok(started),
            Some(message) if message.trim().is_empty() => Err(DaemonError::Died(ending(child))),
            Some(message) => Err(DaemonError::Refused(message.trim_end().to_owned())),
            None => {
                started.give_up(source, mountpoint);
                Err(DaemonError::TimedOut(limit))
            }
        }
    }
}

/// Reads a message to its end, or [`READY`]; returns `None` if that does not come by `deadline`. What cannot be read
/// counts as the end.
fn read_until(mut link: &UnixStream, deadline: Instant) -> Option<String> {
    let mut message = Vec::new();
    while message != READY.as_bytes() {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut [PollFd::new(link, PollFlags::IN)], timespec(left).as_ref()) {
            Ok(0) => return None,
            Err(Errno::INTR) => continue,
            _ => {}
        }
        let mut part = [0; 4096];
        match link.read(&mut part) {
            Ok(length @ 1..) if message.len() < LONGEST_REASON => {
                message.extend_from_slice(part.get(..length).unwrap_or_default());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    Some(String::from_utf8_lossy(&message).into_owned())
}

/// A daemon that is ready.
#[derive(Debug)]
pub(crate) struct Started {
    child: Pid,
    link: UnixStream,
}

impl Started {
    /// Lets a daemon that was bound to this process by [`Ready::succeeded_bound`] live on.
    pub(crate) fn release(mut self) {
        // a daemon that is gone need not know
        let _ = self.link.write_all(RELEASED);
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

/// The daemon's end of the socket, through which it reports that it is ready or why it is not.
#[derive(Debug)]
pub(crate) struct Ready {
    link: UnixStream,
}

impl Ready {
    /// Reports that the mount is ready. Returns `false` if the caller no longer waits: it was interrupted, and wants no
    /// mount.
    pub(crate) fn succeeded(mut self) -> bool {
        self.send(READY)
    }

    /// Like [`Ready::succeeded`]. If the caller ends later without [`Started::release`], since it was killed, `lost` is
    /// called on a thread of its own. Returns `false` also if the system has no more threads.
    pub(crate) fn succeeded_bound(mut self, lost: impl FnOnce() + Send + 'static) -> bool {
        let Ok(mut link) = self.link.try_clone() else { return false };
        let wait = move || {
            let mut message = [0];
            loop {
                match link.read(&mut message) {
                    Ok(1) => return,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => return lost(),
                }
            }
        };
        self.send(READY) && thread::Builder::new().name("volfs-starter".into()).spawn(wait).is_ok()
    }

    /// Reports that there will be no mount; `reason` is one line for the caller.
    pub(crate) fn failed(mut self, reason: &str) {
        self.send(reason);
    }

    fn send(&mut self, message: &str) -> bool {
        self.link.write_all(message.as_bytes()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn waiting_for_a_message_ends() {
        let (reader, mut writer) = UnixStream::pair().unwrap();
        writer.write_all(b"no ").unwrap();
        assert_eq!(read_until(&reader, Instant::now() + Duration::from_millis(5)), None);
        writer.write_all("für".as_bytes()).unwrap();
        drop(writer);
        assert_eq!(read_until(&reader, Instant::now() + SOON), Some("für".to_owned()));
    }

    #[test]
    fn readiness_is_reported_through_the_socket() {
        let (reader, link) = UnixStream::pair().unwrap();
        assert!(Ready { link }.succeeded());
        assert_eq!(read_until(&reader, Instant::now() + SOON).as_deref(), Some(READY));

        let (reader, link) = UnixStream::pair().unwrap();
        drop(reader);
        assert!(!Ready { link }.succeeded());
    }

    #[test]
    fn a_bound_daemon_notices_that_its_starter_ends_without_a_word() {
        for released in [false, true] {
            let (ours, link) = UnixStream::pair().unwrap();
            let (sender, lost) = channel();
            assert!(Ready { link }.succeeded_bound(move || sender.send(()).unwrap()));
            // the message ends although the daemon keeps its end
            assert_eq!(read_until(&ours, Instant::now() + SOON).as_deref(), Some(READY));
            let started = Started { child: nix::unistd::getpid(), link: ours };
            if released {
                started.release()
            } else {
                drop(started)
            }
            // the thread ends without a call when it is released
            assert_eq!(lost.recv_timeout(SOON).is_ok(), !released);
        }
    }
}
