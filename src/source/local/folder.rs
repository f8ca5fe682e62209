//! A dataset that is a folder of files.
//!
//! Objects are files below the folder. They are opened when they are first read; all folders together keep a bounded
//! number of them open. A name that does not exist stays in a negative cache for about a second. A file that has
//! changed makes the whole folder count as changed from then on, so that bytes of two versions are never mixed.
//!
//! Where it is asked who may read what, a folder may be read by those who may search it, and the folders between it and
//! the dataset's own, and may read the files in it that were opened until the dataset was open: the descriptions and
//! headers. Which files are opened later nobody knows then, so that one that fewer may read is an error for all.

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;

use super::file::LocalFile;
use super::open_file::OpenFile;
use super::open_files::{Key, new_number};
use super::source_root::{Found, SourceRoot};
use crate::counters::Counters;
use crate::source::{
    Blocking, EntryKind, FileStamp, FirstFailure, Folder, NoFolder, Permissions, RecentWrites, Source, SourceError,
    tells_what_is_there,
};
use crate::sync::Mutex;

/// The most recently used files, and as many missing ones, that [`Folder::is_changed`] checks.
const CHECKED_FILES: usize = 128;

/// Opens folders and files of a source.
pub(crate) struct Folders {
    pub(super) root: Arc<SourceRoot>,
    counters: Arc<Counters>,
}

impl Folders {
    /// Folders and files below `root`.
    pub(crate) fn new(root: Arc<SourceRoot>, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { root, counters })
    }

    /// Opens the folder at `path`. `recent` gets a record if it, or a file that is opened in it, was written to a
    /// moment ago.
    #[cfg(test)]
    pub(crate) fn open(
        self: &Arc<Self>,
        path: &Path,
        recent: &Arc<RecentWrites>,
    ) -> Result<Arc<LocalFolder>, NoFolder> {
        self.open_beside(path, None, recent, &FirstFailure::default())
    }

    /// Opens a folder of a dataset, whose failures are those of another one, too.
    fn open_beside(
        self: &Arc<Self>,
        path: &Path,
        dataset: Option<&Arc<Readers>>,
        recent: &Arc<RecentWrites>,
        failure: &FirstFailure,
    ) -> Result<Arc<LocalFolder>, NoFolder> {
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => NoFolder::Absent,
            io::ErrorKind::NotADirectory => NoFolder::NotAFolder,
            _ if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => NoFolder::Loop,
            _ => SourceError::io(format!("cannot look at {}", path.display()), &e).into(),
        };
        self.at_beside(self.root.locate(path).map_err(failed)?.ok_or(NoFolder::Outside)?, dataset, recent, failure)
    }

    /// Opens a folder that was just found, as [`Folders::open`] does.
    pub(crate) fn at(self: &Arc<Self>, place: Found, recent: &Arc<RecentWrites>) -> Result<Arc<LocalFolder>, NoFolder> {
        self.at_beside(place, None, recent, &FirstFailure::default())
    }

    fn at_beside(
        self: &Arc<Self>,
        place: Found,
        dataset: Option<&Arc<Readers>>,
        recent: &Arc<RecentWrites>,
        failure: &FirstFailure,
    ) -> Result<Arc<LocalFolder>, NoFolder> {
        if !place.metadata.is_dir() {
            return Err(NoFolder::NotAFolder);
        }
        recent.record(&place.metadata);
        let readers = Readers::of(&self.root, &place, dataset).map(Arc::new);
        let (id, stamp) = (new_number(), FileStamp::of(&place.metadata));
        let (root, shared, recent) = (place.path, Arc::clone(self), Arc::clone(recent));
        let (changed, failure) = (Arc::default(), failure.clone());
        Ok(Arc::new(LocalFolder { id, root, stamp, shared, changed, failure, recent, readers }))
    }

    /// Wraps the file at `path`, which was just opened, as a source. `recent` gets a record if it was written to a
    /// moment ago.
    pub(crate) fn file(&self, path: &Path, file: File, recent: &Arc<RecentWrites>) -> Result<LocalFile, SourceError> {
        let failed = |e| SourceError::io(format!("cannot look at {}", path.display()), &e);
        let metadata = file.metadata().map_err(failed)?;
        let counters = Arc::clone(&self.counters);
        Ok(LocalFile::new(&self.root, path, (file, &metadata), Arc::clone(recent), counters))
    }
}

/// A local folder.
pub(crate) struct LocalFolder {
    id: u64,
    /// The path without links.
    root: PathBuf,
    stamp: FileStamp,
    shared: Arc<Folders>,
    changed: Arc<AtomicBool>,
    /// The first failure of the system here or in a folder that was opened from here.
    failure: FirstFailure,
    recent: Arc<RecentWrites>,
    /// Who may read it; `None` if nobody asks.
    readers: Option<Arc<Readers>>,
}

