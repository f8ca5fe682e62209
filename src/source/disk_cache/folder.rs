//! The folder of a disk cache: whose it is, and what is in it.
//!
//! | name | |
//! |---|---|
//! | `CACHEDIR.TAG` | what backup programs know caches by; with a line that says that it is one of volfs |
//! | `000` to `fff` | folders of files: see [`StoredRange`] |
//! | `writers` | a folder for each process that writes: see [`super::writer_folder`] |

use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::error::DiskCacheError;
use super::stored_range::{StoredRange, read_shard_name, shard_name};
use crate::safe_open::{self, OpenError};

/// The name of the marker, by <https://bford.info/cachedir/>.
const TAG: &str = "CACHEDIR.TAG";
/// What every such file begins with.
const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55";
/// How its second line begins where the cache is one of volfs: other programs mark theirs as well.
const OURS: &str = "# A disk cache of volfs";
/// What that line says besides. Another version may say it in other words.
const HELP: &str = ", version 1. To empty it type: volfs cache --clear DIR";

/// The folder of those who write.
pub(crate) const WRITERS: &str = "writers";

/// Folders of file systems, which are there in an empty one.
const ALLOWED: &[&str] = &["lost+found"];

/// How folders are opened.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The folder of a disk cache, held open.
#[derive(Debug)]
pub(crate) struct CacheFolder {
    fd: OwnedFd,
    path: PathBuf,
}

impl CacheFolder {
    /// Opens a folder that is a cache, or makes it one if it is empty or absent.
    pub(crate) fn create(path: &Path) -> Result<Self, DiskCacheError> {
        let path = std::path::absolute(path).map_err(|error| DiskCacheError::io("find", path, error))?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| DiskCacheError::io("make", &path, error))?;
        let folder = Self::of(path)?;
        folder.check_owner()?;
        if !folder.has_tag()? {
            folder.check_empty()?;
            folder.write_tag().map_err(|error| DiskCacheError::io("write to", &folder.path, error))?;
        }
        match mkdirat(&folder.fd, WRITERS, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(folder),
            Err(error) => Err(DiskCacheError::io("write to", folder.path, error)),
        }
    }

    /// Opens a folder that is a cache.
    pub(crate) fn open(path: &Path) -> Result<Self, DiskCacheError> {
        let folder = Self::of(path.to_owned())?;
        if folder.has_tag()? { Ok(folder) } else { Err(DiskCacheError::NoCache(folder.path)) }
    }

    fn of(path: PathBuf) -> Result<Self, DiskCacheError> {
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

    fn has_tag(&self) -> Result<bool, DiskCacheError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let failed = |error| DiskCacheError::io("read", &self.path, error);
        let tag = match openat(&self.fd, TAG, flags, Mode::empty()) {
            Ok(tag) => File::from(tag),
            Err(Errno::NOENT | Errno::LOOP) => return Ok(false),
            Err(error) => return Err(failed(error.into())),
        };
        let mut text = Vec::new();
        tag.take(4096).read_to_end(&mut text).map_err(failed)?;
        let mark = format!("{SIGNATURE}\n{OURS}");
        Ok(text.starts_with(mark.as_bytes()))
    }

    /// Refuses a folder with files in it. Another process may be about to write its marker.
    fn check_empty(&self) -> Result<(), DiskCacheError> {
        let entries = self.entries(".").map_err(|error| DiskCacheError::io("list", &self.path, error))?;
        let is_allowed = |name: &&str| ALLOWED.contains(name) || name.starts_with(".volfs-tag-");
        match entries.iter().map(String::as_str).find(|name| !is_allowed(name)) {
            Some(TAG) if self.has_tag()? => Ok(()),
            Some(name) => Err(DiskCacheError::ForeignFiles { dir: self.path.clone(), name: name.to_owned() }),
            None => Ok(()),
        }
    }

    fn write_tag(&self) -> io::Result<()> {
        let temporary = format!(".volfs-tag-{}-{:x}", std::process::id(), random());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.fd, &temporary, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file.write_all(format!("{SIGNATURE}\n{OURS}{HELP}\n").as_bytes());
        let renamed = written.and_then(|()| Ok(renameat(&self.fd, &temporary, &self.fd, TAG)?));
        if renamed.is_err() {
            let _ = unlinkat(&self.fd, &temporary, AtFlags::empty());
        }
        renamed
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names in a folder below, in no order. Names that are not UTF-8 are none of ours, and are left out.
    pub(crate) fn entries(&self, below: &str) -> rustix::io::Result<Vec<String>> {
        let fd = openat(&self.fd, below, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        entries(fd.as_fd())
    }

    /// Returns the numbers of the folders of files that there are.
    pub(crate) fn shards(&self) -> rustix::io::Result<Vec<usize>> {
        let mut shards: Vec<usize> = self.entries(".")?.iter().filter_map(|name| read_shard_name(name)).collect();
        shards.sort_unstable();
        Ok(shards)
    }

    /// Returns the files of a folder, in order, and how many names in it are not of files of ours.
    pub(crate) fn files(&self, shard: usize) -> rustix::io::Result<(Vec<StoredRange>, usize)> {
        let names = match self.entries(&shard_name(shard)) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok((Vec::new(), 0)),
            names => names?,
        };
        let mut files: Vec<StoredRange> = names.iter().filter_map(|name| StoredRange::read(shard, name)).collect();
        files.sort_unstable();
        let foreign = names.len() - files.len();
        Ok((files, foreign))
    }

    /// Returns when a folder of files was last changed, in seconds and nanoseconds since 1970; `None` if there is none.
    pub(crate) fn modified(&self, shard: usize) -> Option<(i64, i64)> {
        let stat = statat(&self.fd, shard_name(shard), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)))
    }

    /// Returns when a file was last used, in seconds and nanoseconds since 1970; `None` if there is none.
    pub(crate) fn used(&self, range: StoredRange) -> Option<(i64, i64)> {
        let stat = statat(&self.fd, range.path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)))
    }

    /// Removes the file of a range. That it is gone already is no failure.
    pub(crate) fn remove(&self, range: StoredRange) -> rustix::io::Result<()> {
        let removed = match unlinkat(&self.fd, range.path(), AtFlags::empty()) {
            // whoever made a folder of this name
            Err(Errno::ISDIR) => unlinkat(&self.fd, range.path(), AtFlags::REMOVEDIR),
            removed => removed,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for CacheFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the names in an open folder, but `.` and `..`.
pub(crate) fn entries(folder: BorrowedFd) -> rustix::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | "..")) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Returns a number that no other process has.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
