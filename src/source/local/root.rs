//! Opens what lies below SOURCE, and nothing else, whatever links are put there meanwhile.
//!
//! A path is resolved once, by the kernel, and what it led to is judged, never its name. Most paths have no links in
//! them: `openat2` opens these and refuses all others, so that what it opens is where its path says. Any other path is
//! opened without access to the content (`O_PATH`), and the kernel is asked where that file is; its content is then
//! opened through that descriptor. Kernels and sandboxes without `openat2` do so for every path.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, fcntl_setfl, fstat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

use super::open_files::OpenFiles;
use crate::counters::Counters;
use crate::source::{EntryKind, Permissions};

const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// To open a file for reading. NONBLOCK: the open of a pipe, which may have taken the place of a file, must not wait.
const CONTENT: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY).union(OFlags::NONBLOCK);
/// Attempts to open something for which there is no descriptor, or that another program is just giving up, and the
/// time between two of them.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(20);
const ENTRIES: usize = 32 << 10;

type Opened = rustix::io::Result<OwnedFd>;

/// The top of a source: a folder. A single file may name files beside it: its top is the folder that it is in.
pub(super) struct SourceRoot {
    root: PathBuf,
    anywhere: bool,
    asks_permissions: bool,
    has_openat2: bool,
    pub(super) files: OpenFiles,
    pub(super) counters: Arc<Counters>,
}

/// A file or folder that a path led to, as it was then.
pub(super) struct Found {
    handle: File,
    pub(super) metadata: Metadata,
    /// Its path, without links as far as the kernel tells.
    pub(super) path: PathBuf,
    /// Whether there was a link on the way to it, or that is unknown.
    pub(super) by_links: bool,
}

impl SourceRoot {
    /// The folder `root`, or that of the file `root`, and what lies below it; links that lead elsewhere are followed if `anywhere`. Asks
    /// who may read what if `asks_permissions`. Reads are counted in `counters`.
    pub(super) fn new(root: &Path, anywhere: bool, asks_permissions: bool, counters: Arc<Counters>) -> Self {
        let mut root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        if root.is_file() {
            root.pop();
        }
        Self { root, anywhere, asks_permissions, has_openat2: true, files: OpenFiles::new(), counters }
    }

    /// Returns the place that a path leads to. `None` if it is outside of the source; also if nothing is there and the
    /// way would have led out of the source, so that nothing tells what there is outside.
    pub(super) fn locate(&self, path: &Path) -> io::Result<Option<Found>> {
        match self.open_plainly(path, PLACE) {
            Some(handle) => Found::new(handle?, path.to_owned(), false).map(Some),
            None => self.locate_by_links(CWD, path, path),
        }
    }

    /// Returns the place that a path of the user's choice leads to, wherever that is.
    pub(super) fn base(&self, path: &Path) -> io::Result<Found> {
        Found::new(self.openat(CWD, path, PLACE)?, path.to_owned(), false)
    }

    /// Returns the place that `name`, a path without `..`, leads to in a folder, as [`SourceRoot::locate`] does.
    pub(super) fn locate_in(&self, folder: &Found, name: &Path) -> io::Result<Option<Found>> {
        let path = folder.path.join(name);
        let mut parts = name.components();
        if let (Some(Component::Normal(_)), None) = (parts.next(), parts.next()) {
            let handle = self.openat(folder.handle(), name, PLACE | OFlags::NOFOLLOW)?;
            let place = Found::new(handle, path, folder.by_links)?;
            if !place.metadata.is_symlink() {
                return Ok(Some(place));
            }
            return self.locate_by_links(folder.handle(), name, &place.path);
        }
        match self.open_without_links(folder.handle(), name, (PLACE, ResolveFlags::BENEATH)) {
            Some(handle) => Found::new(handle?, path, folder.by_links).map(Some),
            None => self.locate_by_links(folder.handle(), name, &path),
        }
    }

    /// Returns the rights to a place, if permissions are asked for. Where links have led to it, a user also needs the
    /// right to search the folders on the straight way from the source to it.
    pub(super) fn permissions(&self, place: &Found) -> Option<Permissions> {
        let own = self.own_permissions(place)?;
        Some(if place.by_links { own.restrict(self.way((self.top_of(&place.path), None), place)) } else { own })
    }

