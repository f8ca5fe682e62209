//! A pool of byte buffers that are reused.
//!
//! A brick is large: a new mapping for each would cost a page fault for every 4 KiB. An allocator that keeps such
//! blocks for itself makes the process exceed its memory limit, since it has a heap for every few threads, and bricks
//! are allocated and freed on all of them. So large buffers are anonymous maps of their own, and blocks of all but the
//! smallest buffers go to a free list.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use super::block::{Block, MIN_MAPPED};
use super::free_list::FreeList;
use super::out_of_memory::OutOfMemory;
use super::prefaulted::Prefaulted;
use super::slab::Slab;
use super::small_blocks::SmallBlocks;
use crate::sync::{Mutex, MutexGuard};

const PAGE: usize = 4096;

/// Large buffers are kept even if they exceed the pool's capacity, as many as two decoders need in turn, but no more
/// than these bytes: a decoder that takes a brick whose memory was just given back has its pages.
const LARGE_KEPT: usize = 3;
const LARGE_KEPT_BYTES: usize = 24 << 20;

/// The size classes of reply buffers in huge pages, smallest first: the number of huge pages that the buffers of a
/// class share, and the bytes of one buffer. That is the largest request of the kernel without and with `--direct-io`,
/// and room for a file's header before its samples.
const REPLY_CLASSES: [(usize, usize); 2] = [(1, 34 * PAGE), (2, 341 * PAGE)];

/// A pool of buffers. A buffer returns to its pool when it is dropped.
#[derive(Default)]
pub(crate) struct BufferPool {
    free: Mutex<FreeList>,
    /// Bytes that the free list may hold.
    capacity: usize,
    /// Bytes that it may hold of large blocks.
    large_capacity: usize,
    small: Arc<SmallBlocks>,
    prefaulted: Prefaulted,
    slabs: [OnceLock<Option<Arc<Slab>>>; REPLY_CLASSES.len()],
}

