//! In place of slabs and anonymous maps, on systems other than Linux: all blocks come from the allocator.

use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A block of its own map, or of a slab.
pub(super) struct Slot(Infallible);

impl Slot {
    pub(super) fn is_huge(&self) -> bool {
        match self.0 {}
    }
}

impl Deref for Slot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self.0 {}
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self.0 {}
    }
}

pub(super) struct Slab(Infallible);

impl Slab {
    pub(super) fn of_huge_pages(_pages: usize, _slot: usize) -> Option<Arc<Self>> {
        None
    }

    pub(super) fn take(self: &Arc<Self>) -> Option<Slot> {
        match self.0 {}
    }
}

#[derive(Default)]
pub(super) struct SmallBlocks;

impl SmallBlocks {
    pub(super) fn take(self: &Arc<Self>, _size: usize) -> Option<Slot> {
        None
    }
}
