//! What the process has done so far: numbers that only grow.

use std::sync::atomic::{AtomicU64, Ordering};

/// One number that many threads add to.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a mount, as status.json shows them.
#[derive(Debug, Default)]
pub struct Counters {
    /// Read requests of the kernel.
    pub reads: Counter,
    /// Bytes delivered to them.
    pub bytes_read: Counter,
    /// Bricks decoded.
    pub bricks_decoded: Counter,
    /// Bytes that came out of decoding.
    pub bytes_decoded: Counter,
    /// Bricks found in the cache.
    pub cache_hits: Counter,
    /// Bricks that had to be decoded, or waited for.
    pub cache_misses: Counter,
    /// Bytes fetched from the source.
    pub source_bytes: Counter,
    /// Bricks decoded before they were asked for.
    pub prefetched: Counter,
    /// Requests that ended in an I/O error.
    pub errors: Counter,
}

impl Counters {
    /// Every counter with its name, in the order of status.json.
    #[must_use]
    pub fn list(&self) -> [(&'static str, u64); 9] {
        [
            ("reads", self.reads.get()),
            ("bytes_read", self.bytes_read.get()),
            ("bricks_decoded", self.bricks_decoded.get()),
            ("bytes_decoded", self.bytes_decoded.get()),
            ("cache_hits", self.cache_hits.get()),
            ("cache_misses", self.cache_misses.get()),
            ("source_bytes", self.source_bytes.get()),
            ("prefetched", self.prefetched.get()),
            ("errors", self.errors.get()),
        ]
    }
}
