//! A reader from a few numbers.

use std::sync::Arc;

use super::{Gate, Reader};
use crate::cache::BrickCache;
use crate::counters::Counters;
use crate::memory::BufferPool;
use crate::pool::Pool;

/// Memory that decoders may need at a time.
const DECODE_BYTES: usize = 256 << 20;

/// What a reader may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderConfig {
    /// Bytes of decoded bricks held in memory.
    pub cache: usize,
    /// Bytes of buffers that wait to be used again.
    pub idle: usize,
    /// Decoding threads.
    pub threads: usize,
}

impl ReaderConfig {
    /// A reader that works on threads of `pool`.
    #[must_use]
    pub fn reader(self, pool: Arc<Pool>, counters: Arc<Counters>) -> Arc<Reader> {
        let cache = BrickCache::new(self.cache, Arc::clone(&counters));
        Reader::new(cache, Gate::new(self.threads, DECODE_BYTES), pool, BufferPool::new(self.idle), counters)
    }
}
