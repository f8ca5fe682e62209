//! The folder of a disk cache: its owner, the files in it, the folders of its writers, and reads by means of the index.
//!
//! | name | |
//! |---|---|
//! | `CACHEDIR.TAG` | what backup programs know caches by; with a line that says that it is one of volfs |
//! | `000` to `fff` | folders of files: see [`StoredRange`] |
//! | `writers` | a folder for each process that writes: see [`WriterFolder`] |

use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock,
    fstat, futimens, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use thiserror::Error;

use super::eviction::{DAMAGED, Index, LastUsed};
use super::format::{self, CacheKey, StoredRange, Unread, read_shard_name, shard, shard_before, shard_name};
use crate::logging::warn_seldom;
use crate::safe_open::{self, OpenError};
use crate::sync::Mutex;

/// The name of the marker, by <https://bford.info/cachedir/>.
const TAG: &str = "CACHEDIR.TAG";
const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55";
/// How its second line begins in a cache of volfs: other programs mark theirs as well.
const OURS: &str = "# A disk cache of volfs";
/// The rest of that line. Another version may say it in other words.
const HELP: &str = ", version 1. To empty it type: volfs cache --clear DIR";
const WRITERS: &str = "writers";
/// Folders that file systems make in their top folder.
const ALLOWED: &[&str] = &["lost+found"];
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How often a folder is made that is removed before it is locked, and how often a read begins anew since a file that
/// the index has is gone.
const TRIES: usize = 16;
const READ_TRIES: usize = 4;
/// Seconds after which a folder surely gets another time when it changes.
const SETTLED: i64 = 2;

#[derive(Debug, Error)]
pub(crate) enum DiskCacheError {
    #[error("cannot {doing} the disk cache {}: {error}", dir.display())]
    Io { doing: &'static str, dir: PathBuf, error: io::Error },
    /// There is nothing that could be shown or cleared.
    #[error("{} is not a disk cache of volfs: it has no CACHEDIR.TAG of volfs", .0.display())]
    NoCache(PathBuf),
    /// The folder is not empty, and volfs did not make it. `name` is one of the files.
    #[error("{} holds files that are not of a disk cache, such as {name}; give an empty folder, or one that does not exist", dir.display())]
    ForeignFiles { dir: PathBuf, name: String },
    #[error("the disk cache {} belongs to another user (id {owner}); give a folder of your own", dir.display())]
    OtherOwner { dir: PathBuf, owner: u32 },
    #[error("the disk cache {} is a link that belongs to another user (id {owner}); give a folder of your own", dir.display())]
    OthersLink { dir: PathBuf, owner: u32 },
    /// Others could put data into the folder.
    #[error("other users may write to the disk cache {dir}; type: chmod 700 {dir}", dir = .0.display())]
    WritableByOthers(PathBuf),
}

impl DiskCacheError {
    pub(super) fn io(doing: &'static str, dir: impl Into<PathBuf>, error: impl Into<io::Error>) -> Self {
        Self::Io { doing, dir: dir.into(), error: error.into() }
    }
}

/// What a folder is that a cache is to be in.
enum Content {
    Cache,
    /// A cache without its marker, or with a part of it.
    Unmarked,
    Nothing,
    /// Anything else; one of the names in it.
    Foreign(String),
}

#[derive(Debug)]
pub(super) struct CacheFolder {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
}

impl CacheFolder {
    /// Opens a folder that is a cache, or makes it one if it is empty or absent.
    pub(super) fn create(path: &Path) -> Result<Self, DiskCacheError> {
        let path = std::path::absolute(path).map_err(|error| DiskCacheError::io("find", path, error))?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| DiskCacheError::io("make", &path, error))?;
        let folder = Self::open_any(path)?;
        folder.check_owner()?;
        match folder.content()? {
            Content::Cache => {}
            Content::Nothing | Content::Unmarked => {
                folder.write_tag().map_err(|error| DiskCacheError::io("write to", &folder.path, error))?;
            }
            Content::Foreign(name) => return Err(DiskCacheError::ForeignFiles { dir: folder.path, name }),
        }
        match mkdirat(&folder.fd, WRITERS, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(folder),
            Err(error) => Err(DiskCacheError::io("write to", folder.path, error)),
        }
    }

