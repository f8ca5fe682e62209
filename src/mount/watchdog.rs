//! The watchdog process: a child of the daemon that waits until the daemon ends without having unmounted.
//!
//! A daemon that was killed may be unable to end: a thread that waits uninterruptibly for an answer of a source (a
//! network or FUSE file system whose server hangs) keeps its process, and the process keeps the connection to the
//! kernel open. Then all readers of the mount would hang until that source answers, whatever they read. The watchdog
//! ends the connection in place of the daemon, so that they get an error, and logs the end of a daemon that was killed.
//! Where the system permits nothing else (no file of fusectl, and no right to force an unmount) it answers requests in
//! place of the daemon, with an error.

use std::ffi::{CStr, OsStr};
use std::fs::{File, read_to_string};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, statx};
use rustix::io::{Errno, read, write};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::thread::set_name;

use super::crash_report::{self, CrashReport};
use super::fork::{Child, ProcessError, detach_from_parent, failed, has_ended, signal_at_end_of_parent};
use super::mountinfo::{UnmountError, is_mount_of, place_of, unmount, volfs_at};
use super::side_process::timespec;
use crate::logging::{self, Target};
use crate::memory::try_zeroed;

/// The name of the process in lists of processes.
const NAME: &CStr = c"volfs-watch";

/// The time for the kernel to close the files of a daemon that was killed, or that ends.
const END_OF_DAEMON: Duration = Duration::from_millis(500);

/// The signal with which the kernel reports the daemon's end.
const PARENT_ENDED: Signal = Signal::SIGUSR1;

/// Bytes of the longest message: what it is, a device number and a path.
const MAX_MESSAGE: usize = 9 + 4096;

/// The first byte of a message: the daemon ends as it should, or it has mounted.
const FINISHED: u8 = b'f';
const MOUNTED: u8 = b'm';

/// Where the kernel shows the connections of FUSE, if that file system (fusectl) is mounted.
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// Bytes of the longest request: the FUSE library allows writes of 16 MiB, and the kernel refuses a smaller buffer.
/// Only the beginning is ever filled, since no program writes to a read-only mount.
const LONGEST_REQUEST: usize = (16 << 20) + 4096;
/// Bytes of a reply without content: its length, the error, and the number of the request.
const REPLY: usize = 16;
/// The kinds of requests that want no reply: two that forget a name, and one that interrupts a request.
const WITHOUT_REPLY: [u32; 3] = [2, 42, 36];
/// The notification that makes the kernel ask again for all that is in flight (Linux 6.9).
const RESEND: i32 = 7;

/// The daemon's side of the watchdog process.
#[derive(Debug)]
pub(crate) struct Watchdog {
    socket: OwnedFd,
}

impl Watchdog {
    /// Starts the process, which logs to `log`. It must be called before there are threads, from the thread that lives
    /// as long as the daemon.
    pub(crate) fn start(log: Target) -> Result<Self, ProcessError> {
        let child = Child::start_attached(|daemon, socket| Watcher::run(daemon, &socket, log))?;
        crash_report::send_to(&child.socket);
        Ok(Self { socket: child.socket })
    }

