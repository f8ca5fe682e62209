//! A dataset that is one local file.
//!
//! The file is among the open files that are bounded in number: one that is evicted is opened again at the next read,
//! and must be of the same version then.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::io::Errno;

use super::open_file::OpenFile;
use super::open_files::new_number;
use super::source_root::SourceRoot;
use crate::counters::Counters;
use crate::source::{Blocking, FileSource, FileStamp, RecentWrites, Source, SourceError, WHOLE};
use crate::sync::{Mutex, RwLock};

/// One local file. Truncation while it is read is an error, not a crash.
pub(crate) struct LocalFile {
    number: u64,
    path: PathBuf,
    stamp: FileStamp,
    root: Arc<SourceRoot>,
    open: RwLock<Weak<OpenFile>>,
    /// The time of the last change of content or attributes (ctime) when the file was opened last. Locked while it is
    /// opened again, so that only one thread opens it.
    opening: Mutex<(i64, i64)>,
    changed: Arc<AtomicBool>,
    recent: Arc<RecentWrites>,
    counters: Arc<Counters>,
}

impl LocalFile {
    /// Opens a file that is a source of its own; the version that it has now is the one that is read. `recent` gets a
    /// record if it was written to a moment ago.
    #[cfg(test)]
    pub(crate) fn open(path: &Path, recent: Arc<RecentWrites>, counters: Arc<Counters>) -> Result<Self, SourceError> {
        let root = SourceRoot::below(path, false);
        let (file, metadata) = open(&root, path)?;
        Ok(Self::new(&root, path, (file, &metadata), recent, counters))
    }

    /// Wraps the file at a path below `root`, which was just opened, with its metadata from then.
    pub(super) fn new(
        root: &Arc<SourceRoot>,
        path: &Path,
        (file, metadata): (File, &Metadata),
        recent: Arc<RecentWrites>,
        counters: Arc<Counters>,
    ) -> Self {
        let this = Self {
            number: new_number(),
            path: path.to_owned(),
            stamp: FileStamp::of(metadata),
            root: Arc::clone(root),
            open: RwLock::default(),
            opening: Mutex::new(ctime(metadata)),
            changed: Arc::default(),
            recent,
            counters,
        };
        this.keep(file, metadata);
        this
    }

    /// Keeps a file open until it is evicted.
    fn keep(&self, file: File, metadata: &Metadata) -> Arc<OpenFile> {
        let (noted, counters) = ((Arc::clone(&self.changed), Arc::clone(&self.recent)), Arc::clone(&self.counters));
        let file = OpenFile::new((WHOLE, self.path.clone()), (file, metadata), noted, counters);
        *self.open.write() = Arc::downgrade(&file);
        self.root.files.insert((self.number, 0), &file);
        file
    }

    /// Returns the file, and opens it if it is not open.
    fn file(&self, blocking: Blocking) -> Result<Arc<OpenFile>, SourceError> {
        let opened = || {
            let file = self.open.read().upgrade()?;
            file.mark_used();
            Some(file)
        };
        if let Some(file) = opened() {
            return Ok(file);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        let mut last_changed = self.opening.lock();
        if let Some(file) = opened() {
            return Ok(file);
        }
        let (file, metadata) = match open(&self.root, &self.path) {
            Err(SourceError::Io { kind: io::ErrorKind::NotFound, .. }) => return Err(self.mark_changed()),
            opened => opened?,
        };
        if FileStamp::of(&metadata) != self.stamp {
            return Err(self.mark_changed());
        }
        // other attributes have changed, or new content was given the old time
        if *last_changed != ctime(&metadata) {
            self.recent.record_change();
            // the file may have lost its name, and a new one may have its inode number, size and time
            if self.has_changed() {
                return Err(SourceError::Changed);
            }
            *last_changed = ctime(&metadata);
        }
        Ok(self.keep(file, &metadata))
    }

    /// Remembers that the file has changed: it is opened again only if nothing has touched it since.
    fn mark_changed(&self) -> SourceError {
        self.changed.store(true, Ordering::Relaxed);
        SourceError::Changed
    }
}

fn ctime(metadata: &Metadata) -> (i64, i64) {
    (metadata.ctime(), metadata.ctime_nsec())
}

/// Opens the file at a path below `root`.
fn open(root: &SourceRoot, path: &Path) -> Result<(File, Metadata), SourceError> {
    let failed = |e: io::Error| SourceError::io(format!("cannot open {}", path.display()), &e);
    let file = root.open_file(path).map_err(failed)?.ok_or_else(|| failed(Errno::NOENT.into()))?;
    let metadata = file.metadata().map_err(failed)?;
    Ok((file, metadata))
}

impl Source for LocalFile {
    fn len(&self, _object: &str) -> Result<Option<u64>, SourceError> {
        Ok(Some(self.stamp.size))
    }

    fn read_at(&self, _object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        let file = self.file(blocking)?;
        match file.read_at(offset, out, blocking) {
            Err(SourceError::Changed) => {
                Err(SourceError::TooShort { offset, length: out.len() as u64, size: file.size_now() })
            }
            read => read.map(|()| true),
        }
    }

