//! A dataset that is a folder of files.
//!
//! Objects are files below the folder. They are opened when they are first read; all folders together keep a bounded
//! number of them open. A name that does not exist stays in a negative cache for about a second. A file that has
//! changed makes the whole folder count as changed from then on, so that bytes of two versions are never mixed.

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use thiserror::Error;

use super::open_files::{Key, OpenFiles};
use super::{FileStamp, OpenFile, RecentWrites, Source, SourceError, SymlinkPolicy, Wait};
use crate::counters::Counters;

/// The most recently used files, and as many missing ones, that [`Folder::is_changed`] checks.
const CHECKED_FILES: usize = 128;

/// The type of a folder's entry, as the folder itself has it: links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// Anything else.
    File,
}

/// A source whose objects are files below a folder: names with `/` between them.
pub trait Folder: Source {
    /// Opens the folder at `path`, which is absolute or relative to this folder and may have `..` in it.
    ///
    /// # Errors
    /// [`NoFolder`]: why there is none.
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder>;

    /// Visits the entries of the folder `below` this one, in no order, until `visit` returns `false`. A folder that
    /// does not exist has no entries; names that are not UTF-8 are skipped.
    ///
    /// # Errors
    /// [`SourceError::Io`] where the system fails.
    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), SourceError>;

    /// Returns the device and inode number, which are the same on every path to this folder.
    fn identity(&self) -> (u64, u64);

    /// Returns whether anything here is known to have changed. Checks the folder itself and the files that were used
    /// last.
    fn is_changed(&self) -> bool;
}

/// Why a folder cannot be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoFolder {
    /// Nothing is there, or a link leads to nothing.
    #[error("there is no such folder")]
    Absent,
    /// The path is not that of a folder.
    #[error("it is not a folder")]
    NotAFolder,
    /// Links lead in a circle.
    #[error("its links lead in a circle")]
    Loop,
    /// The path leads out of the source, and the policy does not allow it.
    #[error("it lies outside of the source (--follow-links shows it)")]
    Outside,
    /// The operating system reported an error.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// Opens folders. All of them share the policy for links and the caches of files.
pub struct Folders {
    policy: Arc<SymlinkPolicy>,
    files: OpenFiles,
    counters: Arc<Counters>,
}

impl Folders {
    /// Folders and files in them that `policy` allows.
    #[must_use]
    pub fn new(policy: Arc<SymlinkPolicy>, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { policy, files: OpenFiles::new(), counters })
    }

    /// Opens the folder at `path`. `recent` gets a record if it, or a file that is opened in it, was written to a moment
    /// ago.
    ///
    /// # Errors
    /// [`NoFolder`]: why there is none.
    pub fn open(self: &Arc<Self>, path: &Path, recent: &Arc<RecentWrites>) -> Result<Arc<LocalFolder>, NoFolder> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => NoFolder::Absent,
            io::ErrorKind::NotADirectory => NoFolder::NotAFolder,
            _ if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => NoFolder::Loop,
            _ => SourceError::io(format!("cannot look at {}", path.display()), &e).into(),
        };
        let root = self.policy.real(path).map_err(failed)?.ok_or(NoFolder::Outside)?;
        let metadata = root.metadata().map_err(failed)?;
        if !metadata.is_dir() {
            return Err(NoFolder::NotAFolder);
        }
        recent.record(&metadata);
        let (id, stamp) = (NEXT.fetch_add(1, Ordering::Relaxed), FileStamp::of(&metadata));
        let (shared, recent) = (Arc::clone(self), Arc::clone(recent));
        Ok(Arc::new(LocalFolder { id, root, stamp, shared, changed: Arc::default(), recent }))
    }
}

/// A local folder.
pub struct LocalFolder {
    id: u64,
    /// The path without links.
    root: PathBuf,
    stamp: FileStamp,
    shared: Arc<Folders>,
    changed: Arc<AtomicBool>,
    recent: Arc<RecentWrites>,
}

impl LocalFolder {
    fn key(&self, name: &str) -> Key {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        (self.id, hasher.finish())
    }

    /// Remembers that something has changed: all further reads fail.
    fn mark_changed(&self) -> SourceError {
        self.changed.store(true, Ordering::Relaxed);
        SourceError::Changed
    }

    fn failed(&self, doing: &str, name: &str, error: &io::Error) -> SourceError {
        SourceError::io(format!("cannot {doing} {}", self.root.join(name).display()), error)
    }

