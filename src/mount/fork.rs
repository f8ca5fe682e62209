//! Forks child processes before there are threads, detaches them from the files and the terminal of their parent, and
//! gives up the connections to the FUSE driver at the end of a process.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{self, ForkResult, Pid, getpid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{RawDir, SeekFrom, readlinkat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use thiserror::Error;

/// The time for a thread that has done its work, such as a look at a dead mount, to end on a busy machine.
const END_OF_THREADS: Duration = Duration::from_secs(1);

/// Why a second process cannot be made, or cannot go on.
#[derive(Debug, Error)]
#[error("{doing}: {error}")]
pub(crate) struct ProcessError {
    doing: &'static str,
    error: io::Error,
}

/// Turns an error of the operating system into a [`ProcessError`].
pub(super) fn failed<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> ProcessError {
    move |error| ProcessError { doing, error: error.into() }
}

/// Forks: the call returns in both processes. A child that ends keeps its number until this process waits for it or
/// ends.
pub(super) fn fork() -> Result<ForkResult, ProcessError> {
    let deadline = Instant::now() + END_OF_THREADS;
    while fs::read_dir("/proc/self/task").map_err(failed("cannot count threads"))?.count() != 1 {
        if Instant::now() >= deadline {
            return Err(failed("too late")(io::Error::other("there are other threads")));
        }
        thread::sleep(Duration::from_millis(1));
    }
    // If the parent of this process ignores SIGCHLD, so does this process, and the kernel would reap its children by
    // itself.
    // SAFETY: the default disposition is not a handler, which would have to be async-signal-safe.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }.map_err(failed("signals"))?;
    // SAFETY: there is no other thread (counted above), so no lock in the child is held by a thread that does not exist
    // there, and the child may run any code.
    unsafe { unistd::fork() }.map_err(failed("fork"))
}

/// Returns two connected sockets for messages.
pub(super) fn pair() -> Result<(OwnedFd, OwnedFd), ProcessError> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map_err(failed("no sockets"))
}

/// A child process, and this end of a connection to it.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) pid: Pid,
    pub(super) socket: OwnedFd,
}

impl Child {
    /// Forks a process that runs `work` with its end of a connection, and ends with it; it is detached from this
    /// process, and killed when this thread ends.
    pub(super) fn start(work: impl FnOnce(OwnedFd)) -> Result<Self, ProcessError> {
        Self::start_attached(|parent, socket| {
            signal_at_end_of_parent(parent, Signal::SIGKILL)?;
            detach_from_parent(socket.as_raw_fd())?;
            work(socket);
            Ok(())
        })
    }

    /// Like [`Child::start`], for a process that detaches itself. `work` also gets the number of this process.
    pub(super) fn start_attached(
        work: impl FnOnce(Pid, OwnedFd) -> Result<(), ProcessError>,
    ) -> Result<Self, ProcessError> {
        let (socket, theirs) = pair()?;
        let parent = getpid();
        match fork()? {
            ForkResult::Parent { child } => Ok(Self { pid: child, socket }),
            ForkResult::Child => exit(i32::from(work(parent, theirs).is_err())),
        }
    }
}

/// Makes the kernel send `signal` to this process when the thread that forked it, of the process `parent`, ends. That
/// thread also ends with its process, even if another thread of it cannot end.
pub(super) fn signal_at_end_of_parent(parent: Pid, signal: Signal) -> Result<(), ProcessError> {
    set_pdeathsig(signal).map_err(failed("cannot be told of its parent's end"))?;
    if unistd::getppid() == parent { Ok(()) } else { Err(failed("too late")(io::Error::other("its parent has ended"))) }
}

/// Detaches this process from the terminal, the working directory and the open files of its parent. Closes all
/// descriptors except `kept`, so no value that owns another one may be used or dropped afterwards.
pub(super) fn detach_from_parent(kept: RawFd) -> Result<(), ProcessError> {
    unistd::setsid().map_err(failed("no session"))?;
    unistd::chdir("/").map_err(failed("cannot go to /"))?;
    close_inherited(kept).map_err(failed("cannot close files"))?;
    let null = File::options().read(true).write(true).open("/dev/null").map_err(failed("/dev/null"))?;
    (0..3).try_for_each(|standard| replace(standard, &null)).map_err(failed("/dev/null"))
}

/// Makes a number that of another file. (Those of the crate nix panic if the system refuses it.)
fn replace(number: RawFd, file: &File) -> io::Result<()> {
    // SAFETY: the number stays that of an open descriptor, so its owner does not use another owner's file
    Errno::result(unsafe { libc::dup2(file.as_raw_fd(), number) })?;
    Ok(())
}

/// The files with which a process gives up its connections to the FUSE driver at its end: opened at its start, since
/// there may be no descriptor left at its end.
#[derive(Debug)]
pub(super) struct FuseDescriptors {
    null: File,
    /// `/proc/self/fd`
    list: File,
}

