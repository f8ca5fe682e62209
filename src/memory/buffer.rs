//! Byte buffers that go back to where they came from.
//!
//! A brick is large, so that each would be mapped anew and cost a page fault for every 4 KiB; and an allocator that keeps
//! such blocks for itself makes the daemon larger than its bound. So large buffers are anonymous maps of their own, and a few
//! of them wait for the next use.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapMut;

/// Smaller buffers than this come from the allocator.
const MAPPED: usize = 128 << 10;
const PAGE: usize = 4096;

/// A place where buffers wait to be used again.
#[derive(Default)]
pub struct Buffers {
    idle: Mutex<Vec<MmapMut>>,
    bound: usize,
}

impl Buffers {
    /// Keeps at most `bound` bytes of buffers that nobody uses.
    #[must_use]
    pub fn new(bound: usize) -> Arc<Self> {
        Arc::new(Self { idle: Mutex::default(), bound })
    }

    /// A buffer of `len` bytes. Its content is arbitrary (zeros, or what an earlier user left).
    #[must_use]
    pub fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let memory = if len < MAPPED { Memory::heap(len) } else { self.mapped(len) };
        Buffer { memory, len, home: Arc::clone(self) }
    }

    fn mapped(&self, len: usize) -> Memory {
        let size = len.next_multiple_of(PAGE);
        let waiting = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.iter().rposition(|map| map.len() == size).map(|at| idle.swap_remove(at))
        };
        match waiting.map_or_else(|| MmapMut::map_anon(size), Ok) {
            Ok(map) => Memory::Map(Some(map)),
            // the kernel has no more maps to give: the allocator knows what to do then
            Err(_) => Memory::heap(len),
        }
    }

    fn give_back(&self, map: MmapMut) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // what waits longest goes first, so that sizes no longer asked for do not stay
        let mut dropped = Vec::new();
        while !idle.is_empty() && idle.iter().map(|m| m.len()).sum::<usize>() + map.len() > self.bound {
            dropped.push(idle.remove(0));
        }
        if map.len() <= self.bound {
            idle.push(map);
        }
        drop(idle); // unmapping takes its time: not under the lock
    }
}

enum Memory {
    Heap(Box<[u8]>),
    /// Always there, until the buffer is dropped.
    Map(Option<MmapMut>),
}

impl Memory {
    fn heap(len: usize) -> Self {
        Self::Heap(vec![0; len].into_boxed_slice())
    }
}

/// Bytes of which nobody else knows.
pub struct Buffer {
    memory: Memory,
    len: usize,
    home: Arc<Buffers>,
}

impl Buffer {
    /// Bytes of memory that the buffer takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        match &self.memory {
            Memory::Heap(bytes) => bytes.len(),
            Memory::Map(map) => map.as_ref().map_or(0, |map| map.len()),
        }
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
            Memory::Map(map) => map.as_deref().unwrap_or_default(),
        };
        &bytes[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes: &mut [u8] = match &mut self.memory {
            Memory::Heap(bytes) => bytes,
            Memory::Map(map) => map.as_deref_mut().unwrap_or_default(),
        };
        &mut bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Memory::Map(map) = &mut self.memory
            && let Some(map) = map.take()
        {
            self.home.give_back(map);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_used_again_within_the_bound() {
        let buffers = Buffers::new(1 << 20);
        let idle = |b: &Arc<Buffers>| b.idle.lock().unwrap().iter().map(|m| m.len()).sum::<usize>();
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
    fn small_buffers_begin_as_zeros() {
        let buffers = Buffers::new(0);
        assert!(buffers.take(5000).iter().all(|b| *b == 0));
        assert!(buffers.take(0).is_empty());
    }
}
