//! Attributes for the file systems that tests make.

use std::time::SystemTime;

use fuser::{FileAttr, FileType, INodeNo};

/// Returns the attributes of a folder, or of a file of this size, whose times are all the same.
pub fn attributes(number: INodeNo, folder: bool, size: u64, time: SystemTime) -> FileAttr {
    FileAttr {
        ino: number,
        size,
        blocks: 1,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
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
