//! An open local file, in the version that it had when it was opened.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, SeekFrom, StatxFlags, fgetxattr, seek, statx};
use rustix::io::Errno;

use super::mmap_cache::{FileWindows, MappedWindow};
use super::pread::fill;
use crate::counters::Counters;
use crate::source::{Blocking, FileStamp, RecentWrites, SourceError};

/// Bytes of the longest extended attribute that is read.
const MAX_TAG_BYTES: usize = 4096;

/// An open file, for several reads in a row. They count only if [`OpenFile::check_unchanged`] succeeds afterwards.
pub(crate) struct OpenFile {
    pub(super) name: Box<str>,
    pub(super) stamp: FileStamp,
    /// The time of the last change of its content or attributes (ctime): seconds and nanoseconds.
    ctime: (i64, i64),
    path: PathBuf,
    file: File,
    windows: FileWindows,
    changed: Arc<AtomicBool>,
    recent: Arc<RecentWrites>,
    /// Whether it was used since the last [`OpenFile::was_used`].
    used: AtomicBool,
    counters: Arc<Counters>,
}

impl OpenFile {
    /// Wraps a file that was just opened, with its metadata from then. `changed` is set once a change is noticed, and
    /// `recent` gets a record if the file was written to a moment ago. May wait for its disk.
    pub(super) fn new(
        (name, path): (&str, PathBuf),
        (file, metadata): (File, &Metadata),
        (changed, recent): (Arc<AtomicBool>, Arc<RecentWrites>),
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        recent.record(metadata);
        let (stamp, windows) = (FileStamp::of(metadata), FileWindows::new(&file, metadata.size()));
        let (ctime, used) = ((metadata.ctime(), metadata.ctime_nsec()), AtomicBool::new(true));
        Arc::new(Self { name: name.into(), stamp, ctime, path, file, windows, changed, recent, used, counters })
    }

    /// Returns the bytes that the file has now.
    pub(super) fn size_now(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.size())
    }

    /// Fills `out` with the bytes from `offset` on.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<(), SourceError> {
        let (length, size) = (out.len() as u64, self.stamp.size);
        // the check for changes, which follows, would wait for a server
        if blocking == Blocking::No && !self.is_local() {
            return Err(SourceError::WouldBlock);
        }
        if offset.checked_add(length).is_none_or(|end| end > size) {
            // the size may have been wrong for a moment, and then the file is not too short
            self.check_unchanged()?;
            return Err(SourceError::TooShort { offset, length, size });
        }
        match fill(&self.file, offset, out, blocking) {
            Ok(true) => self.counters.source_bytes.add(length),
            Ok(false) => return Err(SourceError::WouldBlock),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                self.check_unchanged()?;
                return Err(self.failed("read", &e));
            }
            Err(e) => return Err(self.failed("read", &e)),
        }
        Ok(())
    }

    /// Returns where the next byte from `offset` on lies that is not in a hole of the file; `offset` itself if the file
    /// system knows no holes. May wait.
    pub(crate) fn next_stored(&self, offset: u64) -> u64 {
        // all reads say where they begin, so that the position of the descriptor means nothing
        match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(at) => at.max(offset),
            Err(Errno::NXIO) => self.stamp.size.max(offset),
            Err(_) => offset,
        }
    }

    /// Returns whether the file is on a local file system. A stat of any other file may wait for a server.
    pub(crate) fn is_local(&self) -> bool {
        self.windows.is_local()
    }

    /// Reads an extended attribute of the `user` namespace; `None` if the file has none of this name.
    pub(crate) fn tag(&self, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let mut value = [0; MAX_TAG_BYTES];
        match fgetxattr(&self.file, format!("user.{name}"), &mut value) {
            Ok(length) => Ok(value.get(..length).map(<[u8]>::to_vec)),
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
            Err(e) => Err(self.failed("read an attribute of", &e.into())),
        }
    }

    /// Returns the number of the window that a range of the file lies in, and the offset of the range in it; `None` if
    /// the range can only be read.
    pub(crate) fn window_of(&self, offset: u64, length: usize) -> Option<(u64, usize)> {
        self.windows.locate(offset, length)
    }

    /// Returns a mapped window by its number; `None` if it is not requested often, or can only be read.
    pub(crate) fn window(&self, number: u64) -> Option<Arc<MappedWindow>> {
        self.windows.window(&self.file, number)
    }

    /// Checks that `copied` bytes from a window were those of the file, and counts them.
    pub(crate) fn check_copied(&self, window: &MappedWindow, copied: usize) -> Result<(), SourceError> {
        self.counters.source_bytes.add(copied as u64);
        if !window.is_broken() {
            return Ok(());
        }
        self.check_unchanged()?;
        Err(self.failed("read", &io::Error::other("the system could not give what it holds of the file")))
    }

    /// Checks that the file is still of the version that was opened, and so is all that was read from it.
    pub(crate) fn check_unchanged(&self) -> Result<(), SourceError> {
        let now = self.file.metadata().map_err(|e| self.failed("look at", &e))?;
        // a file without a name was replaced or removed
        if FileStamp::of(&now) != self.stamp || now.nlink() == 0 {
            return Err(self.mark_changed());
        }
        // other attributes have changed, or new content was given the old time
        if (now.ctime(), now.ctime_nsec()) != self.ctime {
            self.recent.record_change();
        }
        Ok(())
    }

    /// Records that the file is in use, so that it is not evicted next.
    pub(super) fn mark_used(&self) {
        // most calls write nothing, which other processors would have to notice
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether the file was used since the last call.
    pub(super) fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Returns whether the file has lost its last name. Neither asks a server nor waits for a disk.
    pub(super) fn is_gone(&self) -> bool {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        statx(&self.file, "", flags, StatxFlags::NLINK).is_ok_and(|now| now.stx_nlink == 0)
    }

    /// Remembers that the file has changed.
    pub(super) fn mark_changed(&self) -> SourceError {
        self.changed.store(true, Ordering::Relaxed);
        SourceError::Changed
    }

    fn failed(&self, doing: &str, error: &io::Error) -> SourceError {
        SourceError::io(format!("cannot {doing} {}", self.path.display()), error)
    }
}