    pub(super) fn open(path: &Path) -> Result<Self, DiskCacheError> {
        let folder = Self::open_any(path.to_owned())?;
        match folder.content()? {
            Content::Cache | Content::Unmarked => Ok(folder),
            Content::Nothing | Content::Foreign(_) => Err(DiskCacheError::NoCache(folder.path)),
        }
    }

    fn open_any(path: PathBuf) -> Result<Self, DiskCacheError> {
        match safe_open::open(&path, FOLDER, Mode::empty()) {
            Ok(opened) => Ok(Self { fd: opened.fd, path }),
            Err(OpenError::OthersLink(owner)) => Err(DiskCacheError::OthersLink { dir: path, owner }),
            Err(OpenError::System(error)) => Err(DiskCacheError::io("open", path, error)),
        }
    }

    /// Refuses a folder that others own or may write to: they could put bytes into it.
    fn check_owner(&self) -> Result<(), DiskCacheError> {
        let stat = fstat(&self.fd).map_err(|error| DiskCacheError::io("look at", &self.path, error))?;
        if stat.st_uid != geteuid().as_raw() {
            return Err(DiskCacheError::OtherOwner { dir: self.path.clone(), owner: stat.st_uid });
        }
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
            return Err(DiskCacheError::WritableByOthers(self.path.clone()));
        }
        Ok(())
    }

    /// Returns the first bytes of the marker; `None` if there is none.
    fn tag(&self) -> Result<Option<Vec<u8>>, DiskCacheError> {
        let failed = |error| DiskCacheError::io("read", &self.path, error);
        let tag = match openat(&self.fd, TAG, format::READ, Mode::empty()) {
            Ok(tag) => File::from(tag),
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(failed(error.into())),
        };
        let mut text = Vec::new();
        tag.take(4096).read_to_end(&mut text).map_err(failed)?;
        Ok(Some(text))
    }

    /// Returns what the folder is, by its marker. A power cut may take the marker of a cache, or leave a part of it or
    /// zeros in its place: then the names in the folder tell.
    fn content(&self) -> Result<Content, DiskCacheError> {
        let mark = format!("{SIGNATURE}\n{OURS}").into_bytes();
        let is_whole = |tag: &Option<Vec<u8>>| tag.as_ref().is_some_and(|tag| tag.starts_with(&mark));
        if is_whole(&self.tag()?) {
            return Ok(Content::Cache);
        }
        let names = names(&self.fd, ".").map_err(|error| DiskCacheError::io("list", &self.path, error))?;
        // another process may have written its marker in the meantime
        let tag = self.tag()?;
        if is_whole(&tag) {
            return Ok(Content::Cache);
        }
        let is_folder = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let was_ours = self.stat(WRITERS).is_some_and(is_folder);
        // without its second line it may be that of any program
        let is_torn = tag.is_some_and(|tag| {
            tag.iter().zip(&mark).all(|(byte, ours)| byte == ours || *byte == 0)
                && (was_ours || !tag.starts_with(SIGNATURE.as_bytes()))
        });
        let is_allowed = |name: &&str| match *name {
            TAG => is_torn,
            WRITERS => was_ours,
            name if ALLOWED.contains(&name) || name.starts_with(".volfs-tag-") => true,
            name => was_ours && read_shard_name(name).is_some(),
        };
        Ok(match names.iter().map(String::as_str).find(|name| !is_allowed(name)) {
            Some(name) => Content::Foreign(name.to_owned()),
            None if was_ours => Content::Unmarked,
            None => Content::Nothing,
        })
    }

    fn write_tag(&self) -> io::Result<()> {
        let temporary = format!(".volfs-tag-{}-{:x}", process::id(), random());
        let text = format!("{SIGNATURE}\n{OURS}{HELP}\n");
        write_whole(&self.fd, &temporary, &[text.as_bytes()], |file| {
            // that it survives a power cut; where that cannot be asked for, it is written again after one
            let _ = file.sync_data();
            renameat(&self.fd, &temporary, &self.fd, TAG)
        })
    }

    pub(super) fn shards(&self) -> rustix::io::Result<Vec<usize>> {
        let mut shards: Vec<usize> = names(&self.fd, ".")?.iter().filter_map(|name| read_shard_name(name)).collect();
        shards.sort_unstable();
        Ok(shards)
    }

    /// Returns the files of a folder, in order, and how many names in it are not of files of ours.
    pub(super) fn files(&self, shard: usize) -> rustix::io::Result<(Vec<StoredRange>, usize)> {
        let names = match names(&self.fd, &shard_name(shard)) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok((Vec::new(), 0)),
            names => names?,
        };
        let mut files: Vec<StoredRange> = names.iter().filter_map(|name| StoredRange::from_name(shard, name)).collect();
        files.sort_unstable();
        let foreign = names.len() - files.len();
        Ok((files, foreign))
    }

    fn stat(&self, path: &str) -> Option<Stat> {
        statat(&self.fd, path, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Removes the file of a range. That it is gone already is no failure.
    pub(super) fn remove(&self, range: StoredRange) -> rustix::io::Result<()> {
        let removed = match unlinkat(&self.fd, range.path(), AtFlags::empty()) {
            // somebody made a folder of this name
            Err(Errno::ISDIR) => unlinkat(&self.fd, range.path(), AtFlags::REMOVEDIR),
            removed => removed,
        };
        if removed == Err(Errno::NOENT) { Ok(()) } else { removed }
    }
}

/// Returns the names in a folder, but `.` and `..`. Names that are not UTF-8 are none of ours, and are left out.
fn names(at: &OwnedFd, folder: &str) -> rustix::io::Result<Vec<String>> {
    let mut names = Vec::new();
    // always another descriptor, since one has a position in the list that all threads would share
    for entry in Dir::new(openat(at, folder, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)? {
        let entry = entry?;
        names.extend(entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | "..")).map(str::to_owned));
    }
    Ok(names)
}

