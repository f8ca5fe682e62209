//! The FUSE adapter: turns each request of the kernel into a call of [`Volfs`], and the result into the reply.
//!
//! The threads here never wait: requests that cannot be answered from memory go to the pool, whose threads reply.

use std::ffi::OsStr;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner,
    OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyOpen, ReplyStatfs, ReplyXattr, Request, Version,
};
use rustix::fs::OFlags;

use super::fuse_attributes::{TTL, errno, file_attr, ino, no_file, ttl};
use super::fuse_listing::{ListingReply, VERIFIES_ATTRIBUTES};
use crate::fs::{FsError, OpenReply, Pages, ReadRequest, Volfs};
use crate::pool::Bulkhead;
use crate::source::Blocking;

/// The block size of statfs.
const BLOCK: u32 = 4096;
/// Bytes that the kernel reads around each page fault of a memory map of a local source. Its default, 128 KiB, spans
/// several rows of bricks; behind a network, where each request takes long, it stays.
const READ_AROUND: u32 = 32 << 10;
/// Before this version of its interface (Linux 5.10) the kernel splits reads and read-ahead requests into as many bytes.
const HAS_LONG_READ_AHEAD: Version = Version(7, 32);
/// The number of background requests, such as read-ahead, that the kernel may have in flight.
const MAX_BACKGROUND: u16 = 128;

/// Answers the requests of the kernel.
pub(crate) struct Adapter {
    /// The file system.
    pub fs: Arc<Volfs>,
    /// The process number of the read-ahead process, whose opens share the open files of clients.
    pub readahead_pid: Option<u32>,
}

impl Adapter {
    /// Replies with the result of `call`; see [`Volfs::answer`].
    fn answer<T: 'static>(
        &self,
        bulkhead: Bulkhead,
        call: impl Fn(&Arc<Volfs>, Blocking) -> Result<T, FsError> + Send + 'static,
        reply: impl FnOnce(Result<T, FsError>) + Send + 'static,
    ) {
        self.fs.answer(bulkhead, call, reply);
    }

    /// Replies with the entries of a folder.
    fn list(&self, number: INodeNo, handle: FileHandle, offset: u64, mut reply: impl ListingReply) {
        match reply.add_entries(&self.fs, handle, offset, Blocking::No) {
            // then nothing was added
            Err(FsError::WouldBlock) => {
                let (fs, bulkhead) = (Arc::clone(&self.fs), Volfs::bulkhead(ino(number)));
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
        // a kernel that refuses any of these still works, only slower
        let _ = config.set_max_background(MAX_BACKGROUND);
        // sequential readers of maps need the read-ahead process then
        let local = !self.fs.options().origin().is_url();
        if local && self.readahead_pid.is_some() && config.kernel_abi() >= HAS_LONG_READ_AHEAD {
            let _ = config.set_max_readahead(READ_AROUND);
        }
        // `ls -l` of a large folder needs no request for each name
        if config.kernel_abi() >= VERIFIES_ATTRIBUTES {
            let _ = config
                .add_capabilities(InitFlags::FUSE_DO_READDIRPLUS)
                .and_then(|()| config.add_capabilities(InitFlags::FUSE_READDIRPLUS_AUTO));
        }
        // names of one folder are looked up in parallel, so one that hangs does not block the others
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let direct_io = self.fs.options().direct_io;
        // the kernel requests the parts of a long read with O_DIRECT in parallel
        let parts = if direct_io { InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP } else { InitFlags::FUSE_ASYNC_DIO };
        let _ = config.add_capabilities(parts);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (parent, name) = (ino(parent), name.to_owned());
        let other = self.fs.ino_for_user(parent, &name, request.uid());
        self.answer(
            self.fs.bulkhead_of_name(parent, &name),
            move |fs, blocking| {
                other.map_or_else(|| fs.lookup(parent, &name, blocking), |ino| fs.getattr(ino, None, blocking))
            },
            |found| match found {
                Ok(a) => reply.entry(&ttl(&a), &file_attr(&a), Generation(0)),
                Err(FsError::NotFound) => reply.entry(&TTL, &no_file(), Generation(0)),
                Err(e) => reply.error(errno(&e)),
            },
        );
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let (number, handle) = (ino(number), handle.map(|h| h.0));
        self.answer(
            Volfs::bulkhead(number),
            move |fs, blocking| fs.getattr(number, handle, blocking),
            |found| match found {
                Ok(a) => reply.attr(&ttl(&a), &file_attr(&a)),
                Err(e) => reply.error(errno(&e)),
            },
        );
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(errno(&FsError::ReadOnly));
        }
        let number = ino(number);
        if self.readahead_pid == Some(request.pid()) {
            return reply_opened(reply, self.fs.open_for_readahead(number), false);
        }
        self.answer(
            Volfs::bulkhead(number),
            move |fs, blocking| fs.open(number, blocking),
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
        let read = ReadRequest { handle: handle.0, offset, size, cached };
        // a reply that is dropped in a panic answers with EIO
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
            move |fs, blocking| fs.opendir(number, blocking),
            |opened| reply_opened(reply, opened, true),
        );
    }

    fn readdir(&self, _: &Request, number: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.list(number, handle, offset, reply);
    }

    fn readdirplus(&self, _: &Request, number: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        self.list(number, handle, offset, reply);
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
            move |fs, blocking| fs.getxattr(number, &name, blocking),
            move |value| reply_xattr(reply, size, value),
        );
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let number = ino(number);
        self.answer(
            Volfs::bulkhead(number),
            move |fs, blocking| fs.listxattr(number, blocking),
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
