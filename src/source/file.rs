//! A dataset that is one local file.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{FileStamp, OpenFile, RecentWrites, Source, SourceError, WHOLE, Wait};
use crate::counters::Counters;

/// One local file. Truncation while it is read is an error, not a crash.
pub struct LocalFile {
    open: Arc<OpenFile>,
}

impl LocalFile {
    /// Opens the file; the version that it has now is the one that is read. `recent` gets a record if it was written to
    /// a moment ago.
    ///
    /// # Errors
    /// [`SourceError::Io`] if it cannot be opened or is not a regular file.
    pub fn open(path: &Path, recent: Arc<RecentWrites>, counters: Arc<Counters>) -> Result<Self, SourceError> {
        let failed = |e: &io::Error| SourceError::io(format!("cannot open {}", path.display()), e);
        let file = File::open(path).map_err(|e| failed(&e))?;
        let metadata = file.metadata().map_err(|e| failed(&e))?;
        if !metadata.is_file() {
            return Err(failed(&io::Error::other("not a regular file")));
        }
        Ok(Self {
            open: OpenFile::new((WHOLE, path.to_owned()), (file, &metadata), (Arc::default(), recent), counters),
        })
    }

    /// Returns the version of the file that this source reads.
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

    fn open_object(&self, _object: &str, _: Wait) -> Result<Option<Arc<OpenFile>>, SourceError> {
        Ok(Some(Arc::clone(&self.open)))
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        self.open.check_unchanged()
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
        let file = LocalFile::open(&path, RecentWrites::ignored(), Arc::default()).unwrap();
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
        assert_eq!(file.check_unchanged(), Ok(()));
        fs::File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
        assert_eq!(file.check_unchanged(), Err(SourceError::Changed));
        assert!(matches!(file.read_at("", 3, &mut [0; 4], Wait::Yes), Err(SourceError::TooShort { size: 5, .. })));

        let (_folder, path, file) = sample(b"0123456789");
        fs::remove_file(path).unwrap();
        assert_eq!(file.check_unchanged(), Err(SourceError::Changed));
    }
}
