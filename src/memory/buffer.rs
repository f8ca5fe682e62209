//! Byte buffers that go back to where they came from.
//!
//! A brick is large, so that each would be mapped anew and cost a page fault for every 4 KiB; and an allocator that keeps
//! such blocks for itself makes the daemon larger than its bound: it has a heap for every few threads, and bricks come and go on
//! all of them. So large buffers are anonymous maps of their own, and a few of all but the smallest wait for the next use.

use crate::sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use memmap2::{Advice, MmapMut};

use super::slab::{Slab, Slot};

/// Smaller buffers than this come from the allocator.
const MAPPED: usize = 128 << 10;
const PAGE: usize = 4096;

/// Replies that are in huge pages, the shorter ones first: how many huge pages they share, and the bytes of the longest. That is what the
/// kernel asks for at a time, without and with `--direct-io`, and room for a header before its samples.
const REPLIES: [(usize, usize); 2] = [(1, 34 * PAGE), (2, 341 * PAGE)];

/// A place where buffers wait to be used again.
#[derive(Default)]
pub struct BufferPool {
    idle: Mutex<Idle>,
    bound: usize,
    slabs: [OnceLock<Option<Arc<Slab>>>; REPLIES.len()],
}

/// Memory that waits, by size.
#[derive(Default)]
struct Idle {
    sizes: HashMap<usize, Waiting>,
    bytes: usize,
    clock: u64,
}

/// Memory of one size, never none, and when the last of it came.
#[derive(Default)]
struct Waiting {
    since: u64,
    memory: Vec<Memory>,
}

impl Idle {
    fn take(&mut self, size: usize) -> Option<Memory> {
        let waiting = self.sizes.get_mut(&size)?;
        let memory = waiting.memory.pop();
        if waiting.memory.is_empty() {
            self.sizes.remove(&size);
        }
        self.bytes -= if memory.is_some() { size } else { 0 };
        memory
    }

    /// Keeps `memory`, and gives back what there is no room for: first of sizes that are no longer asked for, and what has waited
    /// longest.
    fn put(&mut self, memory: Memory, bound: usize) -> Vec<Memory> {
        let size = memory.size();
        let mut dropped = Vec::new();
        while self.bytes + size > bound {
            let longest = |(other, waiting): &(&usize, &mut Waiting)| (**other == size, waiting.since);
            let Some((&other, waiting)) = self.sizes.iter_mut().min_by_key(longest) else {
                dropped.push(memory);
                return dropped;
            };
            dropped.push(waiting.memory.remove(0));
            if waiting.memory.is_empty() {
                self.sizes.remove(&other);
            }
            self.bytes -= other;
        }
        self.clock += 1;
        let waiting = self.sizes.entry(size).or_default();
        waiting.since = self.clock;
        waiting.memory.push(memory);
        self.bytes += size;
        dropped
    }
}

impl BufferPool {
    /// Keeps at most `bound` bytes of buffers that nobody uses.
    #[must_use]
    pub fn new(bound: usize) -> Arc<Self> {
        Arc::new(Self { idle: Mutex::default(), bound, slabs: Default::default() })
    }

    /// A buffer of `len` bytes. Its content is arbitrary (zeros, or what an earlier user left).
    #[must_use]
    pub fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let size = if len < PAGE { len } else { len.next_multiple_of(PAGE) };
        let waiting = if len < PAGE { None } else { self.idle().take(size) };
        let memory = waiting.unwrap_or_else(|| if size < MAPPED { Memory::heap(size) } else { Memory::mapped(size) });
        Buffer { memory, len, home: Arc::clone(self) }
    }

    /// Like [`BufferPool::take`], for bytes that are needed for a moment: those that wait are larger than need be at times, so that they fit
    /// for lengths that differ.
    #[must_use]
    pub fn take_scratch(self: &Arc<Self>, len: usize) -> Buffer {
        let step = (len / 2).next_power_of_two() / 4;
        let mut buffer = self.take(len.checked_next_multiple_of(step.max(1)).unwrap_or(len));
        buffer.truncate(len);
        buffer
    }

    /// Like [`BufferPool::take`], for bytes that go to the kernel at once: a few of those at a time are in huge pages.
    #[must_use]
    pub fn take_reply(self: &Arc<Self>, len: usize) -> Buffer {
        let slot = || {
            let (slab, (pages, longest)) = self.slabs.iter().zip(REPLIES).find(|(_, (_, longest))| len <= *longest)?;
            slab.get_or_init(|| Slab::new(pages, longest)).as_ref()?.take()
        };
        match (len >= MAPPED).then(slot).flatten() {
            Some(slot) => Buffer { memory: Memory::Slot(slot), len, home: Arc::clone(self) },
            None => self.take(len),
        }
    }

    fn give_back(&self, memory: Memory) {
        if memory.size() >= PAGE && !matches!(memory, Memory::Slot(_)) {
            let dropped = self.idle().put(memory, self.bound);
            drop(dropped); // unmapping takes its time: not under the lock
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock()
    }
}