impl BufferPool {
    /// Creates a pool that keeps at most `capacity` bytes of unused buffers.
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, ..Self::default() })
    }

    /// Creates a pool for bricks: it keeps at most `capacity` bytes of unused buffers, or a few large ones if that is
    /// not zero, and makes the pages of at most `prefaulted` bytes of memory ahead.
    pub(crate) fn for_bricks(capacity: usize, prefaulted: usize) -> Arc<Self> {
        let (large_capacity, prefaulted) = (LARGE_KEPT_BYTES, Prefaulted::new(prefaulted));
        Arc::new(Self { capacity, large_capacity, prefaulted, ..Self::default() })
    }

    /// Returns an empty buffer, for which nothing is allocated.
    pub(crate) fn empty(self: &Arc<Self>) -> Buffer {
        Buffer { block: Block::default(), len: 0, pool: Arc::clone(self) }
    }

    /// Returns a buffer of `len` bytes. Its content is unspecified: zeros, or what an earlier user left.
    pub(crate) fn try_take(self: &Arc<Self>, len: usize) -> Result<Buffer, OutOfMemory> {
        let (size, reused) = self.reuse(len);
        let block = reused.or_else(|| Block::try_new(size)).or_else(|| {
            // idle buffers of other sizes are memory, too
            self.release_idle();
            Block::try_new(size)
        });
        Ok(Buffer { block: block.ok_or(OutOfMemory(size))?, len, pool: Arc::clone(self) })
    }

    /// Like [`BufferPool::try_take`], for a decoded brick: a new one that is small shares its memory's pages with others.
    pub(crate) fn take_brick(self: &Arc<Self>, len: usize) -> Result<Buffer, OutOfMemory> {
        let (size, reused) = self.reuse(len);
        // a brick of less than a page comes from the allocator
        let prefaulted = || (size >= PAGE).then(|| self.prefaulted.take(size)).flatten();
        match reused.or_else(prefaulted).or_else(|| self.small_block(size)) {
            Some(block) => Ok(Buffer { block, len, pool: Arc::clone(self) }),
            None => self.try_take(len),
        }
    }

    /// Returns a block for a small brick.
    fn small_block(&self, size: usize) -> Option<Block> {
        (size < MIN_MAPPED).then(|| self.small.take(size).map(Block::Small)).flatten()
    }

    /// Returns whether memory may be made ahead, but no brick was taken or announced yet.
    pub(crate) fn is_unused_for_bricks(&self) -> bool {
        self.prefaulted.is_unused()
    }

    /// Announces that `number` bricks of `len` bytes are likely to be taken soon, the first of this pool.
    pub(crate) fn will_need_bricks(&self, len: usize, number: usize) {
        if let Some(size) = len.checked_next_multiple_of(PAGE).filter(|_| len >= PAGE) {
            self.prefaulted.will_need(size, number);
        }
    }

    /// Whether [`BufferPool::prefault_brick`] would make any pages. Gives up those that were made if they take more than
    /// `room` bytes.
    pub(crate) fn wants_prefaulted(&self, room: usize) -> bool {
        self.prefaulted.wanted(room).is_some()
    }

    /// Makes the pages of one more brick like the last one, unless there are enough, or no `room` bytes for them.
    /// Returns whether it did.
    pub(crate) fn prefault_brick(&self, room: usize) -> bool {
        let Some(size) = self.prefaulted.wanted(room) else { return false };
        let block = self.small_block(size).or_else(|| Block::try_new_yielding(size));
        let made = block.is_some();
        block.into_iter().for_each(|block| self.prefaulted.add(block));
        made
    }

    /// Returns the bytes of pages that were made ahead.
    #[cfg(test)]
    pub(crate) fn prefaulted_bytes(&self) -> usize {
        self.prefaulted.bytes()
    }

    /// Gives up unused buffers, and the pages that were made ahead until bricks are taken or announced again.
    pub(crate) fn release_idle(&self) {
        let idle = mem::take(&mut *self.free());
        drop(idle);
        self.prefaulted.clear();
    }

    /// Like [`BufferPool::try_take`], for tests.
    #[cfg(test)]
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Buffer {
        self.try_take(len).unwrap()
    }

    /// Returns the bytes to allocate for a buffer of `len` bytes, and a free block of that size if there is one.
    fn reuse(&self, len: usize) -> (usize, Option<Block>) {
        if len < PAGE {
            return (len, None);
        }
        let size = len.checked_next_multiple_of(PAGE).unwrap_or(len);
        (size, self.free().pop(size))
    }

    /// Like [`BufferPool::try_take`], for short-lived scratch memory: rounds the size up by at most a third, so that a
    /// block is reused for lengths that differ a little. All small ones have the same size: the allocator would clear
    /// each block, and give the pages of many back to the kernel.
    pub(crate) fn take_scratch(self: &Arc<Self>, len: usize) -> Result<Buffer, OutOfMemory> {
        let step = (len / 2).next_power_of_two() / 4;
        let size = match len {
            PAGE..MIN_MAPPED => MIN_MAPPED,
            _ => len.checked_next_multiple_of(step.max(1)).unwrap_or(len),
        };
        let mut buffer = self.try_take(size)?;
        buffer.truncate(len);
        Ok(buffer)
    }

    /// Like [`BufferPool::try_take`], for a reply that is sent to the kernel at once: uses a slot of the huge-page slab
    /// if one is free.
    pub(crate) fn take_reply(self: &Arc<Self>, len: usize) -> Result<Buffer, OutOfMemory> {
        let slot = || {
            let (slab, (pages, size)) = self.slabs.iter().zip(REPLY_CLASSES).find(|(_, (_, size))| len <= *size)?;
            slab.get_or_init(|| Slab::of_huge_pages(pages, size)).as_ref()?.take()
        };
        match (len >= MIN_MAPPED).then(slot).flatten() {
            Some(slot) => Ok(Buffer { block: Block::Slot(slot), len, pool: Arc::clone(self) }),
            None => self.try_take(len),
        }
    }

    /// Adds the block of a dropped buffer to the free list. Blocks below a page go back to the allocator, slots to
    /// their slab.
    fn give_back(&self, block: Block) {
        if block.len() >= PAGE && !matches!(block, Block::Slot(_)) {
            let mut free = self.free();
            let large = LARGE_KEPT.saturating_mul(block.len().max(free.largest())).min(self.large_capacity);
            let capacity = if self.capacity == 0 { 0 } else { self.capacity.max(large) };
            let evicted = free.push(block, capacity);
            drop(free);
            drop(evicted); // unmapping is slow: not under the lock
        }
    }

    fn free(&self) -> MutexGuard<'_, FreeList> {
        self.free.lock()
    }
}

