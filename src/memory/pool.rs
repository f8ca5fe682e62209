//! A pool of byte buffers that are reused.
//!
//! A brick is large: a new mapping for each would cost a page fault for every 4 KiB. An allocator that keeps such
//! blocks for itself makes the process exceed its memory limit, since it has a heap for every few threads, and bricks
//! are allocated and freed on all of them. So large buffers are anonymous maps of their own, small bricks share slabs,
//! and unused blocks of all but the smallest buffers are in one free list.
//!
//! The kernel makes each page when it is first written, which takes longer than decoding small bricks into it, and
//! threads of one process that do so at the same time delay each other. So blocks for the next bricks are made ahead,
//! while nobody waits.

use std::collections::HashMap;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

#[cfg(target_os = "linux")]
use memmap2::{Advice, MmapMut};

use super::allocator::{OutOfMemory, has_memory};
use super::slab::{Slab, Slot, SmallBlocks};
use super::try_zeroed;
use crate::sync::{Mutex, thread};

const PAGE: usize = 4096;
/// Blocks from this size on are anonymous maps.
const MIN_MAPPED: usize = 128 << 10;
/// Bytes whose pages are made at a time where others may want the processor: that takes 50 to 100 µs.
const STEP: usize = 128 << 10;

/// Large buffers are kept even if they exceed the pool's capacity, as many as two decoders need in turn, but no more
/// than these bytes: a decoder that takes a brick whose memory was just given back has its pages.
const LARGE_KEPT: usize = 3;
const LARGE_KEPT_BYTES: usize = 24 << 20;

/// The size classes of reply buffers in huge pages, smallest first: the number of huge pages that the buffers of a
/// class share, and the bytes of one buffer. That is the largest request of the kernel without and with `--direct-io`,
/// and room for a file's header before its samples.
const REPLY_CLASSES: [(usize, usize); 2] = [(1, 34 * PAGE), (2, 341 * PAGE)];

enum Block {
    Heap(Box<[u8]>),
    #[cfg(target_os = "linux")]
    Map(MmapMut),
    Slot(Slot),
}

impl Block {
    /// Allocates `size` bytes, all zero. Makes the pages of a map in steps of `step` bytes, with a call of `between`
    /// after each. Returns `None` if the system has no more memory.
    fn try_new(size: usize, step: usize, between: impl Fn()) -> Option<Self> {
        let on_heap = || try_zeroed(size).ok().map(|bytes| Self::Heap(bytes.into_boxed_slice()));
        if size < MIN_MAPPED {
            return on_heap();
        }
        if !has_memory() {
            return None;
        }
        // if the kernel refuses another map, the allocator may have some
        Self::try_map(size, step, between).or_else(on_heap)
    }

    #[cfg(target_os = "linux")]
    fn try_map(size: usize, step: usize, between: impl Fn()) -> Option<Self> {
        let map = MmapMut::map_anon(size).ok()?;
        // all of it will be written, so one call replaces a fault for every page. No huge pages here: the host of a
        // virtual machine reclaims those first, and getting them again costs more than they save
        for from in (0..size).step_by(step) {
            let _ = map.advise_range(Advice::PopulateWrite, from, step.min(size - from));
            between();
        }
        Some(Self::Map(map))
    }

    #[cfg(not(target_os = "linux"))]
    fn try_map(_size: usize, _step: usize, _between: impl Fn()) -> Option<Self> {
        None
    }
}

impl Default for Block {
    fn default() -> Self {
        Self::Heap(Box::default())
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Self::Map(map) => map,
            Self::Slot(slot) => slot,
        }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Self::Map(map) => map,
            Self::Slot(slot) => slot,
        }
    }
}

#[derive(Default)]
struct FreeList {
    /// Of each size that there is: when the last block was added, on the list's clock, and the blocks, oldest first.
    classes: HashMap<usize, (u64, Vec<Block>)>,
    bytes: usize,
    clock: u64,
}