/// Writes a file under a temporary name, and has it renamed to its place. Nothing is left of it if that fails, as far
/// as the system allows it.
fn write_whole(
    folder: &OwnedFd,
    temporary: &str,
    parts: &[&[u8]],
    rename: impl FnOnce(&File) -> rustix::io::Result<()>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(openat(folder, temporary, flags, Mode::RUSR | Mode::WUSR)?);
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    let placed = written.and_then(|()| Ok(rename(&file)?));
    if placed.is_err() {
        let _ = unlinkat(folder, temporary, AtFlags::empty());
    }
    placed
}

fn modified(stat: &Stat) -> (i64, i64) {
    (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0))
}

fn random() -> u64 {
    RandomState::new().hash_one(process::id())
}

/// Where a process puts files that it has not yet written as a whole: a folder below `writers`, with a lock that ends
/// with the process. Numbers of processes would not tell processes apart, since each container has its own numbers. The
/// folder is removed when this is dropped.
#[derive(Debug)]
pub(super) struct WriterFolder {
    parent: OwnedFd,
    fd: OwnedFd,
    name: String,
    files: AtomicU64,
}

impl WriterFolder {
    /// Makes a folder in `writers` of the cache's folder, and removes those of processes that have ended.
    pub(super) fn create(cache: &CacheFolder) -> rustix::io::Result<Self> {
        let parent = openat(&cache.fd, WRITERS, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        remove_dead(&parent);
        for _ in 0..TRIES {
            let name = format!("{}-{:x}", process::id(), random());
            mkdirat(&parent, &name, Mode::RWXU)?;
            let Ok(fd) = openat(&parent, &name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) else { continue };
            // where the file system has no locks, no other process can take this one for dead either
            let locked = flock(&fd, FlockOperation::NonBlockingLockExclusive);
            if locked != Err(Errno::WOULDBLOCK) && is_same(&parent, &name, &fd) {
                return Ok(Self { parent, fd, name, files: AtomicU64::new(0) });
            }
        }
        Err(Errno::BUSY)
    }

    /// Writes the file of a range into the folder of the cache, in this folder at first.
    pub(super) fn write(&self, to: &CacheFolder, key: &CacheKey, range: StoredRange, bytes: &[u8]) -> io::Result<()> {
        // a name that was never used before
        let (name, path) = (self.files.fetch_add(1, Relaxed).to_string(), range.path());
        let rename = || renameat(&self.fd, &name, &to.fd, &path);
        write_whole(&self.fd, &name, &[&format::header(key, range, bytes), bytes], |_| match rename() {
            Err(Errno::NOENT) => match mkdirat(&to.fd, shard_name(range.shard()), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => rename(),
                error => error,
            },
            renamed => renamed,
        })
    }

    /// Returns when others last came or went, if none is there.
    pub(super) fn alone_since(&self) -> Option<(i64, i64)> {
        let changed = self.changed()?;
        names(&self.parent, ".").ok()?.iter().all(|name| *name == self.name).then_some(changed)
    }

    fn changed(&self) -> Option<(i64, i64)> {
        fstat(&self.parent).ok().as_ref().map(modified)
    }
}

impl Drop for WriterFolder {
    fn drop(&mut self) {
        remove_folder(&self.parent, &self.name, &self.fd);
    }
}

fn remove_dead(writers: &OwnedFd) {
    for name in names(writers, ".").unwrap_or_default() {
        let Ok(fd) = openat(writers, &name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) else { continue };
        if flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok() && is_same(writers, &name, &fd) {
            remove_folder(writers, &name, &fd);
        }
    }
}

/// Removes a folder and the files in it. What cannot be removed is left for the next process.
fn remove_folder(parent: &OwnedFd, name: &str, folder: &OwnedFd) {
    for file in names(folder, ".").unwrap_or_default() {
        let _ = unlinkat(folder, &file, AtFlags::empty());
    }
    let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
}

/// Returns whether a name is still that of an open folder.
fn is_same(parent: &OwnedFd, name: &str, folder: &OwnedFd) -> bool {
    let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
    let named = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(identity);
    matches!((named, fstat(folder).map(identity)), (Ok(a), Ok(b)) if a == b)
}

/// What a disk cache of this process has done since it was opened, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskCacheStatistics {
    pub(crate) hits: u64,
    pub(crate) hit_bytes: u64,
    pub(crate) misses: u64,
    pub(crate) missed_bytes: u64,
    pub(crate) written_bytes: u64,
    /// Ranges that were not written, since the disk is slow, full, or cannot be written to.
    pub(crate) dropped: u64,
    pub(crate) evicted: u64,
    /// Files that were not as they should be, and were removed.
    pub(crate) bad: u64,
    /// Bytes that the files of all processes take, as far as this one knows, and the number of these files.
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

pub(super) struct Files {
    pub(super) folder: CacheFolder,
    /// Made later where the disk is full at first.
    own: OnceLock<WriterFolder>,
    pub(super) index: Index,
    /// Without what the cache holds.
    pub(super) statistics: Mutex<DiskCacheStatistics>,
    /// When others last came or went, at the beginning of a scan that was finished in their absence.
    pub(super) alone_since: Mutex<Option<(i64, i64)>>,
}

impl Files {
    pub(super) fn new(folder: CacheFolder) -> Result<Self, DiskCacheError> {
        let files = Self {
            folder,
            own: OnceLock::new(),
            index: Index::new(),
            statistics: Mutex::default(),
            alone_since: Mutex::default(),
        };
        match files.own() {
            Ok(_) => {}
            Err(error @ (Errno::NOSPC | Errno::DQUOT)) => warn_seldom(&format!(
                "cannot write to the disk cache {}: {error}; it is read, and written to when that succeeds",
                files.folder.path.display()
            )),
            Err(error) => return Err(DiskCacheError::io("write to", &files.folder.path, error)),
        }
        Ok(files)
    }

