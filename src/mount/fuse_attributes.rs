//! Attributes, inode numbers and errors as the FUSE library has them.

use std::time::{Duration, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo};

use crate::fs::{Attributes, FsError, Ino};
use crate::source::Permissions;

/// How long the kernel may cache names and attributes. Together with the time for which the catalog trusts its last
/// check of the source this is less than a second.
pub(crate) const TTL: Duration = Duration::from_millis(750);
/// The block size that stat reports. Programs that buffer (Python, C's stdio) read as much for the first byte, so it is
/// small: with 1 MiB, `np.load` of a mapped array decoded all bricks that its first MiB touches. Programs that copy read
/// in pieces of 128 KiB and more, whatever it is.
const PREFERRED_READ: u32 = 4096;

/// Returns the inode number that the kernel has sent.
pub(crate) fn ino(number: INodeNo) -> Ino {
    Ino(number.0)
}

/// Returns the error number of an error.
pub(crate) fn errno(error: &FsError) -> Errno {
    Errno::from_i32(error.errno())
}

/// Returns how long the kernel may cache attributes.
pub(crate) fn ttl(attributes: &Attributes) -> Duration {
    if attributes.volatile { Duration::ZERO } else { TTL }
}

/// Returns attributes as the kernel wants them.
pub(crate) fn file_attr(a: &Attributes) -> FileAttr {
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

/// Returns the type of a folder or file.
pub(crate) fn kind(folder: bool) -> FileType {
    if folder { FileType::Directory } else { FileType::RegularFile }
}

/// The reply for a name that does not exist: with inode number 0 the kernel caches that too.
pub(crate) fn no_file() -> FileAttr {
    let (never, nobody) = (UNIX_EPOCH, Permissions { uid: 0, gid: 0, mode: 0 });
    file_attr(&Attributes {
        ino: Ino(0),
        size: 0,
        folder: false,
        modified: never,
        changed: never,
        permissions: nobody,
        volatile: false,
    })
}
