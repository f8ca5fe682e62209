//! The read-ahead process: a child of the daemon that makes the kernel read pages of the mount before a client asks for
//! them.
//!
//! Like any other program it goes through the mount, with `POSIX_FADV_WILLNEED`. A thread that does so may wait
//! uninterruptibly for the daemon to answer, so it must not be one of the daemon's own: if the daemon were killed in
//! that moment, it could not end, and neither could the mount and its readers. The read-ahead process does not have the
//! connection to the kernel open, keeps a file of the mount open only for a fraction of a millisecond, and is killed
//! when the daemon ends.

use std::collections::VecDeque;
use std::ffi::{CStr, OsStr};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::unistd::Pid;
use rustix::fs::{Advice, AtFlags, CWD, Mode, OFlags, StatxFlags, fadvise, openat, statx};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::param::page_size;
use rustix::thread::set_name;

use super::fork::{Child, ProcessError};
use crate::fs::{Ino, Readahead, advice_ranges};

/// The name of the process in lists of processes.
pub(crate) const READAHEAD_NAME: &CStr = c"volfs-ahead";

/// The daemon's side of the read-ahead process.
#[derive(Debug)]
pub(crate) struct ReadaheadProcess {
    socket: OwnedFd,
    // The daemon never waits for the process, so its number is not reused while the daemon lives: the daemon would
    // mistake another process for it.
    pid: Pid,
    in_flight: AtomicUsize,
}

