//! The FUSE adapter: turns each request of the kernel into a call of [`Volfs`], and the result into the reply.
//!
//! The threads here never wait: requests that cannot be answered from memory go to the pool, whose threads reply.

use std::ffi::OsStr;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle as Handle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    IoctlFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen, ReplyStatfs, ReplyXattr, Request, Version,
};
use rustix::fs::OFlags;

use crate::fs::{Attributes, FolderEntry, FsError, Ino, LONGEST_NAME, OpenReply, Pages, ReadRequest, TTL, Volfs};
use crate::source::{Blocking, Permissions};

/// The block size of statfs.
const BLOCK: u32 = 4096;
/// Bytes that the kernel reads around each page fault of a memory map of a local source. Its default, 128 KiB, spans
/// several rows of bricks; behind a network, where each request takes long, it stays.
const MAX_READAHEAD: u32 = 32 << 10;
/// Before this version of its interface (Linux 5.10) the kernel splits reads and read-ahead requests into as many bytes
/// as it reads ahead. Since then it is certain to check the attributes of entries.
const LINUX_5_10: Version = Version(7, 32);
/// The number of background requests, such as read-ahead, that the kernel may have in flight.
const MAX_BACKGROUND: u16 = 128;

/// The block size that stat reports. Programs that buffer (Python, C's stdio) read as much for the first byte, so it is
/// small: with 1 MiB, `np.load` of a mapped array decoded all bricks that its first MiB touches. Programs that copy
/// read in pieces of 128 KiB and more, whatever it is.
const PREFERRED_READ: u32 = 4096;

/// Answers the requests of the kernel.
pub(super) struct Adapter {
    pub(super) fs: Arc<Volfs>,
    /// The process number of the read-ahead process, whose opens share the open files of clients.
    pub(super) readahead_pid: Option<u32>,
    /// Tells the files of this mount from those that a mount before it had under the same numbers: a server of NFS
    /// gives its clients handles with both.
    pub(super) generation: Generation,
}

impl Adapter {
    /// Replies with the result of `call` about a file or folder; see [`Volfs::answer`].
    fn answer<T: 'static>(
        &self,
        number: INodeNo,
        call: impl Fn(&Arc<Volfs>, Ino, Blocking) -> Result<T, FsError> + Send + 'static,
        reply: impl FnOnce(Result<T, FsError>) + Send + 'static,
    ) {
        let ino = Ino(number.0);
        self.fs.answer(Volfs::bulkhead(ino), move |fs, blocking| call(fs, ino, blocking), reply);
    }

    fn list(&self, number: INodeNo, handle: Handle, offset: u64, mut reply: Listing) {
        match reply.add_entries(&self.fs, handle, offset, Blocking::No) {
            // then nothing was added
            Err(FsError::WouldBlock) => {
                let (fs, bulkhead) = (Arc::clone(&self.fs), Volfs::bulkhead(Ino(number.0)));
                let waiting = fs.pool().request(bulkhead);
                self.fs.pool().submit(bulkhead, move || {
                    let listed = reply.add_entries(&fs, handle, offset, Blocking::Yes);
                    drop(waiting);
                    reply.finish(listed);
                });
            }
            listed => reply.finish(listed),
        }
    }
}

