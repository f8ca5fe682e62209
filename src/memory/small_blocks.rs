//! Blocks of memory for small bricks, which share slabs.
//!
//! The allocator would clear each block, though a decoder overwrites it, and the kernel would make each page when it is
//! first touched. A slab has all its pages from the beginning, and gives those of free blocks back.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::reserve::has_memory;
use super::slab::{Slab, Slot};
use crate::sync::Mutex;

/// The slabs that have free slots, by the bytes of a slot.
#[derive(Default)]
pub(super) struct SmallBlocks {
    with_free: Mutex<HashMap<usize, Vec<Arc<Slab>>>>,
}

/// A block of whole pages. Its content is unspecified.
pub(super) struct SmallBlock {
    // dropped in this order: the slab is looked at when the slot is free
    slot: Slot,
    _return: ReturnToList,
}

/// Lists the slab of a dropped block again.
struct ReturnToList {
    slab: Arc<Slab>,
    blocks: Arc<SmallBlocks>,
}

impl SmallBlocks {
    /// Returns a block of `size` bytes, or `None` if it is not of whole pages, too large to share a slab, or if the
    /// system has no more memory.
    pub(crate) fn take(self: &Arc<Self>, size: usize) -> Option<SmallBlock> {
        let (slab, slot) = match self.take_listed(size) {
            Some(found) => found,
            None => {
                let slab = has_memory().then(|| Slab::of_pages(size)).flatten()?;
                let slot = slab.take()?;
                self.list(&slab);
                (slab, slot)
            }
        };
        slot.populate();
        Some(SmallBlock { slot, _return: ReturnToList { slab, blocks: Arc::clone(self) } })
    }

    fn take_listed(&self, size: usize) -> Option<(Arc<Slab>, Slot)> {
        let mut with_free = self.with_free.lock();
        let slabs = with_free.get_mut(&size)?;
        let slab = Arc::clone(slabs.last()?);
        let slot = slab.take();
        if !slab.has_free() {
            slabs.pop();
        }
        if slabs.is_empty() {
            with_free.remove(&size);
        }
        Some((slab, slot?))
    }

    /// Lists a slab if it has free slots, unless all are free: then nobody needs it.
    fn list(&self, slab: &Arc<Slab>) {
        let mut with_free = self.with_free.lock();
        let slabs = with_free.entry(slab.slot()).or_default();
        let at = slabs.iter().rposition(|listed| Arc::ptr_eq(listed, slab));
        match at {
            Some(at) if slab.is_unused() => drop(slabs.swap_remove(at)),
            None if slab.has_free() && !slab.is_unused() => slabs.push(Arc::clone(slab)),
            _ => {}
        }
        if slabs.is_empty() {
            with_free.remove(&slab.slot());
        }
    }
}

impl Drop for ReturnToList {
    fn drop(&mut self) {
        self.blocks.list(&self.slab);
    }
}

impl Deref for SmallBlock {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.slot
    }
}

impl DerefMut for SmallBlock {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.slot
    }
}

#[cfg(test)]
mod tests {
    use rustix::param::page_size;

    use super::*;

    fn listed(blocks: &SmallBlocks) -> usize {
        blocks.with_free.lock().values().map(Vec::len).sum()
    }

    #[test]
    fn slabs_are_filled_again_and_go_when_nobody_needs_them() {
        let (blocks, size) = (Arc::new(SmallBlocks::default()), page_size());
        let mut taken: Vec<SmallBlock> = (0..96).map(|_| blocks.take(size).unwrap()).collect();
        for (n, block) in taken.iter_mut().enumerate() {
            block.fill(n as u8);
        }
        assert!(taken.iter().enumerate().all(|(n, block)| block.len() == size && block.iter().all(|b| *b == n as u8)));
        assert_eq!(listed(&blocks), 0, "three slabs, all full");
        let addresses = |blocks: &[SmallBlock]| blocks.iter().map(|block| block.as_ptr() as usize).max();
        let last = addresses(&taken);
        // every other block: each slab has room again
        let mut n = 0;
        taken.retain(|_| {
            n += 1;
            n % 2 == 0
        });
        assert_eq!(listed(&blocks), 3);
        taken.extend((0..48).map(|_| blocks.take(size).unwrap()));
        assert_eq!((listed(&blocks), addresses(&taken)), (0, last), "no other slab was made");
        let other = blocks.take(2 * size).unwrap();
        taken.truncate(1);
        assert_eq!(listed(&blocks), 2, "the slab of the block that is left, and that of the other size");
        drop((taken, other));
        assert_eq!(listed(&blocks), 0);
        assert!(blocks.take(size / 2).is_none() && blocks.take(0).is_none() && blocks.take(usize::MAX).is_none());
    }

    #[test]
    fn threads_share_slabs_but_no_block() {
        let (blocks, size) = (Arc::new(SmallBlocks::default()), page_size());
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let blocks = &blocks;
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for round in 0..2_000usize {
                        let mut block = blocks.take(size).unwrap();
                        let mark = thread * 50 + (round % 50) as u8;
                        block.fill(mark);
                        kept.push((block, mark));
                        if kept.len() > 20 + round % 40 {
                            let (block, mark) = kept.swap_remove(round * 7 % kept.len());
                            assert!(block.iter().all(|b| *b == mark));
                        }
                    }
                    assert!(kept.iter().all(|(block, mark)| block.iter().all(|b| b == mark)));
                });
            }
        });
        assert_eq!(listed(&blocks), 0);
    }
}
