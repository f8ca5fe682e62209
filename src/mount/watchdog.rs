//! The watchdog process: a child of the daemon that does nothing until the daemon ends without having unmounted.
//!
//! A daemon that was killed may be unable to end: a thread that waits uninterruptibly for an answer of a source (a
//! network or FUSE file system whose server hangs) keeps its process, and the process keeps the connection to the
//! kernel open. Then everybody who reads from the mount would hang until that source answers, whatever they read. The
//! watchdog ends the connection in place of the daemon, so that they get an error. And since a process that was killed
//! cannot log that, the watchdog does.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, Pid, getpid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::thread::set_name;

use super::connection::PinnedMount;
use super::fork::{self, ProcessError, failed};
use super::mountinfo;
use super::side_process::timespec;
use crate::logging::{self, Target};

/// The name of the process in lists of processes.
const NAME: &CStr = c"volfs-watch";

/// How long a daemon that was killed may take until the kernel has closed its files.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The signal with which the kernel reports the daemon's end.
const PARENT_ENDED: Signal = Signal::SIGUSR1;

/// The longest message in bytes: a device number and a path.
const MAX_MESSAGE: usize = 8 + 4096;

/// The message of a daemon that ends as it should.
const FINISHED: &[u8] = b"end";

/// The daemon's side of the watchdog process.
#[derive(Debug)]
pub struct Watchdog {
    socket: OwnedFd,
}

impl Watchdog {
    /// Starts the process, which logs to `log`. It must be called before there are threads, from the thread that lives
    /// as long as the daemon.
    ///
    /// # Errors
    /// [`ProcessError`] if the system refuses.
    pub fn start(log: Target) -> Result<Self, ProcessError> {
        let made = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = made.map_err(failed("no sockets"))?;
        let daemon = getpid();
        match fork::fork()? {
            ForkResult::Parent { .. } => Ok(Self { socket }),
            ForkResult::Child => exit(if Watcher::run(daemon, &theirs, log).is_ok() { 0 } else { 1 }),
        }
    }

    /// Tells the watchdog which mount is the daemon's.
    pub fn watch(&self, device: (u32, u32), mountpoint: &Path) {
        let mut message = [device.0.to_ne_bytes(), device.1.to_ne_bytes()].concat();
        message.extend_from_slice(mountpoint.as_os_str().as_bytes());
        self.send(&message);
    }

    /// Tells the watchdog that the daemon ends as it should, and leaves nothing to do.
    pub fn finished(&self) {
        self.send(FINISHED);
    }

    fn send(&self, message: &[u8]) {
        // if the watchdog has been killed there is none
        let _ = send(&self.socket, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// What the watchdog process waits for.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// The daemon has mounted.
    Mounted((u32, u32), PathBuf),
    /// The daemon ends as it should.
    Finished,
    /// The files of the daemon are closed: it has ended altogether.
    Closed,
    /// The daemon's main thread has ended.
    ParentEnded,
    /// Nothing for the given time.
    Nothing,
}

/// The loop of the watchdog process.
struct Watcher<'a> {
    daemon: Pid,
    socket: &'a OwnedFd,
    signals: SignalFd,
}

impl<'a> Watcher<'a> {
    fn run(daemon: Pid, socket: &'a OwnedFd, log: Target) -> Result<(), ProcessError> {
        // whoever ends the daemon by a signal to all of its processes must not end this one first
        SigSet::all().thread_block().map_err(failed("signals"))?;
        fork::signal_at_end_of_parent(daemon, PARENT_ENDED)?;
        fork::detach_from_parent(socket.as_raw_fd())?;
        // a failure is harmless: the process works under any name
        let _ = set_name(NAME);
        let signals = SignalFd::with_flags(&SigSet::from(PARENT_ENDED), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
        let watcher = Self { daemon, socket, signals: signals.map_err(failed("signals"))? };
        watcher.watch(log);
        Ok(())
    }

    /// Waits for the daemon's end, and does what it could not do.
    fn watch(&self, log: Target) {
        let daemon = self.daemon;
        let mut mount = None;
        loop {
            match self.next(None) {
                Event::Mounted(device, mountpoint) => mount = Some((device, mountpoint)),
                Event::Finished => return,
                Event::Closed | Event::ParentEnded => break,
                Event::Nothing => {}
            }
        }
        let Some((device, mountpoint)) = mount else { return };
        // pinned at once, since its number would be reused if somebody unmounted it now
        let place = mountinfo::place_of(device).unwrap_or_else(|| mountpoint.clone());
        let pinned = PinnedMount::at(&place, device);
        let ended = self.is_closed_within(LAST_WORDS);
        // messages on standard error go to whoever has started the process, and that process reports the end itself
        if log != Target::Stderr {
            let _ = logging::start(log, std::sync::Arc::default());
        }
        let place = place.display();
        log::error!(
            "the daemon of {place} (process {daemon}) ended without unmounting: it was killed, or memory ran out"
        );
        if ended {
            return;
        }
        match pinned.map(PinnedMount::abort) {
            Some(Ok(())) => log::error!("{place}: the daemon still waits for its source; its connection was ended"),
            Some(Err(error)) => {
                log::error!("{place}: the daemon still waits for its source, and so do readers: {error}")
            }
            None => {}
        }
    }

    /// Returns whether the daemon has closed its files by the end of this time.
    fn is_closed_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            match self.next(Some(deadline.saturating_duration_since(Instant::now()))) {
                Event::Closed => return true,
                Event::Nothing => return false,
                _ => {}
            }
        }
    }

