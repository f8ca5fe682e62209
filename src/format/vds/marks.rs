//! Chunks that have been looked at and found in order: a bit for each, kept while there is room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::source::IndexCache;

/// Words of a block of marks.
const WORDS: usize = 64;
/// Chunks of a block.
const CHUNKS: u64 = 64 * WORDS as u64;

struct Block([AtomicU64; WORDS]);

/// The marks of one layer. One that is lost costs another look, no more.
pub(super) struct Marks {
    cache: Arc<IndexCache>,
    id: u64,
}

impl Marks {
    pub(super) fn new(cache: Arc<IndexCache>) -> Self {
        Self { cache, id: IndexCache::id() }
    }

    /// Whether a chunk was found in order.
    pub(super) fn has(&self, chunk: u64) -> bool {
        let (word, bit) = place(chunk);
        let block = self.cache.part::<Block>((self.id, chunk / CHUNKS, 0));
        block.is_some_and(|block| block.0[word].load(Ordering::Relaxed) & bit != 0)
    }

    /// Notes that a chunk is in order.
    pub(super) fn set(&self, chunk: u64) {
        let (word, bit) = place(chunk);
        let key = (self.id, chunk / CHUNKS, 0);
        let block = self.cache.part::<Block>(key).unwrap_or_else(|| {
            let block = Arc::new(Block(std::array::from_fn(|_| AtomicU64::new(0))));
            self.cache.keep(key, &block, size_of::<Block>());
            block
        });
        block.0[word].fetch_or(bit, Ordering::Relaxed);
    }
}

fn place(chunk: u64) -> (usize, u64) {
    ((chunk / 64) as usize % WORDS, 1 << (chunk % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_marked_is_marked() {
        let marks = Marks::new(IndexCache::new(1 << 20));
        let set = [0, 1, 63, 64, 4095, 4096, u64::MAX];
        set.iter().for_each(|chunk| marks.set(*chunk));
        assert!(set.iter().all(|chunk| marks.has(*chunk)));
        assert!([2, 62, 65, 4094, 4097, 8192].iter().all(|chunk| !marks.has(*chunk)));
    }
}
