//! Local files and folders: the tree below one path, what a look finds there, and a dataset that is a single file.
//!
//! The number of open files is bounded. They are read with positioned reads and guarded maps.

mod folder;
mod map;
mod open_files;
mod readers;
mod root;
mod windows;

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::fs::{AtFlags, FileType, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;

use super::{
    About, Blocking, EntryKind, FileSource, FirstFailure, Folder, NoFolder, ObjectVersion, Permissions, Place,
    RecentWrites, Source, SourceError, Tree, WHOLE, new_number, system_time,
};
use crate::counters::Counters;
use crate::sync::{Mutex, RwLock};
use folder::LocalFolder;
use open_files::ctime;
use root::{Found, SourceRoot};

#[cfg(feature = "store")]
pub(crate) use open_files::most_connections;
pub(crate) use open_files::{OpenFile, OpenFiles, raise_descriptor_limit};
pub(crate) use windows::{CoarseInstant, MappedWindow, is_local};

pub(crate) struct LocalTree {
    /// The path as it was given: it counts as SOURCE if links in it are changed.
    source: PathBuf,
    root: Arc<SourceRoot>,
}

impl LocalTree {
    /// Creates the tree of the folder or file `source`, an absolute path, and of what lies below it; links that lead
    /// elsewhere are followed if `follow_links`, and permissions are asked for if `permissions`. Reads are counted in
    /// `counters`.
    pub(crate) fn new(source: &Path, follow_links: bool, permissions: bool, counters: Arc<Counters>) -> Arc<Self> {
        let root = SourceRoot::new(source, follow_links, permissions, counters);
        Arc::new(Self { source: source.to_owned(), root: Arc::new(root) })
    }

    /// Creates a tree that follows no links to elsewhere, and asks for no permissions.
    pub(crate) fn below(source: &Path) -> Arc<Self> {
        Self::new(source, false, false, Arc::default())
    }
}

impl Tree for LocalTree {
    fn source(&self) -> &Path {
        &self.source
    }

    fn look(&self, path: &Path) -> io::Result<Option<Box<dyn Place>>> {
        Ok(place(&self.root, self.root.locate(path)?))
    }

    fn about_base(&self, path: &Path) -> io::Result<About> {
        let found = self.root.base(path)?;
        Ok(about(&found.metadata, true, self.root.permissions(&found)))
    }

    fn is_gone(&self) -> bool {
        let is_absent = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory);
        fs::metadata(&self.source).is_err_and(|error| is_absent(error.kind()))
    }

    fn open_files(&self) -> Option<&OpenFiles> {
        Some(&self.root.files)
    }
}

fn about(metadata: &Metadata, by_links: bool, permissions: Option<Permissions>) -> About {
    let kind = root::kind_of(FileType::from_raw_mode(metadata.mode()));
    let changed = system_time(metadata.ctime(), metadata.ctime_nsec());
    About { kind, version: ObjectVersion::from_metadata(metadata), changed, by_links, permissions }
}

/// A file or folder that was just found, opened without access to its content.
struct LocalPlace {
    root: Arc<SourceRoot>,
    found: Found,
    about: About,
}

fn place(root: &Arc<SourceRoot>, found: Option<Found>) -> Option<Box<dyn Place>> {
    let found = found?;
    let about = about(&found.metadata, found.by_links, root.permissions(&found));
    Some(Box::new(LocalPlace { root: Arc::clone(root), found, about }))
}

impl Place for LocalPlace {
    fn about(&self) -> &About {
        &self.about
    }

    fn find(&self, name: &Path) -> io::Result<Option<Box<dyn Place>>> {
        Ok(place(&self.root, self.root.locate_in(&self.found, name)?))
    }

    fn find_beside(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        Ok(place(&self.root, self.root.locate_beside(&self.found, name.as_ref())?))
    }

    fn subfolder(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let entry = statx(self.found.handle(), name, flags, StatxFlags::TYPE)?;
        if entry.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return Ok(None);
        }
        let found = self.root.locate_in(&self.found, name.as_ref())?;
        let is_here = |found: &Found| found.metadata.is_dir() && found.path == self.found.path.join(name);
        Ok(place(&self.root, found.filter(is_here)))
    }

    fn visit(&self, visit: &mut dyn FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()> {
        self.root.visit(&self.found, visit)
    }

    fn read_head(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.root.open(&self.found)?.take(most).read_to_end(&mut head)?;
        Ok(head)
    }

    fn open_file(&self, path: &Path, recent: &Arc<RecentWrites>) -> Result<Arc<dyn FileSource>, SourceError> {
        let opened = with_metadata(self.root.open(&self.found), path)?;
        Ok(Arc::new(LocalFile::new(&self.root, path, opened, recent)))
    }

    fn open_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        Ok(LocalFolder::open(&self.root, (self.found, false), None, recent, FirstFailure::default())?)
    }

    fn open_shared_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        Ok(LocalFolder::open(&self.root, (self.found, true), None, recent, FirstFailure::default())?)
    }
}

/// A dataset that is one local file. Truncation while it is read is an error, not a crash.
///
/// The file is among the open files that are bounded in number: one that is evicted is opened again at the next read,
/// and must be of the same version then.
struct LocalFile {
    number: u64,
    path: PathBuf,
    version: ObjectVersion,
    root: Arc<SourceRoot>,
    open: RwLock<Weak<OpenFile>>,
    /// The time of the last change of content or attributes when the file was opened last. Locked while it is opened
    /// again, so that only one thread opens it.
    opening: Mutex<(i64, i64)>,
    changed: Arc<AtomicBool>,
    recent: Arc<RecentWrites>,
}

