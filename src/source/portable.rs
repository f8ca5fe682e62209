//! Files and folders of other systems than Linux, with what the standard library has: positioned reads, no maps, no
//! look that follows no link.
//!
//! A path is resolved to one without links before it is opened, and must lie below the source then. So a link that is
//! swapped between the two is followed, which [`local`](super::local) prevents. A version is size and time, and where
//! the system has it the number of the file. A read that may not wait is never answered: what the system holds in memory
//! is unknown. Tests on Linux compare this with `local`.

use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use lru::LruCache;

use super::{
    About, Blocking, EntryKind, FileSource, FirstFailure, Folder, NoFolder, ObjectVersion, Place, RecentWrites, Source,
    SourceError, Tree, WHOLE, hash_of, is_loop, new_number, not_found,
};
use crate::counters::Counters;
use crate::sync::Mutex;

/// Files that are kept open: some systems allow a process 256.
const MAX_FILES: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// Files of a folder, missing ones included, of which the version that was read is remembered.
const MAX_SEEN: NonZeroUsize = NonZeroUsize::new(1 << 16).unwrap();
/// The most recently used of these that [`Folder::is_changed`] checks.
const CHECKED_FILES: usize = 128;

pub(crate) struct PortableTree {
    source: PathBuf,
    root: Arc<Root>,
}

impl PortableTree {
    /// Creates the tree of the folder or file `source`, an absolute path, and of what lies below it; links that lead
    /// elsewhere are followed if `follow_links`. Permissions are never known. Reads are counted in `counters`.
    pub(crate) fn new(source: &Path, follow_links: bool, _permissions: bool, counters: Arc<Counters>) -> Arc<Self> {
        let mut root = source.canonicalize().unwrap_or_else(|_| source.to_owned());
        if root.is_file() {
            root.pop();
        }
        let files = Mutex::new(LruCache::new(MAX_FILES));
        let root = Root { root, anywhere: follow_links, files, counters };
        Arc::new(Self { source: source.to_owned(), root: Arc::new(root) })
    }

    /// Creates a tree that follows no links to elsewhere.
    pub(crate) fn below(source: &Path) -> Arc<Self> {
        Self::new(source, false, false, Arc::default())
    }
}

impl Tree for PortableTree {
    fn source(&self) -> &Path {
        &self.source
    }

    fn look(&self, path: &Path) -> io::Result<Option<Box<dyn Place>>> {
        Ok(self.root.locate(path)?.map(|found| self.root.place(found)))
    }

    fn about_base(&self, path: &Path) -> io::Result<About> {
        let real = path.canonicalize()?;
        let metadata = fs::metadata(&real)?;
        Ok(Found { path: real, metadata, by_links: true }.about())
    }

    fn is_gone(&self) -> bool {
        fs::metadata(&self.source).is_err_and(|error| is_absent(&error))
    }
}

struct Root {
    /// Without links.
    root: PathBuf,
    anywhere: bool,
    /// By the number of the source, and the hash of the name in it.
    files: Mutex<LruCache<(u64, u64), Arc<OpenFile>>>,
    counters: Arc<Counters>,
}

/// A file or folder that is there, at a path without links.
struct Found {
    path: PathBuf,
    metadata: Metadata,
    by_links: bool,
}

