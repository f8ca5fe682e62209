//! A local file that is open, in the version that it had when it was opened.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::fgetxattr;
use rustix::io::Errno;

use super::pread::fill;
use super::windows::Windows;
use super::{FileStamp, MappedWindow, SourceError, Wait};
use crate::counters::Counters;

/// Longer attributes are nothing that a format asks for.
const LONGEST_TAG: usize = 4096;

/// An open file, for several reads of it in a row. What was read counts only if [`OpenFile::check`] says so afterwards.
pub struct OpenFile {
    pub(super) name: Box<str>,
    pub(super) stamp: FileStamp,
    path: PathBuf,
    file: File,
    windows: Windows,
    changed: Arc<AtomicBool>,
    counters: Arc<Counters>,
}

impl OpenFile {
    /// A file that has just been opened, and what it was then. `changed` is set when it turns out to be no longer that. May wait
    /// for its disk.
    pub(super) fn new(
        (name, path): (&str, PathBuf),
        (file, metadata): (File, &Metadata),
        changed: Arc<AtomicBool>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let (stamp, windows) = (FileStamp::of(metadata), Windows::of(&file, metadata.size()));
        Arc::new(Self { name: name.into(), stamp, path, file, windows, changed, counters })
    }

    /// Bytes that there are at this moment.
    pub(super) fn size_now(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.size())
    }

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Those of [`Source::read_at`](super::Source::read_at).
    pub fn read_at(&self, offset: u64, out: &mut [u8], wait: Wait) -> Result<(), SourceError> {
        let (length, size) = (out.len() as u64, self.stamp.size);
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(SourceError::TooShort { offset, length, size });
        }
        // the look at whether it has changed, which follows, would wait
        if wait == Wait::No && !self.is_near() {
            return Err(SourceError::WouldBlock);
        }
        match fill(&self.file, offset, out, wait) {
            Ok(true) => self.counters.source_bytes.add(length),
            Ok(false) => return Err(SourceError::WouldBlock),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Err(self.has_changed()),
            Err(e) => return Err(self.failed("read", &e)),
        }
        Ok(())
    }

    /// Whether it is on a file system of this machine: else a look at it may wait for a server.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.windows.are_near()
    }

    /// An extended attribute that belongs to users.
    ///
    /// # Errors
    /// [`SourceError::Io`] where the system fails.
    pub fn tag(&self, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let mut value = [0; LONGEST_TAG];
        match fgetxattr(&self.file, format!("user.{name}"), &mut value) {
            Ok(length) => Ok(value.get(..length).map(<[u8]>::to_vec)),
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
            Err(e) => Err(self.failed("read an attribute of", &e.into())),
        }
    }

    /// The number of the window that a range of the file lies in, and the place of its first byte there; `None` if it can only be
    /// read.
    #[must_use]
    pub fn window_of(&self, offset: u64, length: usize) -> Option<(u64, usize)> {
        self.windows.number(offset, length)
    }

    /// A window by its number; `None` if its part of the file is not asked for often, or can only be read.
    #[must_use]
    pub fn window(&self, number: u64) -> Option<Arc<MappedWindow>> {
        self.windows.window(&self.file, number)
    }

    /// Makes sure that `copied` bytes from a window were those of the file.
    ///
    /// # Errors
    /// [`SourceError::Changed`] or [`SourceError::Io`] if they were not.
    pub fn settle(&self, window: &MappedWindow, copied: usize) -> Result<(), SourceError> {
        self.counters.source_bytes.add(copied as u64);
        if !window.is_broken() {
            return Ok(());
        }
        self.check()?;
        Err(self.failed("read", &io::Error::other("the system could not give what it holds of the file")))
    }

    /// Makes sure that what was read so far is of one version.
    ///
    /// # Errors
    /// [`SourceError::Changed`] if it need not be.
    pub fn check(&self) -> Result<(), SourceError> {
        let now = self.file.metadata().map_err(|e| self.failed("look at", &e))?;
        // a file that has no name any more was replaced or removed
        if FileStamp::of(&now) != self.stamp || now.nlink() == 0 {
            return Err(self.has_changed());
        }
        Ok(())
    }

    /// From now on it is known.
    fn has_changed(&self) -> SourceError {
        self.changed.store(true, Ordering::Relaxed);
        SourceError::Changed
    }

    fn failed(&self, doing: &str, error: &io::Error) -> SourceError {
        SourceError::io(format!("cannot {doing} {}", self.path.display()), error)
    }
}
