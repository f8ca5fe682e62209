//! A source that hangs on command: a FUSE file system of the test itself, which waits at a gate before each answer.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, Request, SessionACL,
};

use super::attributes::attributes;

/// The threads with which the source answers: so many requests can wait at the gate.
pub const THREADS: usize = 8;

/// The only file. It is found, but not listed.
pub const NAME: &str = "slow.zgy";

const ROOT: INodeNo = INodeNo(1);

const FILE: INodeNo = INodeNo(2);

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

/// A file system of one file. The kernel caches its bytes, but not its attributes.
struct Slow {
    gate: Arc<Gate>,
    bytes: Vec<u8>,
}

impl Slow {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        attributes(number, number == ROOT, self.bytes.len() as u64, SystemTime::UNIX_EPOCH)
    }
}

impl Filesystem for Slow {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.gate.pass();
        if name == NAME {
            reply.entry(&Duration::ZERO, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.gate.pass();
        reply.attr(&Duration::ZERO, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
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
        let start = (offset as usize).min(self.bytes.len());
        reply.data(&self.bytes[start..start.saturating_add(size as usize).min(self.bytes.len())]);
    }
}

/// A mounted source that hangs while its gate is closed. Opens the gate when dropped, also by a panic, so that all
/// threads can end.
pub struct SlowSource {
    pub gate: Arc<Gate>,
    session: Option<BackgroundSession>,
}

impl SlowSource {
    /// Mounts a file of these bytes in the new folder `folder`.
    pub fn at(folder: &Path, bytes: Vec<u8>) -> Self {
        Self::with(folder, bytes, SessionACL::Owner)
    }

    /// Like [`SlowSource::at`], for all users.
    pub fn shared(folder: &Path, bytes: Vec<u8>) -> Self {
        Self::with(folder, bytes, SessionACL::All)
    }

    fn with(folder: &Path, bytes: Vec<u8>, acl: SessionACL) -> Self {
        fs::create_dir(folder).unwrap();
        let gate = Arc::new(Gate::default());
        let mut config = Config::default();
        config.acl = acl;
        config.n_threads = Some(THREADS);
        let session = fuser::spawn_mount(Slow { gate: Arc::clone(&gate), bytes }, folder, &config).unwrap();
        Self { gate, session: Some(session) }
    }
}

impl Drop for SlowSource {
    fn drop(&mut self) {
        self.gate.set_closed(false);
        // a drop alone would leave the mount behind
        let _ = self.session.take().map(BackgroundSession::umount_and_join);
    }
}