impl Root {
    /// Returns what a path leads to; `None` if that is outside of the source, or a link leads to nothing: that may be
    /// outside, too.
    fn locate(&self, path: &Path) -> io::Result<Option<Found>> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if self.anywhere || self.ends_below(path) => return Err(error),
            Err(_) => return Ok(None),
        };
        if !self.anywhere && !real.starts_with(&self.root) {
            return Ok(None);
        }
        // not one that was put there meanwhile
        let metadata = fs::symlink_metadata(&real)?;
        if metadata.is_symlink() {
            return Err(not_found());
        }
        Ok(Some(Found { by_links: real != path, path: real, metadata }))
    }

    /// Returns whether the way to nothing ends in the source, and not at a link.
    fn ends_below(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        match parent.canonicalize() {
            Ok(real) => {
                real.starts_with(&self.root) && !fs::symlink_metadata(real.join(name)).is_ok_and(|at| at.is_symlink())
            }
            Err(_) => self.ends_below(parent),
        }
    }

    fn place(self: &Arc<Self>, found: Found) -> Box<dyn Place> {
        let about = found.about();
        Box::new(PortablePlace { root: Arc::clone(self), found, about })
    }

    fn cached(&self, key: (u64, u64), name: &str) -> Option<Arc<OpenFile>> {
        self.files.lock().get(&key).filter(|file| *file.name == *name).cloned()
    }

    /// Keeps a file open until others are used more recently. The one that makes room is closed without the lock.
    fn keep(&self, key: (u64, u64), file: OpenFile) -> Arc<OpenFile> {
        let file = Arc::new(file);
        let closed = self.files.lock().push(key, Arc::clone(&file));
        drop(closed);
        file
    }

    fn close(&self, number: u64) {
        let mut files = self.files.lock();
        let keys: Vec<_> = files.iter().map(|(key, _)| *key).filter(|key| key.0 == number).collect();
        let closed: Vec<_> = keys.iter().filter_map(|key| files.pop(key)).collect();
        drop(files);
        drop(closed);
    }
}

impl Found {
    fn version(&self) -> ObjectVersion {
        version(&self.metadata, &self.path)
    }

    fn about(&self) -> About {
        let (kind, version) = (kind_of(self.metadata.file_type()), self.version());
        About { kind, version, changed: modified(&self.metadata), by_links: self.by_links, permissions: None }
    }

    fn open(&self) -> io::Result<File> {
        // to open anything else, such as a pipe, may take for ever
        if self.metadata.is_file() { File::open(&self.path) } else { Err(io::Error::other("not a regular file")) }
    }

    /// Opens this file as `name` of a source.
    fn open_as(&self, name: &str, recent: &RecentWrites) -> io::Result<OpenFile> {
        let file = self.open()?;
        let metadata = file.metadata()?;
        recent.record_times([modified(&metadata); 2]);
        let version = version(&metadata, &self.path);
        Ok(OpenFile { name: name.into(), path: self.path.clone(), version, file })
    }
}

fn kind_of(file: FileType) -> EntryKind {
    match file {
        file if file.is_dir() => EntryKind::Folder,
        file if file.is_symlink() => EntryKind::Link,
        file if file.is_file() => EntryKind::File,
        _ => EntryKind::Other,
    }
}

fn modified(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(UNIX_EPOCH)
}

/// Returns the version of what is at a path without links.
fn version(metadata: &Metadata, path: &Path) -> ObjectVersion {
    let mtime = match modified(metadata).duration_since(UNIX_EPOCH) {
        Ok(after) => (after.as_secs().cast_signed(), after.subsec_nanos().into()),
        Err(error) => {
            let (before, part) = (error.duration().as_secs().cast_signed(), error.duration().subsec_nanos());
            if part == 0 { (-before, 0) } else { (-before - 1, (1_000_000_000 - part).into()) }
        }
    };
    ObjectVersion { size: metadata.len(), mtime, inode: identity(metadata, path), etag: None }
}