    /// Returns the folder of this process, which is made if it is not there yet. Only for the thread that writes.
    pub(super) fn own(&self) -> rustix::io::Result<&WriterFolder> {
        if self.own.get().is_none() {
            // only one thread does so
            let _ = self.own.set(WriterFolder::create(&self.folder)?);
        }
        self.own.get().ok_or(Errno::BUSY)
    }

    /// Returns when others last came or went, if none is there.
    pub(super) fn no_others_since(&self) -> Option<(i64, i64)> {
        self.own.get()?.alone_since()
    }

    /// Fills `out` from the files of an object; `false` if they do not have all of it.
    pub(super) fn read(&self, key: &CacheKey, offset: u64, out: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(out.len() as u64) else { return false };
        for _ in 0..READ_TRIES {
            match self.index.cover(key.digest, offset, end) {
                Some(ranges) => match self.read_ranges(key, &ranges, offset, out) {
                    Ok(()) => return true,
                    Err(Unread::Failed(_)) => return false,
                    // the index no longer has it
                    Err(Unread::Absent | Unread::Bad) => {}
                },
                None if self.look_again(key.digest, offset, out.len()) => {}
                None => return false,
            }
        }
        false
    }

    /// Returns whether the files of an object have a range of it, as far as the index tells.
    pub(super) fn has(&self, key: &CacheKey, offset: u64, length: u64) -> bool {
        let Some(end) = offset.checked_add(length) else { return false };
        let is_covered = || self.index.cover(key.digest, offset, end).is_some();
        is_covered()
            || usize::try_from(length).is_ok_and(|length| self.look_again(key.digest, offset, length)) && is_covered()
    }

