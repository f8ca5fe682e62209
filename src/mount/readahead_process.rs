//! A process that asks the kernel for pages of the mount before a reader does.
//!
//! It does so like any other program, through the mount, and whoever asks for a page may have to wait for it: uninterruptibly. A thread
//! of the daemon must not do that. Killed in that moment it would not end, and keep the mount, and so all its readers, from
//! ending. This process has no part in the connection to the kernel, a file of the mount open for a fraction of a
//! millisecond only, and is killed when the daemon ends.

use std::collections::VecDeque;
use std::ffi::{CStr, OsStr};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::exit;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::unistd::{ForkResult, Pid, getpid};
use rustix::fs::{Advice, AtFlags, CWD, Mode, OFlags, StatxFlags, fadvise, openat, statx};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::param::page_size;
use rustix::thread::set_name;

use super::fork::{self, ProcessError, failed};
use crate::fs::{Ino, steps};

/// What programs that list processes call it.
pub const NAME: &CStr = c"volfs-ahead";

/// The process, for the one that made it.
#[derive(Debug)]
pub struct Forerunner {
    socket: OwnedFd,
    // Never waited for: nobody else gets this number as long as there is somebody who may take him for the forerunner.
    pid: Pid,
    /// Errands that it was sent on and did not come back from.
    out: AtomicUsize,
}

/// Pages to be asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Errand {
    /// The device of the mount: major and minor number.
    pub device: (u32, u32),
    /// The file's inode number.
    pub file: Ino,
    /// Its path.
    pub path: PathBuf,
    /// Which of its bytes.
    pub bytes: Range<u64>,
}

impl Forerunner {
    /// Makes the process. To be called before there are threads, by the one that lives as long as its process.
    ///
    /// # Errors
    /// [`ProcessError`] if the system refuses.
    pub fn start() -> Result<Self, ProcessError> {
        let made = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = made.map_err(failed("no sockets"))?;
        let parent = getpid();
        match fork::fork()? {
            ForkResult::Parent { child } => Ok(Self { socket, pid: child, out: AtomicUsize::new(0) }),
            ForkResult::Child => {
                let ready = fork::end_with(parent).and_then(|()| fork::leave_everything(theirs.as_raw_fd()));
                // a process of another name does the same
                let _ = set_name(NAME);
                exit(if ready.is_ok() { Runner::new(theirs).run() } else { 1 })
            }
        }
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// How many errands it was sent on and did not come back from; none if it is gone.
    #[must_use]
    pub fn out(&self) -> Option<usize> {
        loop {
            match recv(&self.socket, &mut [0], RecvFlags::DONTWAIT) {
                Ok((1.., _)) => self.out.fetch_sub(1, Ordering::Relaxed),
                Err(Errno::AGAIN) => return Some(self.out.load(Ordering::Relaxed)),
                _ => return None,
            };
        }
    }

    /// Sends it on an errand. Neither waits nor promises anything.
    pub fn send(&self, errand: Errand) {
        // before it can come back
        self.out.fetch_add(1, Ordering::Relaxed);
        if !self.tell(&Message::Go(errand)) {
            self.out.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Nobody reads a file any more: it comes back from all errands for it.
    pub fn stop(&self, file: Ino) {
        self.tell(&Message::Stop(file));
    }

    fn tell(&self, message: &Message) -> bool {
        send(&self.socket, &message.bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok()
    }
}

/// What the process is told.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    Go(Errand),
    Stop(Ino),
}

/// Numbers before the path.
const NUMBERS: usize = 5;
/// Bytes of a message.
const LONGEST: usize = NUMBERS * size_of::<u64>() + 4096;

impl Message {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Stop(file) => file.0.to_ne_bytes().to_vec(),
            Self::Go(Errand { device: (major, minor), file, path, bytes }) => {
                let numbers: [u64; NUMBERS] = [file.0, (*major).into(), (*minor).into(), bytes.start, bytes.end];
                let path = path.as_os_str().as_bytes().iter().copied();
                numbers.into_iter().flat_map(u64::to_ne_bytes).chain(path).collect()
            }
        }
    }

    fn parse(message: &[u8]) -> Option<Self> {
        let mut numbers = message.chunks_exact(size_of::<u64>()).map(|n| n.try_into().map(u64::from_ne_bytes).ok());
        let mut next = || numbers.next().flatten();
        let file = Ino(next()?);
        if message.len() == size_of::<u64>() {
            return Some(Self::Stop(file));
        }
        let device = (next()?.try_into().ok()?, next()?.try_into().ok()?);
        let bytes = next()?..next()?;
        let path = OsStr::from_bytes(message.get(NUMBERS * size_of::<u64>()..)?).into();
        Some(Self::Go(Errand { device, file, path, bytes }))
    }
}

/// The process itself.
struct Runner {
    socket: OwnedFd,
    buffer: Vec<u8>,
    errands: VecDeque<Errand>,
}

impl Runner {
    fn new(socket: OwnedFd) -> Self {
        Self { socket, buffer: vec![0; LONGEST], errands: VecDeque::new() }
    }