    /// Waits for the next event; without a limit for any time.
    fn next(&self, limit: Option<Duration>) -> Event {
        let time = limit.map(timespec);
        let mut files =
            [PollFd::new(self.socket, PollFlags::IN), PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        match poll(&mut files, time.as_ref()) {
            Ok(0) => return Event::Nothing,
            Err(Errno::INTR) => return self.next(limit),
            // then nothing is known of the daemon, and its connection is left alone
            Err(_) => return Event::Finished,
            Ok(_) => {}
        }
        let mut message = [0; MAX_MESSAGE];
        match recv(self.socket, &mut message, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Event::Closed,
            Ok((length, _)) => parse(message.get(..length).unwrap_or_default()),
            Err(Errno::AGAIN | Errno::INTR) => match self.signals.read_signal() {
                // the kernel sends it in the name of the process that has ended; anybody else's means nothing
                Ok(Some(signal)) if signal.ssi_pid == self.daemon.as_raw().cast_unsigned() => Event::ParentEnded,
                _ => Event::Nothing,
            },
            Err(_) => Event::Closed,
        }
    }
}

fn parse(message: &[u8]) -> Event {
    let number = |bytes: Option<&[u8]>| bytes.and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
    match (number(message.get(..4)), number(message.get(4..8)), message.get(8..)) {
        (Some(major), Some(minor), Some(path)) if !path.is_empty() => {
            Event::Mounted((major, minor), OsStr::from_bytes(path).into())
        }
        _ => Event::Finished,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two ends of a watchdog without a process.
    fn watched() -> (Watchdog, OwnedFd, SignalFd) {
        let made = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = made.unwrap();
        let signals = SignalFd::with_flags(&SigSet::empty(), SfdFlags::SFD_NONBLOCK).unwrap();
        (Watchdog { socket }, theirs, signals)
    }

    #[test]
    fn the_watchdog_hears_what_the_daemon_says() {
        let (watchdog, socket, signals) = watched();
        let watcher = Watcher { daemon: getpid(), socket: &socket, signals };
        assert_eq!(watcher.next(Some(Duration::ZERO)), Event::Nothing);
        watchdog.watch((0, 77), Path::new("/mnt/a b"));
        watchdog.finished();
        assert_eq!(watcher.next(None), Event::Mounted((0, 77), "/mnt/a b".into()));
        assert_eq!(watcher.next(None), Event::Finished);
        assert!(!watcher.is_closed_within(Duration::from_millis(1)));
        drop(watchdog);
        assert!(watcher.is_closed_within(Duration::from_secs(10)));
    }
}
