//! A block of memory: from the allocator, a map of its own, or a slot of a slab.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};

use super::reserve::{has_memory, try_zeroed};
use super::slab::Slot;
use super::small_blocks::SmallBlock;
use crate::sync::thread;

/// Blocks from this size on are anonymous maps; smaller ones come from the allocator.
pub(super) const MIN_MAPPED: usize = 128 << 10;

/// Bytes whose pages are made at a time where others may want the processor: that takes 50 to 100 µs.
const STEP: usize = 128 << 10;

/// A block of memory of a fixed size.
pub(super) enum Block {
    Heap(Box<[u8]>),
    Map(MmapMut),
    /// Of a reply.
    Slot(Slot),
    /// Of a brick.
    Small(SmallBlock),
}

impl Block {
    /// Allocates `size` bytes, all zero. Returns `None` if the system has no more memory.
    pub(crate) fn try_new(size: usize) -> Option<Self> {
        Self::try_populated(size, size, || {})
    }

    /// Like [`Block::try_new`], for a thread that works while others may want its processor: it lets them have it after
    /// every few pages.
    pub(crate) fn try_new_yielding(size: usize) -> Option<Self> {
        Self::try_populated(size, STEP, thread::yield_now)
    }

    /// Allocates `size` bytes. Makes the pages of a map in steps of `step` bytes, with a call of `between` after each.
    fn try_populated(size: usize, step: usize, between: impl Fn()) -> Option<Self> {
        if size < MIN_MAPPED {
            return try_zeroed(size).ok().map(|bytes| Self::Heap(bytes.into_boxed_slice()));
        }
        if !has_memory() {
            return None;
        }
        // if the kernel refuses another map, the allocator may have some
        let Ok(map) = MmapMut::map_anon(size) else {
            return try_zeroed(size).ok().map(|bytes| Self::Heap(bytes.into_boxed_slice()));
        };
        // all of it will be written, so one call replaces a fault for every page. No huge pages here: the host of a
        // virtual machine reclaims those first, and getting them again costs more than they save
        for from in (0..size).step_by(step) {
            let _ = map.advise_range(Advice::PopulateWrite, from, step.min(size - from));
            between();
        }
        Some(Self::Map(map))
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
            Self::Map(map) => map,
            Self::Slot(slot) => slot,
            Self::Small(block) => block,
        }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Map(map) => map,
            Self::Slot(slot) => slot,
            Self::Small(block) => block,
        }
    }
}
