//! The kernel's side: a request of FUSE becomes a call of [`Volfs`], its answer a reply. Nothing else knows of fuser.
//!
//! The threads here never wait: what is not answered from memory goes to the pool, which replies from there.

use std::ffi::OsStr;
use std::io;
use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, IoctlFlags,
    KernelConfig, LockOwner, MountOption, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyOpen, ReplyStatfs, ReplyXattr, Request, Session, SessionACL,
};
use rustix::fs::OFlags;
use rustix::process::{getegid, geteuid};
use thiserror::Error;

use super::forerunner::{Errand, Forerunner};
use super::{Attributes, FsError, Ino, Opened, Options, Read, ReadAhead, Volfs, mountinfo};
use crate::catalog::CatalogError;
use crate::logging::RecentLines;
use crate::pool::Bulkhead;
use crate::source::Wait;

/// The kernel remembers names and attributes for so long, and asks again then. With the time for which the catalog believes
/// itself the sum stays below a second.
const REMEMBERED: Duration = Duration::from_millis(750);
/// The size of a read that clients are told to prefer.
const PREFERRED_READ: u32 = 1 << 20;
/// The kernel asks for no more at a time, so that a long read with O_DIRECT is answered by several threads side by side: with requests
/// of 1 MiB a mount that does no work gives two thirds as much. Where the page cache is bypassed for all readers, parts are asked for
/// one after the other, and should be long.
const LONGEST_READ: u32 = 128 << 10;
/// The unit of statfs.
const BLOCK: u32 = 4096;
/// Reads ahead that the kernel may have under way.
const BACKGROUND: u16 = 128;

/// Why a mount cannot be made or ends badly.
#[derive(Debug, Error)]
pub enum MountError {
    /// The source cannot be shown.
    #[error(transparent)]
    Source(#[from] CatalogError),
    /// The kernel or fusermount3 refuses.
    #[error("cannot mount at {}: {}", mountpoint.display(), error.to_string().trim_end())]
    Refused {
        /// Where the mount was to be.
        mountpoint: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// The connection to the kernel broke.
    #[error("the connection to the kernel ended: {0}")]
    Broken(io::Error),
}

/// A mount that answers.
pub struct Mounted {
    session: JoinHandle<io::Result<()>>,
}

/// Mounts a file system; from here on its requests are answered by threads of this process.
///
/// # Errors
/// [`MountError::Source`] if there is nothing to show, [`MountError::Refused`] if the system does not let us.
pub fn mount(
    options: &Options,
    mountpoint: &Path,
    forerunner: Option<Forerunner>,
    log: Arc<RecentLines>,
) -> Result<Mounted, MountError> {
    let fs = Arc::new(Volfs::new(options.clone(), log)?);
    let adapter = Adapter { fs: Arc::clone(&fs), forerunner: forerunner.as_ref().map(Forerunner::pid) };
    let refused = |error| MountError::Refused { mountpoint: mountpoint.to_owned(), error };
    let session = Session::new(adapter, mountpoint, &config(options)).map_err(refused)?;
    // When fuser's handle on the mount is dropped it unmounts whatever is at that path: also what somebody has mounted there
    // since ours was taken away. So the handle is never dropped, and whoever wants to end the mount unmounts it.
    let session = Box::leak(Box::new(session.spawn().map_err(refused)?));
    let ended = mem::replace(&mut session.guard, thread::spawn(|| Ok(())));
    if let (Some(forerunner), Some(device)) = (forerunner, mountinfo::volfs_at(mountpoint)) {
        fs.read_ahead_with(Box::new(Ahead { forerunner, device, mountpoint: mountpoint.to_owned() }));
    }
    Ok(Mounted { session: ended })
}

impl Mounted {
    /// Returns when somebody has unmounted it.
    ///
    /// # Errors
    /// [`MountError::Broken`] if the connection to the kernel failed before that.
    pub fn wait(self) -> Result<(), MountError> {
        match self.session.join() {
            Ok(ended) => ended.map_err(MountError::Broken),
            Err(_) => Err(MountError::Broken(io::Error::other("internal error"))),
        }
    }
}

fn config(options: &Options) -> Config {
    let mut name = format!("volfs:{}", options.source.to_string_lossy());
    if !geteuid().is_root() {
        // fusermount3 takes a comma for the end of the option
        name = name.replace('\\', "\\\\").replace(',', "\\,");
    }
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(name),
        MountOption::Subtype("volfs".into()),
        MountOption::RO,
        MountOption::NoAtime,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::DefaultPermissions,
    ];
    if !options.direct_io {
        config.mount_options.push(MountOption::CUSTOM(format!("max_read={LONGEST_READ}")));
    }
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8)));
    config.clone_fd = true;
    config
}

/// The forerunner of a mount.
struct Ahead {
    forerunner: Forerunner,
    device: (u32, u32),
    mountpoint: PathBuf,
}

impl ReadAhead for Ahead {
    fn busy(&self) -> Option<usize> {
        self.forerunner.out()
    }

    fn ask(&self, file: Ino, path: &Path, bytes: Range<u64>) {
        let path = self.mountpoint.join(path);
        self.forerunner.send(Errand { device: self.device, file, path, bytes });
    }

    fn stop(&self, file: Ino) {
        self.forerunner.stop(file);
    }
}

struct Adapter {
    fs: Arc<Volfs>,
    /// Who reads ahead of others: a process.
    forerunner: Option<u32>,
}

