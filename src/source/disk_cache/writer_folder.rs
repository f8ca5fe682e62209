//! Where a process puts what it has not yet written as a whole: a folder of its own below `writers`, with a lock that
//! ends with the process, whatever ends it. Numbers of processes would not tell: containers each have their own.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::folder::{FOLDER, WRITERS, entries, random};

/// How often a folder is made that is taken away before it is locked.
const TRIES: usize = 16;

/// The folder of one who writes, with its lock. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct WriterFolder {
    /// `writers`.
    parent: OwnedFd,
    fd: OwnedFd,
    name: String,
    files: AtomicU64,
}

impl WriterFolder {
    /// Makes a folder in `writers` of the cache's folder, and removes those of processes that have ended.
    pub(crate) fn create(cache: impl AsFd) -> rustix::io::Result<Self> {
        let parent = openat(cache, WRITERS, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        remove_dead(parent.as_fd());
        for _ in 0..TRIES {
            let name = format!("{}-{:x}", std::process::id(), random());
            mkdirat(&parent, &name, Mode::RWXU)?;
            let Ok(fd) = openat(&parent, &name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) else { continue };
            // where the file system has no locks, nobody can take this one for dead either
            let locked = flock(&fd, FlockOperation::NonBlockingLockExclusive);
            if locked != Err(Errno::WOULDBLOCK) && is_same(parent.as_fd(), &name, fd.as_fd()) {
                return Ok(Self { parent, fd, name, files: AtomicU64::new(0) });
            }
        }
        Err(Errno::BUSY)
    }

    /// Returns a name for a file in this folder that was never used before.
    pub(crate) fn new_name(&self) -> String {
        self.files.fetch_add(1, Relaxed).to_string()
    }

    /// Returns when others last came or went, in seconds and nanoseconds since 1970, and whether there are any.
    pub(crate) fn others(&self) -> rustix::io::Result<((i64, i64), bool)> {
        let changed = self.changed()?;
        // another descriptor, since this one has a place in the list that all threads would share
        let fd = openat(&self.parent, ".", FOLDER, Mode::empty())?;
        Ok((changed, entries(fd.as_fd())?.iter().any(|name| *name != self.name)))
    }

    /// Returns when others last came or went.
    pub(crate) fn changed(&self) -> rustix::io::Result<(i64, i64)> {
        let stat = fstat(&self.parent)?;
        Ok((stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)))
    }
}

impl AsFd for WriterFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for WriterFolder {
    fn drop(&mut self) {
        remove(self.parent.as_fd(), &self.name, self.fd.as_fd());
    }
}

/// Removes the folders of processes that have ended.
pub(crate) fn remove_dead(writers: BorrowedFd) {
    let names = openat(writers, ".", FOLDER, Mode::empty()).and_then(|fd| entries(fd.as_fd())).unwrap_or_default();
    for name in names {
        let Ok(fd) = openat(writers, &name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) else { continue };
        if flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok() && is_same(writers, &name, fd.as_fd()) {
            remove(writers, &name, fd.as_fd());
        }
    }
}

/// Removes a folder and the files in it.
fn remove(parent: BorrowedFd, name: &str, folder: BorrowedFd) {
    // failures leave files behind, which whoever comes next removes
    for file in entries(folder).unwrap_or_default() {
        let _ = unlinkat(folder, &file, AtFlags::empty());
    }
    let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
}

/// Returns whether a name is still that of an open folder.
fn is_same(parent: BorrowedFd, name: &str, folder: BorrowedFd) -> bool {
    let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let named = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(identity);
    matches!((named, fstat(folder).map(identity)), (Ok(a), Ok(b)) if a == b)
}
