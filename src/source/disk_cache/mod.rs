//! A cache on a local disk of bytes that were fetched from a slow source, such as an object store.
//!
//! Each range of an object is kept as it was fetched, in a separate file, whose name follows from what it holds. The
//! folder is the truth: what is in memory is an index of it, 24 bytes a file, which is rebuilt in the background. So
//! several processes share a folder, and each may be killed at any moment.
//!
//! * A file is written under a temporary name and renamed. It begins with its identity and the checksums of its blocks
//!   ([`format`]); one that is not as it should be is a miss, and is removed.
//! * Nothing blocks but the read of a file: writes go through a bounded queue to one thread, and are dropped when it is
//!   full.
//! * The budget holds for all processes together: see [`writer`].

mod eviction;
mod files;
mod format;
mod inspect;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(crate) use files::{DiskCacheError, DiskCacheStatistics};
pub(crate) use format::{CacheKey, stable_hash};
pub(crate) use inspect::{Cleared, Inspection, Kept, clear, inspect};

use files::{CacheFolder, Files};
use format::{MAX_IDENTITY, StoredRange};
use writer::{Put, WriteQueue, Writer};

/// How long the end of a cache waits for what is still to be written.
const CLOSING: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskCacheOptions {
    /// The folder, as an absolute path.
    pub(crate) dir: PathBuf,
    /// Bytes that its files may take, for all processes that share it.
    pub(crate) budget: u64,
}

/// Keeps ranges of objects in files of a folder, which other processes may share.
///
/// Takes 24 to 27 bytes of memory for each file (at most 27 MiB), 16 MiB for the queue, and one thread.
pub(crate) struct DiskCache {
    files: Arc<Files>,
    queue: Arc<WriteQueue>,
    budget: u64,
}

impl DiskCache {
    /// Opens the cache in a folder, which is made if it does not exist. Its files are looked for in the background:
    /// until then they are found all the same, one by one.
    ///
    /// Starts a thread: a daemon must have forked before.
    pub(crate) fn open(dir: &Path, budget: u64) -> Result<Self, DiskCacheError> {
        let files = Arc::new(Files::new(CacheFolder::create(dir)?)?);
        let queue = Arc::new(WriteQueue::default());
        let writer = Writer::new(Arc::clone(&files), Arc::clone(&queue), budget);
        thread::Builder::new()
            .name("volfs-cache".into())
            .spawn(move || writer.run())
            .map_err(|error| DiskCacheError::io("start the thread of", &files.folder.path, error))?;
        Ok(Self { files, queue, budget })
    }

    /// Checks that a folder can be a cache, and makes it one. Starts no thread.
    pub(crate) fn check(dir: &Path) -> Result<(), DiskCacheError> {
        CacheFolder::create(dir).map(drop)
    }

    /// Returns whether it seems to have a range of an object. Reads at most a few names.
    pub(crate) fn has(&self, key: &CacheKey, offset: u64, length: u64) -> bool {
        self.files.has(key, offset, length)
    }

    /// Fills `out` with the bytes of an object from `offset` on, and returns whether it has them all; if not, `out` may
    /// be overwritten in part. Reads files, so it may wait for the disk.
    pub(crate) fn get(&self, key: &CacheKey, offset: u64, out: &mut [u8]) -> bool {
        let has = out.is_empty() || self.files.read(key, offset, out);
        let mut statistics = self.files.statistics.lock();
        if has {
            statistics.hits += 1;
            statistics.hit_bytes += out.len() as u64;
        } else {
            statistics.misses += 1;
            statistics.missed_bytes += out.len() as u64;
        }
        has
    }

    /// Writes bytes of an object, which begin at `offset`, some time later. Never blocks: they are dropped if too many
    /// bytes are queued already.
    pub(crate) fn put(&self, key: &CacheKey, offset: u64, bytes: impl AsRef<[u8]> + Send + 'static) {
        let size = bytes.as_ref().len();
        let Some(length) = u32::try_from(size).ok().filter(|length| *length > 0) else { return };
        let range = StoredRange { object: key.digest, offset, length };
        let is_good = offset.checked_add(size as u64).is_some()
            && range.weight() <= self.budget / 16
            && key.identity.len() <= MAX_IDENTITY;
        if is_good && self.files.index.cover(range.object, offset, range.end()).is_some() {
            return;
        }
        let put = Put { key: key.clone(), range, bytes: Box::new(bytes) };
        if !is_good || !self.queue.push(put) {
            self.files.statistics.lock().dropped += 1;
        }
    }

    pub(crate) fn statistics(&self) -> DiskCacheStatistics {
        let amount = self.files.index.amount();
        DiskCacheStatistics { bytes: amount.bytes, files: amount.files, ..*self.files.statistics.lock() }
    }
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        self.queue.close();
        if !self.queue.wait_for(CLOSING, |state| state.ended) {
            log::warn!("the disk cache {} does not answer", self.files.folder.path.display());
        }
    }
}

#[cfg(test)]
mod tests;