impl ReadaheadProcess {
    /// Starts the process. It must be called before there are threads, from the thread that lives as long as the
    /// daemon.
    pub(crate) fn start() -> Result<Self, ProcessError> {
        let child = Child::start(|socket| {
            // a failure is harmless: the process works under any name
            let _ = set_name(READAHEAD_NAME);
            Worker::new(socket).run();
        })?;
        Ok(Self { socket: child.socket, pid: child.pid, in_flight: AtomicUsize::new(0) })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    fn send(&self, message: &[u8]) -> bool {
        send(&self.socket, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok()
    }
}

/// Read-ahead through the mount itself, by the read-ahead process.
pub(super) struct MountReadahead {
    pub(super) process: ReadaheadProcess,
    /// The device of the mount: major and minor number.
    pub(super) device: (u32, u32),
    pub(super) mountpoint: PathBuf,
}

impl Readahead for MountReadahead {
    fn in_flight(&self) -> Option<usize> {
        loop {
            match recv(&self.process.socket, &mut [0], RecvFlags::DONTWAIT) {
                Ok((1.., _)) => self.process.in_flight.fetch_sub(1, Ordering::Relaxed),
                Err(Errno::AGAIN) => return Some(self.process.in_flight.load(Ordering::Relaxed)),
                _ => return None,
            };
        }
    }

    /// Sends a request, which is lost if the socket's buffer is full.
    fn request(&self, file: Ino, path: &Path, bytes: Range<u64>) {
        let request = ReadaheadRequest { device: self.device, file, path: self.mountpoint.join(path), bytes };
        // counted before it can be completed
        self.process.in_flight.fetch_add(1, Ordering::Relaxed);
        if !self.process.send(&request.message()) {
            self.process.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Cancels requests, which then count as completed.
    fn cancel(&self, file: Ino) {
        self.process.send(&file.0.to_ne_bytes());
    }
}

/// A request to read bytes of a file ahead. The process replies with one byte for each completed request. The only
/// other message is the number of a file, whose requests are cancelled.
#[derive(Debug, PartialEq, Eq)]
struct ReadaheadRequest {
    device: (u32, u32),
    file: Ino,
    /// The file's absolute path.
    path: PathBuf,
    bytes: Range<u64>,
}

/// The number of integers before the path of a request.
const INTEGERS: usize = 5;
/// The longest message in bytes.
const MAX_MESSAGE: usize = INTEGERS * size_of::<u64>() + 4096;

impl ReadaheadRequest {
    fn message(&self) -> Vec<u8> {
        let Self { device: (major, minor), file, path, bytes } = self;
        let integers: [u64; INTEGERS] = [file.0, (*major).into(), (*minor).into(), bytes.start, bytes.end];
        let path = path.as_os_str().as_bytes().iter().copied();
        integers.into_iter().flat_map(u64::to_ne_bytes).chain(path).collect()
    }

    fn parse(message: &[u8]) -> Option<Self> {
        let (integers, path) = message.split_at_checked(INTEGERS * size_of::<u64>())?;
        let mut integers = integers.chunks_exact(size_of::<u64>()).map(|n| n.try_into().map(u64::from_ne_bytes).ok());
        let mut next = || integers.next().flatten();
        let file = Ino(next()?);
        let device = (next()?.try_into().ok()?, next()?.try_into().ok()?);
        Some(Self { device, file, path: OsStr::from_bytes(path).into(), bytes: next()?..next()? })
    }
}

/// The loop of the read-ahead process.
struct Worker {
    socket: OwnedFd,
    buffer: Vec<u8>,
    queue: VecDeque<ReadaheadRequest>,
}

impl Worker {
    fn new(socket: OwnedFd) -> Self {
        Self { socket, buffer: vec![0; MAX_MESSAGE], queue: VecDeque::new() }
    }

    /// Carries out requests until the daemon has closed its end of the socket.
    fn run(mut self) {
        loop {
            let ended = match self.queue.pop_front() {
                None => self.receive(RecvFlags::empty()),
                Some(request) => {
                    // if it fails, the reader asks for the pages itself
                    let _ = self.advise_kernel(&request);
                    self.complete()
                }
            };
            if ended.is_err() {
                return;
            }
        }
    }

    /// Receives a message. Returns the file whose requests it cancels.
    fn receive(&mut self, flags: RecvFlags) -> Result<Option<Ino>, Errno> {
        let length = match recv(&self.socket, self.buffer.as_mut_slice(), flags) {
            Ok((0, _)) => return Err(Errno::PIPE),
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let message = self.buffer.get(..length).unwrap_or_default();
        let Ok(cancelled) = message.try_into().map(|file| Ino(u64::from_ne_bytes(file))) else {
            self.queue.extend(ReadaheadRequest::parse(message));
            return Ok(None);
        };
        let all = self.queue.len();
        self.queue.retain(|request| request.file != cancelled);
        for _ in self.queue.len()..all {
            self.complete()?;
        }
        Ok(Some(cancelled))
    }

    fn complete(&self) -> Result<Option<Ino>, Errno> {
        send(&self.socket, &[0], SendFlags::NOSIGNAL).map(|_| None)
    }

    fn advise_kernel(&mut self, request: &ReadaheadRequest) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(CWD, &request.path, flags, Mode::empty())?;
        // the mount may be gone, and something else may have taken its path
        let seen = statx(&file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::INO)?;
        if (seen.stx_dev_major, seen.stx_dev_minor) != request.device || seen.stx_ino != request.file.0 {
            return Ok(());
        }
        for range in advice_ranges(request.bytes.clone(), page_size() as u64) {
            // a file that is open here keeps the mount busy, so it is closed as soon as its client has closed it
            if self.receive(RecvFlags::DONTWAIT)? == Some(request.file) {
                break;
            }
            fadvise(&file, range.start, (range.end - range.start).try_into().ok(), Advice::WillNeed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::mount::fork::pair;

    fn request(file: u64) -> ReadaheadRequest {
        let path = OsStr::from_bytes(b"/mnt/a b/\xff/lod0.raw").into();
        ReadaheadRequest { device: (0, 77), file: Ino(file), path, bytes: 1 << 40..(1 << 40) + 5 }
    }

    /// Read-ahead without a child process, and the socket for its worker.
    fn readahead() -> (MountReadahead, OwnedFd) {
        let (socket, theirs) = pair().unwrap();
        let process = ReadaheadProcess { socket, pid: Pid::from_raw(1), in_flight: AtomicUsize::new(0) };
        (MountReadahead { process, device: (0, 77), mountpoint: "/mnt".into() }, theirs)
    }

    fn ask(readahead: &MountReadahead, number: u64) {
        let ReadaheadRequest { file, path, bytes, .. } = request(number);
        readahead.request(file, path.strip_prefix("/mnt").unwrap(), bytes);
    }

    #[test]
    fn messages_are_parsed_as_they_were_sent() {
        let sent = request(1 << 63);
        let message = sent.message();
        assert_eq!(ReadaheadRequest::parse(&message), Some(sent));
        for short in [0, 8, 39] {
            assert_eq!(ReadaheadRequest::parse(&message[..short]), None);
        }
    }

    #[test]
    fn every_request_is_completed() {
        let (ahead, theirs) = readahead();
        for file in [7, 8, 7, 7] {
            ask(&ahead, file);
        }
        ahead.cancel(Ino(7));
        assert_eq!(ahead.in_flight(), Some(4));
        let worker = thread::spawn(|| Worker::new(theirs).run());
        while ahead.in_flight() != Some(0) {
            thread::yield_now();
        }
        drop(ahead);
        worker.join().unwrap();
    }

    /// The path of a request may lead to something else by the time that it is carried out.
    #[test]
    fn only_the_file_that_was_meant_is_read_ahead() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let seen = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::INO).unwrap();
        let (device, number) = ((seen.stx_dev_major, seen.stx_dev_minor), Ino(seen.stx_ino));
        let (ahead, theirs) = readahead();
        let mut worker = Worker::new(theirs);
        let mut reads = |device, file_number: Ino| {
            ahead.cancel(Ino(1));
            let path = file.path().into();
            worker.advise_kernel(&ReadaheadRequest { device, file: file_number, path, bytes: 0..1 << 20 }).unwrap();
            // before it reads, it looks for a message that cancels it
            worker.receive(RecvFlags::DONTWAIT).unwrap().is_none()
        };
        assert!(reads(device, number));
        assert!(!reads((device.0 + 1, device.1), number) && !reads((device.0, device.1 + 1), number));
        assert!(!reads(device, Ino(number.0 + 1)));
    }

    #[test]
    fn cancelled_requests_are_dropped() {
        let (ahead, theirs) = readahead();
        let mut worker = Worker::new(theirs);
        for file in [7, 8, 7] {
            ask(&ahead, file);
            assert_eq!(worker.receive(RecvFlags::DONTWAIT), Ok(None));
        }
        ahead.cancel(Ino(7));
        assert_eq!(worker.receive(RecvFlags::DONTWAIT), Ok(Some(Ino(7))));
        assert_eq!((worker.queue, ahead.in_flight()), (VecDeque::from([request(8)]), Some(1)));
        drop(worker.socket);
        assert_eq!(ahead.in_flight(), None);
    }
}
