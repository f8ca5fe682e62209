//! FUSE file systems of the tests themselves: how they are mounted, and one that shows a single file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, Request, SessionACL,
};

/// A mounted file system, which a drop of the session alone would leave behind.
pub struct OwnMount {
    session: Option<BackgroundSession>,
    place: PathBuf,
}

impl OwnMount {
    /// Mounts a file system at a new folder, with so many threads that answer.
    pub fn new(system: impl Filesystem, place: &Path, threads: usize, acl: SessionACL) -> Self {
        fs::create_dir(place).unwrap();
        let mut config = Config::default();
        (config.n_threads, config.acl) = (Some(threads), acl);
        Self::over(fuser::spawn_mount(system, place, &config).unwrap(), place)
    }

    /// Unmounts the file system of a session when dropped.
    pub fn over(session: BackgroundSession, place: &Path) -> Self {
        Self { session: Some(session), place: place.to_owned() }
    }
}

impl Drop for OwnMount {
    fn drop(&mut self) {
        let left = self.session.take().map(BackgroundSession::umount_and_join);
        // a daemon that is about to end, a mount namespace or a search for mounts still holds it
        if !matches!(left, Some(Ok(()))) {
            let _ = nix::mount::umount2(&self.place, nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

/// Returns the attributes of a folder, or of a file of this size, whose times are all the same.
pub fn attributes(number: INodeNo, folder: bool, size: u64, time: SystemTime) -> FileAttr {
    FileAttr {
        ino: number,
        size,
        blocks: size.div_ceil(512),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: if folder { FileType::Directory } else { FileType::RegularFile },
        perm: if folder { 0o555 } else { 0o444 },
        nlink: if folder { 2 } else { 1 },
        uid: nix::unistd::geteuid().as_raw(),
        gid: nix::unistd::getegid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// A gate: [`Gate::pass`] blocks while it is closed.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    waiting: usize,
}

impl Gate {
    /// Closes or opens the gate.
    pub fn set_closed(&self, closed: bool) {
        self.state.lock().unwrap().closed = closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.opened.wait_while(state, |state| state.closed).unwrap().waiting -= 1;
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.state.lock().unwrap().waiting
    }
}

/// A file system of one file, which is found but not listed.
pub struct OneFile {
    /// The names of its folders and its own.
    pub path: &'static [&'static str],
    pub bytes: Arc<RwLock<Vec<u8>>>,
    /// All its times.
    pub time: SystemTime,
    /// Whether the kernel caches its bytes. It never caches its attributes.
    pub cached: bool,
    /// Every request passes it.
    pub gate: Arc<Gate>,
}

impl OneFile {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let is_folder = number.0 as usize <= self.path.len();
        attributes(number, is_folder, self.bytes.read().unwrap().len() as u64, self.time)
    }
}

impl Filesystem for OneFile {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.gate.pass();
        match self.path.get(parent.0 as usize - 1).is_some_and(|found| name == *found) {
            true => reply.entry(&Duration::ZERO, &self.attributes(INodeNo(parent.0 + 1)), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.gate.pass();
        reply.attr(&Duration::ZERO, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = if self.cached { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::FOPEN_DIRECT_IO };
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.gate.pass();
        let bytes = self.bytes.read().unwrap();
        let start = (offset as usize).min(bytes.len());
        reply.data(&bytes[start..start.saturating_add(size as usize).min(bytes.len())]);
    }
}

/// The threads with which a slow source answers: so many requests can wait at its gate.
pub const THREADS: usize = 8;

/// The file of a slow source.
pub const SLOW: &str = "slow.zgy";

/// A mounted source of one file that hangs while its gate is closed. Opens the gate when dropped, also by a panic, so
/// that all threads can end.
pub struct SlowSource {
    pub gate: Arc<Gate>,
    _mount: OwnMount,
}

impl SlowSource {
    /// Mounts a file of these bytes in the new folder `place`.
    pub fn new(place: &Path, bytes: Vec<u8>, acl: SessionACL) -> Self {
        let gate = Arc::<Gate>::default();
        let bytes = Arc::new(RwLock::new(bytes));
        let time = SystemTime::UNIX_EPOCH;
        let system = OneFile { path: &[SLOW], bytes, time, cached: true, gate: Arc::clone(&gate) };
        Self { gate, _mount: OwnMount::new(system, place, THREADS, acl) }
    }
}

impl Drop for SlowSource {
    fn drop(&mut self) {
        self.gate.set_closed(false);
    }
}