/// Bytes with a single owner. The memory returns to the pool on drop.
pub(crate) struct Buffer {
    block: Block,
    len: usize,
    pool: Arc<BufferPool>,
}

impl Buffer {
    /// Returns the bytes of memory that the buffer takes, which may be more than its length.
    pub(crate) fn capacity(&self) -> usize {
        self.block.len()
    }

    /// Shortens the buffer to `len` bytes; the memory it takes stays the same.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.block[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.block[..self.len]
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.give_back(mem::take(&mut self.block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_reused_within_the_capacity() {
        let buffers = BufferPool::new(1 << 20);
        let free = |b: &Arc<BufferPool>| b.free().bytes();
        let (one, two) = (buffers.take(600 << 10), buffers.take(600 << 10));
        let at = one.as_ptr();
        drop(two);
        drop(one);
        assert_eq!(free(&buffers), 600 << 10);
        let again = buffers.take((600 << 10) - 7);
        assert_eq!((again.as_ptr(), again.len(), again.capacity()), (at, (600 << 10) - 7, 600 << 10));
        drop(buffers.take(2 << 20));
        assert_eq!(free(&buffers), 0);
    }

    #[test]
    fn a_few_large_buffers_are_kept_for_bricks() {
        let buffers = BufferPool::for_bricks(1 << 20, 0);
        for (size, kept) in [(100 << 10, 10), (500 << 10, 3), (8 << 20, 3), (20 << 20, 1), (25 << 20, 0)] {
            let taken: Vec<Buffer> = (0..12).map(|_| buffers.take_brick(size).unwrap()).collect();
            drop(taken);
            assert_eq!(buffers.free().bytes(), kept * size);
            buffers.release_idle();
            assert_eq!(buffers.free().bytes(), 0);
        }
        let taken: Vec<Buffer> = (0..2).map(|_| buffers.take_brick(8 << 20).unwrap()).collect();
        drop(taken);
        drop(buffers.take_scratch(1 << 20).unwrap());
        assert_eq!(buffers.free().bytes(), 17 << 20, "a smaller one does not drive them out");
    }

    #[test]
    fn scratch_memory_is_reused_for_similar_lengths() {
        let buffers = BufferPool::new(4 << 20);
        let first = buffers.take_scratch(930_000).unwrap();
        let at = first.as_ptr();
        drop(first);
        let again = buffers.take_scratch(970_000).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (at, 970_000));
        for len in [0, 1, 2, 5, 4095, 140_000, 1 << 20, (1 << 20) + 1] {
            let buffer = buffers.take_scratch(len).unwrap();
            assert_eq!(buffer.len(), len);
            assert!(buffer.capacity() <= len + len / 3 + 4096);
        }
        let small = buffers.take_scratch(5000).unwrap();
        let at = small.as_ptr();
        drop(small);
        for len in [4096, 60_000, MIN_MAPPED - 1] {
            let buffer = buffers.take_scratch(len).unwrap();
            assert_eq!((buffer.as_ptr(), buffer.len(), buffer.capacity()), (at, len, MIN_MAPPED));
        }
    }

    #[test]
    fn replies_share_huge_pages_and_never_block() {
        let buffers = BufferPool::new(1 << 20);
        let mut replies: Vec<Buffer> = (0..8).map(|_| buffers.take_reply(1 << 20).unwrap()).collect();
        for (n, reply) in replies.iter_mut().enumerate() {
            reply.fill(n as u8);
        }
        assert!(
            replies.iter().enumerate().all(|(n, reply)| reply.len() == 1 << 20 && reply.iter().all(|b| *b == n as u8))
        );
        let first = replies[0].as_ptr();
        drop(replies);
        assert_eq!(buffers.take_reply(200 << 10).unwrap().as_ptr(), first);
        let short: Vec<Buffer> = (0..20).map(|_| buffers.take_reply(128 << 10).unwrap()).collect();
        assert!(short.iter().all(|reply| reply.as_ptr() != first), "short replies do not use the slots of long ones");
        assert_ne!(buffers.take(1 << 20).as_ptr(), first, "only replies use slots");
    }

    #[test]
    fn small_bricks_share_a_slab_and_are_reused() {
        let buffers = BufferPool::new(64 << 10);
        let mut bricks: Vec<Buffer> = (0..3).map(|_| buffers.take_brick(32_000).unwrap()).collect();
        let at = |brick: &Buffer| brick.as_ptr() as usize;
        assert_eq!((bricks[0].len(), bricks[0].capacity()), (32_000, 32 << 10));
        assert_eq!((at(&bricks[1]) - at(&bricks[0]), at(&bricks[2]) - at(&bricks[1])), (32 << 10, 32 << 10));
        let last = bricks.pop().unwrap();
        let address = at(&last);
        drop(last);
        assert_eq!(buffers.free().bytes(), 32 << 10);
        assert_eq!(at(&buffers.take_brick(32 << 10).unwrap()), address);
        drop(bricks);
        assert_eq!(buffers.free().bytes(), 64 << 10, "what exceeds the capacity goes back to its slab");
        // larger ones, and those of a part of a page, are as other buffers
        assert_eq!(buffers.take_brick(1 << 20).unwrap().len(), 1 << 20);
        assert!(buffers.take_brick(100).unwrap().iter().all(|b| *b == 0) && buffers.take_brick(usize::MAX).is_err());
    }

    #[test]
    fn bricks_take_the_memory_that_was_made_ahead() {
        for size in [32 << 10, 256 << 10] {
            let buffers = BufferPool::for_bricks(0, 1 << 20);
            for _ in 0..(1 << 20) / size {
                drop(buffers.take_brick(size).unwrap());
            }
            let made = (0..100).take_while(|_| buffers.prefault_brick(usize::MAX)).count();
            assert_eq!((made, buffers.prefaulted_bytes()), ((1 << 20) / size, 1 << 20));
            assert!(!buffers.wants_prefaulted(usize::MAX));
            let mut bricks: Vec<Buffer> = (0..3).map(|_| buffers.take_brick(size - 5).unwrap()).collect();
            for (n, brick) in bricks.iter_mut().enumerate() {
                brick.fill(n as u8);
            }
            assert!(bricks.iter().enumerate().all(|(n, brick)| brick.iter().all(|b| *b == n as u8)));
            assert_eq!(buffers.prefaulted_bytes(), (1 << 20) - 3 * size);
            drop(buffers.take(size));
            assert_eq!(buffers.prefaulted_bytes(), (1 << 20) - 3 * size, "only bricks take it");
            buffers.release_idle();
            assert_eq!(buffers.prefaulted_bytes(), 0);
        }
        let buffers = BufferPool::for_bricks(0, 1 << 20);
        drop(buffers.take_brick(100));
        assert!(!buffers.wants_prefaulted(usize::MAX), "no pages are made for less than one");
    }

    #[test]
    fn memory_that_does_not_exist_is_an_error() {
        let buffers = BufferPool::for_bricks(1 << 20, 1 << 20);
        drop(buffers.take_brick(8192));
        while buffers.prefault_brick(usize::MAX) {}
        drop(buffers.take(8192));
        for len in [1 << 62, usize::MAX] {
            assert!(buffers.try_take(len).is_err_and(|error| error.to_string().contains(&len.to_string()[..4])));
            assert!(buffers.take_scratch(len).is_err() && buffers.take_reply(len).is_err());
            assert_eq!(buffers.free().bytes(), 0, "idle buffers were given back first");
            assert_eq!(buffers.prefaulted_bytes(), 0);
        }
        assert_eq!(buffers.try_take(200 << 10).unwrap().len(), 200 << 10);
    }

    #[test]
    fn small_buffers_begin_as_zeros() {
        let buffers = BufferPool::new(0);
        assert!(buffers.take(5000).iter().all(|b| *b == 0));
        assert!(buffers.take(0).is_empty() && buffers.empty().is_empty());
    }
}
