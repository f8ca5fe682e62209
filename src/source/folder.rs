//! A dataset that is a folder of files.
//!
//! Objects are files below the folder, opened when they are first read, and a bounded number of them at a time for all folders
//! together. A file that is not there is known not to be there for about a second. A file that is not what it was makes the whole
//! folder count as changed, for ever: what was read of it before must not be mixed with what would be read now.

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
use super::{FileStamp, OpenFile, Source, SourceError, SymlinkPolicy, Wait};
use crate::counters::Counters;

/// Files and holes in use last at which [`Folder::is_changed`] looks again.
const LOOKED_AT: usize = 128;

/// What an entry of a folder is, as far as its name says without a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A link to whatever.
    Link,
    /// Anything else.
    File,
}

/// A source whose objects are files below a folder: names with `/` between them.
pub trait Folder: Source {
    /// The folder at `path` (an absolute one, or one that counts from here and may lead up) as a source of its own.
    ///
    /// # Errors
    /// [`NoFolder`]: why there is none.
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder>;

    /// Names the entries of the folder `below` this one, in no order, until `visit` says `false`. That there is no such folder
    /// is no error; names that are not text are left out.
    ///
    /// # Errors
    /// [`SourceError::Io`] where the system fails.
    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), SourceError>;

    /// The same for all ways that lead to this folder: device and inode number.
    fn identity(&self) -> (u64, u64);

    /// Whether anything here is known to be not what it was. Looks again at the folder itself and at what was in use last.
    fn is_changed(&self) -> bool;
}

/// Why there is no folder to be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoFolder {
    /// There is nothing, or a link leads to nothing.
    #[error("there is no such folder")]
    Absent,
    /// There is something else.
    #[error("it is not a folder")]
    NotAFolder,
    /// SymlinkPolicy lead in a circle.
    #[error("its links lead in a circle")]
    Loop,
    /// It is not below the source, and links that lead out are not followed.
    #[error("it lies outside of the source (--follow-links shows it)")]
    Outside,
    /// The operating system's fault, or the disk's.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// What all folders of a source share.
pub struct Folders {
    links: Arc<SymlinkPolicy>,
    files: OpenFiles,
    counters: Arc<Counters>,
}

impl Folders {
    /// Folders that are reached by links as `links` allows.
    #[must_use]
    pub fn new(links: Arc<SymlinkPolicy>, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { links, files: OpenFiles::new(), counters })
    }

    /// The folder at `path`.
    ///
    /// # Errors
    /// [`NoFolder`]: why there is none.
    pub fn open(self: &Arc<Self>, path: &Path) -> Result<Arc<LocalFolder>, NoFolder> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => NoFolder::Absent,
            io::ErrorKind::NotADirectory => NoFolder::NotAFolder,
            _ if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => NoFolder::Loop,
            _ => SourceError::io(format!("cannot look at {}", path.display()), &e).into(),
        };
        let root = self.links.real(path).map_err(failed)?.ok_or(NoFolder::Outside)?;
        let metadata = root.metadata().map_err(failed)?;
        if !metadata.is_dir() {
            return Err(NoFolder::NotAFolder);
        }
        let (id, stamp) = (NEXT.fetch_add(1, Ordering::Relaxed), FileStamp::of(&metadata));
        Ok(Arc::new(LocalFolder { id, root, stamp, shared: Arc::clone(self), changed: Arc::default() }))
    }
}

/// A local folder.
pub struct LocalFolder {
    id: u64,
    /// Without links.
    root: PathBuf,
    stamp: FileStamp,
    shared: Arc<Folders>,
    changed: Arc<AtomicBool>,
}

impl LocalFolder {
    fn key(&self, name: &str) -> Key {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        (self.id, hasher.finish())
    }

    /// From now on nothing is read any more.
    fn has_changed(&self) -> SourceError {
        self.changed.store(true, Ordering::Relaxed);
        SourceError::Changed
    }

    fn failed(&self, doing: &str, name: &str, error: &io::Error) -> SourceError {
        SourceError::io(format!("cannot {doing} {}", self.root.join(name).display()), error)
    }

    /// The file of a name, opened if need be; `None` if there is none.
    fn file(&self, name: &str, wait: Wait) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.unchanged()?;
        let (key, files) = (self.key(name), &self.shared.files);
        if let Some(file) = files.file(key, name) {
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
            return Err(self.has_changed());
        }
        let Some((file, metadata)) = opened else {
            files.keep_missing(key, name);
            return Ok(None);
        };
        let (changed, counters) = (Arc::clone(&self.changed), Arc::clone(&self.shared.counters));
        let file = OpenFile::new((name, self.root.join(name)), (file, &metadata), changed, counters);
        files.keep(key, &file);
        Ok(Some(file))
    }

    /// Opens a file; that there is none is an answer. That a link leads nowhere is not: then there is data, somewhere.
    fn open(&self, name: &str) -> io::Result<Option<(File, Metadata)>> {
        if !name.split('/').all(|part| !matches!(part, "" | "." | "..")) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name below a folder"));
        }
        // a file of another kind must not keep us waiting for its other end
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

    /// As far as links may be followed. Also the way of kernels that cannot say whether there are any.
    fn open_by_links(&self, path: &Path) -> io::Result<Option<File>> {
        let real = match self.shared.links.real(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.dangles(path) => return Ok(None),
            real => real?.ok_or_else(|| io::Error::other("a link leads out of the source"))?,
        };
        let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
        File::options().read(true).custom_flags(flags.bits() as i32).open(real).map(Some)
    }

    /// Whether a link on the way from the folder to `path` leads to nothing.
    fn dangles(&self, path: &Path) -> bool {
        let mut way = path.ancestors().take_while(|at| *at != self.root);
        way.any(|at| at.symlink_metadata().is_ok_and(|m| m.is_symlink()) && at.metadata().is_err())
    }
}

impl Source for LocalFolder {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        Ok(self.file(object, Wait::Yes)?.map(|file| file.stamp.size))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], wait: Wait) -> Result<bool, SourceError> {
        let Some(file) = self.file(object, wait)? else { return Ok(false) };
        file.read_at(offset, out, wait)?;
        // here and not in `unchanged`, which does not know which files matter
        file.check()?;
        Ok(true)
    }

    /// An extended attribute of the file.
    fn tag(&self, object: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        self.file(object, Wait::Yes)?.map_or(Ok(None), |open| open.tag(name))
    }

    fn hold(&self, object: &str, wait: Wait) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.file(object, wait)
    }

    fn unchanged(&self) -> Result<(), SourceError> {
        if self.changed.load(Ordering::Relaxed) { Err(SourceError::Changed) } else { Ok(()) }
    }
}

impl Folder for LocalFolder {
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder> {
        Ok(self.shared.open(&self.root.join(path))?)
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), SourceError> {
        let path = self.root.join(below);
        let failed = |e: io::Error| SourceError::io(format!("cannot list {}", path.display()), &e);
        let entries = match self.shared.links.real(&path).and_then(|real| real.map(|real| real.read_dir()).transpose())
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
        let is = |path: &Path, before: Option<FileStamp>| match path.metadata() {
            Ok(now) => before == Some(FileStamp::of(&now)),
            Err(e) => before.is_none() && e.kind() == io::ErrorKind::NotFound,
        };
        let recent = || self.shared.files.recent(self.id, LOOKED_AT);
        let same = self.unchanged().is_ok()
            && is(&self.root, Some(self.stamp))
            && recent().iter().all(|(name, before)| is(&self.root.join(&**name), *before));
        if !same {
            self.has_changed();
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