    fn next_stored(&self, _object: &str, offset: u64) -> Result<u64, SourceError> {
        Ok(self.file(Blocking::Yes)?.next_stored(offset))
    }

    fn open_object(&self, _object: &str, blocking: Blocking) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.file(blocking).map(Some)
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        self.check_unchanged_or(Blocking::Yes)
    }

    fn check_unchanged_or(&self, blocking: Blocking) -> Result<(), SourceError> {
        let file = self.file(blocking)?;
        // a look at any other file would wait for a server
        if blocking == Blocking::No && !file.is_local() {
            return Err(SourceError::WouldBlock);
        }
        file.check_unchanged()
    }
}

impl FileSource for LocalFile {
    fn stamp(&self) -> FileStamp {
        self.stamp
    }

    fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        self.root.files.close(self.number);
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
        assert_eq!(file.read_at("", 3, &mut out, Blocking::Yes), Ok(true));
        assert_eq!(&out, b"3456");
        assert!(matches!(file.read_at("", 8, &mut out, Blocking::Yes), Err(SourceError::TooShort { size: 10, .. })));
        assert!(matches!(file.read_at("", u64::MAX, &mut out, Blocking::Yes), Err(SourceError::TooShort { .. })));
        assert!(matches!(file.read_at("", 3, &mut out, Blocking::No), Ok(true) | Err(SourceError::WouldBlock)));
    }

    #[test]
    fn a_change_is_noticed() {
        let (_folder, path, file) = sample(b"0123456789");
        assert_eq!(file.check_unchanged(), Ok(()));
        fs::File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
        assert_eq!(file.check_unchanged(), Err(SourceError::Changed));
        assert!(matches!(file.read_at("", 3, &mut [0; 4], Blocking::Yes), Err(SourceError::TooShort { size: 5, .. })));

        let (_folder, path, file) = sample(b"0123456789");
        fs::remove_file(path).unwrap();
        assert_eq!(file.check_unchanged(), Err(SourceError::Changed));
    }

    #[test]
    fn an_evicted_file_is_opened_again_if_it_is_the_same() {
        let (_folder, path, file) = sample(b"0123456789");
        let read = || {
            let mut out = [0; 4];
            file.read_at("", 3, &mut out, Blocking::Yes).map(|_| out)
        };
        assert_eq!(read(), Ok(*b"3456"));
        assert!(file.root.files.close_idle() && file.open.read().upgrade().is_none());
        assert_eq!(file.read_at("", 3, &mut [0; 4], Blocking::No), Err(SourceError::WouldBlock));
        assert_eq!(file.check_unchanged_or(Blocking::No), Err(SourceError::WouldBlock), "to open it may take time");
        assert!(file.open.read().upgrade().is_none());
        assert_eq!((read(), file.check_unchanged()), (Ok(*b"3456"), Ok(())));
        assert!(file.root.files.close_idle());
        assert_eq!(file.check_unchanged(), Ok(()), "also without a read");
        assert!(file.root.files.close_idle());
        fs::write(path.with_extension("new"), b"0123456789").unwrap();
        fs::rename(path.with_extension("new"), &path).unwrap();
        assert_eq!((read(), file.check_unchanged()), (Err(SourceError::Changed), Err(SourceError::Changed)));
    }

    #[test]
    fn a_file_that_nobody_uses_is_closed() {
        let (_folder, _, file) = sample(b"0123456789");
        let is_open = || file.open.read().upgrade().is_some();
        file.root.close_unused();
        assert!(is_open() && file.root.has_open_files(), "it was opened since the last time");
        assert_eq!(file.check_unchanged(), Ok(()));
        file.root.close_unused();
        assert!(is_open(), "it was used");
        let held = file.file(Blocking::No).unwrap();
        file.root.close_unused();
        file.root.close_unused();
        assert!(is_open(), "it is in use");
        drop(held);
        // the first call sees that it was used
        file.root.close_unused();
        file.root.close_unused();
        assert!(!is_open() && !file.root.has_open_files());
        let woken = Arc::new(AtomicBool::new(false));
        let wakes = Arc::clone(&woken);
        file.root.on_first_open(Box::new(move || wakes.store(true, Ordering::SeqCst)));
        assert_eq!((file.check_unchanged(), woken.load(Ordering::SeqCst)), (Ok(()), true));
    }

    #[test]
    fn a_file_without_a_name_is_closed_and_no_other() {
        let (_folder, path, file) = sample(b"0123456789");
        let is_open = || file.open.read().upgrade().is_some();
        drop(file.root.take_gone());
        assert!(is_open());
        fs::rename(&path, path.with_extension("renamed")).unwrap();
        drop(file.root.take_gone());
        assert!(is_open());
        fs::remove_file(path.with_extension("renamed")).unwrap();
        drop(file.root.take_gone());
        assert!(!is_open());
        fs::write(&path, b"0123456789").unwrap();
        assert_eq!(file.read_at("", 3, &mut [0; 4], Blocking::Yes), Err(SourceError::Changed));
        assert_eq!(file.check_unchanged(), Err(SourceError::Changed));
    }
}
