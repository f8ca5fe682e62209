//! Blocks for bricks whose pages were made ahead.
//!
//! The kernel makes each page when it is first written, which takes longer than decoding small bricks into it, and
//! threads of one process that do so at the same time delay each other. So the pages of the next bricks are made while
//! nobody waits.

use super::block::Block;
use super::free_list::FreeList;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Blocks that have all their pages and belong to nobody yet.
#[derive(Default)]
pub(super) struct Prefaulted {
    blocks: Mutex<FreeList>,
    /// Bytes of all blocks.
    capacity: usize,
    /// Bytes of the block that was asked for last: the next brick is most likely of the same array. Zero if none was.
    wanted: AtomicUsize,
    /// Bytes to have ready: those that were announced, and as many more as were asked for in vain since.
    target: AtomicUsize,
}

impl Prefaulted {
    /// Creates an empty store for at most `capacity` bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Takes a block of `size` bytes, if there is one. If not, as much memory is given back in blocks of other sizes, since
    /// the new block will need that.
    pub(crate) fn take(&self, size: usize) -> Option<Block> {
        if self.capacity == 0 {
            return None;
        }
        self.wanted.store(size, Ordering::Relaxed);
        let mut blocks = self.blocks.lock();
        let found = blocks.pop(size);
        let mut evicted = Vec::new();
        while found.is_none() && evicted.iter().map(|block: &Block| block.len()).sum::<usize>() < size {
            let Some(block) = blocks.evict(size) else { break };
            evicted.push(block);
        }
        drop(blocks);
        drop(evicted); // unmapping is slow: not under the lock
        if found.is_none() {
            let more = |target: usize| Some(target.saturating_add(size).min(self.capacity));
            let _ = self.target.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
        found
    }

    /// Returns whether there is any capacity, but no block was asked for or announced yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.capacity > 0 && self.wanted.load(Ordering::Relaxed) == 0
    }

    /// Announces that `number` blocks of `size` bytes may be taken soon. Has no effect once any was taken.
    pub(crate) fn will_need(&self, size: usize, number: usize) {
        if self.wanted.compare_exchange(0, size, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.target.store(size.saturating_mul(number).min(self.capacity), Ordering::Relaxed);
        }
    }

    /// Returns the bytes of the block to be made next; `None` if there are enough. All blocks together are to take no
    /// more than `room` bytes; if they do, they are dropped.
    pub(crate) fn wanted(&self, room: usize) -> Option<usize> {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let most = self.target.load(Ordering::Relaxed).min(room);
        let blocks = self.blocks.lock();
        if blocks.bytes() > most {
            drop(blocks);
            self.drop_blocks();
            return None;
        }
        let enough = blocks.bytes_of(wanted).saturating_add(wanted) > most;
        (wanted > 0 && !enough).then_some(wanted)
    }

    /// Adds a block; it replaces blocks of other sizes if there is no room.
    pub(crate) fn add(&self, block: Block) {
        let evicted = self.blocks.lock().push(block, self.capacity);
        drop(evicted);
    }

    /// Returns the bytes of all blocks.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.lock().bytes()
    }

    /// Drops all blocks, and forgets what was asked for.
    pub(crate) fn clear(&self) {
        self.wanted.store(0, Ordering::Relaxed);
        self.target.store(0, Ordering::Relaxed);
        self.drop_blocks();
    }

    fn drop_blocks(&self) {
        let blocks = std::mem::take(&mut *self.blocks.lock());
        drop(blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(prefaulted: &Prefaulted, room: usize) -> usize {
        let mut made = 0;
        while let Some(size) = prefaulted.wanted(room) {
            prefaulted.add(Block::try_new(size).unwrap());
            made += 1;
        }
        made
    }

    #[test]
    fn blocks_of_the_last_size_are_made_as_far_as_there_is_room() {
        let prefaulted = Prefaulted::new(40 << 10);
        assert_eq!(fill(&prefaulted, usize::MAX), 0, "nobody has asked for any yet");
        let take = |size: usize| prefaulted.take(size).map(|block| block.len());
        for _ in 0..2 {
            assert_eq!(take(8 << 10), None);
        }
        assert_eq!((fill(&prefaulted, 12 << 10), fill(&prefaulted, usize::MAX)), (1, 1), "as many as were missing");
        for size in [Some(8 << 10), Some(8 << 10), None, None, None, None] {
            assert_eq!(take(8 << 10), size);
        }
        assert_eq!(fill(&prefaulted, usize::MAX), 5, "as many as fit");
        assert_eq!(take(16 << 10), None);
        assert_eq!(prefaulted.bytes(), 24 << 10, "the brick takes the memory of two of them");
        assert_eq!(fill(&prefaulted, usize::MAX), 2, "in place of others");
        assert!(prefaulted.bytes() <= 40 << 10);
        assert_eq!((fill(&prefaulted, 10 << 10), prefaulted.bytes()), (0, 0), "the room is needed");
        assert_eq!(take(100 << 10), None);
        assert_eq!(fill(&prefaulted, usize::MAX), 0, "too large");
    }

    #[test]
    fn blocks_that_are_announced_are_made_before_any_was_taken() {
        let prefaulted = Prefaulted::new(40 << 10);
        assert!(prefaulted.is_unused());
        prefaulted.will_need(8 << 10, 3);
        assert!(!prefaulted.is_unused());
        prefaulted.will_need(4 << 10, 9);
        assert_eq!(fill(&prefaulted, usize::MAX), 3, "as many as were announced first");
        for size in [Some(8 << 10), Some(8 << 10), Some(8 << 10), None] {
            assert_eq!(prefaulted.take(8 << 10).map(|block| block.len()), size);
        }
        assert_eq!(fill(&prefaulted, usize::MAX), 4, "as many as were taken");
        prefaulted.clear();
        assert_eq!(fill(&prefaulted, usize::MAX), 0, "nobody reads");
        prefaulted.will_need(4 << 10, 100);
        assert_eq!(fill(&prefaulted, usize::MAX), 10, "no more than there is room");
    }

    #[test]
    fn without_capacity_nothing_is_made() {
        let prefaulted = Prefaulted::default();
        assert!(!prefaulted.is_unused() && prefaulted.take(4096).is_none());
        assert_eq!(fill(&prefaulted, usize::MAX), 0);
    }
}
