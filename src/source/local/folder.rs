//! A dataset that is a folder of files.
//!
//! Objects are files below the folder. They are opened when they are first read; all folders together keep a bounded
//! number of them open. A name that does not exist stays in a negative cache for about a second. A file that has
//! changed makes the whole folder count as changed from then on, so that bytes of two versions are never mixed.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use super::open_files::{Key, OpenFile};
use super::readers::Readers;
use super::root::{Found, SourceRoot};
use crate::source::{
    Blocking, EntryKind, FirstFailure, Folder, NoFolder, ObjectVersion, Permissions, RecentWrites, Source, SourceError,
    hash_of, new_number,
};

/// The most recently used files, and as many missing ones, that [`Folder::is_changed`] checks.
const CHECKED_FILES: usize = 128;

pub(super) struct LocalFolder {
    number: u64,
    path: PathBuf,
    version: ObjectVersion,
    /// Others have files here, too.
    is_shared: bool,
    root: Arc<SourceRoot>,
    changed: Arc<AtomicBool>,
    /// The first failure of the system here or in a folder that was opened from here.
    failure: FirstFailure,
    recent: Arc<RecentWrites>,
    /// The rights to read it; `None` if permissions are not asked for.
    readers: Option<Arc<Readers>>,
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns whether a file or folder has the version that it had before, or is still missing.
fn is_same(path: &Path, before: Option<ObjectVersion>) -> bool {
    // a link in the place of a missing file is a change, wherever it leads
    let now = if before.is_some() { path.metadata() } else { path.symlink_metadata() };
    match now {
        Ok(now) => before == Some(ObjectVersion::from_metadata(&now)),
        Err(e) if is_absent(&e) => before.is_none(),
        // a failure of the system is no change: a reader of the file gets it
        Err(_) => true,
    }
}

impl LocalFolder {
    /// Opens a folder that was just found, and shares failures with the other folders of its dataset, whose own is
    /// `dataset`. `recent` gets a record if it, unless it `is_shared` with others, or a file that is opened in it, was
    /// written to a moment ago.
    pub(super) fn open(
        root: &Arc<SourceRoot>,
        (place, is_shared): (Found, bool),
        dataset: Option<&Arc<Readers>>,
        recent: &Arc<RecentWrites>,
        failure: FirstFailure,
    ) -> Result<Arc<Self>, NoFolder> {
        if !place.metadata.is_dir() {
            return Err(NoFolder::NotAFolder);
        }
        let mut version = ObjectVersion::from_metadata(&place.metadata);
        if is_shared {
            version = version.of_shared_folder();
        } else {
            recent.record(&place.metadata);
        }
        Ok(Arc::new(Self {
            number: new_number(),
            version,
            is_shared,
            readers: Readers::new(root, &place, dataset),
            path: place.path,
            root: Arc::clone(root),
            changed: Arc::default(),
            failure,
            recent: Arc::clone(recent),
        }))
    }

    /// Returns whether the folder is still the one that was opened.
    fn is_in_place(&self) -> bool {
        match self.path.metadata().map(|now| ObjectVersion::from_metadata(&now)) {
            Ok(now) => self.version == if self.is_shared { now.of_shared_folder() } else { now },
            // a failure of the system is no change
            Err(e) => !is_absent(&e),
        }
    }

    /// Returns whether a file below a folder that is shared is in the same folder as others that were opened there.
    fn has_same_parent(&self, name: &str) -> bool {
        let Some((parent, _)) = name.rsplit_once('/').filter(|_| self.is_shared) else { return true };
        let now = self.path.join(parent).metadata().ok();
        let now = now.map(|now| ObjectVersion::from_metadata(&now).of_shared_folder());
        now.is_none() || self.root.files.is_as_before((self.number, hash_of((parent, "/"))), now.as_ref())
    }

    /// Remembers that something has changed: all further reads fail.
    fn mark_changed(&self) -> SourceError {
        self.changed.store(true, Ordering::Relaxed);
        SourceError::Changed
    }