#[cfg(unix)]
fn identity(metadata: &Metadata, _path: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Stable Rust does not tell the numbers of files here, so a name stands for them, as in a store.
#[cfg(not(unix))]
fn identity(_metadata: &Metadata, path: &Path) -> (u64, u64) {
    (0, hash_of(path))
}

#[cfg(unix)]
fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => (out, offset) = (&mut out[read..], offset + read as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

struct PortablePlace {
    root: Arc<Root>,
    found: Found,
    about: About,
}

impl Place for PortablePlace {
    fn about(&self) -> &About {
        &self.about
    }

    fn find(&self, name: &Path) -> io::Result<Option<Box<dyn Place>>> {
        Ok(self.root.locate(&self.found.path.join(name))?.map(|found| self.root.place(found)))
    }

    fn subfolder(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        let path = self.found.path.join(name);
        let metadata = fs::symlink_metadata(&path)?;
        let is_mounted = cfg!(unix) && identity(&metadata, &path).0 != self.about.version.inode.0;
        if !metadata.is_dir() || is_mounted { Ok(None) } else { self.find(name.as_ref()) }
    }

    fn visit(&self, visit: &mut dyn FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()> {
        for entry in fs::read_dir(&self.found.path)? {
            let entry = entry?;
            if !visit(&entry.file_name(), entry.file_type().map_or(EntryKind::Other, kind_of)) {
                break;
            }
        }
        Ok(())
    }

    fn read_head(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.found.open()?.take(most).read_to_end(&mut head)?;
        Ok(head)
    }

    fn open_file(&self, path: &Path, recent: &Arc<RecentWrites>) -> Result<Arc<dyn FileSource>, SourceError> {
        let opened = self.found.open_as(WHOLE, recent).map_err(|e| cannot_open(path, &e))?;
        let (number, version) = (new_number(), opened.version);
        self.root.keep((number, 0), opened);
        let (path, root, recent) = (path.to_owned(), Arc::clone(&self.root), Arc::clone(recent));
        Ok(Arc::new(PortableFile { number, path, version, root, changed: AtomicBool::new(false), recent }))
    }

    fn open_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        Ok(PortableFolder::open(&self.root, (self.found, false), recent, FirstFailure::default())?)
    }

    fn open_shared_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        Ok(PortableFolder::open(&self.root, (self.found, true), recent, FirstFailure::default())?)
    }
}

fn cannot_open(path: &Path, error: &io::Error) -> SourceError {
    SourceError::io(format!("cannot open {}", path.display()), error)
}

/// A file in the version in which it was opened.
struct OpenFile {
    name: Box<str>,
    /// Without links.
    path: PathBuf,
    version: ObjectVersion,
    file: File,
}

impl OpenFile {
    fn read_at(&self, counters: &Counters, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let (length, size) = (out.len() as u64, self.version.size);
        if offset.checked_add(length).is_none_or(|end| end > size) {
            self.check_unchanged()?;
            return Err(SourceError::TooShort { offset, length, size });
        }
        match read_exact_at(&self.file, out, offset) {
            Ok(()) => {
                counters.source_bytes.add(length);
                Ok(())
            }
            Err(error) => {
                if error.kind() == ErrorKind::UnexpectedEof {
                    self.check_unchanged()?;
                }
                Err(SourceError::io(format!("cannot read {}", self.path.display()), &error))
            }
        }
    }

    /// Checks that the open file, and what its name leads to, are of the version that was opened.
    fn check_unchanged(&self) -> Result<(), SourceError> {
        let failed = |error: io::Error| match is_absent(&error) {
            true => SourceError::Changed,
            false => SourceError::io(format!("cannot look at {}", self.path.display()), &error),
        };
        let named = fs::symlink_metadata(&self.path).map_err(failed)?;
        let opened = self.file.metadata().map_err(failed)?;
        let is_same = [named, opened].iter().all(|now| version(now, &self.path) == self.version);
        if is_same { Ok(()) } else { Err(SourceError::Changed) }
    }
}

/// A dataset that is one file. One that is not open any more is opened again, and must be of the same version.
struct PortableFile {
    number: u64,
    path: PathBuf,
    version: ObjectVersion,
    root: Arc<Root>,
    changed: AtomicBool,
    recent: Arc<RecentWrites>,
}

impl PortableFile {
    fn file(&self, blocking: Blocking) -> Result<Arc<OpenFile>, SourceError> {
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        let key = (self.number, 0);
        if let Some(file) = self.root.cached(key, WHOLE) {
            return Ok(file);
        }
        let opened = self.root.locate(&self.path).and_then(|found| match found {
            Some(found) => found.open_as(WHOLE, &self.recent),
            None => Err(not_found()),
        });
        match opened {
            Ok(opened) if opened.version == self.version => Ok(self.root.keep(key, opened)),
            Err(error) if !is_absent(&error) => Err(cannot_open(&self.path, &error)),
            _ => self.noted(Err(SourceError::Changed)),
        }
    }

    /// Returns a result, and remembers that the file has changed.
    fn noted<T>(&self, result: Result<T, SourceError>) -> Result<T, SourceError> {
        if matches!(result, Err(SourceError::Changed)) {
            self.changed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl Source for PortableFile {
    fn len(&self, _object: &str) -> Result<Option<u64>, SourceError> {
        Ok(Some(self.version.size))
    }

    fn read_at(&self, _object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        let file = self.file(blocking)?;
        // checked here, too: not every reader of bytes checks once more
        let read = file.read_at(&self.root.counters, offset, out).and_then(|()| file.check_unchanged());
        match self.noted(read) {
            Err(SourceError::Changed) => {
                let (length, size) = (out.len() as u64, file.file.metadata().map_or(0, |now| now.len()));
                let is_short = offset.checked_add(length).is_none_or(|end| end > size);
                Err(if is_short { SourceError::TooShort { offset, length, size } } else { SourceError::Changed })
            }
            read => read.map(|()| true),
        }
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        self.check_unchanged_or(Blocking::Yes)
    }

    fn check_unchanged_or(&self, blocking: Blocking) -> Result<(), SourceError> {
        let file = self.file(blocking)?;
        self.noted(file.check_unchanged())
    }
}

impl FileSource for PortableFile {
    fn version(&self) -> ObjectVersion {
        self.version
    }

    fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }
}

impl Drop for PortableFile {
    fn drop(&mut self) {
        self.root.close(self.number);
    }
}

/// A dataset that is a folder of files. Once one of them has changed, all reads fail.
struct PortableFolder {
    number: u64,
    /// Without links.
    path: PathBuf,
    version: ObjectVersion,
    /// Others have files here, too.
    is_shared: bool,
    root: Arc<Root>,
    changed: AtomicBool,
    failure: FirstFailure,
    recent: Arc<RecentWrites>,
    /// The version in which each file was opened first; `None` if it was not there.
    seen: Mutex<LruCache<Box<str>, Option<ObjectVersion>>>,
}

impl PortableFolder {
    fn open(
        root: &Arc<Root>,
        (found, is_shared): (Found, bool),
        recent: &Arc<RecentWrites>,
        failure: FirstFailure,
    ) -> Result<Arc<Self>, NoFolder> {
        if !found.metadata.is_dir() {
            return Err(NoFolder::NotAFolder);
        }
        let mut version = found.version();
        if is_shared {
            version = version.of_shared_folder();
        } else {
            recent.record_times([modified(&found.metadata); 2]);
        }
        Ok(Arc::new(Self {
            number: new_number(),
            version,
            is_shared,
            path: found.path,
            root: Arc::clone(root),
            changed: AtomicBool::new(false),
            failure,
            recent: Arc::clone(recent),
            seen: Mutex::new(LruCache::new(MAX_SEEN)),
        }))
    }

    fn mark_changed(&self) -> SourceError {
        self.changed.store(true, Ordering::Relaxed);
        SourceError::Changed
    }

    /// Returns whether the folder is still the one that was opened.
    fn is_in_place(&self) -> bool {
        let now = self.root.locate(&self.path).ok().flatten().map(|now| now.version());
        now.is_some_and(|now| self.version == if self.is_shared { now.of_shared_folder() } else { now })
    }

    /// Returns whether a file or folder has the version that it had before, or is still missing.
    fn is_same(&self, path: &Path, before: Option<ObjectVersion>) -> bool {
        match self.root.locate(path) {
            Ok(found) => found.is_some() && before == found.map(|found| found.version()),
            Err(error) => before.is_none() && is_absent(&error),
        }
    }

    /// Returns the file of a name, and opens it if it is not open; `None` if it does not exist.
    fn file(&self, name: &str, blocking: Blocking) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.check_unchanged()?;
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        let key = (self.number, hash_of(name));
        if let Some(file) = self.root.cached(key, name) {
            return Ok(Some(file));
        }
        let path = self.path.join(name);
        let opened = self.open_file(name, &path).map_err(|e| cannot_open(&path, &e))?;
        let now = opened.as_ref().map(|file| file.version);
        let is_as_before = *self.seen.lock().get_or_insert(name.into(), || now) == now;
        // a name that was never looked for may be that of another folder, which has taken the place of this one
        if !is_as_before || !self.is_in_place() {
            return Err(self.mark_changed());
        }
        Ok(opened.map(|file| self.root.keep(key, file)))
    }

    fn open_file(&self, name: &str, path: &Path) -> io::Result<Option<OpenFile>> {
        let is_plain = |part: &str| {
            let mut parts = Path::new(part).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == part)
        };
        if !name.split('/').all(is_plain) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "not a name below a folder"));
        }
        match self.root.locate(path) {
            Ok(Some(found)) => found.open_as(name, &self.recent).map(Some),
            Ok(None) => Err(io::Error::other("a link leads out of the source, or to nothing")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Source for PortableFolder {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        Ok(self.failure.noted(self.file(object, Blocking::Yes))?.map(|file| file.version.size))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        self.failure.noted((|| {
            let Some(file) = self.file(object, blocking)? else { return Ok(false) };
            let read = file.read_at(&self.root.counters, offset, out).and_then(|()| file.check_unchanged());
            if read == Err(SourceError::Changed) {
                return Err(self.mark_changed());
            }
            read.map(|()| true)
        })())
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        if self.changed.load(Ordering::Relaxed) { Err(SourceError::Changed) } else { Ok(()) }
    }
}

impl Folder for PortableFolder {
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder> {
        let path = self.path.join(path);
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => NoFolder::Absent,
            ErrorKind::NotADirectory => NoFolder::NotAFolder,
            _ if is_loop(&error) => NoFolder::Loop,
            _ => {
                let error = SourceError::io(format!("cannot look at {}", path.display()), &error);
                self.failure.note(&error);
                error.into()
            }
        };
        let found = self.root.locate(&path).map_err(failed)?.ok_or(NoFolder::Outside)?;
        Ok(Self::open(&self.root, (found, self.is_shared), &self.recent, self.failure.clone())?)
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<bool, SourceError> {
        let path = self.path.join(below);
        let visited = self.root.locate(&path).and_then(|found| match found {
            Some(found) => {
                let mut visit = |name: &OsStr, kind| name.to_str().is_none_or(|name| visit(name, kind));
                self.root.place(found).visit(&mut visit)
            }
            None => Ok(()),
        });
        match visited {
            Err(error) if !is_absent(&error) => {
                self.failure.noted(Err(SourceError::io(format!("cannot list {}", path.display()), &error)))
            }
            _ => Ok(true),
        }
    }

    fn identity(&self) -> (u64, u64) {
        self.version.inode
    }

    fn failure(&self) -> Option<SourceError> {
        self.failure.get()
    }

    fn is_changed(&self) -> bool {
        let recent: Vec<_> = {
            let seen = self.seen.lock();
            seen.iter().take(CHECKED_FILES).map(|(name, before)| (self.path.join(&**name), *before)).collect()
        };
        let is_changed = self.check_unchanged().is_err()
            || !self.is_in_place()
            || !recent.iter().all(|(path, before)| self.is_same(path, *before));
        if is_changed {
            self.mark_changed();
        }
        is_changed
    }
}

impl Drop for PortableFolder {
    fn drop(&mut self) {
        self.root.close(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::catalog::{open_dataset, open_source};
    use crate::format::{OpenWith, registry};
    use crate::internals::read_what_can_be;
    use crate::source::LocalTree;

    fn file(path: &Path) -> Arc<dyn FileSource> {
        PortableTree::below(path).look(path).unwrap().unwrap().open_file(path, &RecentWrites::ignored()).unwrap()
    }

    fn folder(source: &Path, path: &Path) -> Arc<dyn Folder> {
        PortableTree::below(source).look(path).unwrap().unwrap().open_folder(&RecentWrites::ignored()).unwrap()
    }

    fn read(source: &dyn Source, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let Some(length) = source.len(name)? else { return Ok(None) };
        let mut out = vec![0; length as usize];
        Ok(source.read_at(name, 0, &mut out, Blocking::Yes)?.then_some(out))
    }

    #[test]
    fn datasets_are_read_as_by_the_files_of_linux() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let mut arrays = 0;
        for kind in ["demo", "segy", "vds", "wkw", "zgy"] {
            for entry in fs::read_dir(data.join(kind)).unwrap() {
                let path = entry.unwrap().path();
                let here = open_source(registry(), PortableTree::below(&path), OpenWith::for_one(None));
                let (here, linux) = match (here, open_dataset(registry(), &path, None)) {
                    (Ok(here), Ok(linux)) => (here.dataset, linux.dataset),
                    (here, linux) => {
                        assert_eq!(here.err(), linux.err(), "{}", path.display());
                        continue;
                    }
                };
                assert_eq!(here.layers().len(), linux.layers().len());
                for (here, linux) in here.layers().iter().zip(linux.layers()) {
                    assert_eq!((&here.name, here.levels.len()), (&linux.name, linux.levels.len()));
                    for (here, linux) in here.levels.iter().zip(&linux.levels) {
                        assert!(read_what_can_be(&**here) == read_what_can_be(&**linux), "{}", path.display());
                        arrays += 1;
                    }
                }
            }
        }
        assert!(arrays > 50, "{arrays}");
    }

    #[test]
    fn places_are_what_linux_says() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let (here, linux) = (PortableTree::below(&data), LocalTree::below(&data));
        for name in ["demo", "demo/north.zgy", "demo/cells", "demo/none", "demo/north.zgy/x", "../../Cargo.toml"] {
            let about = |tree: &dyn Tree| match tree.look(&data.join(name)) {
                Ok(place) => Ok(place.map(|place| (place.about().kind, place.about().version))),
                Err(error) => Err(error.to_string()),
            };
            assert_eq!(about(&*here), about(&*linux), "{name}");
        }
    }

    #[test]
    fn old_bytes_never_come_with_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let again = |change: &dyn Fn()| {
            fs::write(&path, b"0123456789").unwrap();
            let file = file(&path);
            assert_eq!((read(&*file, WHOLE), file.check_unchanged()), (Ok(Some(b"0123456789".to_vec())), Ok(())));
            assert_eq!(file.read_at(WHOLE, 0, &mut [0], Blocking::No), Err(SourceError::WouldBlock));
            let beyond = file.read_at(WHOLE, 8, &mut [0; 4], Blocking::Yes);
            assert_eq!(beyond, Err(SourceError::TooShort { offset: 8, length: 4, size: 10 }));
            change();
            let read = file.read_at(WHOLE, 6, &mut [0; 4], Blocking::Yes);
            assert_eq!(file.check_unchanged(), Err(SourceError::Changed));
            assert!(read.is_err() && file.has_changed());
            read
        };
        let opened = || File::options().write(true).open(&path).unwrap();
        let truncated = again(&|| opened().set_len(5).unwrap());
        assert_eq!(truncated, Err(SourceError::TooShort { offset: 6, length: 4, size: 5 }));
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        let _ = again(&|| {
            fs::write(&path, b"9876543210").unwrap();
            opened().set_modified(later).unwrap();
        });
        let _ = again(&|| fs::remove_file(&path).unwrap());
        let _ = again(&|| {
            let before = fs::metadata(&path).unwrap().modified().unwrap();
            fs::write(path.with_extension("new"), b"9876543210").unwrap();
            fs::rename(path.with_extension("new"), &path).unwrap();
            opened().set_modified(before).unwrap();
        });
    }

    #[test]
    fn a_file_that_was_closed_must_be_the_same() {
        let top = tempfile::tempdir().unwrap();
        for n in 0..MAX_FILES.get() + 8 {
            fs::write(top.path().join(n.to_string()), [n as u8; 4]).unwrap();
        }
        let folder = folder(top.path(), top.path());
        let all = || (0..MAX_FILES.get() + 8).map(|n| read(&*folder, &n.to_string())).collect::<Result<Vec<_>, _>>();
        for (n, bytes) in all().unwrap().into_iter().chain(all().unwrap()).enumerate() {
            assert_eq!(bytes.unwrap(), [(n % (MAX_FILES.get() + 8)) as u8; 4]);
        }
        assert!(!folder.is_changed());
        fs::write(top.path().join("0"), b"longer").unwrap();
        assert_eq!(read(&*folder, "0"), Err(SourceError::Changed));
        assert_eq!((read(&*folder, "1"), folder.is_changed()), (Err(SourceError::Changed), true));
        assert_eq!(folder.failure(), Some(SourceError::Changed));
    }

    #[test]
    fn a_folder_that_takes_the_place_of_another_one_is_never_mixed_in() {
        let top = tempfile::tempdir().unwrap();
        let [old, new, gone] = ["old", "new", "gone"].map(|name| top.path().join(name));
        for folder in [&old, &new] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("x"), b"0123").unwrap();
            fs::write(folder.join("never read"), folder.to_str().unwrap()).unwrap();
        }
        let folder = folder(top.path(), &old);
        assert_eq!(read(&*folder, "x"), Ok(Some(b"0123".to_vec())));
        fs::rename(&old, &gone).unwrap();
        fs::rename(&new, &old).unwrap();
        assert_eq!(read(&*folder, "never read"), Err(SourceError::Changed));
    }

    #[test]
    fn files_of_a_folder_are_below_it() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let top = root.path();
        fs::create_dir(top.join("a")).unwrap();
        fs::write(top.join("a/x"), b"0123").unwrap();
        fs::write(outside.path().join("x"), b"secret").unwrap();
        symlink("x", top.join("a/in")).unwrap();
        symlink("a", top.join("b")).unwrap();
        symlink(outside.path().join("x"), top.join("a/out")).unwrap();
        symlink(outside.path(), top.join("c")).unwrap();
        symlink("nowhere", top.join("d")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        let folder = folder(top, top);
        for name in ["a/x", "a/in", "b/x"] {
            assert_eq!(read(&*folder, name), Ok(Some(b"0123".to_vec())), "{name}");
        }
        assert_eq!((read(&*folder, "a/y"), read(&*folder, "e/y")), (Ok(None), Ok(None)));
        for name in ["a", "a/x/y", "", "/etc/passwd", "../x", "a/../a/x", "a//x", "./a/x", "a/out", "c/x", "c/y", "d/x"]
        {
            assert!(matches!(read(&*folder, name), Err(SourceError::Io { .. })), "{name}");
        }
        assert_eq!(folder.folder("b").unwrap().identity(), folder.folder("a/").unwrap().identity());
        let why = |path: &str| folder.folder(path).err();
        assert_eq!((why("none"), why("a/x")), (Some(NoFolder::Absent), Some(NoFolder::NotAFolder)));
        assert_eq!((why("c"), why("..")), (Some(NoFolder::Outside), Some(NoFolder::Outside)));
        assert_eq!(why("loop"), Some(NoFolder::Outside));
        let mut names = Vec::new();
        folder
            .list("a", &mut |name, kind| {
                names.push((name.to_owned(), kind));
                true
            })
            .unwrap();
        names.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [("in", EntryKind::Link), ("out", EntryKind::Link), ("x", EntryKind::File)];
        assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }
}