/// Who may read a folder and what is in it.
struct Readers {
    /// Those of the dataset's own folder; `None` for itself.
    dataset: Option<Arc<Self>>,
    /// The folder itself.
    path: PathBuf,
    inode: (u64, u64),
    /// Who may search this folder and those on the way to it, as it was opened.
    way: Permissions,
    state: Mutex<ReadersState>,
    /// Whether the owner is in the group of those who are allowed, once somebody asks.
    owner_is_member: OnceLock<bool>,
}

struct ReadersState {
    /// Who may read what is in the folder: less whom a file denies that was read before that was settled.
    allowed: Permissions,
    /// Of the dataset's own folder: who may read all that was read before that was settled, in whatever folder.
    all_read: Permissions,
    /// Of the dataset's own folder: whether it is settled.
    settled: bool,
    /// The files that were read before, and who may read them.
    files: Vec<(Box<str>, Permissions)>,
}

impl Readers {
    /// Those of a folder of a dataset; `dataset` has those of the dataset's own folder, unless this is it.
    fn of(root: &SourceRoot, place: &Found, dataset: Option<&Arc<Self>>) -> Option<Self> {
        let inode = FileStamp::of(&place.metadata).inode;
        let way = Self::way(root, dataset.map(|dataset| &**dataset), place)?;
        let state = ReadersState { allowed: way, all_read: way, settled: false, files: Vec::new() };
        if let Some(dataset) = dataset {
            dataset.note_read(way);
        }
        let (state, owner_is_member) = (Mutex::new(state), OnceLock::new());
        Some(Self { dataset: dataset.cloned(), path: place.path.clone(), inode, way, state, owner_is_member })
    }

    /// Returns who may read what is in a folder, as far as folders decide.
    fn way(root: &SourceRoot, dataset: Option<&Self>, place: &Found) -> Option<Permissions> {
        let own = root.own_permissions(place)?;
        let Some(dataset) = dataset else { return Some(own) };
        let from = match place.path.starts_with(&dataset.path) {
            true => (&*dataset.path, Some(dataset.inode)),
            false => (root.top_of(&place.path), None),
        };
        Some(own.beyond().restrict(root.way(from, place)))
    }

    /// Returns whether others may read by now what was read before that was settled.
    fn have_changed(&self, root: &SourceRoot, files: &[Box<str>]) -> bool {
        let folder = match root.locate(&self.path) {
            // a failure of the system is no change
            Err(e) if !tells_what_is_there(e.kind()) => return false,
            found => found.ok().flatten(),
        };
        let at = |path: &Path| root.locate(path).ok().flatten();
        let way = folder.and_then(|place| Self::way(root, self.dataset.as_deref(), &place));
        if way != Some(self.way) {
            return true;
        }
        let now = |name: &str| at(&self.path.join(name)).and_then(|place| self.of_file(root, &place));
        let read = self.state.lock().files.clone();
        // one that is gone is noticed elsewhere
        read.iter().any(|(name, before)| now(name).is_some_and(|now| now != *before))
            || files.iter().any(|name| now(name).is_some_and(|now| !self.lets_in_no_more_than(now)))
    }

    /// Returns who may read a file that was found in the folder.
    fn of_file(&self, root: &SourceRoot, place: &Found) -> Option<Permissions> {
        root.permissions_from((&self.path, self.inode), place)
    }

    /// The dataset's own folder.
    fn top(&self) -> &Self {
        self.dataset.as_deref().unwrap_or(self)
    }

    fn note_read(&self, permissions: Permissions) {
        let mut state = self.state.lock();
        state.all_read = state.all_read.restrict(permissions);
    }

    /// Returns who may read the folder and what is in it.
    fn allowed(&self) -> Permissions {
        let allowed = self.state.lock().allowed;
        self.dataset.as_ref().map_or(allowed, |dataset| allowed.restrict(dataset.allowed()))
    }

    /// Settles who may read what in the whole dataset.
    fn settle(&self) -> Permissions {
        let mut state = self.top().state.lock();
        state.settled = true;
        state.all_read
    }

    /// Returns whether all who may read the folder may read a file.
    fn lets_in_no_more_than(&self, file: Permissions) -> bool {
        let allowed = self.allowed().as_file();
        file.covers(allowed, || *self.owner_is_member.get_or_init(|| allowed.owner_is_member()))
    }