    /// Returns the file of a name, and opens it if it is not open; `None` if it does not exist.
    fn file(&self, name: &str, blocking: Blocking) -> Result<Option<Arc<OpenFile>>, SourceError> {
        self.check_unchanged()?;
        let (key, files): (Key, _) = ((self.number, hash_of(name)), &self.root.files);
        if let Some(file) = files.get(key, name) {
            return Ok(Some(file));
        }
        if files.is_missing(key, name) {
            return Ok(None);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        let path = self.path.join(name);
        let failed = |e| SourceError::io(format!("cannot open {}", path.display()), &e);
        let opened = self.open_file(name, &path).map_err(failed)?;
        let version = opened.as_ref().map(|(_, metadata)| ObjectVersion::from_metadata(metadata));
        // a name that was never looked for may be that of another folder, which has taken the place of this one
        if !files.is_as_before(key, version.as_ref()) || !self.is_in_place() || !self.has_same_parent(name) {
            return Err(self.mark_changed());
        }
        let Some(opened) = opened else {
            files.insert_missing(key, name);
            return Ok(None);
        };
        let marks = (&self.changed, &self.recent);
        let file = OpenFile::new((name, path), opened, marks, &self.root.counters);
        files.insert(key, &file);
        Ok(Some(file))
    }

    /// Opens a file; `None` if it does not exist. A link that leads to nothing is an error: its data exist elsewhere.
    fn open_file(&self, name: &str, path: &Path) -> io::Result<Option<(File, Metadata)>> {
        if !name.split('/').all(|part| !matches!(part, "" | "." | "..")) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name below a folder"));
        }
        let is_absent = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
        let (file, real) = match self.root.open_plain_file(path) {
            Some(Err(e)) if is_absent(&e) => return Ok(None),
            Some(file) => (file?, path.to_owned()),
            None => match self.root.open_linked_file(path) {
                Ok(Some(found)) => found,
                Err(e) if !is_absent(&e) => return Err(e),
                _ if self.is_absent(path) => return Ok(None),
                _ => return Err(io::Error::other("a link leads out of the source, or to nothing")),
            },
        };
        let metadata = file.metadata()?;
        if let Some(readers) = &self.readers
            && let Some(permissions) = readers.of_file(&self.root, &Found::new(file.try_clone()?.into(), real, false)?)
        {
            readers.admit(name, permissions)?;
        }
        Ok(Some((file, metadata)))
    }

    /// Returns whether there is nothing at a path, not even a link that leads to nothing: the last folder on the way
    /// that there is has no entry of the next name.
    fn is_absent(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        match self.root.locate(parent) {
            Ok(Some(folder)) => statat(folder.handle(), name, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::NOENT),
            Err(e) if e.kind() != io::ErrorKind::NotFound => false,
            _ => parent != self.path && self.is_absent(parent),
        }
    }
}

impl Source for LocalFolder {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        Ok(self.failure.noted(self.file(object, Blocking::Yes))?.map(|file| file.version.size))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        self.failure.noted((|| {
            let Some(file) = self.file(object, blocking)? else { return Ok(false) };
            file.read_at(offset, out, blocking)?;
            // here and not in `check_unchanged`, which does not know which file was read
            file.check_unchanged()?;
            Ok(true)
        })())
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
        let path = self.path.join(path);
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => NoFolder::Absent,
            io::ErrorKind::NotADirectory => NoFolder::NotAFolder,
            _ if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => NoFolder::Loop,
            _ => {
                let error = SourceError::io(format!("cannot look at {}", path.display()), &e);
                self.failure.note(&error);
                error.into()
            }
        };
        let place = self.root.locate(&path).map_err(failed)?.ok_or(NoFolder::Outside)?;
        let dataset = self.readers.as_ref().map(Readers::top);
        Ok(Self::open(&self.root, (place, self.is_shared), dataset, &self.recent, self.failure.clone())?)
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<bool, SourceError> {
        let path = self.path.join(below);
        let visited = self.root.locate(&path).and_then(|folder| match folder {
            Some(folder) => self.root.visit(&folder, |name, kind| name.to_str().is_none_or(|name| visit(name, kind))),
            None => Ok(()),
        });
        match visited {
            Err(e) if !is_absent(&e) => {
                self.failure.noted(Err(SourceError::io(format!("cannot list {}", path.display()), &e)))
            }
            _ => Ok(true),
        }
    }

