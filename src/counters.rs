//! Counters of a mount: numbers that only grow.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Adds 1 and returns the sum.
    pub(crate) fn increment(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a mount or of one dataset, as status.json shows them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Read requests of the kernel.
    pub reads: Counter,
    /// Bytes delivered to them.
    pub bytes_read: Counter,
    pub bricks_decoded: Counter,
    /// Bytes that came out of decoding.
    pub bytes_decoded: Counter,
    /// Bricks found in the cache.
    pub cache_hits: Counter,
    /// Bricks not found in the cache: decoded by the read, or by another one that it waited for.
    pub cache_misses: Counter,
    pub source_bytes: Counter,
    /// Bricks decoded by prefetching.
    pub prefetched: Counter,
    pub errors: Counter,
}

impl Counters {
    /// Adds `n` to a counter of these, and to the same one of `part`, which counts a part of what these count.
    pub(crate) fn add(&self, part: Option<&Self>, counter: impl Fn(&Self) -> &Counter, n: u64) {
        if n > 0 {
            counter(self).add(n);
            part.inspect(|part| counter(part).add(n));
        }
    }

    /// Returns every counter with its name, in the order of status.json.
    pub(crate) fn list(&self) -> [(&'static str, u64); 9] {
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