    /// Returns the file of a name, and opens it if it is not open; `None` if there is none.
    fn file(&self, name: &str, wait: Wait) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.check_unchanged()?;
        let (key, files) = (self.key(name), &self.shared.files);
        if let Some(file) = files.get(key, name) {
            return Ok(Some(file));
        }
        if files.is_missing(key, name) {
            return Ok(None);
        }
        if wait == Wait::No {
            return Err(SourceError::WouldBlock);
        }
        let opened = self.open(name).map_err(|e| self.failed("open", name, &e))?;
        if !files.is_as_before(key, opened.as_ref().map(|(_, m)| FileStamp::of(m)).as_ref()) {
            return Err(self.mark_changed());
        }
        let Some((file, metadata)) = opened else {
            files.insert_missing(key, name);
            return Ok(None);
        };
        let (marks, counters) =
            ((Arc::clone(&self.changed), Arc::clone(&self.recent)), Arc::clone(&self.shared.counters));
        let file = OpenFile::new((name, self.root.join(name)), (file, &metadata), marks, counters);
        files.insert(key, &file);
        Ok(Some(file))
    }

    /// Opens a file; `None` if there is none. A link that leads to nothing is an error: it stands for data that exists
    /// elsewhere.
    fn open(&self, name: &str) -> io::Result<Option<(File, Metadata)>> {
        if !name.split('/').all(|part| !matches!(part, "" | "." | "..")) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name below a folder"));
        }
        // NONBLOCK: the open of a pipe must not wait for its other end
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let path = self.root.join(name);
        let file = match openat2(CWD, &path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => match self.open_by_links(&path)? {
                Some(file) => file,
                None => return Ok(None),
            },
            Err(e) => return Err(e.into()),
        };
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok(Some((file, metadata))),
            false => Err(io::Error::other("not a regular file")),
        }
    }

    /// Opens a file at a path with links, if the policy allows where they lead. Also used on kernels without `openat2`.
    fn open_by_links(&self, path: &Path) -> io::Result<Option<File>> {
        let real = match self.shared.policy.real(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.dangles(path) => return Ok(None),
            real => real?.ok_or_else(|| io::Error::other("a link leads out of the source"))?,
        };
        let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
        File::options().read(true).custom_flags(flags.bits() as i32).open(real).map(Some)
    }

    /// Returns whether a link on the way from the folder to `path` leads to nothing.
    fn dangles(&self, path: &Path) -> bool {
        let mut parents = path.ancestors().take_while(|at| *at != self.root);
        parents.any(|at| at.symlink_metadata().is_ok_and(|m| m.is_symlink()) && at.metadata().is_err())
    }
}

impl Source for LocalFolder {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        Ok(self.file(object, Wait::Yes)?.map(|file| file.stamp.size))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], wait: Wait) -> Result<bool, SourceError> {
        let Some(file) = self.file(object, wait)? else { return Ok(false) };
        file.read_at(offset, out, wait)?;
        // here and not in `check_unchanged`, which does not know which file was read
        file.check_unchanged()?;
        Ok(true)
    }

    fn tag(&self, object: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        self.file(object, Wait::Yes)?.map_or(Ok(None), |open| open.tag(name))
    }

    fn open_object(&self, object: &str, wait: Wait) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.file(object, wait)
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        if self.changed.load(Ordering::Relaxed) { Err(SourceError::Changed) } else { Ok(()) }
    }
}

impl Folder for LocalFolder {
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder> {
        Ok(self.shared.open(&self.root.join(path), &self.recent)?)
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), SourceError> {
        let path = self.root.join(below);
        let failed = |e: io::Error| SourceError::io(format!("cannot list {}", path.display()), &e);
        let entries = match self.shared.policy.real(&path).and_then(|real| real.map(|real| real.read_dir()).transpose())
        {
            Ok(Some(entries)) => entries,
            Ok(None) => return Ok(()),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
            Err(e) => return Err(failed(e)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let kind = match entry.file_type() {
                Ok(kind) if kind.is_dir() => EntryKind::Folder,
                Ok(kind) if kind.is_symlink() => EntryKind::Link,
                _ => EntryKind::File,
            };
            if entry.file_name().to_str().is_some_and(|name| !visit(name, kind)) {
                break;
            }
        }
        Ok(())
    }

    fn identity(&self) -> (u64, u64) {
        self.stamp.inode
    }

    fn is_changed(&self) -> bool {
        let is_same = |path: &Path, before: Option<FileStamp>| match path.metadata() {
            Ok(now) => before == Some(FileStamp::of(&now)),
            Err(e) => before.is_none() && e.kind() == io::ErrorKind::NotFound,
        };
        let recent = || self.shared.files.recent(self.id, CHECKED_FILES);
        let same = self.check_unchanged().is_ok()
            && is_same(&self.root, Some(self.stamp))
            && recent().iter().all(|(name, before)| is_same(&self.root.join(&**name), *before));
        if !same {
            self.mark_changed();
        }
        !same
    }
}

impl Drop for LocalFolder {
    fn drop(&mut self) {
        self.shared.files.close(self.id);
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