    fn settle_permissions(&self) -> Option<Permissions> {
        self.readers.as_ref().map(Readers::settle)
    }

    fn identity(&self) -> (u64, u64) {
        self.version.inode
    }

    fn failure(&self) -> Option<SourceError> {
        self.failure.get()
    }

    fn is_changed(&self) -> bool {
        let recent = || self.root.files.recent(self.number, CHECKED_FILES);
        let names = || recent().into_iter().filter_map(|(name, version)| version.and(Some(name))).collect::<Vec<_>>();
        let same = self.check_unchanged().is_ok()
            && self.is_in_place()
            && recent().iter().all(|(name, before)| is_same(&self.path.join(&**name), *before))
            && !self.readers.as_ref().is_some_and(|readers| readers.have_changed(&self.root, &names()));
        if !same {
            self.mark_changed();
        }
        !same
    }
}

impl Drop for LocalFolder {
    fn drop(&mut self) {
        self.root.files.close(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;

    fn folder_of(root: &Path) -> Arc<LocalFolder> {
        open(SourceRoot::new(root, false, false, Arc::default()), root)
    }

    fn open(source: SourceRoot, folder: &Path) -> Arc<LocalFolder> {
        let place = source.locate(folder).unwrap().unwrap();
        LocalFolder::open(&Arc::new(source), (place, false), None, &RecentWrites::ignored(), FirstFailure::default())
            .unwrap()
    }

    /// Opens a folder again as a kernel without `openat2` does.
    fn without_openat2(root: &Path) -> Arc<LocalFolder> {
        open(SourceRoot::without_openat2(root), root)
    }

    fn read(folder: &dyn Source, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let Some(length) = folder.len(name)? else { return Ok(None) };
        let mut out = vec![0; length as usize];
        Ok(folder.read_at(name, 0, &mut out, Blocking::Yes)?.then_some(out))
    }

    fn sample() -> (tempfile::TempDir, Arc<LocalFolder>) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        fs::write(root.path().join("a/x"), b"0123").unwrap();
        let folder = folder_of(root.path());
        (root, folder)
    }

    #[test]
    fn what_others_do_in_a_shared_folder_is_no_change_but_another_folder_is() {
        for replaced in ["", "a"] {
            let (root, _) = sample();
            let place = root.path().join("data");
            fs::create_dir(&place).unwrap();
            fs::rename(root.path().join("a"), place.join("a")).unwrap();
            let source = Arc::new(SourceRoot::new(root.path(), false, false, Arc::default()));
            let found = source.locate(&place).unwrap().unwrap();
            let (recent, failure) = (RecentWrites::ignored(), FirstFailure::default());
            let folder = LocalFolder::open(&source, (found, true), None, &recent, failure).unwrap();
            assert_eq!(read(&*folder, "a/x"), Ok(Some(b"0123".to_vec())));
            fs::write(place.join("other"), b"").unwrap();
            fs::write(place.join("a/y"), b"45").unwrap();
            assert!(!folder.is_changed());
            assert_eq!(read(&*folder, "a/y"), Ok(Some(b"45".to_vec())));
            // in its place another one, with a file that was not read before
            let (at, old) = (place.join(replaced), root.path().join("old"));
            fs::rename(&at, &old).unwrap();
            fs::create_dir_all(place.join("a")).unwrap();
            fs::write(place.join("a/z"), b"6").unwrap();
            assert_eq!(read(&*folder, "a/z"), Err(SourceError::Changed), "{replaced:?}");
        }
    }

    #[test]
    fn only_absent_files_are_missing() {
        let (root, folder) = sample();
        let made = std::process::Command::new("mkfifo").arg(root.path().join("a/pipe")).status();
        for folder in [folder, without_openat2(root.path())] {
            assert_eq!(read(&*folder, "a/x"), Ok(Some(b"0123".to_vec())));
            assert_eq!(read(&*folder, "a/y"), Ok(None));
            assert_eq!(read(&*folder, "b/x"), Ok(None));
            for name in ["a", "a/x/y", "", "/etc/passwd", "../x", "a/../a/x", "a//x", "./a/x"] {
                assert!(matches!(read(&*folder, name), Err(SourceError::Io { .. })), "{name}");
            }
            let mut out = [0; 3];
            assert!(matches!(
                folder.read_at("a/x", 2, &mut out, Blocking::Yes),
                Err(SourceError::TooShort { size: 4, .. })
            ));
            assert!(matches!(
                folder.read_at("a/x", u64::MAX, &mut out, Blocking::Yes),
                Err(SourceError::TooShort { .. })
            ));
            if made.as_ref().is_ok_and(|status| status.success()) {
                assert!(
                    matches!(read(&*folder, "a/pipe"), Err(SourceError::Io { .. })),
                    "opening a pipe does not block"
                );
            }
        }
    }

    #[test]
    fn a_read_that_may_not_wait_opens_no_file() {
        let (_root, folder) = sample();
        let mut out = [0; 4];
        assert_eq!(folder.read_at("a/x", 0, &mut out, Blocking::No), Err(SourceError::WouldBlock));
        assert_eq!(folder.read_at("a/y", 0, &mut out, Blocking::No), Err(SourceError::WouldBlock));
        assert_eq!((read(&*folder, "a/x").unwrap().unwrap().len(), read(&*folder, "a/y")), (4, Ok(None)));
        assert!(matches!(folder.read_at("a/x", 0, &mut out, Blocking::No), Ok(true) | Err(SourceError::WouldBlock)));
        assert_eq!(folder.read_at("a/y", 0, &mut out, Blocking::No), Ok(false));
    }

    #[test]
    fn links_are_followed_below_the_source_only() {
        let (root, _) = sample();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), b"secret").unwrap();
        symlink("x", root.path().join("a/in")).unwrap();
        symlink(outside.path().join("x"), root.path().join("a/out")).unwrap();
        symlink("nowhere", root.path().join("a/dangling")).unwrap();
        symlink("a", root.path().join("b")).unwrap();
        symlink(outside.path(), root.path().join("c")).unwrap();
        symlink("nowhere", root.path().join("d")).unwrap();
        symlink("loop", root.path().join("loop")).unwrap();
        for (n, folder) in [folder_of(root.path()), without_openat2(root.path())].into_iter().enumerate() {
            assert_eq!(read(&*folder, "a/in"), Ok(Some(b"0123".to_vec())));
            assert_eq!(read(&*folder, "b/x"), Ok(Some(b"0123".to_vec())));
            assert_eq!(read(&*folder, "b/y"), Ok(None));
            for name in ["a/out", "a/dangling", "c/x", "d/x"] {
                assert!(matches!(read(&*folder, name), Err(SourceError::Io { .. })), "{name}");
            }
            let text = |name: &str| read(&*folder, name).unwrap_err().to_string().replace(name, "NAME");
            assert_eq!(text("c/x"), text("c/y"), "nothing tells whether a file outside exists");
            assert_eq!(folder.folder("b").unwrap().identity(), folder.folder("a/").unwrap().identity());
            let why = |path: &str| folder.folder(path).err();
            assert!(
                ["c", "c/x", "c/y", "..", "../x", "/", "/nowhere"]
                    .iter()
                    .all(|path| why(path) == Some(NoFolder::Outside))
            );
            assert_eq!((why("nothing"), why("a/x")), (Some(NoFolder::Absent), Some(NoFolder::NotAFolder)));
            // without `openat2` nobody knows whether such a link leads out
            let unsaid = |why: NoFolder| Some(if n == 0 { why } else { NoFolder::Outside });
            assert_eq!((why("d"), why("loop")), (unsaid(NoFolder::Absent), unsaid(NoFolder::Loop)));
        }
    }

    #[test]
    fn a_file_that_changes_makes_the_folder_changed() {
        type Change = fn(&Path);
        let changes: [Change; 3] = [
            |x| fs::write(x, b"01234").unwrap(),
            |x| fs::remove_file(x).unwrap(),
            |x| {
                fs::write(x.with_extension("new"), b"0123").unwrap();
                fs::rename(x.with_extension("new"), x).unwrap();
            },
        ];
        for change in changes {
            let (root, folder) = sample();
            let inner = folder.folder("a").unwrap();
            assert!(read(&*folder, "a/x").is_ok() && read(&*inner, "x").is_ok() && !folder.is_changed());
            change(&root.path().join("a/x"));
            assert_eq!(folder.read_at("a/x", 0, &mut [0; 2], Blocking::Yes), Err(SourceError::Changed));
            assert_eq!(folder.check_unchanged(), Err(SourceError::Changed));
            assert_eq!(read(&*folder, "a/other"), Err(SourceError::Changed));
            assert!(inner.is_changed() && inner.check_unchanged().is_err(), "a check notices it, too");
        }
    }

    #[test]
    fn a_file_that_was_closed_is_compared_when_it_is_opened_again() {
        let (root, folder) = sample();
        assert!(read(&*folder, "a/x").is_ok());
        for n in 0..400 {
            fs::write(root.path().join(format!("a/{n}")), b"x").unwrap();
            assert!(read(&*folder, &format!("a/{n}")).is_ok());
        }
        let open = fs::read_dir("/proc/self/fd").unwrap().filter(|fd| {
            let target = fs::read_link(fd.as_ref().unwrap().path());
            target.is_ok_and(|target| target.starts_with(root.path()))
        });
        assert!(open.count() <= 384);
        fs::write(root.path().join("a/x"), b"other").unwrap();
        assert_eq!(read(&*folder, "a/x"), Err(SourceError::Changed));
    }

    #[test]
    fn a_folder_that_takes_the_place_of_another_one_is_never_mixed_in() {
        for name in ["a/never read", "a/nowhere"] {
            let (root, _) = sample();
            let [old, new, gone] = ["old", "new", "gone"].map(|name| root.path().join(name));
            for folder in [&old, &new] {
                fs::create_dir_all(folder.join("a")).unwrap();
                fs::write(folder.join("a/x"), b"0123").unwrap();
                fs::write(folder.join("a/never read"), folder.to_str().unwrap()).unwrap();
            }
            let folder = open(SourceRoot::new(root.path(), false, false, Arc::default()), &old);
            assert_eq!(read(&*folder, "a/x"), Ok(Some(b"0123".to_vec())));
            fs::rename(&old, &gone).unwrap();
            fs::rename(&new, &old).unwrap();
            assert_eq!(read(&*folder, name), Err(SourceError::Changed), "{name}");
            assert_eq!(read(&*folder, "a/x"), Err(SourceError::Changed), "all of it, from then on");
        }
    }

    #[test]
    fn a_missing_file_is_remembered_for_a_second_only() {
        let (root, folder) = sample();
        let inner = folder.folder("a").unwrap();
        assert_eq!((read(&*folder, "a/y"), read(&*inner, "y")), (Ok(None), Ok(None)));
        fs::write(root.path().join("a/y"), b"late").unwrap();
        assert!(inner.is_changed());
        std::thread::sleep(Duration::from_millis(1100));
        assert_eq!(read(&*folder, "a/y"), Err(SourceError::Changed));
        assert!(folder.is_changed());
    }

    #[test]
    fn entries_are_listed_by_kind() {
        let (root, folder) = sample();
        symlink("a", root.path().join("link")).unwrap();
        fs::write(root.path().join("file"), b"").unwrap();
        let mut all = Vec::new();
        folder
            .list("", &mut |name, kind| {
                all.push((name.to_owned(), kind));
                true
            })
            .unwrap();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [("a", EntryKind::Folder), ("file", EntryKind::File), ("link", EntryKind::Link)];
        assert_eq!(all, expected.map(|(name, kind)| (name.to_owned(), kind)));
        assert_eq!(folder.list("nothing", &mut |_, _| panic!("an entry")), Ok(true));
    }
}