    /// Tells the watchdog which mount is the daemon's, and how to end the connection.
    pub(super) fn watch(&self, connection: &Connection, mountpoint: &Path) {
        let (major, minor) = connection.device;
        let mut message = [&[MOUNTED][..], &major.to_ne_bytes(), &minor.to_ne_bytes()].concat();
        message.extend_from_slice(mountpoint.as_os_str().as_bytes());
        let descriptors = connection.lever.as_ref().map(|lever| [lever.as_fd()]);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if let Some(descriptors) = &descriptors {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        self.send(&message, &mut control);
    }

    /// Tells the watchdog that the daemon ends as it should.
    pub(super) fn finished(&self) {
        self.send(&[FINISHED], &mut SendAncillaryBuffer::default());
    }

    fn send(&self, message: &[u8], control: &mut SendAncillaryBuffer<'_, '_, '_>) {
        // the watchdog may have been killed
        let _ = sendmsg(&self.socket, &[IoSlice::new(message)], control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// What the watchdog process waits for.
#[derive(Debug)]
enum Event {
    /// The daemon has mounted at this place.
    Mounted(Connection, PathBuf),
    /// The daemon, or a child that it forked, is about to end by a signal.
    Crashed(CrashReport),
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
        // a signal to all processes of the daemon must not end this one first
        SigSet::all().thread_block().map_err(failed("signals"))?;
        signal_at_end_of_parent(daemon, PARENT_ENDED)?;
        detach_from_parent(socket.as_raw_fd())?;
        // a failure is harmless: the process works under any name
        let _ = set_name(NAME);
        let signals = SignalFd::with_flags(&SigSet::from(PARENT_ENDED), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
        let watcher = Self { daemon, socket, signals: signals.map_err(failed("signals"))? };
        watcher.watch(log);
        Ok(())
    }

    /// Waits for the daemon's end, and does what it could not do.
    fn watch(&self, log: Target) {
        let (mut mount, mut report) = (None, None);
        let finished = loop {
            match self.next(None) {
                Event::Mounted(connection, mountpoint) => mount = Some((connection, mountpoint)),
                Event::Crashed(crash) if crash.is_of(self.daemon) => report = Some(crash),
                Event::Finished => break true,
                Event::Closed | Event::ParentEnded => break false,
                Event::Crashed(_) | Event::Nothing => {}
            }
        };
        let Some((Connection { device, lever }, mountpoint)) = mount else { return };
        // pinned at once, since its number would be reused if somebody unmounted it now
        let place = place_of(device).unwrap_or_else(|| mountpoint.clone());
        // but a daemon that ends as it should unmounts by itself
        let is_unmounted = lever.as_ref().is_some_and(|lever| has_ended(lever.as_fd()));
        let pinned = if finished || is_unmounted { None } else { PinnedMount::at(&place, device) };
        let ended = self.is_closed_within(END_OF_DAEMON);
        if ended && finished {
            return;
        }
        // the process that started the daemon has its standard error, and reports the end itself
        if log != Target::Stderr {
            let _ = logging::start(log, std::sync::Arc::default());
        }
        if !finished {
            let killed =
                || "it was killed (SIGKILL), by a user, or by the system because memory ran out: see dmesg".to_owned();
            let how = report.map_or_else(killed, |crash| crash.to_string());
            let (place, daemon) = (place.display(), self.daemon);
            log::error!("the daemon of {place} (process {daemon}) ended without unmounting: {how}");
        }
        if !ended {
            self.end_connection(&place, pinned, lever, finished);
        }
    }

    /// Ends the connection of a daemon that cannot end, by the first way that the system permits.
    fn end_connection(&self, place: &Path, pinned: Option<PinnedMount>, lever: Option<OwnedFd>, finished: bool) {
        let place = place.display();
        // to the file of fusectl; on the FUSE device it is an invalid answer, which changes nothing
        let is_aborted = lever.as_ref().is_some_and(|lever| write(lever, b"1").is_ok());
        if is_aborted || pinned.as_ref().is_some_and(PinnedMount::abort) {
            return log::warn!("{place}: the daemon still waits for its source; its connection was ended");
        }
        log::warn!("{place}: the daemon still waits for its source; requests are refused in its place");
        let refused = lever.ok_or(Errno::PERM).and_then(|device| self.refuse_requests(&device, finished));
        if let Err(error) = refused
            && !finished
        {
            log::error!("{place}: readers wait for the source as the daemon does: {error}");
            // so that at least no further program waits for it; it may have been unmounted meanwhile, and another
            // mounted there
            let take_away = |device| unmount(&place_of(device).ok_or(UnmountError::NotMounted)?, true);
            if let Some(Err(error)) = pinned.map(|pinned| take_away(pinned.device)) {
                log::error!("{place}: cannot unmount: {error}");
            }
        }
    }

    /// Refuses the requests of a FUSE device, which no other process reads any more, until the files of the daemon are
    /// closed or the connection has ended. A daemon that `finished` has given up its connection: it is ended at once if
    /// the kernel does not ask again for what is in flight. Speaks the three messages of the FUSE protocol that it
    /// needs itself, since the FUSE library serves only mounts that it has made.
    fn refuse_requests(&self, device: &OwnedFd, finished: bool) -> Result<(), Errno> {
        let flags = fcntl_getfl(device)?;
        // the file of fusectl can only be written to
        if !flags.contains(OFlags::RDWR) {
            return Err(Errno::PERM);
        }
        fcntl_setfl(device, flags | OFlags::NONBLOCK)?;
        let mut buffer = try_zeroed(LONGEST_REQUEST).map_err(|_| Errno::NOMEM)?;
        // kernels before 6.9 cannot, and requests in flight stay so
        let asked = write(device, &reply(RESEND, 0));
        if finished {
            asked?;
        } else if let Err(error) = asked {
            log::warn!("requests in flight wait for the source, since this kernel cannot ask for them again: {error}");
        }
        while refuse_waiting(device, &mut buffer) {
            let mut files = [PollFd::new(device, PollFlags::IN), PollFd::new(self.socket, PollFlags::IN)];
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
        let time = limit.and_then(timespec);
        let mut files =
            [PollFd::new(self.socket, PollFlags::IN), PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        match poll(&mut files, time.as_ref()) {
            Ok(0) => return Event::Nothing,
            Err(Errno::INTR) => return self.next(limit),
            // nothing is known of the daemon then, and its connection is left alone
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
                // the kernel sends it in the name of the process that ended; any other one means nothing
                Ok(Some(signal)) if signal.ssi_pid == self.daemon.as_raw().cast_unsigned() => Event::ParentEnded,
                _ => Event::Nothing,
            },
            Err(_) => Event::Closed,
        }
    }
}

fn parse(message: &[u8], descriptor: Option<OwnedFd>) -> Event {
    if let Some(crash) = CrashReport::parse(message) {
        return Event::Crashed(crash);
    }
    let number = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
    match (message.first(), number(1), number(5), message.get(9..)) {
        (Some(&MOUNTED), Some(major), Some(minor), Some(path)) => {
            Event::Mounted(Connection { device: (major, minor), lever: descriptor }, OsStr::from_bytes(path).into())
        }
        (Some(&MOUNTED), ..) => Event::Nothing,
        _ => Event::Finished,
    }
}

/// The connection between the kernel and the daemon.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The device number (major and minor) of the mount.
    pub(super) device: (u32, u32),
    /// A descriptor by which another process ends the connection: the file of fusectl, which the kernel gives to the
    /// user who mounted, or the FUSE device, to answer requests in place of the daemon. `None` if the system has no
    /// more descriptors.
    lever: Option<OwnedFd>,
}

impl Connection {
    /// Returns the connection whose device is open as `fuse`, and which was just mounted at `mountpoint`. `None` if the
    /// system does not tell which mount that is.
    pub(super) fn new(fuse: BorrowedFd<'_>, source: &Path, mountpoint: &Path) -> Option<Self> {
        let info = read_to_string(format!("/proc/self/fdinfo/{}", fuse.as_raw_fd())).unwrap_or_default();
        // Older kernels do not tell. Nothing was mounted there a moment ago, so a mount of this source is ours, unless
        // another process has mounted the same source there at the same moment.
        let by_place = || volfs_at(mountpoint).filter(|_| is_mount_of(source, mountpoint)).map(|mount| mount.device);
        let device = number_of(&info).map(|number| (0, number)).or_else(by_place)?;
        // the device number of FUSE mounts has no major part, so the minor number is its decimal form
        let abort = Path::new(CONNECTIONS).join(device.1.to_string()).join("abort");
        let abort = File::options().write(true).open(abort).ok().filter(|_| device.0 == 0);
        let lever = abort.map(OwnedFd::from).or_else(|| fuse.try_clone_to_owned().ok());
        Some(Self { device, lever })
    }
}

/// Returns the number of the connection from what `/proc` tells about a descriptor of the FUSE device.
fn number_of(info: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix("fuse_connection:"))?.trim().parse().ok()
}

/// A mount that cannot end, and whose device number cannot be reused, while this value exists.
#[derive(Debug)]
struct PinnedMount {
    root: File,
    device: (u32, u32),
}

impl PinnedMount {
    /// Pins the mount at `mountpoint` if it has this device number. Asks nothing of its daemon.
    fn at(mountpoint: &Path, device: (u32, u32)) -> Option<Self> {
        let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits().cast_signed();
        let root = File::options().read(true).custom_flags(flags).open(mountpoint).ok()?;
        let seen = statx(&root, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::empty()).ok()?;
        let is_same = (seen.stx_dev_major, seen.stx_dev_minor) == device;
        is_same.then_some(Self { root, device })
    }

    /// Ends the connection to the daemon: all requests fail from now on, also those in flight. Only root may do that.
    fn abort(&self) -> bool {
        // the mount is busy, since it is pinned, and so it is not unmounted: only its connection is ended
        let pinned = format!("/proc/self/fd/{}", self.root.as_raw_fd());
        matches!(umount2(pinned.as_str(), MntFlags::MNT_FORCE), Ok(()) | Err(nix::errno::Errno::EBUSY))
    }
}

/// Refuses all requests that wait. Returns whether there may be more later: not after the connection has ended.
fn refuse_waiting(device: &OwnedFd, buffer: &mut [u8]) -> bool {
    loop {
        match read(device, &mut *buffer) {
            Ok(length) => {
                let answer = buffer.get(..length).and_then(refusal_of);
                // an error means that the request was interrupted, or the connection has ended
                let _ = answer.map(|answer| write(device, &answer));
            }
            Err(Errno::AGAIN) => return true,
            // a request was interrupted while it was read
            Err(Errno::INTR | Errno::NOENT) => {}
            Err(_) => return false,
        }
    }
}

/// Returns the refusal of a request: the error of a mount whose daemon has ended. `None` if it wants no reply.
fn refusal_of(request: &[u8]) -> Option<[u8; REPLY]> {
    let kind = u32::from_ne_bytes(request.get(4..8)?.try_into().ok()?);
    let number = u64::from_ne_bytes(request.get(8..16)?.try_into().ok()?);
    (!WITHOUT_REPLY.contains(&kind)).then(|| reply(-Errno::NOTCONN.raw_os_error(), number))
}

fn reply(error: i32, number: u64) -> [u8; REPLY] {
    let mut bytes = [0; REPLY];
    let fields = (REPLY as u32).to_ne_bytes().into_iter().chain(error.to_ne_bytes()).chain(number.to_ne_bytes());
    bytes.iter_mut().zip(fields).for_each(|(to, byte)| *to = byte);
    bytes
}

#[cfg(test)]
mod tests {
    use nix::unistd::getpid;

    use super::*;
    use crate::mount::fork::pair;

    /// The two ends of a watchdog without a process.
    fn watched() -> (Watchdog, OwnedFd, SignalFd) {
        let (socket, theirs) = pair().unwrap();
        let signals = SignalFd::with_flags(&SigSet::empty(), SfdFlags::SFD_NONBLOCK).unwrap();
        (Watchdog { socket }, theirs, signals)
    }

    #[test]
    fn the_watchdog_hears_what_the_daemon_says() {
        let (watchdog, socket, signals) = watched();
        let watcher = Watcher { daemon: getpid(), socket: &socket, signals };
        assert!(matches!(watcher.next(Some(Duration::ZERO)), Event::Nothing));
        for lever in [None, Some(OwnedFd::from(File::open("/dev/null").unwrap()))] {
            let has_lever = lever.is_some();
            watchdog.watch(&Connection { device: (0, 77), lever }, Path::new("/mnt/a b"));
            let Event::Mounted(heard, place) = watcher.next(None) else { panic!("the mount is heard of") };
            assert_eq!((heard.device, place, heard.lever.is_some()), ((0, 77), "/mnt/a b".into(), has_lever));
        }
        watchdog.finished();
        assert!(matches!(watcher.next(None), Event::Finished));
        assert!(!watcher.is_closed_within(Duration::from_millis(1)));
        drop(watchdog);
        assert!(watcher.is_closed_within(Duration::from_secs(10)));
    }

    #[test]
    fn the_kernel_tells_the_number_of_a_connection() {
        let info = "pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t90\nfuse_connection:\t40\n";
        assert_eq!(number_of(info), Some(40));
        assert_eq!(number_of("pos:\t0\n"), None);
    }

    #[test]
    fn a_descriptor_that_is_no_connection_has_no_device() {
        let folder = tempfile::tempdir().unwrap();
        let null = File::open("/dev/null").unwrap();
        assert!(Connection::new(null.as_fd(), Path::new("/data"), folder.path()).is_none());
    }

    #[test]
    fn requests_that_want_a_reply_get_an_error() {
        let request = |kind: u32| [&[0; 4][..], &kind.to_ne_bytes(), &7u64.to_ne_bytes(), &[0; 24]].concat();
        let refused = refusal_of(&request(15)).unwrap();
        assert_eq!(refused[..4], 16u32.to_ne_bytes());
        assert_eq!(refused[4..8], (-107i32).to_ne_bytes());
        assert_eq!(refused[8..], 7u64.to_ne_bytes());
        assert!(WITHOUT_REPLY.iter().all(|kind| refusal_of(&request(*kind)).is_none()));
        assert_eq!(refusal_of(&[0; 15]), None);
    }
}