    /// Returns the rights to a place by its own mode, if permissions are asked for.
    pub(super) fn own_permissions(&self, place: &Found) -> Option<Permissions> {
        self.asks_permissions.then(|| Permissions::from_file(place.handle(), &place.metadata))
    }

    /// Returns the folder from which all ways to a path begin: the source, or the root of the machine.
    pub(super) fn top_of(&self, path: &Path) -> &Path {
        if path.starts_with(&self.root) { &self.root } else { Path::new("/") }
    }

    /// Returns the right to go from a folder to a place: to search all folders between the two. One after the other is
    /// opened, so that what is judged is what lies between them, whatever is renamed meanwhile. Returns no rights if
    /// the place is not there, or the folder at the path `top` has not the device and inode number of `is`.
    pub(super) fn way(&self, (top, is): (&Path, Option<(u64, u64)>), place: &Found) -> Permissions {
        let walk = || -> io::Result<Permissions> {
            let mut way = Permissions { mode: 0o555, ..Permissions::NONE };
            let below = place.path.strip_prefix(top).map_err(io::Error::other)?;
            let mut folder = self.openat(CWD, top, PLACE)?;
            if let Some(is) = is {
                let found = fstat(&folder)?;
                if (found.st_dev, found.st_ino) != is {
                    return Err(Errno::STALE.into());
                }
            }
            let mut parts = below.components().peekable();
            while let Some(part) = parts.next() {
                let next = self.openat(folder.as_fd(), part.as_ref(), PLACE | OFlags::NOFOLLOW)?;
                let next = Found::new(next, PathBuf::new(), false)?;
                if parts.peek().is_some() {
                    way = Permissions::from_file(next.handle(), &next.metadata).beyond().restrict(way);
                } else if next.inode() != place.inode() {
                    return Err(Errno::NOENT.into());
                }
                folder = next.handle.into();
            }
            Ok(way)
        };
        walk().unwrap_or(Permissions::NONE)
    }

    /// Like [`SourceRoot::locate_in`], but `None` for whatever is on another file system, which may hang.
    pub(super) fn locate_beside(&self, folder: &Found, name: &Path) -> io::Result<Option<Found>> {
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
        let handle = match self.openat2(folder.handle(), name, (PLACE, resolve)) {
            Err(Errno::NOSYS | Errno::PERM) => self.open_beside(folder, name),
            handle => handle,
        };
        match handle {
            Err(Errno::XDEV) => Ok(None),
            handle => self.judge(handle?, &folder.path.join(name)),
        }
    }

    /// Opens a path in a folder on kernels or in sandboxes without `openat2`: follows no link.
    fn open_beside(&self, folder: &Found, name: &Path) -> Opened {
        let mount = mount_of(folder.handle());
        let mut opened: Option<OwnedFd> = None;
        for part in name.components() {
            let at = opened.as_ref().map_or(folder.handle(), |folder| folder.as_fd());
            let next = self.openat(at, part.as_ref(), PLACE | OFlags::NOFOLLOW)?;
            if mount_of(next.as_fd()) != mount || !matches!(part, Component::Normal(_)) {
                return Err(Errno::XDEV);
            }
            opened = Some(next);
        }
        opened.ok_or(Errno::NOENT)
    }

    pub(super) fn open(&self, place: &Found) -> io::Result<File> {
        if !place.metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let path = format!("/proc/self/fd/{}", place.handle.as_raw_fd());
        match self.openat(CWD, path.as_ref(), CONTENT) {
            // there is no /proc
            Err(Errno::NOENT) if !place.by_links => {
                self.open_plain_file(&place.path).unwrap_or(Err(Errno::NOENT.into()))
            }
            file => without_nonblock(file?),
        }
    }

    /// Opens the regular file at a path that has no links in it; `None` if it may have some.
    pub(super) fn open_plain_file(&self, path: &Path) -> Option<io::Result<File>> {
        let regular = |opened: Opened| {
            let file = File::from(opened?);
            match file.metadata()?.is_file() {
                true => without_nonblock(file.into()),
                false => Err(io::Error::other("not a regular file")),
            }
        };
        self.open_plainly(path, CONTENT).map(regular)
    }