impl FreeList {
    /// Takes a block of exactly `size` bytes: the oldest one, or the one that was added last.
    fn take(&mut self, size: usize, oldest: bool) -> Option<Block> {
        let (_, blocks) = self.classes.get_mut(&size)?;
        let block = if oldest { blocks.remove(0) } else { blocks.pop()? };
        if blocks.is_empty() {
            self.classes.remove(&size);
        }
        self.bytes -= size;
        Some(block)
    }

    fn push(&mut self, block: Block) {
        self.clock += 1;
        self.bytes += block.len();
        let (last_added, blocks) = self.classes.entry(block.len()).or_default();
        *last_added = self.clock;
        blocks.push(block);
    }

    /// Removes blocks while there are more than `most` bytes: first those of other sizes than `size`, from the size
    /// class to which no block was added for the longest time.
    fn shrink(&mut self, most: usize, size: usize) -> Vec<Block> {
        let mut removed = Vec::new();
        while self.bytes > most {
            let age = |(other, class): &(&usize, &(u64, Vec<Block>))| (**other == size, class.0);
            let Some(other) = self.classes.iter().min_by_key(age).map(|(other, _)| *other) else { break };
            removed.extend(self.take(other, true));
        }
        removed
    }
}

/// A pool of buffers. A buffer returns to its pool when it is dropped.
#[derive(Default)]
pub(crate) struct BufferPool {
    state: Mutex<State>,
    capacity: usize,
    large_capacity: usize,
    /// Bytes that may be made ahead.
    ahead: usize,
    small: Arc<SmallBlocks>,
    replies: [OnceLock<Option<Arc<Slab>>>; REPLY_CLASSES.len()],
}

#[derive(Default)]
struct State {
    free: FreeList,
    /// Bytes of the brick that was taken or announced last: the next one is most likely of the same array. At first 0.
    brick: usize,
    /// Bytes of bricks to have ready: those that were announced, plus later misses.
    target: usize,
    /// Bytes that the free list may hold besides its capacity: the target, as far as there is room.
    kept_ahead: usize,
}