fn reply_opened(reply: ReplyOpen, opened: Result<OpenReply, FsError>, folder: bool) {
    match opened {
        Ok(opened) => {
            let flags = match opened.pages {
                _ if folder => FopenFlags::empty(),
                Pages::Bypass => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH,
                Pages::Drop => FopenFlags::FOPEN_NOFLUSH,
                Pages::Keep => FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH,
            };
            reply.opened(Handle(opened.handle), flags);
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
        // a kernel that refuses any of these still works, only slower
        let _ = config.set_max_background(MAX_BACKGROUND);
        // sequential readers of maps need the read-ahead process then
        let local = !self.fs.options().origin().is_url();
        if local && self.readahead_pid.is_some() && config.kernel_abi() >= LINUX_5_10 {
            let _ = config.set_max_readahead(MAX_READAHEAD);
        }
        // `ls -l` of a large folder needs no request for each name
        if config.kernel_abi() >= LINUX_5_10 {
            let _ = config
                .add_capabilities(InitFlags::FUSE_DO_READDIRPLUS)
                .and_then(|()| config.add_capabilities(InitFlags::FUSE_READDIRPLUS_AUTO));
        }
        // names of one folder are looked up in parallel, so one that hangs does not block the others
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        // a file is found by its number alone, when the kernel has forgotten it and a client of NFS has not
        let _ = config.add_capabilities(InitFlags::FUSE_EXPORT_SUPPORT);
        let direct_io = self.fs.options().direct_io;
        // the kernel requests the parts of a long read with O_DIRECT in parallel
        let parts = if direct_io { InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP } else { InitFlags::FUSE_ASYNC_DIO };
        let _ = config.add_capabilities(parts);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (parent, name) = (Ino(parent.0), name.to_owned());
        let other = self.fs.ino_for_user(parent, &name, request.uid());
        let generation = self.generation;
        self.fs.answer(
            self.fs.bulkhead_of_name(parent, &name),
            move |fs, blocking| {
                other.map_or_else(|| fs.lookup(parent, &name, blocking), |ino| fs.getattr(ino, None, blocking))
            },
            move |found| match found {
                Ok(a) => reply.entry(&a.ttl(), &file_attr(&a), generation),
                // with inode number 0 the kernel caches that the name does not exist
                Err(FsError::NotFound) => {
                    reply.entry(&TTL, &unknown(Ino(0), 0, false, Permissions::NONE), Generation(0))
                }
                Err(e) => reply.error(errno(&e)),
            },
        );
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<Handle>, reply: ReplyAttr) {
        let handle = handle.map(|handle| handle.0);
        let call = move |fs: &Arc<Volfs>, ino, blocking| fs.getattr(ino, handle, blocking);
        self.answer(number, call, |found| match found {
            Ok(a) => reply.attr(&a.ttl(), &file_attr(&a)),
            Err(e) => reply.error(errno(&e)),
        });
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(errno(&FsError::ReadOnly));
        }
        if self.readahead_pid == Some(request.pid()) {
            return reply_opened(reply, self.fs.open_for_readahead(Ino(number.0)), false);
        }
        self.answer(number, |fs, ino, blocking| fs.open(ino, blocking), |opened| reply_opened(reply, opened, false));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: Handle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let cached = !OFlags::from_bits_retain(flags.0.cast_unsigned()).contains(OFlags::DIRECT);
        let read = ReadRequest { handle: handle.0, offset, size, cached };
        // a reply that is dropped in a panic answers with EIO
        let answer = AssertUnwindSafe(|| {
            self.fs.read(read, |bytes| match bytes {
                Ok(bytes) => reply.data(bytes),
                Err(e) => reply.error(errno(&e)),
            });
        });
        if catch_unwind(answer).is_err() {
            log::error!("internal error: a read panicked");
        }
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: Handle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.fs.release(handle.0);
        reply.ok();
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.answer(number, |fs, ino, blocking| fs.opendir(ino, blocking), |opened| reply_opened(reply, opened, true));
    }

    fn readdir(&self, _: &Request, number: INodeNo, handle: Handle, offset: u64, reply: ReplyDirectory) {
        self.list(number, handle, offset, Listing::Names(reply));
    }

    fn readdirplus(&self, _: &Request, number: INodeNo, handle: Handle, offset: u64, reply: ReplyDirectoryPlus) {
        self.list(number, handle, offset, Listing::Attributes(reply, self.generation));
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: Handle, _: OpenFlags, reply: ReplyEmpty) {
        self.fs.release(handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.fs.known_bytes().div_ceil(u64::from(BLOCK));
        reply.statfs(blocks, 0, 0, 0, 0, BLOCK, LONGEST_NAME, BLOCK);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        let call = move |fs: &Arc<Volfs>, ino, blocking| fs.getxattr(ino, &name, blocking);
        self.answer(number, call, move |value| reply_xattr(reply, size, value));
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let call = |fs: &Arc<Volfs>, ino, blocking| fs.listxattr(ino, blocking);
        self.answer(number, call, move |value| reply_xattr(reply, size, value));
    }

    fn ioctl(&self, _: &Request, _: INodeNo, _: Handle, _: IoctlFlags, _: u32, _: &[u8], _: u32, reply: ReplyIoctl) {
        reply.error(Errno::ENOTTY);
    }
}

fn errno(error: &FsError) -> Errno {
    Errno::from_i32(error.errno())
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
        perm: u16::try_from(a.permissions.mode).unwrap_or(0),
        nlink: if a.folder { 2 } else { 1 },
        uid: a.permissions.uid,
        gid: a.permissions.gid,
        rdev: 0,
        blksize: PREFERRED_READ,
        flags: 0,
    }
}

fn kind(folder: bool) -> FileType {
    if folder { FileType::Directory } else { FileType::RegularFile }
}

/// Returns attributes with times of which nothing is known.
fn unknown(ino: Ino, size: u64, folder: bool, permissions: Permissions) -> FileAttr {
    let (modified, changed) = (UNIX_EPOCH, UNIX_EPOCH);
    file_attr(&Attributes { ino, size, folder, modified, changed, permissions, volatile: true })
}

/// A reply that takes the entries of a folder until it is full, without or with their attributes.
enum Listing {
    Names(ReplyDirectory),
    Attributes(ReplyDirectoryPlus, Generation),
}

impl Listing {
    fn add_entries(&mut self, fs: &Volfs, handle: Handle, from: u64, blocking: Blocking) -> Result<(), FsError> {
        fs.readdir(handle.0, from, blocking, |entry, position| self.push(fs, entry, position))
    }

    /// Adds an entry with its position; `false` if there is no more room.
    fn push(&mut self, fs: &Volfs, entry: &FolderEntry, position: u64) -> bool {
        let number = INodeNo(entry.ino.0);
        match self {
            Self::Names(reply) => !reply.add(number, position, kind(entry.folder), &entry.name),
            Self::Attributes(reply, generation) => {
                // the kernel trusts them no longer than it would have if it had asked when they were determined
                let known =
                    fs.listed_attributes(entry.ino).and_then(|(a, age)| Some((file_attr(&a), TTL.checked_sub(age)?)));
                // The protocol has an inode number of zero for an entry whose attributes are not known, but then the
                // listing would show zero too. The kernel ignores attributes whose size is not possible, and asks for
                // them when somebody wants them.
                let none = || unknown(entry.ino, u64::MAX, entry.folder, fs.default_permissions(entry.folder));
                let (attributes, ttl) = known.unwrap_or_else(|| (none(), Duration::ZERO));
                !reply.add(number, position, &entry.name, &ttl, &attributes, *generation)
            }
        }
    }

    fn finish(self, listed: Result<(), FsError>) {
        match (self, listed) {
            (Self::Names(reply), Ok(())) => reply.ok(),
            (Self::Attributes(reply, _), Ok(())) => reply.ok(),
            (Self::Names(reply), Err(e)) => reply.error(errno(&e)),
            (Self::Attributes(reply, _), Err(e)) => reply.error(errno(&e)),
        }
    }
}