    /// Opens the regular file that the links of a path lead to, and returns it with its path without links; `None` as
    /// in [`SourceRoot::locate`].
    pub(super) fn open_linked_file(&self, path: &Path) -> io::Result<Option<(File, PathBuf)>> {
        self.locate_by_links(CWD, path, path)?.map(|place| Ok((self.open(&place)?, place.path))).transpose()
    }

    pub(super) fn visit(&self, folder: &Found, mut visit: impl FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = self.openat(folder.handle(), ".".as_ref(), flags)?;
        let mut buffer = Vec::with_capacity(ENTRIES);
        let mut entries = RawDir::new(&folder, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // a file system that does not tell
                FileType::Unknown => statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
                kind => kind,
            };
            if !visit(OsStr::from_bytes(name.to_bytes()), kind_of(kind)) {
                break;
            }
        }
        Ok(())
    }

    /// Opens a path that has no links in it; `None` if it may have some, or leads out of the source by its name.
    fn open_plainly(&self, path: &Path, flags: OFlags) -> Option<Opened> {
        let is_below = path.is_absolute() && (self.anywhere || path.starts_with(&self.root));
        if !is_below || path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        self.open_without_links(CWD, path, (flags, ResolveFlags::empty()))
    }

    /// Opens a path if it has no links in it, and `None` if it has or that is unknown.
    fn open_without_links(&self, at: BorrowedFd, path: &Path, how: (OFlags, ResolveFlags)) -> Option<Opened> {
        match self.openat2(at, path, (how.0, how.1 | ResolveFlags::NO_SYMLINKS)) {
            Err(Errno::LOOP | Errno::XDEV | Errno::NOSYS | Errno::PERM) => None,
            opened => Some(opened),
        }
    }

    /// Follows the links of a path, relative to `at`, and judges where they lead. `name` is the path with all folders.
    /// Those of /proc/PID, which lead to where other processes have their mounts, lead out of every source: there the
    /// kernel tells a path as that process has it.
    fn locate_by_links(&self, at: BorrowedFd, path: &Path, name: &Path) -> io::Result<Option<Found>> {
        let resolve = if self.anywhere { ResolveFlags::empty() } else { ResolveFlags::NO_MAGICLINKS };
        let opened = match self.openat2(at, path, (PLACE, resolve)) {
            Err(Errno::NOSYS | Errno::PERM) => match self.openat(at, path, PLACE) {
                Ok(handle) if !self.anywhere && !is_mounted_here(handle.as_fd()) => Err(Errno::LOOP),
                opened => opened,
            },
            opened => opened,
        };
        match opened {
            Ok(handle) => self.judge(handle, name),
            Err(e) if self.anywhere || is_out_of_descriptors(e) || self.stays_below(name) => Err(e.into()),
            Err(_) => Ok(None),
        }
    }

    /// Returns the place that was opened at a path, if the kernel says that it is below the source.
    fn judge(&self, handle: OwnedFd, path: &Path) -> io::Result<Option<Found>> {
        let real = readlinkat(CWD, format!("/proc/self/fd/{}", handle.as_raw_fd()), Vec::new());
        let real = real.map(|real| PathBuf::from(OsString::from_vec(real.into_bytes())));
        let real = match real {
            Err(_) if self.anywhere => path.to_owned(),
            real => real.map_err(|e| io::Error::other(format!("where a link leads is unknown without /proc: {e}")))?,
        };
        if !self.anywhere && !real.starts_with(&self.root) {
            return Ok(None);
        }
        Found::new(handle, real, true).map(Some)
    }

    /// Returns whether a path that leads to nothing is known not to leave the source on its way.
    fn stays_below(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.root) else { return false };
        if below.as_os_str().is_empty() {
            return false;
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let root = self.openat(CWD, &self.root, PLACE);
        match root.and_then(|root| self.openat2(root.as_fd(), below, (PLACE, resolve))) {
            Err(Errno::NOSYS | Errno::PERM) => self.has_no_link_at(path),
            Err(Errno::XDEV | Errno::AGAIN) => false,
            _ => true,
        }
    }

    /// Returns whether the part of a path where the way ends is in the source, and is no link.
    fn has_no_link_at(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        match self.locate(parent) {
            Ok(Some(folder)) => !statat(&folder.handle, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_symlink()),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    fn openat(&self, at: BorrowedFd, path: &Path, flags: OFlags) -> Opened {
        self.retrying(|| openat(at, path, flags, Mode::empty()))
    }

    fn openat2(&self, at: BorrowedFd, path: &Path, (flags, resolve): (OFlags, ResolveFlags)) -> Opened {
        if !self.has_openat2 {
            return Err(Errno::NOSYS);
        }
        self.retrying(|| openat2(at, path, flags, Mode::empty(), resolve))
    }

    /// Calls `open`, again if there was no descriptor left: files that nothing reads are closed then. Also again if
    /// another program has a lease on the file, which it is asked to give up.
    fn retrying(&self, open: impl Fn() -> Opened) -> Opened {
        for _ in 1..ATTEMPTS {
            match open() {
                Err(Errno::INTR) => {}
                Err(e) if is_out_of_descriptors(e) => {
                    if !self.files.close_idle() {
                        // others need theirs for a moment only
                        thread::sleep(PAUSE);
                    }
                }
                Err(Errno::AGAIN) => thread::sleep(PAUSE),
                opened => return opened,
            }
        }
        open()
    }
}

impl Found {
    pub(super) fn new(handle: OwnedFd, path: PathBuf, by_links: bool) -> io::Result<Self> {
        let handle = File::from(handle);
        let metadata = handle.metadata()?;
        Ok(Self { handle, metadata, path, by_links })
    }

    pub(super) fn inode(&self) -> (u64, u64) {
        (self.metadata.dev(), self.metadata.ino())
    }

    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

pub(super) fn kind_of(file: FileType) -> EntryKind {
    match file {
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Link,
        FileType::RegularFile => EntryKind::File,
        _ => EntryKind::Other,
    }
}

/// Returns whether an error means that the process, or the system, has no descriptor left.
fn is_out_of_descriptors(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE)
}

/// Returns the number of the mount that a file was opened on, if the kernel tells.
fn mount_of(file: BorrowedFd) -> Option<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// Returns whether a file is on one of the mounts of this process, as far as the kernel tells.
fn is_mounted_here(file: BorrowedFd) -> bool {
    let Some(mount) = mount_of(file).map(|number| number.to_string()) else { return true };
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    mounts.split(|byte| *byte == b'\n').any(|line| line.split(|byte| *byte == b' ').next() == Some(mount.as_bytes()))
}

/// Makes reads of a file wait, which matters for file systems of other programs.
fn without_nonblock(file: OwnedFd) -> io::Result<File> {
    // of the flags that can be changed this is the only one that was set
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::time::Instant;

    use rustix::fs::fcntl_getfl;

    use super::*;
    use crate::test_support::exchange::Exchange;

    impl SourceRoot {
        /// A root on a kernel without `openat2`.
        pub(in crate::source::local) fn without_openat2(root: &Path) -> Self {
            Self { has_openat2: false, ..Self::new(root, false, false, Arc::default()) }
        }

        /// Opens a file as a dataset that is a folder does.
        fn open_file(&self, path: &Path) -> io::Result<Option<File>> {
            match self.open_plain_file(path) {
                Some(file) => file.map(Some),
                None => Ok(self.open_linked_file(path)?.map(|(file, _)| file)),
            }
        }
    }

    fn below(root: &Path, anywhere: bool) -> SourceRoot {
        SourceRoot::new(root, anywhere, false, Arc::default())
    }

    /// A source, and a folder outside of it.
    struct Sample {
        folder: tempfile::TempDir,
    }

    impl Sample {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in ["root", "root/a", "roots", "other"] {
                fs::create_dir(folder.path().join(name)).unwrap();
            }
            for (name, content) in [("root/a/x", "inside"), ("roots/x", "outside"), ("other/x", "outside")] {
                fs::write(folder.path().join(name), content).unwrap();
            }
            Self { folder }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.folder.path().canonicalize().unwrap().join(name)
        }

        fn link(&self, target: impl AsRef<Path>, name: &str) {
            symlink(target, self.at(name)).unwrap();
        }

        /// The source as kernels with and without `openat2` show it.
        fn roots(&self) -> [SourceRoot; 2] {
            [below(&self.at("root"), false), SourceRoot::without_openat2(&self.at("root"))]
        }

        /// Exchanges two names without pause while `look` is called for `time`. In the end each is where it was.
        fn exchange(&self, one: &str, other: &str, time: Duration, mut look: impl FnMut()) {
            let _exchange = Exchange::begin(File::open(self.folder.path()).unwrap(), one, other);
            let began = Instant::now();
            while began.elapsed() < time {
                look();
            }
        }
    }

    fn text(file: File) -> String {
        let mut text = String::new();
        (&file).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn links_are_followed_if_they_stay_below_the_root() {
        let sample = Sample::new();
        sample.link("../other", "root/out");
        sample.link("../roots", "root/sibling");
        sample.link("a", "root/in");
        sample.link(sample.at("root/a"), "root/absolute");
        sample.link("../other/../root/a", "root/out-and-in");
        sample.link("root", "link");
        let through_link = [below(&sample.at("link"), false)];
        for root in through_link.into_iter().chain(sample.roots()) {
            for name in ["root/a", "root/in", "root/absolute", "root/out-and-in", "link/a", "root/out/../root/a"] {
                let place = root.locate(&sample.at(name)).unwrap().unwrap();
                assert_eq!(place.path, sample.at("root/a"), "{name}");
                assert_eq!(text(root.open_file(&sample.at(name).join("x")).unwrap().unwrap()), "inside", "{name}");
                let file = root.locate_in(&place, Path::new("x")).unwrap().unwrap();
                assert_eq!(text(root.open(&file).unwrap()), "inside", "{name}");
            }
            for name in ["root/out", "root/sibling", "other", "root/..", "root/out/x", "roots/x"] {
                assert!(root.locate(&sample.at(name)).unwrap().is_none(), "{name}");
            }
            let top = root.locate(&sample.at("root")).unwrap().unwrap();
            for name in ["out", "out/x", "sibling/x"] {
                assert!(root.locate_in(&top, Path::new(name)).unwrap().is_none(), "{name}");
            }
            assert!(root.locate_in(&top, Path::new("in/x")).unwrap().is_some());
        }
        let anywhere = below(&sample.at("root"), true);
        assert_eq!(anywhere.locate(&sample.at("root/out")).unwrap().unwrap().path, sample.at("other"));
        assert_eq!(text(anywhere.open_file(&sample.at("root/out/x")).unwrap().unwrap()), "outside");
    }

    #[test]
    fn links_to_the_mounts_of_another_process_lead_out_of_the_source() {
        let sample = Sample::new();
        let file = sample.at("root/a/x");
        // there, another file is what its path is here
        let script =
            format!("mount --bind {} {} && echo mounted && read end", sample.at("other/x").display(), file.display());
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
        let Ok(mut other) = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
            return;
        };
        let mut line = String::new();
        BufReader::new(other.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line == "mounted\n" {
            sample.link(format!("/proc/{}/root{}", other.id(), file.display()), "root/link");
            assert_eq!(fs::read_to_string(sample.at("root/link")).unwrap(), "outside");
            for root in sample.roots() {
                assert!(root.locate(&sample.at("root/link")).unwrap().is_none());
                assert!(root.open_file(&sample.at("root/link")).unwrap().is_none());
                let top = root.locate(&sample.at("root")).unwrap().unwrap();
                assert!(root.locate_in(&top, Path::new("link")).unwrap().is_none());
            }
        }
        // it ends with its input
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    #[test]
    fn nothing_tells_whether_a_path_outside_exists() {
        let sample = Sample::new();
        sample.link(sample.at("other/x"), "root/there");
        sample.link(sample.at("other/y"), "root/not there");
        sample.link(sample.at("other"), "root/folder");
        sample.link(sample.at("another"), "root/no folder");
        sample.link("/root/.profile", "root/not allowed");
        for root in sample.roots() {
            for name in
                ["there", "not there", "folder/x", "folder/y", "no folder/x", "not allowed", "../other/y", "../y/../a"]
            {
                let path = sample.at("root").join(name);
                assert!(matches!(root.locate(&path), Ok(None)), "{name}");
                assert!(matches!(root.open_file(&path), Ok(None)), "{name}");
            }
            assert!(matches!(root.locate(Path::new("/nowhere")), Ok(None)));
        }
        let [root, _] = sample.roots();
        assert_eq!(root.locate(&sample.at("root/b")).err().unwrap().kind(), io::ErrorKind::NotFound, "inside it may");
    }

    #[test]
    fn a_name_that_is_exchanged_with_a_link_never_leads_out() {
        const TIME: Duration = Duration::from_millis(500);
        let sample = Sample::new();
        sample.link(sample.at("other/x"), "root/a/link");
        sample.link(sample.at("other"), "root/b");
        for root in sample.roots() {
            let mut counts = [0; 2];
            let mut check = |file: io::Result<Option<File>>| {
                let inside = file.unwrap().is_some_and(|file| {
                    assert_eq!(text(file), "inside");
                    true
                });
                counts[usize::from(inside)] += 1;
            };
            sample.exchange("root/a/x", "root/a/link", TIME, || check(root.open_file(&sample.at("root/a/x"))));
            sample.exchange("root/a", "root/b", TIME, || {
                check(root.locate(&sample.at("root/a/x")).and_then(|place| place.map(|p| root.open(&p)).transpose()));
                let folder = root.locate(&sample.at("root/a")).unwrap();
                let found =
                    folder.map(|folder| root.locate_in(&folder, Path::new("x")).map(Option::unwrap)).transpose();
                check(found.and_then(|place| place.map(|p| root.open(&p)).transpose()));
            });
            assert!(counts.iter().all(|n| *n > 20), "outside and inside: {counts:?}");
        }
    }

    #[test]
    fn a_pipe_that_takes_the_place_of_a_file_holds_nobody_up() {
        let sample = Sample::new();
        let made = Command::new("mkfifo").arg(sample.at("root/a/pipe")).status();
        assert!(made.unwrap().success());
        let (done, finished) = mpsc::channel();
        thread::spawn(move || {
            for root in sample.roots() {
                let (mut files, mut pipes) = (0, 0);
                sample.exchange("root/a/x", "root/a/pipe", Duration::from_millis(300), || {
                    match root.open_file(&sample.at("root/a/x")) {
                        Ok(file) => files += usize::from(text(file.unwrap()) == "inside"),
                        Err(_) => pipes += 1,
                    }
                });
                done.send((files, pipes)).unwrap();
            }
        });
        for _ in 0..2 {
            let (files, pipes) = finished.recv_timeout(Duration::from_secs(20)).expect("an open waits for ever");
            assert!(files > 0 && pipes > 0);
        }
    }

    #[test]
    fn a_file_can_be_read_in_the_ordinary_way() {
        let sample = Sample::new();
        for root in sample.roots() {
            let file = root.open_file(&sample.at("root/a/x")).unwrap().unwrap();
            assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK));
            assert!(root.open_file(&sample.at("root/a")).is_err(), "a folder");
        }
    }

    /// A file system mounted by a test; unmounted when dropped.
    struct Mounted(PathBuf);

    impl Mounted {
        /// Mounts a file system in memory; `None` if this user may not.
        fn at(place: PathBuf) -> Option<Self> {
            let (kind, none) = (Some("tmpfs"), None::<&str>);
            nix::mount::mount(kind, &place, kind, nix::mount::MsFlags::empty(), none).ok().map(|()| Self(place))
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
        }
    }

    #[test]
    fn what_is_mounted_beside_a_file_is_left_alone() {
        let sample = Sample::new();
        fs::create_dir_all(sample.at("root/a/mounted")).unwrap();
        let Some(mounted) = Mounted::at(sample.at("root/a/mounted")) else { return };
        fs::write(mounted.0.join("x"), "elsewhere").unwrap();
        for root in sample.roots() {
            let top = root.locate(&sample.at("root")).unwrap().unwrap();
            let beside = |name: &str| root.locate_beside(&top, Path::new(name)).unwrap().map(|place| place.path);
            assert_eq!(beside("a/x"), Some(sample.at("root/a/x")));
            assert_eq!(beside("a"), Some(sample.at("root/a")));
            for name in ["a/mounted", "a/mounted/x"] {
                assert_eq!(beside(name), None, "{name}");
            }
        }
    }
}