    /// Allows only those who may read a file, unless that is settled. Fails if fewer may read the file than are
    /// allowed.
    fn admit(&self, name: &str, file: Permissions) -> io::Result<()> {
        if !self.top().state.lock().settled {
            let mut state = self.state.lock();
            state.allowed = state.allowed.restrict(file.as_folder());
            if state.files.len() < CHECKED_FILES {
                state.files.push((name.into(), file));
            }
            drop(state);
            self.top().note_read(file.as_folder());
            return Ok(());
        }
        if self.lets_in_no_more_than(file) {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "fewer users may read it than the description of its dataset; give all files of the dataset the same \
             owner, group and mode, or mount with -o umask=022",
        ))
    }
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
    fn file(&self, name: &str, blocking: Blocking) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.check_unchanged()?;
        let (key, files) = (self.key(name), &self.shared.root.files);
        if let Some(file) = files.get(key, name) {
            return Ok(Some(file));
        }
        if files.is_missing(key, name) {
            return Ok(None);
        }
        if blocking == Blocking::No {
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
        let (root, path) = (&self.shared.root, self.root.join(name));
        let is_absent = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
        let (file, real) = match root.open_plain_file(&path) {
            Some(Err(e)) if is_absent(&e) => return Ok(None),
            Some(file) => (file?, path),
            None => match root.open_linked_file(&path) {
                Ok(Some(found)) => found,
                Err(e) if !is_absent(&e) => return Err(e),
                _ if self.is_absent(&path) => return Ok(None),
                _ => return Err(io::Error::other("a link leads out of the source, or to nothing")),
            },
        };
        let metadata = file.metadata()?;
        if let Some(readers) = &self.readers
            && let Some(permissions) = readers.of_file(root, &Found::of_file(&file, real)?)
        {
            readers.admit(name, permissions)?;
        }
        Ok(Some((file, metadata)))
    }

    /// Returns whether there is nothing at a path, not even a link that leads to nothing: the last folder on the way
    /// that there is has no entry of the next name.
    fn is_absent(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        match self.shared.root.locate(parent) {
            Ok(Some(folder)) => !self.shared.root.has_entry(&folder, name),
            Err(e) if e.kind() != io::ErrorKind::NotFound => false,
            _ => parent != self.root && self.is_absent(parent),
        }
    }
}

impl Source for LocalFolder {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        Ok(self.failure.noted(self.file(object, Blocking::Yes))?.map(|file| file.stamp.size))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        let Some(file) = self.failure.noted(self.file(object, blocking))? else { return Ok(false) };
        self.failure.noted(file.read_at(offset, out, blocking))?;
        // here and not in `check_unchanged`, which does not know which file was read
        self.failure.noted(file.check_unchanged())?;
        Ok(true)
    }

    fn tag(&self, object: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let file = self.failure.noted(self.file(object, Blocking::Yes))?;
        file.map_or(Ok(None), |open| self.failure.noted(open.tag(name)))
    }

    fn open_object(&self, object: &str, blocking: Blocking) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.file(object, blocking)
    }

    fn permissions(&self) -> Option<Permissions> {
        self.readers.as_ref().map(|readers| readers.allowed())
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        if self.changed.load(Ordering::Relaxed) { Err(SourceError::Changed) } else { Ok(()) }
    }
}

impl Folder for LocalFolder {
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder> {
        let dataset = self.readers.as_ref().map(|readers| readers.dataset.as_ref().unwrap_or(readers));
        let opened = self.shared.open_beside(&self.root.join(path), dataset, &self.recent, &self.failure);
        if let Err(NoFolder::Source(error)) = &opened {
            let _ = self.failure.noted(Err::<(), _>(error.clone()));
        }
        Ok(opened?)
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), SourceError> {
        let path = self.root.join(below);
        let is_absent = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let visited = match self.shared.root.locate(&path) {
            Ok(Some(folder)) => {
                self.shared.root.visit(&folder, |name, kind| name.to_str().is_none_or(|name| visit(name, kind)))
            }
            Ok(None) => Ok(()),
            Err(e) => Err(e),
        };
        match visited {
            Err(e) if !is_absent(&e) => {
                self.failure.noted(Err(SourceError::io(format!("cannot list {}", path.display()), &e)))
            }
            _ => Ok(()),
        }
    }

    fn settle_permissions(&self) -> Option<Permissions> {
        self.readers.as_ref().map(|readers| readers.settle())
    }

    fn identity(&self) -> (u64, u64) {
        self.stamp.inode
    }

    fn failure(&self) -> Option<SourceError> {
        self.failure.get()
    }

    fn is_changed(&self) -> bool {
        let is_same = |path: &Path, before: Option<FileStamp>| {
            // a link in the place of a missing file is a change, wherever it leads
            let now = if before.is_some() { path.metadata() } else { path.symlink_metadata() };
            match now {
                Ok(now) => before == Some(FileStamp::of(&now)),
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    before.is_none()
                }
                // a failure of the system is no change: who reads the file gets it
                Err(_) => true,
            }
        };
        let recent = || self.shared.root.files.recent(self.id, CHECKED_FILES);
        let same = self.check_unchanged().is_ok()
            && is_same(&self.root, Some(self.stamp))
            && recent().iter().all(|(name, before)| is_same(&self.root.join(&**name), *before))
            && !self.readers.as_ref().is_some_and(|readers| {
                let files: Vec<Box<str>> =
                    recent().into_iter().filter_map(|(name, stamp)| stamp.and(Some(name))).collect();
                readers.have_changed(&self.shared.root, &files)
            });
        if !same {
            self.mark_changed();
        }
        !same
    }
}

impl Drop for LocalFolder {
    fn drop(&mut self) {
        self.shared.root.files.close(self.id);
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