    fn read_ranges(&self, key: &CacheKey, ranges: &[StoredRange], offset: u64, out: &mut [u8]) -> Result<(), Unread> {
        let (mut at, mut rest) = (offset, out);
        for range in ranges {
            let length = usize::try_from(range.end() - at).unwrap_or(usize::MAX).min(rest.len());
            let (part, after) = rest.split_at_mut(length);
            self.read_range(key, *range, (at - range.offset) as usize, part)?;
            (at, rest) = (range.end(), after);
        }
        Ok(())
    }

    fn read_range(&self, key: &CacheKey, range: StoredRange, from: usize, out: &mut [u8]) -> Result<(), Unread> {
        let file = range.read(&self.folder.fd, key, from, out).inspect_err(|unread| match unread {
            Unread::Absent => drop(self.index.remove(range)),
            Unread::Bad => self.drop_bad(range),
            Unread::Failed(error) => {
                warn_seldom(&format!("cannot read the disk cache {}: {error}", self.folder.path.display()));
            }
        })?;
        let now = self.index.clock.now();
        if self.index.touch(range, now).is_some_and(|used| LastUsed::is_late(now, used)) {
            // on a file system that does not allow it, the file counts as older after a restart
            let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            let _ = futimens(&file, &Timestamps { last_access: omitted, last_modification: now });
        }
        Ok(())
    }

    fn drop_bad(&self, range: StoredRange) {
        self.statistics.lock().bad += 1;
        let place = self.folder.path.join(range.path());
        warn_seldom(&match self.folder.remove(range) {
            Ok(()) => {
                self.index.remove(range);
                format!("removed a damaged file of the disk cache: {}", place.display())
            }
            Err(error) => {
                self.index.touch(range, DAMAGED);
                format!("a file of the disk cache is damaged, and cannot be removed: {}: {error}", place.display())
            }
        });
    }

    /// Looks for files that other processes have written, and returns whether there is a new one near the range.
    fn look_again(&self, object: u64, offset: u64, length: usize) -> bool {
        let exact = u32::try_from(length).ok().map(|length| StoredRange { object, offset, length });
        if let Some((range, used)) = exact.and_then(|range| Some((range, self.used(range)?))) {
            return self.index.insert(range, used);
        }
        if !self.may_have_unknown_files() {
            return false;
        }
        let is_new = self.list(shard(object, offset), false);
        let is_new = shard_before(object, offset).is_some_and(|before| self.list(before, false)) || is_new;
        // another thread may have added it meanwhile
        is_new || self.index.cover(object, offset, offset.saturating_add(length as u64)).is_some()
    }

    /// Returns the tick at which a file was last used, from its time; `None` if it is not there.
    fn used(&self, range: StoredRange) -> Option<u32> {
        let stat = self.folder.stat(&range.path())?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then(|| self.index.clock.tick(modified(&stat)))
    }

    /// Adds the files of a folder that the index does not have, if the folder has changed since the last time; `true`
    /// if there is one. With `all` looks in any case, and removes files from the index that the folder does not have:
    /// only for the thread that writes, since what is written in the meantime would be forgotten.
    pub(super) fn list(&self, shard: usize, all: bool) -> bool {
        let modified = self.folder.stat(&shard_name(shard)).as_ref().map(modified);
        if !all && (modified.is_none() || modified == self.index.listed(shard)) {
            return false;
        }
        // a folder that cannot be read may have files as before
        let Ok((files, _)) = self.folder.files(shard) else { return false };
        if all {
            self.index.retain(shard, &files);
        }
        let new = self.index.unknown(shard, files);
        let new: Vec<_> = new.into_iter().filter_map(|range| Some((range, self.used(range)?))).collect();
        // what changes right after it was listed may get the time that it had
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_settled = |seconds: i64| seconds.saturating_add(SETTLED) < i64::try_from(now.as_secs()).unwrap_or(0);
        self.index.add(shard, &new, modified.filter(|(seconds, _)| is_settled(*seconds)))
    }

    /// Returns whether other processes may have written files since the last scan began.
    pub(super) fn may_have_unknown_files(&self) -> bool {
        let known = *self.alone_since.lock();
        known.is_none() || self.own.get().and_then(WriterFolder::changed) != known
    }
}
