//! Side processes, and the messages between a process and another one that it has forked.
//!
//! A side process does work that may hang, such as a look at a source whose server does not answer. A process whose
//! thread waits uninterruptibly cannot end, nor can a process that waits for it. So a side process has no terminal,
//! another working directory and none of the files of its parent. No process waits for its end, and it ends when its
//! work does.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::fork::{Child, ProcessError};

/// The longest message in bytes.
pub(super) const MAX_MESSAGE: usize = 68 << 10;

/// A running side process.
#[derive(Debug)]
pub(crate) struct SideProcess {
    pid: Pid,
    pub(crate) link: Link,
}

/// One end of the connection between a process and its side process.
#[derive(Debug)]
pub(crate) struct Link(pub(super) OwnedFd);

impl Link {
    /// Sends a message of at most 68 KiB, which must not be empty. Returns whether the other end is there.
    pub(crate) fn send(&self, message: &[u8]) -> bool {
        message.len() <= MAX_MESSAGE && send(&self.0, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_ok()
    }

    /// Like [`Link::send`], and waits until the other end has room.
    pub(crate) fn send_waiting(&self, message: &[u8]) -> bool {
        message.len() <= MAX_MESSAGE && send(&self.0, message, SendFlags::NOSIGNAL).is_ok()
    }

    /// Waits for a message until `deadline`. Returns `None` if none has come by then, or the other end is closed.
    pub(crate) fn receive(&self, deadline: impl Into<Option<Instant>>) -> Option<Vec<u8>> {
        let deadline = deadline.into();
        loop {
            let left = deadline.and_then(|end| timespec(end.saturating_duration_since(Instant::now())));
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], left.as_ref()) {
                Err(Errno::INTR) => continue,
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            let mut message = vec![0; MAX_MESSAGE];
            match recv(&self.0, message.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((length @ 1.., _)) => {
                    message.truncate(length);
                    return Some(message);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                _ => return None,
            }
        }
    }
}

/// Returns a duration as the system wants it; `None` if it is too long.
pub(super) fn timespec(time: Duration) -> Option<Timespec> {
    Timespec::try_from(time).ok()
}

impl SideProcess {
    /// Forks a process that runs `work` with its end of the connection; its working directory is `/`, and it is killed
    /// when this thread ends. It must be called before there are threads.
    pub(crate) fn start(work: impl FnOnce(Link)) -> Result<Self, ProcessError> {
        let Child { pid, socket } = Child::start(|socket| work(Link(socket)))?;
        Ok(Self { pid, link: Link(socket) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }
}

impl Drop for SideProcess {
    /// Ends the process, unless it hangs.
    fn drop(&mut self) {
        let _ = kill(self.pid, Signal::SIGKILL);
        for _ in 0..20 {
            if waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) != Ok(WaitStatus::StillAlive) {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount::fork::pair;

    #[test]
    fn waiting_for_a_message_ends() {
        let (one, other) = pair().unwrap();
        let (one, other) = (Link(one), Link(other));
        assert_eq!(one.receive(Instant::now() + Duration::from_millis(5)), None);
        assert!(other.send(b"a") && other.send(b"bc"));
        let soon = || Instant::now() + Duration::from_secs(10);
        assert_eq!((one.receive(soon()), one.receive(soon())), (Some(b"a".to_vec()), Some(b"bc".to_vec())));
        drop(other);
        assert_eq!(one.receive(soon()), None);
        assert!(!one.send(b"d"));
    }
}