impl Adapter {
    /// Answers from memory, or else from a thread that may wait.
    fn answer<T: 'static>(
        &self,
        bulkhead: Bulkhead,
        ask: impl Fn(&Volfs, Wait) -> Result<T, FsError> + Send + 'static,
        reply: impl FnOnce(Result<T, FsError>) + Send + 'static,
    ) {
        // a fault of ours costs one request and not the thread that talks to the kernel
        match catch_unwind(AssertUnwindSafe(|| ask(&self.fs, Wait::No))).unwrap_or(Err(FsError::Io)) {
            Err(FsError::WouldBlock) => {
                let fs = Arc::clone(&self.fs);
                self.fs.pool().submit(bulkhead, move || reply(ask(&fs, Wait::Yes)));
            }
            answer => reply(answer),
        }
    }
}

fn ino(number: INodeNo) -> Ino {
    Ino(number.0)
}

fn errno(error: &FsError) -> Errno {
    Errno::from_i32(error.errno())
}

fn remembered(attributes: &Attributes) -> Duration {
    if attributes.volatile { Duration::ZERO } else { REMEMBERED }
}

fn file_attr(a: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(a.ino.0),
        size: a.size,
        blocks: a.size.div_ceil(512),
        atime: a.modified,
        mtime: a.modified,
        ctime: a.changed,
        crtime: a.modified,
        kind: kind(a.folder),
        perm: if a.folder { 0o555 } else { 0o444 },
        nlink: if a.folder { 2 } else { 1 },
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        rdev: 0,
        blksize: PREFERRED_READ,
        flags: 0,
    }
}

fn kind(folder: bool) -> FileType {
    if folder { FileType::Directory } else { FileType::RegularFile }
}

/// What the kernel is told of a name that does not exist, so that it remembers that too.
fn nothing() -> FileAttr {
    let never = UNIX_EPOCH;
    let nothing = Attributes { ino: Ino(0), size: 0, folder: false, modified: never, changed: never, volatile: false };
    file_attr(&nothing)
}

fn reply_opened(reply: ReplyOpen, opened: Result<Opened, FsError>, folder: bool) {
    match opened {
        Ok(opened) => {
            let flags = match (folder, opened.uncached) {
                (true, _) => FopenFlags::empty(),
                (false, true) => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH,
                (false, false) => FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH,
            };
            reply.opened(FileHandle(opened.handle), flags);
        }
        Err(e) => reply.error(errno(&e)),
    }
}

fn reply_xattr(reply: ReplyXattr, size: u32, value: Result<Vec<u8>, FsError>) {
    match value {
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(e) => reply.error(errno(&e)),
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // these are better to have; without them everything works all the same
        let _ = config.set_max_background(BACKGROUND);
        // names of one folder are looked up side by side: one that hangs does not hold up the others
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let direct_io = self.fs.options().direct_io;
        // reads with O_DIRECT come in parts that are asked for together
        let parts = if direct_io { InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP } else { InitFlags::FUSE_ASYNC_DIO };
        let _ = config.add_capabilities(parts);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (parent, name) = (ino(parent), name.to_owned());
        self.answer(
            self.fs.bulkhead_of_name(parent, &name),
            move |fs, wait| fs.lookup(parent, &name, wait),
            |found| match found {
                Ok(a) => reply.entry(&remembered(&a), &file_attr(&a), Generation(0)),
                Err(FsError::NotFound) => reply.entry(&REMEMBERED, &nothing(), Generation(0)),
                Err(e) => reply.error(errno(&e)),
            },
        );
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let (number, handle) = (ino(number), handle.map(|h| h.0));
        self.answer(
            Volfs::bulkhead(number),
            move |fs, wait| fs.getattr(number, handle, wait),
            |found| match found {
                Ok(a) => reply.attr(&remembered(&a), &file_attr(&a)),
                Err(e) => reply.error(errno(&e)),
            },
        );
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(errno(&FsError::ReadOnly));
        }
        let number = ino(number);
        if self.forerunner == Some(request.pid()) {
            return reply_opened(reply, self.fs.open_ahead(number), false);
        }
        self.answer(
            Volfs::bulkhead(number),
            move |fs, wait| fs.open(number, wait),
            |opened| reply_opened(reply, opened, false),
        );
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let cached = !OFlags::from_bits_retain(flags.0.cast_unsigned()).contains(OFlags::DIRECT);
        let read = Read { handle: handle.0, offset, size, cached };
        // a reply that is dropped in a fault of ours answers with EIO
        let answer = AssertUnwindSafe(|| {
            self.fs.read(read, |bytes| match bytes {
                Ok(bytes) => reply.data(bytes),
                Err(e) => reply.error(errno(&e)),
            });
        });
        if catch_unwind(answer).is_err() {
            log::error!("internal error: a read stopped half way");
        }
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.fs.release(handle.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let number = ino(number);
        self.answer(
            Volfs::bulkhead(number),
            move |fs, wait| fs.opendir(number, wait),
            |opened| reply_opened(reply, opened, true),
        );
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.fs.readdir(handle.0, offset, |entry, next| {
            !reply.add(INodeNo(entry.ino.0), next, kind(entry.folder), &entry.name)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.fs.release(handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.fs.known_bytes().div_ceil(u64::from(BLOCK));
        reply.statfs(blocks, 0, 0, 0, 0, BLOCK, 255, BLOCK);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let (number, name) = (ino(number), name.to_owned());
        self.answer(
            Volfs::bulkhead(number),
            move |fs, wait| fs.getxattr(number, &name, wait),
            move |value| reply_xattr(reply, size, value),
        );
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let number = ino(number);
        self.answer(
            Volfs::bulkhead(number),
            move |fs, wait| fs.listxattr(number, wait),
            move |value| reply_xattr(reply, size, value),
        );
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }
}
