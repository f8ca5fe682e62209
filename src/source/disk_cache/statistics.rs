//! What a disk cache has done so far.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a disk cache of this process has done since it was opened, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskCacheStatistics {
    /// Ranges that were read from it.
    pub hits: u64,
    /// Bytes of these.
    pub hit_bytes: u64,
    /// Ranges that it did not have.
    pub misses: u64,
    /// Bytes of these.
    pub missed_bytes: u64,
    /// Bytes of the objects that were written to it.
    pub written_bytes: u64,
    /// Ranges that were not written, since the disk is slow, full, or cannot be written to.
    pub dropped: u64,
    /// Files that were evicted.
    pub evicted: u64,
    /// Files that were not as they should be, and were removed.
    pub bad: u64,
    /// Bytes that the files of all processes take, as far as this one knows.
    pub bytes: u64,
    /// The number of these files.
    pub files: u64,
}

/// The counters of a disk cache.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub hits: AtomicU64,
    pub hit_bytes: AtomicU64,
    pub misses: AtomicU64,
    pub missed_bytes: AtomicU64,
    pub written_bytes: AtomicU64,
    pub dropped: AtomicU64,
    pub evicted: AtomicU64,
    pub bad: AtomicU64,
}

impl Counts {
    pub(crate) fn hit(&self, bytes: usize) {
        self.hits.fetch_add(1, Relaxed);
        self.hit_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn miss(&self, bytes: usize) {
        self.misses.fetch_add(1, Relaxed);
        self.missed_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn statistics(&self, bytes: u64, files: u64) -> DiskCacheStatistics {
        DiskCacheStatistics {
            hits: self.hits.load(Relaxed),
            hit_bytes: self.hit_bytes.load(Relaxed),
            misses: self.misses.load(Relaxed),
            missed_bytes: self.missed_bytes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
            bad: self.bad.load(Relaxed),
            bytes,
            files,
        }
    }
}
