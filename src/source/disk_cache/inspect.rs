//! What is in the folder of a disk cache, and how to empty it. Processes that use it may go on.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode, openat, statat, unlinkat};
use rustix::io::Errno;

use super::files::{CacheFolder, DiskCacheError, WriterFolder};
use super::format::{READ, StoredRange, names_of, shard_name};

const NAMED: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inspection {
    /// What it has of each dataset, by store and key of the dataset.
    pub(crate) datasets: BTreeMap<(String, String), Kept>,
    /// Files that are not as they should be: nothing is read from them.
    pub(crate) bad: Kept,
    /// The paths of the first of these, below the folder.
    pub(crate) bad_names: Vec<String>,
    /// Names that are not of files of the cache.
    pub(crate) foreign: u64,
}

/// Files, and when they were last used: to within ten minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) oldest: Option<SystemTime>,
    pub(crate) newest: Option<SystemTime>,
}

impl Kept {
    fn add(&mut self, other: &Self) {
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.oldest = [self.oldest, other.oldest].into_iter().flatten().min();
        self.newest = self.newest.max(other.newest);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleared {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Names that are not of files of the cache, and were left alone.
    pub(crate) foreign: u64,
}

/// Looks at all files of the cache in a folder; with `check` reads them whole and compares their checksums. `progress`
/// gets the number of files so far, and may return `false` to end it.
pub(crate) fn inspect(
    dir: &Path,
    check: bool,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<Inspection, DiskCacheError> {
    let folder = CacheFolder::open(dir)?;
    let failed = |error: Errno| DiskCacheError::io("read", dir, error);
    let (mut inspection, mut seen) = (Inspection::default(), 0);
    for shard in folder.shards().map_err(failed)? {
        let (files, foreign) = folder.files(shard).map_err(failed)?;
        inspection.foreign = inspection.foreign.saturating_add(foreign as u64);
        for range in files {
            inspection.look_at(&folder, range, check);
            seen += 1;
            if !progress(seen) {
                return Ok(inspection);
            }
        }
    }
    Ok(inspection)
}

impl Inspection {
    /// Returns all files together, but for the bad ones.
    pub(crate) fn total(&self) -> Kept {
        let mut total = Kept::default();
        self.datasets.values().for_each(|kept| total.add(kept));
        total
    }

    fn look_at(&mut self, folder: &CacheFolder, range: StoredRange, check: bool) {
        let file = match openat(&folder.fd, range.path(), READ, Mode::empty()) {
            // evicted in the meantime
            Err(Errno::NOENT) => return,
            file => file.map(File::from),
        };
        let metadata = file.as_ref().ok().and_then(|file| file.metadata().ok());
        let used = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        let size = metadata.map_or(0, |metadata| metadata.len());
        let kept = Kept { files: 1, bytes: size, oldest: used, newest: used };
        match file.ok().and_then(|file| names_of(&file, size, range, check)) {
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

/// Removes all files of the cache in a folder, which stays a cache. Other files in the folder are left alone.
pub(crate) fn clear(dir: &Path) -> Result<Cleared, DiskCacheError> {
    let folder = CacheFolder::open(dir)?;
    let failed = |error: Errno| DiskCacheError::io("clear", dir, error);
    // removes what killed processes have left; those that go on see that somebody was here
    let writer = WriterFolder::create(&folder);
    let mut cleared = Cleared::default();
    for shard in folder.shards().map_err(failed)? {
        let (files, foreign) = folder.files(shard).map_err(failed)?;
        cleared.foreign = cleared.foreign.saturating_add(foreign as u64);
        for range in files {
            let size = statat(&folder.fd, range.path(), AtFlags::SYMLINK_NOFOLLOW).map_or(0, |stat| stat.st_size);
            folder.remove(range).map_err(failed)?;
            cleared.files += 1;
            cleared.bytes = cleared.bytes.saturating_add(u64::try_from(size).unwrap_or(0));
        }
        // one that is not empty stays
        let _ = unlinkat(&folder.fd, shard_name(shard), AtFlags::REMOVEDIR);
    }
    // where the disk was full, there is room now
    writer.or_else(|_| WriterFolder::create(&folder)).map_err(failed)?;
    Ok(cleared)
}
