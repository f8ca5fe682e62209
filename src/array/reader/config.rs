//! The configuration of a reader: its memory and its threads.

use std::sync::Arc;

use super::array_reader::Reader;
use crate::array::decode_gate::DecodeGate;
use crate::cache::BrickCache;
use crate::counters::Counters;
use crate::memory::BufferPool;
use crate::pool::Pool;

/// Bytes that all decoders together may need at a time.
const DECODE_BUDGET: usize = 256 << 20;

/// The memory and the threads that a reader may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReaderConfig {
    /// Capacity of the cache of decoded bricks, in bytes.
    pub cache_bytes: usize,
    /// Bytes of unused buffers that are kept for reuse.
    pub idle_buffer_bytes: usize,
    /// Bytes of memory for bricks that are made ready ahead, within those of the cache.
    pub prefaulted_bytes: usize,
    /// Decoding threads.
    pub threads: usize,
}

impl ReaderConfig {
    /// Creates a reader that works on threads of `pool`.
    pub(crate) fn reader(self, pool: Arc<Pool>, counters: Arc<Counters>) -> Arc<Reader> {
        let cache = BrickCache::new(self.cache_bytes);
        let gate = DecodeGate::new(self.threads, DECODE_BUDGET);
        Reader::new(cache, gate, pool, BufferPool::for_bricks(self.idle_buffer_bytes, self.prefaulted_bytes), counters)
    }
}
