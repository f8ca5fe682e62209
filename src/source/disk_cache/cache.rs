//! The cache as its users see it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use super::error::DiskCacheError;
use super::files::Files;
use super::folder::CacheFolder;
use super::object_version::{LONGEST, ObjectVersion};
use super::queue::{Pushed, Put, WriteQueue};
use super::statistics::DiskCacheStatistics;
use super::stored_range::StoredRange;
use super::writer::{Limits, Writer};

/// How long the end of a cache waits for what is still to be written.
const CLOSING: Duration = Duration::from_secs(2);

/// Keeps ranges of objects in files of a folder, which other processes may share.
///
/// Takes, besides, 24 to 27 bytes of memory for each file (at most 27 MiB), 16 MiB for what waits to be written, and
/// one thread.
pub(crate) struct DiskCache {
    files: Arc<Files>,
    queue: Arc<WriteQueue>,
    limits: Limits,
}

impl DiskCache {
    /// Opens the cache in a folder, which is made if it does not exist. Its files are looked for in the background:
    /// until then they are found all the same, one by one.
    ///
    /// Starts a thread: a daemon must have forked before.
    pub(crate) fn open(dir: &Path, budget: u64) -> Result<Self, DiskCacheError> {
        let files = Arc::new(Files::new(CacheFolder::create(dir)?)?);
        let (queue, limits) = (Arc::new(WriteQueue::default()), Limits::of(budget));
        let writer = Writer::new(Arc::clone(&files), Arc::clone(&queue), limits);
        thread::Builder::new()
            .name("volfs-cache".into())
            .spawn(move || writer.run())
            .map_err(|error| DiskCacheError::io("start the thread of", files.folder.path(), error))?;
        Ok(Self { files, queue, limits })
    }

    /// Returns whether a folder can be a cache, and makes it one. Starts no thread.
    pub(crate) fn check(dir: &Path) -> Result<(), DiskCacheError> {
        CacheFolder::create(dir).map(drop)
    }

    /// Returns whether it seems to have a range of an object. Reads at most a few names.
    pub(crate) fn has(&self, object: &ObjectVersion, offset: u64, length: u64) -> bool {
        self.files.has(object, offset, length)
    }

    /// Fills `out` with the bytes of an object from `offset` on, and returns whether it has them all; if not, `out` may
    /// be overwritten in part. Reads files, so it may wait for the disk.
    pub(crate) fn get(&self, object: &ObjectVersion, offset: u64, out: &mut [u8]) -> bool {
        let has = out.is_empty() || self.files.read(object, offset, out);
        if has {
            self.files.counts.hit(out.len())
        } else {
            self.files.counts.miss(out.len())
        }
        has
    }

    /// Writes bytes of an object, which begin at `offset`, some time later. Never waits: they are dropped if too many
    /// bytes wait already.
    pub(crate) fn put(&self, object: &ObjectVersion, offset: u64, bytes: impl AsRef<[u8]> + Send + 'static) {
        let size = bytes.as_ref().len();
        let Some(length) = u32::try_from(size).ok().filter(|length| *length > 0) else { return };
        let range = StoredRange { object: object.digest(), offset, length };
        let is_good = offset.checked_add(size as u64).is_some()
            && range.weight() <= self.limits.heaviest()
            && object.identity().len() <= LONGEST;
        if is_good && self.files.index.cover(range.object, offset, range.end()).is_some() {
            return;
        }
        let put = Put { object: object.clone(), range, bytes: Box::new(bytes) };
        if !is_good || self.queue.push(put, size) == Pushed::Dropped {
            self.files.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Returns what it has done so far, and what it holds.
    pub(crate) fn statistics(&self) -> DiskCacheStatistics {
        let amount = self.files.index.amount();
        self.files.counts.statistics(amount.bytes, amount.files)
    }

    /// Returns the folder, as an absolute path.
    pub(crate) fn path(&self) -> &Path {
        self.files.folder.path()
    }

    /// Returns whether all files are known that were there when it was opened.
    #[cfg(test)]
    pub(super) fn is_scanned(&self) -> bool {
        !self.files.may_have_unknown_files()
    }

    /// Waits until all that was put is written or dropped; `false` if that takes longer than `limit`.
    #[cfg(test)]
    pub(crate) fn wait_until_written(&self, limit: Duration) -> bool {
        self.queue.wait_until_empty(limit)
    }
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        self.queue.close();
        if !self.queue.wait_for_end(CLOSING) {
            log::warn!("the disk cache {} does not answer", self.path().display());
        }
    }
}
