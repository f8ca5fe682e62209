//! What is in the folder of a disk cache, and how to empty it. Processes that use it may go on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use super::error::DiskCacheError;
use super::file_format::{is_file_good, read_opening};
use super::folder::CacheFolder;
use super::stored_range::{StoredRange, shard_name};
use super::writer_folder::WriterFolder;

/// Bytes of a file that hold all but its checksums.
const OPENING: u64 = 4096;

/// Bad files that are named.
const NAMED: usize = 100;

/// What is in a disk cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// What it has of each dataset, by store and key of the dataset.
    pub datasets: BTreeMap<(String, String), Kept>,
    /// Files that are not as they should be: nothing is read from them.
    pub bad: Kept,
    /// The paths of the first of these, below the folder.
    pub bad_names: Vec<String>,
    /// Names that are not of files of the cache.
    pub foreign: u64,
}

/// Files, and when they were last used: to within ten minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Their number.
    pub files: u64,
    /// The sum of their sizes.
    pub bytes: u64,
    /// When the one was last used that was not used for the longest time.
    pub oldest: Option<SystemTime>,
    /// When the one was used that was used last.
    pub newest: Option<SystemTime>,
}

impl Kept {
    /// Adds files.
    pub(crate) fn add(&mut self, other: &Self) {
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.oldest = [self.oldest, other.oldest].into_iter().flatten().min();
        self.newest = self.newest.max(other.newest);
    }
}

/// What was removed from a disk cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleared {
    /// Files.
    pub files: u64,
    /// Their sizes.
    pub bytes: u64,
    /// Names that are not of files of the cache, and were left alone.
    pub foreign: u64,
}

impl Survey {
    /// Looks at all files of the cache in a folder; with `check` reads them whole and compares their checksums.
    /// `progress` gets the number of files so far, and may return `false` to end it.
    pub(crate) fn of(dir: &Path, check: bool, mut progress: impl FnMut(u64) -> bool) -> Result<Self, DiskCacheError> {
        let folder = CacheFolder::open(dir)?;
        let failed = |error: rustix::io::Errno| DiskCacheError::io("read", dir, error);
        let (mut survey, mut seen) = (Self::default(), 0);
        for shard in folder.shards().map_err(failed)? {
            let (files, foreign) = folder.files(shard).map_err(failed)?;
            survey.foreign = survey.foreign.saturating_add(foreign as u64);
            for range in files {
                survey.look_at(&folder, range, check);
                seen += 1;
                if !progress(seen) {
                    return Ok(survey);
                }
            }
        }
        Ok(survey)
    }

    /// Returns all files together, but for the bad ones.
    pub(crate) fn total(&self) -> Kept {
        let mut total = Kept::default();
        self.datasets.values().for_each(|kept| total.add(kept));
        total
    }

    fn look_at(&mut self, folder: &CacheFolder, range: StoredRange, check: bool) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match openat(folder, range.path(), flags, Mode::empty()) {
            // evicted in the meantime
            Err(rustix::io::Errno::NOENT) => return,
            file => file.map(File::from),
        };
        let metadata = file.as_ref().ok().and_then(|file| file.metadata().ok());
        let used = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        let size = metadata.map_or(0, |metadata| metadata.len());
        let kept = Kept { files: 1, bytes: size, oldest: used, newest: used };
        match file.ok().and_then(|file| dataset_of(file, size, range, check)) {
            Some(dataset) => self.datasets.entry(dataset).or_default().add(&kept),
            None => {
                self.bad.add(&kept);
                if self.bad_names.len() < NAMED {
                    self.bad_names.push(range.path());
                }
            }
        }
    }
}

/// Returns the store and the dataset of a file; `None` if it is bad.
fn dataset_of(mut file: File, size: u64, range: StoredRange, check: bool) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    file.by_ref().take(OPENING).read_to_end(&mut bytes).ok()?;
    let opening = read_opening(&bytes, range).filter(|opening| opening.size == size)?;
    if check {
        file.read_to_end(&mut bytes).ok()?;
        if !is_file_good(&bytes, range) {
            return None;
        }
    }
    Some((opening.names.store, opening.names.dataset))
}

impl Cleared {
    /// Removes all files of the cache in a folder, which stays a cache. Whatever else is in the folder is left alone.
    pub(crate) fn of(dir: &Path) -> Result<Self, DiskCacheError> {
        let folder = CacheFolder::open(dir)?;
        let failed = |error: rustix::io::Errno| DiskCacheError::io("clear", dir, error);
        // removes what processes have left that were killed; those that go on see that somebody was here
        let _writer = WriterFolder::create(&folder).map_err(failed)?;
        let mut cleared = Self::default();
        for shard in folder.shards().map_err(failed)? {
            let (files, foreign) = folder.files(shard).map_err(failed)?;
            cleared.foreign = cleared.foreign.saturating_add(foreign as u64);
            for range in files {
                let size =
                    rustix::fs::statat(&folder, range.path(), AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_size);
                folder.remove(range).map_err(failed)?;
                cleared.files += 1;
                cleared.bytes =
                    cleared.bytes.saturating_add(size.ok().and_then(|n| u64::try_from(n).ok()).unwrap_or(0));
            }
            // one that is not empty stays
            let _ = unlinkat(&folder, shard_name(shard), AtFlags::REMOVEDIR);
        }
        Ok(cleared)
    }
}