fn open(root: &SourceRoot, path: &Path) -> Result<(File, Metadata), SourceError> {
    let place = root.locate(path).and_then(|place| place.ok_or(Errno::NOENT.into()));
    with_metadata(place.and_then(|place| root.open(&place)), path)
}

fn with_metadata(file: io::Result<File>, path: &Path) -> Result<(File, Metadata), SourceError> {
    let opened = file.and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    opened.map_err(|e| SourceError::io(format!("cannot open {}", path.display()), &e))
}

impl LocalFile {
    /// Wraps the file at a path below `root`, which was just opened, with its metadata from then.
    fn new(root: &Arc<SourceRoot>, path: &Path, opened: (File, Metadata), recent: &Arc<RecentWrites>) -> Self {
        let this = Self {
            number: new_number(),
            path: path.to_owned(),
            version: ObjectVersion::from_metadata(&opened.1),
            root: Arc::clone(root),
            open: RwLock::default(),
            opening: Mutex::new(ctime(&opened.1)),
            changed: Arc::default(),
            recent: Arc::clone(recent),
        };
        this.keep(opened);
        this
    }

    fn keep(&self, opened: (File, Metadata)) -> Arc<OpenFile> {
        let (name, marks) = ((WHOLE, self.path.clone()), (&self.changed, &self.recent));
        let file = OpenFile::new(name, opened, marks, &self.root.counters);
        *self.open.write() = Arc::downgrade(&file);
        self.root.files.insert((self.number, 0), &file);
        file
    }

    fn file(&self, blocking: Blocking) -> Result<Arc<OpenFile>, SourceError> {
        let opened = || self.open.read().upgrade().inspect(|file| file.mark_used());
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
        if ObjectVersion::from_metadata(&metadata) != self.version {
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
        Ok(self.keep((file, metadata)))
    }

    /// Remembers that the file has changed: it is opened again only if nothing has touched it since.
    fn mark_changed(&self) -> SourceError {
        self.changed.store(true, Ordering::Relaxed);
        SourceError::Changed
    }
}

impl Source for LocalFile {
    fn len(&self, _object: &str) -> Result<Option<u64>, SourceError> {
        Ok(Some(self.version.size))
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
    fn version(&self) -> ObjectVersion {
        self.version
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
    use super::*;

    impl LocalTree {
        /// A tree on a kernel without `openat2`.
        pub(crate) fn without_openat2(source: &Path) -> Arc<Self> {
            Arc::new(Self { source: source.to_owned(), root: Arc::new(SourceRoot::without_openat2(source)) })
        }

        /// Opens a file that is a source of its own.
        pub(crate) fn file(path: &Path) -> Result<Arc<dyn FileSource>, SourceError> {
            let place = Self::below(path).look(path).map_err(|e| SourceError::io("cannot look at it", &e))?;
            place.unwrap().open_file(path, &RecentWrites::ignored())
        }

        /// Opens a folder below `source`.
        pub(crate) fn folder(source: &Path, path: &Path) -> Arc<dyn Folder> {
            Self::below(source).look(path).unwrap().unwrap().open_folder(&RecentWrites::ignored()).unwrap()
        }
    }

    fn sample(bytes: &[u8]) -> (tempfile::TempDir, PathBuf, LocalFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, bytes).unwrap();
        let root = Arc::new(SourceRoot::new(&path, false, false, Arc::default()));
        let file = LocalFile::new(&root, &path, open(&root, &path).unwrap(), &RecentWrites::ignored());
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
        file.root.files.close_unused();
        assert!(is_open() && file.root.files.are_any(), "it was opened since the last time");
        assert_eq!(file.check_unchanged(), Ok(()));
        file.root.files.close_unused();
        assert!(is_open(), "it was used");
        let held = file.file(Blocking::No).unwrap();
        file.root.files.close_unused();
        file.root.files.close_unused();
        assert!(is_open(), "it is in use");
        drop(held);
        // the first call sees that it was used
        file.root.files.close_unused();
        file.root.files.close_unused();
        assert!(!is_open() && !file.root.files.are_any());
        let woken = Arc::new(AtomicBool::new(false));
        let wakes = Arc::clone(&woken);
        file.root.files.on_first(Box::new(move || wakes.store(true, Ordering::SeqCst)));
        assert_eq!((file.check_unchanged(), woken.load(Ordering::SeqCst)), (Ok(()), true));
    }

    #[test]
    fn a_file_without_a_name_is_closed_and_no_other() {
        let (_folder, path, file) = sample(b"0123456789");
        let is_open = || file.open.read().upgrade().is_some();
        drop(file.root.files.take_gone());
        assert!(is_open());
        fs::rename(&path, path.with_extension("renamed")).unwrap();
        drop(file.root.files.take_gone());
        assert!(is_open());
        fs::remove_file(path.with_extension("renamed")).unwrap();
        drop(file.root.files.take_gone());
        assert!(!is_open());
        fs::write(&path, b"0123456789").unwrap();
        assert_eq!(file.read_at("", 3, &mut [0; 4], Blocking::Yes), Err(SourceError::Changed));
        assert_eq!(file.check_unchanged(), Err(SourceError::Changed));
    }
}
