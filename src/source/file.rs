//! A dataset that is one local file.

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{OpenFile, Source, SourceError, WHOLE, Wait};
use crate::counters::Counters;

/// What tells one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Bytes.
    pub size: u64,
    /// Time of the last change, seconds and nanoseconds since 1970.
    pub mtime: (i64, i64),
    /// Device and inode number.
    pub inode: (u64, u64),
}

impl FileStamp {
    /// The stamp in what the system says of a file.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }

    /// A number that two versions hardly ever have in common; never 0.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish() | 1
    }

    /// The time of the last change.
    #[must_use]
    pub fn modified(&self) -> SystemTime {
        time(self.mtime.0, self.mtime.1)
    }
}

/// A time that the system gives as seconds and nanoseconds since 1970.
#[must_use]
pub fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds.clamp(0, 999_999_999).unsigned_abs());
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|t| t.checked_add(part)).unwrap_or(UNIX_EPOCH)
}

/// One local file. That it is cut short under us is an error, not a fault.
pub struct LocalFile {
    open: Arc<OpenFile>,
}

impl LocalFile {
    /// Opens the file; what it holds now is the version that is read from here on.
    ///
    /// # Errors
    /// [`SourceError::Io`] if it cannot be opened or is not a regular file.
    pub fn open(path: &Path, counters: Arc<Counters>) -> Result<Self, SourceError> {
        let failed = |e: &io::Error| SourceError::io(format!("cannot open {}", path.display()), e);
        let file = File::open(path).map_err(|e| failed(&e))?;
        let metadata = file.metadata().map_err(|e| failed(&e))?;
        if !metadata.is_file() {
            return Err(failed(&io::Error::other("not a regular file")));
        }
        Ok(Self { open: OpenFile::new((WHOLE, path.to_owned()), (file, &metadata), Arc::default(), counters) })
    }

    /// The version of the file that this source reads.
    #[must_use]
    pub fn stamp(&self) -> FileStamp {
        self.open.stamp
    }
}

impl Source for LocalFile {
    fn len(&self, _object: &str) -> Result<Option<u64>, SourceError> {
        Ok(Some(self.open.stamp.size))
    }

    fn read_at(&self, _object: &str, offset: u64, out: &mut [u8], wait: Wait) -> Result<bool, SourceError> {
        match self.open.read_at(offset, out, wait) {
            Err(SourceError::Changed) => {
                Err(SourceError::TooShort { offset, length: out.len() as u64, size: self.open.size_now() })
            }
            read => read.map(|()| true),
        }
    }

    fn hold(&self, _object: &str, _: Wait) -> Result<Option<Arc<OpenFile>>, SourceError> {
        Ok(Some(Arc::clone(&self.open)))
    }

    fn unchanged(&self) -> Result<(), SourceError> {
        self.open.check()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn sample(bytes: &[u8]) -> (tempfile::TempDir, PathBuf, LocalFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, bytes).unwrap();
        let file = LocalFile::open(&path, Arc::default()).unwrap();
        (folder, path, file)
    }

    #[test]
    fn ranges_are_read_whole_or_not_at_all() {
        let (_folder, _, file) = sample(b"0123456789");
        let mut out = [0; 4];
        assert_eq!(file.read_at("", 3, &mut out, Wait::Yes), Ok(true));
        assert_eq!(&out, b"3456");
        assert!(matches!(file.read_at("", 8, &mut out, Wait::Yes), Err(SourceError::TooShort { size: 10, .. })));
        assert!(matches!(file.read_at("", u64::MAX, &mut out, Wait::Yes), Err(SourceError::TooShort { .. })));
        assert!(matches!(file.read_at("", 3, &mut out, Wait::No), Ok(true) | Err(SourceError::WouldBlock)));
    }

    #[test]
    fn a_change_is_noticed() {
        let (_folder, path, file) = sample(b"0123456789");
        assert_eq!(file.unchanged(), Ok(()));
        fs::File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
        assert_eq!(file.unchanged(), Err(SourceError::Changed));
        assert!(matches!(file.read_at("", 3, &mut [0; 4], Wait::Yes), Err(SourceError::TooShort { size: 5, .. })));

        let (_folder, path, file) = sample(b"0123456789");
        fs::remove_file(path).unwrap();
        assert_eq!(file.unchanged(), Err(SourceError::Changed));
    }
}
