//! The watchdog process: a child of the daemon that does nothing until the daemon ends without having unmounted.
//!
//! A daemon that was killed may be unable to end: a thread that waits uninterruptibly for an answer of a source (a
//! network or FUSE file system whose server hangs) keeps its process, and the process keeps the connection to the
//! kernel open. Then everybody who reads from the mount would hang until that source answers, whatever they read. The
//! watchdog ends the connection in place of the daemon, so that they get an error. And since a process that was killed
//! cannot log that, the watchdog does.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
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
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::thread::set_name;

use super::connection::{Connection, Lever, PinnedMount, abort};
use super::fork::{self, ProcessError, failed};
use super::last_words::{self, LastWords};
use super::mountinfo;
use super::refusal::Refusal;
use super::side_process::timespec;
use crate::logging::{self, Target};

/// The name of the process in lists of processes.
const NAME: &CStr = c"volfs-watch";

/// How long a daemon that was killed, or that ends, may take until the kernel has closed its files.
const END_OF_DAEMON: Duration = Duration::from_millis(500);

/// The signal with which the kernel reports the daemon's end.
const PARENT_ENDED: Signal = Signal::SIGUSR1;

/// Bytes of the longest message: what it is, a device number and a path.
const MAX_MESSAGE: usize = 9 + 4096;

/// The first byte of a message: the daemon ends as it should, or has mounted, which comes with a file of fusectl, with
/// the FUSE device, or without a descriptor.
const FINISHED: u8 = b'f';
const MOUNTED_WITH_ABORT: u8 = b'a';
const MOUNTED_WITH_DEVICE: u8 = b'd';
const MOUNTED: u8 = b'm';

/// The daemon's side of the watchdog process.
#[derive(Debug)]
pub(crate) struct Watchdog {
    socket: OwnedFd,
}

impl Watchdog {
    /// Starts the process, which logs to `log`. It must be called before there are threads, from the thread that lives
    /// as long as the daemon.
    pub(crate) fn start(log: Target) -> Result<Self, ProcessError> {
        let made = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = made.map_err(failed("no sockets"))?;
        let daemon = getpid();
        match fork::fork()? {
            ForkResult::Parent { .. } => {
                last_words::send_to(&socket);
                Ok(Self { socket })
            }
            ForkResult::Child => exit(if Watcher::run(daemon, &theirs, log).is_ok() { 0 } else { 1 }),
        }
    }