impl BufferPool {
    /// Creates a pool that keeps at most `capacity` bytes of unused buffers.
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, ..Self::default() })
    }

    /// Creates a pool for bricks: it keeps at most `capacity` bytes of unused buffers, or a few large ones if that is
    /// not zero, and makes at most `ahead` bytes of memory ahead.
    pub(crate) fn for_bricks(capacity: usize, ahead: usize) -> Arc<Self> {
        Arc::new(Self { capacity, large_capacity: LARGE_KEPT_BYTES, ahead, ..Self::default() })
    }

    /// Returns an empty buffer, for which nothing is allocated.
    pub(crate) fn empty(self: &Arc<Self>) -> Buffer {
        self.buffer(Block::default(), 0)
    }

    fn buffer(self: &Arc<Self>, block: Block, len: usize) -> Buffer {
        Buffer { block, len, pool: Arc::clone(self) }
    }

    /// Returns a buffer of `len` bytes. Its content is unspecified: zeros, or what an earlier user left.
    pub(crate) fn try_take(self: &Arc<Self>, len: usize) -> Result<Buffer, OutOfMemory> {
        let size = size_of(len);
        let reused = self.state.lock().free.take(size, false);
        let block = reused.or_else(|| Block::try_new(size, size, || {})).or_else(|| {
            // idle buffers of other sizes are memory, too
            self.release_idle();
            Block::try_new(size, size, || {})
        });
        Ok(self.buffer(block.ok_or(OutOfMemory(size))?, len))
    }

    /// Like [`BufferPool::try_take`], for a decoded brick: a new one that is small shares pages with others.
    pub(crate) fn take_brick(self: &Arc<Self>, len: usize) -> Result<Buffer, OutOfMemory> {
        let size = size_of(len);
        // a brick of less than a page comes from the allocator
        if size < PAGE {
            return self.try_take(len);
        }
        match self.reuse_brick(size).or_else(|| self.small_block(size)) {
            Some(block) => Ok(self.buffer(block, len)),
            None => self.try_take(len),
        }
    }

    /// Takes a free block. If there is none, as much memory is given back of blocks that were made ahead in other
    /// sizes, since the new block will need that.
    fn reuse_brick(&self, size: usize) -> Option<Block> {
        let mut state = self.state.lock();
        let found = state.free.take(size, false);
        if self.ahead > 0 {
            state.brick = size;
        }
        if found.is_none() && self.ahead > 0 {
            let most = state.free.bytes.saturating_sub(size).max(self.capacity);
            let removed = state.free.shrink(most, size);
            state.target = state.target.saturating_add(size).min(self.ahead);
            drop(state);
            drop(removed); // unmapping is slow: not under the lock
        }
        found
    }

    fn small_block(&self, size: usize) -> Option<Block> {
        (size < MIN_MAPPED).then(|| self.small.take(size).map(Block::Slot)).flatten()
    }

    /// Returns whether memory may be made ahead, but no brick was taken or announced yet.
    pub(crate) fn is_unused_for_bricks(&self) -> bool {
        self.ahead > 0 && self.state.lock().brick == 0
    }

    /// Announces that `number` bricks of `len` bytes are likely to be taken soon, the first of this pool.
    pub(crate) fn will_need_bricks(&self, len: usize, number: usize) {
        let mut state = self.state.lock();
        if len >= PAGE && state.brick == 0 {
            state.brick = size_of(len);
            state.target = state.brick.saturating_mul(number).min(self.ahead);
        }
    }

    /// Returns whether there is memory for more bricks of `len` bytes than decoders use in turn.
    pub(crate) fn has_ready(&self, len: usize) -> bool {
        let blocks = |state: &State| state.free.classes.get(&size_of(len)).map_or(0, |(_, blocks)| blocks.len());
        blocks(&self.state.lock()) > LARGE_KEPT
    }

    /// Whether [`BufferPool::prefault_brick`] would make a block.
    pub(crate) fn wants_prefaulted(&self, room: usize) -> bool {
        self.missing(room).is_some()
    }

    /// Makes a block for one more brick like the last one, unless there are enough, or no `room` bytes for them.
    /// Returns whether it did.
    pub(crate) fn prefault_brick(&self, room: usize) -> bool {
        let Some(size) = self.missing(room) else { return false };
        let made = self.small_block(size).or_else(|| Block::try_new(size, STEP, thread::yield_now));
        let is_made = made.is_some();
        made.into_iter().for_each(|block| self.give_back(block));
        is_made
    }

    /// Returns the bytes of the block to be made next; `None` if there are enough. Gives up what takes more than `room`
    /// bytes.
    fn missing(&self, room: usize) -> Option<usize> {
        let mut state = self.state.lock();
        let State { free, brick, target, kept_ahead } = &mut *state;
        *kept_ahead = room.min(*target);
        let ready = free.classes.get(brick).map_or(0, |(_, blocks)| blocks.len() * *brick);
        let is_enough = ready.saturating_add(*brick) > *kept_ahead;
        let missing = (*brick > 0 && !is_enough).then_some(*brick);
        let removed = free.shrink(self.most(free, *kept_ahead, 0), *brick);
        drop(state);
        drop(removed);
        missing
    }

    /// Returns the bytes that the free list may hold with a block of `len` bytes.
    fn most(&self, free: &FreeList, kept_ahead: usize, len: usize) -> usize {
        let large =
            LARGE_KEPT.saturating_mul(free.classes.keys().copied().fold(len, usize::max)).min(self.large_capacity);
        let kept = if self.capacity == 0 { 0 } else { self.capacity.max(large) };
        kept.saturating_add(kept_ahead)
    }

    /// Gives up unused buffers, and what was made ahead until bricks are taken or announced again.
    pub(crate) fn release_idle(&self) {
        let idle = mem::take(&mut *self.state.lock());
        drop(idle);
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
            let (slab, (pages, size)) = self.replies.iter().zip(REPLY_CLASSES).find(|(_, (_, size))| len <= *size)?;
            slab.get_or_init(|| Slab::of_huge_pages(pages, size)).as_ref()?.take()
        };
        match (len >= MIN_MAPPED).then(slot).flatten() {
            Some(slot) => Ok(self.buffer(Block::Slot(slot), len)),
            None => self.try_take(len),
        }
    }

    /// Adds a block to the free list. Blocks below a page go back to the allocator, slots of huge pages to their slab.
    fn give_back(&self, block: Block) {
        if block.len() < PAGE || matches!(&block, Block::Slot(slot) if slot.is_huge()) {
            return;
        }
        let (len, mut state) = (block.len(), self.state.lock());
        let most = self.most(&state.free, state.kept_ahead, len);
        state.free.push(block);
        let removed = state.free.shrink(most, len);
        drop(state);
        drop(removed); // unmapping is slow: not under the lock
    }
}

