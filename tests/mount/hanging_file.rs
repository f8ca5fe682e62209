//! A file of the source hangs while it is read, and the rest of the mount goes on. The file is on a FUSE file system of
//! this test, which waits at a gate before each answer.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, Request,
};

use crate::support::{Mount, fixture, fuse_or_skip, source_with, test_data, wait_until, within};

/// Generous: calls that hang do so until the end of the test.
const LIMIT: Duration = Duration::from_secs(20);

/// At least the number of threads with which the daemon serves the kernel.
const READERS: usize = 8;

const NAME: &str = "slow.zgy";

const ROOT: INodeNo = INodeNo(1);

const FILE: INodeNo = INodeNo(2);

/// A gate: [`Gate::pass`] blocks while it is closed.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    waiting: usize,
}

impl Gate {
    fn set_closed(&self, closed: bool) {
        self.state.lock().unwrap().closed = closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.opened.wait_while(state, |state| state.closed).unwrap().waiting -= 1;
    }

    fn waiting(&self) -> usize {
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
        let then = SystemTime::UNIX_EPOCH;
        let folder = number == ROOT;
        FileAttr {
            ino: number,
            size: self.bytes.len() as u64,
            blocks: 1,
            atime: then,
            mtime: then,
            ctime: then,
            crtime: then,
            kind: if folder { FileType::Directory } else { FileType::RegularFile },
            perm: 0o555,
            nlink: 1,
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
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

/// Opens the gate when dropped, also by a panic, so that all threads can end.
struct OpenAtEnd<'a>(&'a Gate);

impl Drop for OpenAtEnd<'_> {
    fn drop(&mut self) {
        self.0.set_closed(false);
    }
}

/// Reads a whole file with O_DIRECT, which bypasses the page cache of the mount.
fn read_directly(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(path).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_file_that_hangs_while_it_is_read_does_not_hold_up_others() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy"]);
    let folder = source.path().join("server");
    fs::create_dir(&folder).unwrap();
    let gate = Arc::new(Gate::default());
    let slow = Slow { gate: Arc::clone(&gate), bytes: fs::read(test_data("zgy/v3_int16.zgy")).unwrap() };
    let mut config = Config::default();
    config.n_threads = Some(READERS);
    let server = fuser::spawn_mount(slow, &folder, &config).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    // the file system lists nothing, but finds the name
    let hanging = mount.path("server").join(NAME).join("data/lod0.raw");
    let truth = fixture("v3_int16.zgy").samples(0).unwrap();
    // from now on the kernel has the source's bytes in its page cache
    assert!(read_directly(&hanging) == truth && read_directly(&hanging) == truth);
    let open_at_end = OpenAtEnd(&gate);
    let open = || File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(&hanging).unwrap();
    let files: Vec<File> = (0..READERS).map(|_| open()).collect();
    gate.set_closed(true);
    let read = |mut file: File| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let readers: Vec<_> = files.into_iter().map(|file| thread::spawn(move || read(file))).collect();
    wait_until("all readers hang", || gate.waiting() == READERS);
    for _ in 0..3 {
        let status = mount.path(".volfs/status.json");
        assert!(within(LIMIT, move || fs::read(status).unwrap()).is_some(), "status.json answers");
        let top = mount.point().to_owned();
        assert_eq!(within(LIMIT, move || fs::read_dir(top).unwrap().count()), Some(3), "the top is listed");
        let path = mount.data("v3_int8.zgy", "lod0.raw");
        let samples = within(LIMIT, move || read_directly(&path)).expect("other datasets are read");
        assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
    }
    drop(open_at_end);
    for reader in readers {
        assert!(reader.join().unwrap().unwrap() == truth, "waiting reads are answered when the source answers again");
    }
    assert!(mount.umount(&[]).status.success());
    drop(server);
}