impl FuseDescriptors {
    pub(super) fn new() -> io::Result<Self> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        Ok(Self { null, list: File::open("/proc/self/fd")? })
    }

    /// Gives up this process's connections to the FUSE driver: replaces every descriptor of `/dev/fuse` by one of
    /// `/dev/null`. A process that is about to end calls this: otherwise a thread that waits for a source
    /// uninterruptibly would keep the connections open, and with them all programs that wait for an answer of this
    /// process. Opens no descriptor.
    pub(super) fn give_up(&self) -> io::Result<()> {
        self.each(|device| replace(device.as_raw_fd(), &self.null))
    }

    /// Returns whether this process still has a connection. It ends with the mount, and then the mount's device number
    /// may already be that of another one.
    pub(super) fn is_connected(&self) -> bool {
        let mut is_connected = false;
        let listed = self.each(|device| {
            is_connected |= !has_ended(device);
            Ok(())
        });
        listed.is_err() || is_connected
    }

    /// Calls `visit` with every descriptor of `/dev/fuse`.
    fn each(&self, mut visit: impl FnMut(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        rustix::fs::seek(&self.list, SeekFrom::Start(0))?;
        let mut entries = RawDir::new(&self.list, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let number = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
            // a look at the file itself would hang for those of a source that hangs
            let leads_to = || readlinkat(&self.list, entry.file_name(), Vec::new()).map(CString::into_bytes);
            let is_fuse = |&fd: &RawFd| fd > 2 && leads_to().is_ok_and(|to| to.ends_with(b"/dev/fuse"));
            let Some(fd) = number.filter(is_fuse) else { continue };
            // SAFETY: it was open when it was listed. The FUSE library closes one only where a thread of it ends, with
            // the connection or the process.
            visit(unsafe { BorrowedFd::borrow_raw(fd) })?;
        }
        Ok(())
    }
}

/// Takes over the descriptor that is named in the place of a mount point: `/dev/fd/N`, a connection to the FUSE driver
/// that the caller has opened and mounted, as libfuse has it. `None` for any other path.
pub(super) fn passed_device(mountpoint: &Path) -> Option<io::Result<OwnedFd>> {
    let number = passed_number(mountpoint)?;
    let leads_to = fs::read_link(format!("/proc/self/fd/{number}"));
    if number <= 2 || !leads_to.is_ok_and(|to| to.ends_with("fuse")) {
        return Some(Err(io::Error::other("it is no open connection to FUSE")));
    }
    // SAFETY: it is open, and this process itself opens the device only to mount, which it does not do then.
    let device = unsafe { OwnedFd::from_raw_fd(number) };
    Some(fcntl_setfd(&device, FdFlags::CLOEXEC).map(|()| device).map_err(io::Error::from))
}

/// Returns N of `/dev/fd/N`.
pub(super) fn passed_number(mountpoint: &Path) -> Option<RawFd> {
    mountpoint.strip_prefix("/dev/fd").ok()?.to_str()?.parse().ok()
}

/// Returns whether the connection of this descriptor of `/dev/fuse` has ended.
pub(super) fn has_ended(device: BorrowedFd<'_>) -> bool {
    let mut files = [PollFd::from_borrowed_fd(device, PollFlags::empty())];
    poll(&mut files, Some(&Timespec::default())).is_ok()
        && files.iter().any(|file| file.revents().contains(PollFlags::ERR))
}

/// Closes every descriptor above 2 except `kept`.
fn close_inherited(kept: RawFd) -> io::Result<()> {
    // read before any is closed; the descriptor with which it was read is closed by now
    let open: Vec<RawFd> =
        fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|&fd| fd > 2 && fd != kept) {
        match unistd::close(fd) {
            Ok(()) | Err(Errno::EBADF | Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn descriptors_are_given_up_although_none_is_left() {
        let Ok(device) = File::options().read(true).write(true).open("/dev/fuse") else { return };
        let kept = FuseDescriptors::new().unwrap();
        let is_fuse = || fs::read_link(format!("/proc/self/fd/{}", device.as_raw_fd())).unwrap().ends_with("dev/fuse");
        assert!(is_fuse());
        // a device that was never mounted has no connection
        assert!(!kept.is_connected());
        kept.give_up().unwrap();
        assert!(!is_fuse());
        kept.give_up().unwrap();
    }

    #[test]
    fn only_a_connection_to_fuse_is_taken_over() {
        let file = File::open("/dev/null").unwrap();
        for number in [0, 1, file.as_raw_fd(), 1 << 20] {
            let taken = passed_device(Path::new(&format!("/dev/fd/{number}"))).unwrap();
            assert_eq!(taken.unwrap_err().to_string(), "it is no open connection to FUSE", "{number}");
        }
        for other in ["/dev/fd", "/dev/fd/x", "/dev/fd/3/x", "/mnt/vol", "dev/fd/3"] {
            assert!(passed_device(Path::new(other)).is_none(), "{other}");
            assert_eq!(passed_number(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn a_process_with_threads_does_not_fork() {
        // the test runner has threads
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(fork().unwrap_err().to_string(), "too late: there are other threads"));
        });
    }
}