    /// Tells the watchdog which mount is the daemon's, and gives it what it needs to end the connection.
    pub(crate) fn watch(&self, connection: &Connection, mountpoint: &Path) {
        let kind = match connection.lever() {
            Some(Lever::Abort(_)) => MOUNTED_WITH_ABORT,
            Some(Lever::Device(_)) => MOUNTED_WITH_DEVICE,
            None => MOUNTED,
        };
        let (major, minor) = connection.device();
        let mut message = [&[kind][..], &major.to_ne_bytes(), &minor.to_ne_bytes()].concat();
        message.extend_from_slice(mountpoint.as_os_str().as_bytes());
        let descriptors = connection.lever().map(|lever| match lever {
            Lever::Abort(file) => [file.as_fd()],
            Lever::Device(device) => [device.as_fd()],
        });
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if let Some(descriptors) = &descriptors {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        self.send(&message, &mut control);
    }

    /// Tells the watchdog that the daemon ends as it should.
    pub(crate) fn finished(&self) {
        self.send(&[FINISHED], &mut SendAncillaryBuffer::default());
    }

    fn send(&self, message: &[u8], control: &mut SendAncillaryBuffer<'_, '_, '_>) {
        // if the watchdog has been killed there is none
        let _ = sendmsg(&self.socket, &[IoSlice::new(message)], control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// The daemon's mount.
#[derive(Debug)]
struct Watched {
    device: (u32, u32),
    mountpoint: PathBuf,
    lever: Option<Lever>,
}

/// What the watchdog process waits for.
#[derive(Debug)]
enum Event {
    /// The daemon has mounted.
    Mounted(Watched),
    /// The daemon, or a child that it forked, is about to end by a signal.
    LastWords(LastWords),
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
        let (mut mount, mut last_words) = (None, None);
        let finished = loop {
            match self.next(None) {
                Event::Mounted(watched) => mount = Some(watched),
                Event::LastWords(words) if words.are_of(self.daemon) => last_words = Some(words),
                Event::Finished => break true,
                Event::Closed | Event::ParentEnded => break false,
                Event::LastWords(_) | Event::Nothing => {}
            }
        };
        let Some(Watched { device, mountpoint, lever }) = mount else { return };
        // pinned at once, since its number would be reused if somebody unmounted it now
        let place = mountinfo::place_of(device).unwrap_or_else(|| mountpoint.clone());
        // but a daemon that ends as it should unmounts by itself
        let pinned = if finished { None } else { PinnedMount::at(&place, device) };
        let ended = self.is_closed_within(END_OF_DAEMON);
        if ended && finished {
            return;
        }
        // messages on standard error go to whoever has started the process, and that process reports the end itself
        if log != Target::Stderr {
            let _ = logging::start(log, std::sync::Arc::default());
        }
        if !finished {
            self.log_end(&place, last_words);
        }
        if !ended {
            self.end_connection(&place, pinned, lever, finished);
        }
    }

    /// Logs how the daemon has ended, which it could not log itself.
    fn log_end(&self, place: &Path, last_words: Option<LastWords>) {
        let how = match last_words {
            Some(words) => words.to_string(),
            None => "it was killed (SIGKILL), by somebody, or by the system because memory ran out: dmesg tells".into(),
        };
        log::error!("the daemon of {} (process {}) ended without unmounting: {how}", place.display(), self.daemon);
    }

    /// Ends the connection of a daemon that cannot end, by the first way that the system permits.
    fn end_connection(&self, place: &Path, pinned: Option<PinnedMount>, lever: Option<Lever>, finished: bool) {
        let place = place.display();
        let ended = || log::warn!("{place}: the daemon still waits for its source; its connection was ended");
        let refused = |lever: Option<Lever>| match lever {
            Some(Lever::Device(device)) => self.refuse_requests(device, finished),
            _ => Err(Errno::PERM),
        };
        match (&lever, &pinned) {
            (Some(Lever::Abort(file)), _) if abort(file).is_ok() => return ended(),
            (_, Some(pinned)) if pinned.abort().is_ok() => return ended(),
            _ => {}
        }
        log::warn!("{place}: the daemon still waits for its source; requests are refused in its place");
        if let Err(error) = refused(lever)
            && !finished
        {
            log::error!("{place}: readers wait for the source as the daemon does: {error}");
            let taken_away = pinned.map(|pinned| pinned.take_away());
            if let Some(Err(error)) = taken_away {
                log::error!("{place}: cannot unmount: {error}");
            }
        }
    }

    /// Refuses requests until the files of the daemon are closed or the connection has ended. A daemon that `finished`
    /// has given up its connection: it is ended at once if the kernel does not ask again for what is in flight.
    fn refuse_requests(&self, device: OwnedFd, finished: bool) -> Result<(), Errno> {
        let mut refusal = Refusal::of(device)?;
        let asked = refusal.ask_again();
        if finished {
            asked?;
        } else if let Err(error) = asked {
            log::warn!("requests in flight wait for the source, since this kernel cannot ask for them again: {error}");
        }
        while refusal.refuse_waiting() {
            let mut files = [PollFd::new(&refusal, PollFlags::IN), PollFd::new(self.socket, PollFlags::IN)];
            let _ = poll(&mut files, None);
            let [_, of_socket] = files.map(|file| file.revents());
            if !of_socket.is_empty() && matches!(self.next(Some(Duration::ZERO)), Event::Closed) {
                break;
            }
        }
        Ok(())
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
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        match recvmsg(self.socket, &mut [IoSliceMut::new(&mut message)], &mut control, flags) {
            Ok(received) if received.bytes == 0 => Event::Closed,
            Ok(received) => {
                let descriptor = control.drain().find_map(|message| match message {
                    RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
                    _ => None,
                });
                parse(message.get(..received.bytes).unwrap_or_default(), descriptor)
            }
            Err(Errno::AGAIN | Errno::INTR) => match self.signals.read_signal() {
                // the kernel sends it in the name of the process that has ended; anybody else's means nothing
                Ok(Some(signal)) if signal.ssi_pid == self.daemon.as_raw().cast_unsigned() => Event::ParentEnded,
                _ => Event::Nothing,
            },
            Err(_) => Event::Closed,
        }
    }
}

fn parse(message: &[u8], descriptor: Option<OwnedFd>) -> Event {
    if let Some(words) = LastWords::parse(message) {
        return Event::LastWords(words);
    }
    let number = |bytes: Option<&[u8]>| bytes.and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
    let (Some((kind, rest)), false) = (message.split_first(), message.first() == Some(&FINISHED)) else {
        return Event::Finished;
    };
    let (Some(major), Some(minor), Some(path)) = (number(rest.get(..4)), number(rest.get(4..8)), rest.get(8..)) else {
        return Event::Nothing;
    };
    let lever = descriptor.map(|descriptor| match *kind {
        MOUNTED_WITH_ABORT => Lever::Abort(File::from(descriptor)),
        _ => Lever::Device(descriptor),
    });
    Event::Mounted(Watched { device: (major, minor), mountpoint: OsStr::from_bytes(path).into(), lever })
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
        assert!(matches!(watcher.next(Some(Duration::ZERO)), Event::Nothing));
        let null = File::options().write(true).open("/dev/null").unwrap();
        for lever in [None, Some(Lever::Abort(null.try_clone().unwrap())), Some(Lever::Device(null.into()))] {
            let is_device = matches!(lever, Some(Lever::Device(_)));
            let has_lever = lever.is_some();
            watchdog.watch(&Connection::with((0, 77), lever), Path::new("/mnt/a b"));
            let Event::Mounted(heard) = watcher.next(None) else { panic!("the mount is heard of") };
            assert_eq!((heard.device, heard.mountpoint), ((0, 77), "/mnt/a b".into()));
            assert_eq!(heard.lever.is_some(), has_lever);
            assert_eq!(matches!(heard.lever, Some(Lever::Device(_))), is_device);
        }
        watchdog.finished();
        assert!(matches!(watcher.next(None), Event::Finished));
        assert!(!watcher.is_closed_within(Duration::from_millis(1)));
        drop(watchdog);
        assert!(watcher.is_closed_within(Duration::from_secs(10)));
    }
}
