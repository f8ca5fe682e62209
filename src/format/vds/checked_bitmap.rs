//! A bitmap of the chunks whose tables and header have been checked, kept in the index cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::source::IndexCache;

/// 64-bit words of a block.
const WORDS: usize = 64;
/// Chunks of a block.
const CHUNKS: u64 = 64 * WORDS as u64;

struct Block([AtomicU64; WORDS]);

/// The checked chunks of one layer. Blocks may be evicted: their chunks are then checked again.
pub(super) struct CheckedBitmap {
    cache: Arc<IndexCache>,
    id: u64,
}

impl CheckedBitmap {
    pub(super) fn new(cache: Arc<IndexCache>) -> Self {
        Self { cache, id: IndexCache::new_id() }
    }

    /// Returns whether a chunk has been checked.
    pub(super) fn contains(&self, chunk: u64) -> bool {
        let (word, bit) = bit_of(chunk);
        let block = self.cache.get::<Block>((self.id, chunk / CHUNKS, 0));
        block.is_some_and(|block| block.0[word].load(Ordering::Relaxed) & bit != 0)
    }

    /// Adds a chunk whose check has passed.
    pub(super) fn insert(&self, chunk: u64) {
        let (word, bit) = bit_of(chunk);
        let key = (self.id, chunk / CHUNKS, 0);
        let block = self.cache.get::<Block>(key).unwrap_or_else(|| {
            let block = Arc::new(Block(std::array::from_fn(|_| AtomicU64::new(0))));
            self.cache.insert(key, &block, size_of::<Block>());
            block
        });
        block.0[word].fetch_or(bit, Ordering::Relaxed);
    }
}

fn bit_of(chunk: u64) -> (usize, u64) {
    ((chunk / 64) as usize % WORDS, 1 << (chunk % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inserted_chunks_are_contained() {
        let bitmap = CheckedBitmap::new(IndexCache::new(1 << 20));
        let set = [0, 1, 63, 64, 4095, 4096, u64::MAX];
        set.iter().for_each(|chunk| bitmap.insert(*chunk));
        assert!(set.iter().all(|chunk| bitmap.contains(*chunk)));
        assert!([2, 62, 65, 4094, 4097, 8192].iter().all(|chunk| !bitmap.contains(*chunk)));
    }
}
