//! A FUSE mount that does no work: it has one file, and answers every read at once from one warm buffer.
//!
//! A client measures here the cost of the kernel, the FUSE library and the client itself, with requests as long as the
//! kernel makes them. Used by `scripts/bench`.
//!
//! `nullfs MOUNTPOINT BYTES [split]` shows `null.raw` with BYTES bytes, and stays in the foreground until it is
//! unmounted. With `split` the kernel splits O_DIRECT reads into parallel requests, as it does for volfs.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, Request,
};

const NAME: &str = "null.raw";
const FILE_INODE: INodeNo = INodeNo(2);
const TTL: Duration = Duration::from_millis(750);
/// The longest request of the kernel.
const MAX_REQUEST: usize = 1 << 20;
const PAGE: usize = 4096;

struct Null {
    size: u64,
    split: bool,
    samples: Vec<u8>,
}

impl Null {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let folder = number != FILE_INODE;
        let size = if folder { 0 } else { self.size };
        FileAttr {
            ino: number,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if folder { FileType::Directory } else { FileType::RegularFile },
            perm: if folder { 0o555 } else { 0o444 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 1 << 20,
            flags: 0,
        }
    }
}

impl Filesystem for Null {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_background(64);
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        if self.split {
            let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&TTL, &self.attributes(FILE_INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH);
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
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let start = self.samples.as_ptr().align_offset(PAGE).min(PAGE);
        reply.data(&self.samples[start..start + left.min(size as usize).min(MAX_REQUEST)]);
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (mountpoint, bytes, split) = match arguments.as_slice() {
        [mountpoint, bytes] => (mountpoint, bytes, false),
        [mountpoint, bytes, split] if split == "split" => (mountpoint, bytes, true),
        _ => {
            return Err(io::Error::other(
                "give the mount point, the size of the file in bytes, and optionally the word split",
            ));
        }
    };
    let size = bytes.parse().map_err(|_| io::Error::other(format!("{bytes} is not a number of bytes")))?;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("nullfs".into()),
        MountOption::RO,
        MountOption::NoAtime,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::DefaultPermissions,
    ];
    if split {
        config.mount_options.push(MountOption::CUSTOM(format!("max_read={}", 128 << 10)));
    }
    config.n_threads = Some(thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8)));
    config.clone_fd = true;
    fuser::mount(Null { size, split, samples: vec![0x5a; MAX_REQUEST + PAGE] }, mountpoint, &config)
}