enum Memory {
    Heap(Box<[u8]>),
    Map(MmapMut),
    Slot(Slot),
}

impl Memory {
    fn heap(size: usize) -> Self {
        Self::Heap(vec![0; size].into_boxed_slice())
    }

    fn mapped(size: usize) -> Self {
        // if the kernel has no more maps to give, the allocator knows what to do
        let Ok(map) = MmapMut::map_anon(size) else { return Self::heap(size) };
        // all of it will be written: one call is cheaper than a fault for every page. Not in huge pages: those are what the host of a
        // virtual machine has taken back first, and to get them again costs more than they save
        let _ = map.advise(Advice::PopulateWrite);
        Self::Map(map)
    }

    fn size(&self) -> usize {
        match self {
            Self::Heap(bytes) => bytes.len(),
            Self::Map(map) => map.len(),
            Self::Slot(slot) => slot.len(),
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::Heap(Box::default())
    }
}

/// Bytes of which nobody else knows.
pub struct Buffer {
    memory: Memory,
    len: usize,
    home: Arc<BufferPool>,
}

impl Buffer {
    /// Bytes of memory that the buffer takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.memory.size()
    }

    /// Makes the buffer shorter; its memory stays.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.memory {
            Memory::Heap(bytes) => bytes,
            Memory::Map(map) => map,
            Memory::Slot(slot) => slot,
        };
        &bytes[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes: &mut [u8] = match &mut self.memory {
            Memory::Heap(bytes) => bytes,
            Memory::Map(map) => map,
            Memory::Slot(slot) => slot,
        };
        &mut bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_used_again_within_the_bound() {
        let buffers = BufferPool::new(1 << 20);
        let idle = |b: &Arc<BufferPool>| b.idle().bytes;
        let (one, two) = (buffers.take(600 << 10), buffers.take(600 << 10));
        let at = one.as_ptr();
        drop(two);
        drop(one);
        assert_eq!(idle(&buffers), 600 << 10);
        let again = buffers.take((600 << 10) - 7);
        assert_eq!((again.as_ptr(), again.len(), again.weight()), (at, (600 << 10) - 7, 600 << 10));
        drop(buffers.take(2 << 20));
        assert_eq!(idle(&buffers), 0);
    }

    #[test]
    fn what_is_needed_for_a_moment_fits_for_other_lengths() {
        let buffers = BufferPool::new(4 << 20);
        let first = buffers.take_scratch(930_000);
        let at = first.as_ptr();
        drop(first);
        let again = buffers.take_scratch(970_000);
        assert_eq!((again.as_ptr(), again.len()), (at, 970_000));
        for len in [0, 1, 2, 5, 4095, 4097, 1 << 20, (1 << 20) + 1] {
            let buffer = buffers.take_scratch(len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.weight() <= len + len / 3 + 4096);
        }
    }

    #[test]
    fn replies_share_huge_pages_and_never_wait() {
        let buffers = BufferPool::new(1 << 20);
        let mut replies: Vec<Buffer> = (0..8).map(|_| buffers.take_reply(1 << 20)).collect();
        for (n, reply) in replies.iter_mut().enumerate() {
            reply.fill(n as u8);
        }
        assert!(
            replies.iter().enumerate().all(|(n, reply)| reply.len() == 1 << 20 && reply.iter().all(|b| *b == n as u8))
        );
        let first = replies[0].as_ptr();
        drop(replies);
        assert_eq!(buffers.take_reply(200 << 10).as_ptr(), first);
        let short: Vec<Buffer> = (0..20).map(|_| buffers.take_reply(128 << 10)).collect();
        assert!(short.iter().all(|reply| reply.as_ptr() != first), "short ones leave the others their place");
        assert_ne!(buffers.take(1 << 20).as_ptr(), first, "what may be kept for long is no reply");
    }

    #[test]
    fn small_buffers_begin_as_zeros() {
        let buffers = BufferPool::new(0);
        assert!(buffers.take(5000).iter().all(|b| *b == 0));
        assert!(buffers.take(0).is_empty());
    }
}