/// Returns the bytes to allocate for a buffer of `len` bytes: whole pages, unless it is less than one.
fn size_of(len: usize) -> usize {
    if len < PAGE { len } else { len.checked_next_multiple_of(PAGE).unwrap_or(len) }
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

    impl BufferPool {
        /// Like [`BufferPool::try_take`].
        pub(crate) fn take(self: &Arc<Self>, len: usize) -> Buffer {
            self.try_take(len).unwrap()
        }

        /// Returns the bytes of all unused blocks.
        pub(crate) fn idle_bytes(&self) -> usize {
            self.state.lock().free.bytes
        }
    }

    #[test]
    fn large_buffers_are_reused_within_the_capacity() {
        let buffers = BufferPool::new(1 << 20);
        let (one, two) = (buffers.take(600 << 10), buffers.take(600 << 10));
        let at = one.as_ptr();
        drop(two);
        drop(one);
        assert_eq!(buffers.idle_bytes(), 600 << 10);
        let again = buffers.take((600 << 10) - 7);
        assert_eq!((again.as_ptr(), again.len(), again.capacity()), (at, (600 << 10) - 7, 600 << 10));
        drop(buffers.take(2 << 20));
        assert_eq!(buffers.idle_bytes(), 0);
    }

    #[test]
    fn sizes_that_were_not_used_for_long_go_first() {
        let buffers = BufferPool::new(1 << 20);
        let [old, new, last] = [600, 400, 200].map(|kib| buffers.take(kib << 10));
        drop(old);
        drop(new);
        drop(last);
        assert_eq!(buffers.idle_bytes(), 600 << 10);
    }

    #[test]
    fn a_few_large_buffers_are_kept_for_bricks() {
        let buffers = BufferPool::for_bricks(1 << 20, 0);
        for (size, kept) in [(100 << 10, 10), (500 << 10, 3), (8 << 20, 3), (20 << 20, 1), (25 << 20, 0)] {
            let taken: Vec<Buffer> = (0..12).map(|_| buffers.take_brick(size).unwrap()).collect();
            drop(taken);
            assert_eq!(buffers.idle_bytes(), kept * size);
            buffers.release_idle();
            assert_eq!(buffers.idle_bytes(), 0);
        }
        let taken: Vec<Buffer> = (0..2).map(|_| buffers.take_brick(8 << 20).unwrap()).collect();
        drop(taken);
        drop(buffers.take_scratch(1 << 20).unwrap());
        assert_eq!(buffers.idle_bytes(), 17 << 20, "a smaller one does not drive them out");
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
        assert_eq!(buffers.idle_bytes(), 32 << 10);
        assert_eq!(at(&buffers.take_brick(32 << 10).unwrap()), address);
        drop(bricks);
        assert_eq!(buffers.idle_bytes(), 64 << 10, "what exceeds the capacity goes back to its slab");
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
            assert_eq!((made, buffers.idle_bytes()), ((1 << 20) / size, 1 << 20));
            assert!(!buffers.wants_prefaulted(usize::MAX));
            let mut bricks: Vec<Buffer> = (0..3).map(|_| buffers.take_brick(size - 5).unwrap()).collect();
            for (n, brick) in bricks.iter_mut().enumerate() {
                brick.fill(n as u8);
            }
            assert!(bricks.iter().enumerate().all(|(n, brick)| brick.iter().all(|b| *b == n as u8)));
            assert_eq!(buffers.idle_bytes(), (1 << 20) - 3 * size);
            drop(bricks);
            assert_eq!(buffers.idle_bytes(), 1 << 20, "what is given back is ready for the next ones");
            buffers.release_idle();
            assert_eq!(buffers.idle_bytes(), 0);
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
            assert_eq!(buffers.idle_bytes(), 0, "idle buffers were given back first");
        }
        assert_eq!(buffers.try_take(200 << 10).unwrap().len(), 200 << 10);
    }

    #[test]
    fn small_buffers_begin_as_zeros() {
        let buffers = BufferPool::new(0);
        assert!(buffers.take(5000).iter().all(|b| *b == 0));
        assert!(buffers.take(0).is_empty() && buffers.empty().is_empty());
    }

    fn prefault(buffers: &Arc<BufferPool>, room: usize) -> usize {
        (0..100).take_while(|_| buffers.prefault_brick(room)).count()
    }

    /// Takes bricks that stay in use, and returns for each whether its memory was ready.
    fn take_bricks(buffers: &Arc<BufferPool>, size: usize, number: usize) -> Vec<bool> {
        let take = |_| {
            let before = buffers.idle_bytes();
            mem::forget(buffers.take_brick(size).unwrap());
            buffers.idle_bytes() + size == before
        };
        (0..number).map(take).collect()
    }

    #[test]
    fn bricks_of_the_last_size_are_made_as_far_as_there_is_room() {
        let buffers = BufferPool::for_bricks(0, 40 << 10);
        assert_eq!(prefault(&buffers, usize::MAX), 0, "nobody has asked for any yet");
        assert_eq!(take_bricks(&buffers, 8 << 10, 2), [false, false]);
        assert_eq!(prefault(&buffers, 12 << 10), 1);
        assert_eq!(prefault(&buffers, usize::MAX), 1, "as many as were missing");
        assert_eq!(take_bricks(&buffers, 8 << 10, 6), [true, true, false, false, false, false]);
        assert_eq!(prefault(&buffers, usize::MAX), 5, "as many as fit");
        take_bricks(&buffers, 16 << 10, 1);
        assert_eq!(buffers.idle_bytes(), 24 << 10, "the brick takes the memory of two of them");
        assert_eq!(prefault(&buffers, usize::MAX), 2, "in place of others");
        assert!(buffers.idle_bytes() <= 40 << 10);
        assert_eq!((prefault(&buffers, 10 << 10), buffers.idle_bytes()), (0, 0), "the room is needed");
        assert_eq!(take_bricks(&buffers, 100 << 10, 1), [false]);
        assert_eq!(prefault(&buffers, usize::MAX), 0, "too large");
    }

    #[test]
    fn bricks_that_are_announced_are_made_before_any_was_taken() {
        let buffers = BufferPool::for_bricks(0, 40 << 10);
        assert!(buffers.is_unused_for_bricks());
        buffers.will_need_bricks(8 << 10, 3);
        assert!(!buffers.is_unused_for_bricks());
        buffers.will_need_bricks(4 << 10, 9);
        assert_eq!(prefault(&buffers, usize::MAX), 3, "as many as were announced first");
        assert_eq!(take_bricks(&buffers, 8 << 10, 4), [true, true, true, false]);
        assert_eq!(prefault(&buffers, usize::MAX), 4, "as many as were taken");
        buffers.release_idle();
        assert_eq!(prefault(&buffers, usize::MAX), 0, "nobody reads");
        buffers.will_need_bricks(4 << 10, 100);
        assert_eq!(prefault(&buffers, usize::MAX), 10, "no more than there is room");
    }

    #[test]
    fn without_memory_to_make_ahead_nothing_is_made() {
        let buffers = BufferPool::for_bricks(1 << 20, 0);
        assert!(!buffers.is_unused_for_bricks());
        assert_eq!((take_bricks(&buffers, 8 << 10, 1), prefault(&buffers, usize::MAX)), (vec![false], 0));
    }
}
