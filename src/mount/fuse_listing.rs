//! Replies with the entries of a folder, with their attributes (readdirplus) or without.

use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileHandle, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus, Version};

use super::fuse_attributes::{TTL, errno, file_attr, kind};
use crate::fs::{Attributes, FolderEntry, FsError, Volfs};
use crate::source::Blocking;

/// Since this version of its interface (Linux 5.10) the kernel is certain to check the attributes of entries.
pub(crate) const VERIFIES_ATTRIBUTES: Version = Version(7, 32);

/// A reply that takes the entries of a folder until it is full.
pub(crate) trait ListingReply: Send + Sized + 'static {
    /// Adds an entry with its position; `false` if there is no more room.
    fn push(&mut self, fs: &Volfs, entry: &FolderEntry, position: u64) -> bool;

    /// Sends the reply.
    fn finish(self, listed: Result<(), FsError>);

    /// Adds the entries after position `from`.
    fn add_entries(&mut self, fs: &Volfs, handle: FileHandle, from: u64, blocking: Blocking) -> Result<(), FsError> {
        fs.readdir(handle.0, from, blocking, |entry, position| self.push(fs, entry, position))
    }
}

impl ListingReply for ReplyDirectory {
    fn push(&mut self, _: &Volfs, entry: &FolderEntry, position: u64) -> bool {
        !self.add(INodeNo(entry.ino.0), position, kind(entry.folder), &entry.name)
    }

    fn finish(self, listed: Result<(), FsError>) {
        match listed {
            Ok(()) => self.ok(),
            Err(e) => self.error(errno(&e)),
        }
    }
}

impl ListingReply for ReplyDirectoryPlus {
    fn push(&mut self, fs: &Volfs, entry: &FolderEntry, position: u64) -> bool {
        // the kernel trusts them no longer than it would have if it had asked when they were determined
        let known = fs.listed_attributes(entry.ino).and_then(|(a, age)| Some((file_attr(&a), TTL.checked_sub(age)?)));
        let (attributes, ttl) = known.unwrap_or_else(|| (no_attributes(fs, entry), Duration::ZERO));
        !self.add(INodeNo(entry.ino.0), position, &entry.name, &ttl, &attributes, Generation(0))
    }

    fn finish(self, listed: Result<(), FsError>) {
        match listed {
            Ok(()) => self.ok(),
            Err(e) => self.error(errno(&e)),
        }
    }
}

/// Returns the attributes of an entry of which only the inode number and the type are known. The protocol has an inode
/// number of zero for that, but then the listing would show zero too. The kernel ignores attributes whose size is not
/// possible, and asks for them when somebody wants them.
fn no_attributes(fs: &Volfs, entry: &FolderEntry) -> FileAttr {
    let (modified, changed) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
    let permissions = fs.default_permissions(entry.folder);
    let (ino, folder) = (entry.ino, entry.folder);
    file_attr(&Attributes { ino, size: u64::MAX, folder, modified, changed, permissions, volatile: true })
}