    /// Runs errands until nobody is there who sends any. Gives the exit status.
    fn run(mut self) -> i32 {
        loop {
            let ended = match self.errands.pop_front() {
                None => self.listen(RecvFlags::empty()),
                Some(errand) => {
                    // what cannot be asked for ahead the reader asks for itself
                    let _ = self.go(&errand);
                    self.come_back()
                }
            };
            if ended.is_err() {
                return 0;
            }
        }
    }

    /// Takes a message; gives the file that nobody reads any more.
    fn listen(&mut self, flags: RecvFlags) -> Result<Option<Ino>, Errno> {
        let length = match recv(&self.socket, self.buffer.as_mut_slice(), flags) {
            Ok((0, _)) => return Err(Errno::PIPE),
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        match self.buffer.get(..length).and_then(Message::parse) {
            Some(Message::Go(errand)) => self.errands.push_back(errand),
            Some(Message::Stop(file)) => {
                let all = self.errands.len();
                self.errands.retain(|errand| errand.file != file);
                for _ in self.errands.len()..all {
                    self.come_back()?;
                }
                return Ok(Some(file));
            }
            None => {}
        }
        Ok(None)
    }

    fn come_back(&self) -> Result<Option<Ino>, Errno> {
        send(&self.socket, &[0], SendFlags::NOSIGNAL).map(|_| None)
    }

    fn go(&mut self, errand: &Errand) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(CWD, &errand.path, flags, Mode::empty())?;
        // the mount may be gone, and something else there
        let seen = statx(&file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::INO)?;
        if (seen.stx_dev_major, seen.stx_dev_minor) != errand.device || seen.stx_ino != errand.file.0 {
            return Ok(());
        }
        for step in steps(errand.bytes.clone(), page_size() as u64) {
            // a file that is open here keeps the mount from being unmounted
            if self.listen(RecvFlags::DONTWAIT)? == Some(errand.file) {
                break;
            }
            fadvise(&file, step.start, (step.end - step.start).try_into().ok(), Advice::WillNeed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn errand(file: u64) -> Errand {
        let path = OsStr::from_bytes(b"/mnt/a b/\xff/lod0.raw").into();
        Errand { device: (0, 77), file: Ino(file), path, bytes: 1 << 40..(1 << 40) + 5 }
    }

    #[test]
    fn a_message_says_what_was_meant() {
        let go = Message::Go(errand(1 << 63));
        let bytes = go.bytes();
        assert_eq!(Message::parse(&bytes), Some(go));
        assert_eq!(Message::parse(&bytes[..39]), None);
        let stop = Message::Stop(Ino(5));
        assert_eq!(Message::parse(&stop.bytes()), Some(stop));
        assert_eq!(Message::parse(&[]), None);
    }

    #[test]
    fn it_comes_back_from_every_errand() {
        let made = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = made.unwrap();
        let forerunner = Forerunner { socket, pid: Pid::from_raw(1), out: AtomicUsize::new(0) };
        for file in [7, 8, 7, 7] {
            forerunner.send(errand(file));
        }
        forerunner.stop(Ino(7));
        assert_eq!(forerunner.out(), Some(4));
        let runner = thread::spawn(|| Runner::new(theirs).run());
        while forerunner.out() != Some(0) {
            thread::yield_now();
        }
        drop(forerunner);
        assert_eq!(runner.join().unwrap(), 0);
    }

    #[test]
    fn errands_for_a_file_that_nobody_reads_are_dropped() {
        let made = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = made.unwrap();
        let forerunner = Forerunner { socket, pid: Pid::from_raw(1), out: AtomicUsize::new(0) };
        let mut runner = Runner::new(theirs);
        for file in [7, 8, 7] {
            forerunner.send(errand(file));
            assert_eq!(runner.listen(RecvFlags::DONTWAIT), Ok(None));
        }
        forerunner.stop(Ino(7));
        assert_eq!(runner.listen(RecvFlags::DONTWAIT), Ok(Some(Ino(7))));
        assert_eq!((runner.errands, forerunner.out()), (VecDeque::from([errand(8)]), Some(1)));
        drop(runner.socket);
        assert_eq!(forerunner.out(), None);
    }
}
