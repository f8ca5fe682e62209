//! Slabs: memory for several blocks of the same size. There are those of huge pages for the buffers of replies, and
//! those of ordinary pages for small bricks.
//!
//! The kernel looks up every page of a reply when it copies it to the client, and the processor translates the address
//! of every page that a copy touches: both are faster with huge pages. A huge page is larger than any reply, so several
//! share it. Small bricks share a slab since the allocator would clear each, though a decoder overwrites it, and the
//! kernel would make each page when it is first touched.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Advice, MmapMut, UncheckedAdvice};
use rustix::param::page_size;

use super::allocator::has_memory;
use crate::sync::Mutex;

/// Bytes of a huge page on most machines.
const HUGE_PAGE: usize = 2 << 20;
/// The most bytes of a slab of ordinary pages.
const ORDINARY: usize = 1 << 20;

/// At most 32 slots of the same size. A slot has one owner at a time.
pub(super) struct Slab {
    first: NonNull<u8>,
    /// Bytes of a slot.
    slot: usize,
    /// One bit for each slot, set while the slot is free.
    free: AtomicU32,
    /// The value of `free` when all slots are.
    all: u32,
    map: MmapMut,
    /// Where a slab of ordinary pages is listed while it has free slots. Those have no pages; of huge pages they have.
    small: Option<Arc<SmallBlocks>>,
}

// SAFETY: the memory at `first` belongs to the slab alone. It is accessed only through slots, and each slot has one
// owner, which acquired it by clearing a bit of `free`.
unsafe impl Send for Slab {}
// SAFETY: as above; `free` is atomic.
unsafe impl Sync for Slab {}

impl Slab {
    /// Creates as many slots of `slot` bytes as fit into `pages` huge pages. Returns `None` if none fits or if the
    /// kernel refuses the memory. Pages take memory from their first use on.
    pub(super) fn of_huge_pages(pages: usize, slot: usize) -> Option<Arc<Self>> {
        let bytes = pages.checked_mul(HUGE_PAGE)?;
        let map = MmapMut::map_anon(bytes.checked_add(HUGE_PAGE)?).ok()?;
        // where huge pages are disabled, ordinary pages do as well
        let _ = map.advise(Advice::HugePage);
        let before = map.as_ptr().align_offset(HUGE_PAGE);
        Self::new(map, before..before.checked_add(bytes)?, slot, None)
    }

    fn new(mut map: MmapMut, part: Range<usize>, slot: usize, small: Option<Arc<SmallBlocks>>) -> Option<Arc<Self>> {
        let slots = u32::try_from(part.len().checked_div(slot)?).ok()?.min(u32::BITS);
        let all = u32::MAX.checked_shr(u32::BITS - slots)?;
        let first = NonNull::from(map.get_mut(part)?).cast();
        Some(Arc::new(Self { first, slot, free: AtomicU32::new(all), all, map, small }))
    }

    fn is_unused(&self) -> bool {
        self.free.load(Ordering::Acquire) == self.all
    }

    fn has_free(&self) -> bool {
        self.free.load(Ordering::Acquire) != 0
    }

    /// Takes the free slot with the lowest number, which is the most likely one to be in the processor's cache.
    pub(super) fn take(self: &Arc<Self>) -> Option<Slot> {
        let claim = |free: u32| (free != 0).then_some(free & free.wrapping_sub(1));
        let free = self.free.fetch_update(Ordering::AcqRel, Ordering::Relaxed, claim).ok()?;
        Some(Slot { slab: Arc::clone(self), number: free.trailing_zeros() })
    }
}

/// The memory of one block. Its content is unspecified. Dropping it frees the slot.
pub(super) struct Slot {
    slab: Arc<Slab>,
    number: u32,
}

impl Slot {
    /// Returns whether the slot is one of huge pages.
    pub(super) fn is_huge(&self) -> bool {
        self.slab.small.is_none()
    }

    fn offset(&self) -> usize {
        self.number as usize * self.slab.slot
    }

    fn start(&self) -> NonNull<u8> {
        // SAFETY: `number` is that of a bit that the slab was made with in `free`: there are only as many as slots of
        // `slot` bytes fit into the map from `first` on.
        unsafe { self.slab.first.add(self.offset()) }
    }
}

impl Deref for Slot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes lie within the slab's map, which is initialised with zeros, and the slot has no other
        // owner.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.slab.slot) }
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for reading; `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.slab.slot) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Slab { slot, map, small, free, .. } = &*self.slab;
        if small.is_some() {
            // SAFETY: slots of such a slab begin where its map does and are whole pages, so that the pages are those of
            // this slot alone, and nobody else has it. They are zeros from now on
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, self.offset(), *slot) };
        }
        free.fetch_or(1 << self.number, Ordering::AcqRel);
        if let Some(small) = small {
            small.list(&self.slab);
        }
    }
}

/// The slabs of ordinary pages that have free slots, by the bytes of a slot and by their address.
#[derive(Default)]
pub(super) struct SmallBlocks(Mutex<HashMap<usize, BTreeMap<usize, Arc<Slab>>>>);

impl SmallBlocks {
    /// Returns a block of `size` bytes with all its pages, or `None` if that is not whole pages, too large to share a
    /// slab, or if the system has no more memory.
    pub(super) fn take(self: &Arc<Self>, size: usize) -> Option<Slot> {
        let slot = match self.take_listed(size) {
            Some(slot) => slot,
            None => {
                let slots = ORDINARY.checked_div(size).filter(|_| size.is_multiple_of(page_size()) && has_memory())?;
                let bytes = slots.min(u32::BITS as usize) * size;
                let map = MmapMut::map_anon(bytes).ok()?;
                let slab = Slab::new(map, 0..bytes, size, Some(Arc::clone(self)))?;
                let slot = slab.take()?;
                self.list(&slab);
                slot
            }
        };
        // one call replaces a fault for every page; where the kernel does not know it, there are faults
        let _ = slot.slab.map.advise_range(Advice::PopulateWrite, slot.offset(), size);
        Some(slot)
    }

    fn take_listed(&self, size: usize) -> Option<Slot> {
        let mut listed = self.0.lock();
        let slabs = listed.get_mut(&size)?;
        let slab = Arc::clone(slabs.last_key_value()?.1);
        let slot = slab.take();
        if !slab.has_free() {
            slabs.pop_last();
        }
        if slabs.is_empty() {
            listed.remove(&size);
        }
        slot
    }

    /// Lists a slab if it has free slots, unless all are free: then nobody needs it.
    fn list(&self, slab: &Arc<Slab>) {
        let mut listed = self.0.lock();
        let slabs = listed.entry(slab.slot).or_default();
        let address = Arc::as_ptr(slab).addr();
        if slab.is_unused() {
            slabs.remove(&address);
        } else if slab.has_free() {
            slabs.insert(address, Arc::clone(slab));
        }
        if slabs.is_empty() {
            listed.remove(&slab.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    fn listed(blocks: &SmallBlocks) -> usize {
        blocks.0.lock().values().map(BTreeMap::len).sum()
    }

    #[test]
    fn slots_do_not_overlap_and_are_reused() {
        for (pages, slot, count) in [(2, 341 * 4096, 3), (1, 34 * 4096, 15), (1, 4096, 32)] {
            let slab = Slab::of_huge_pages(pages, slot).unwrap();
            let mut slots: Vec<Slot> = iter::from_fn(|| slab.take()).collect();
            assert_eq!(slots.len(), count);
            for (n, part) in slots.iter_mut().enumerate() {
                assert_eq!(part.len(), slot);
                part.fill(n as u8 + 1);
            }
            assert!(slots.iter().enumerate().all(|(n, slot)| slot.iter().all(|b| *b == n as u8 + 1)));
            let at = slots[1].as_ptr();
            slots.remove(1);
            let again = slab.take().unwrap();
            assert_eq!(again.as_ptr(), at);
            drop((slots, again));
            assert_eq!(slab.free.load(Ordering::Relaxed).count_ones() as usize, count);
        }
        assert!(Slab::of_huge_pages(1, 3 << 20).is_none() && Slab::of_huge_pages(1, 0).is_none());
    }

    #[test]
    fn free_slots_of_ordinary_pages_take_no_memory() {
        let (page, blocks) = (page_size(), Arc::new(SmallBlocks::default()));
        for size in [page / 2, 0, 2 << 20, usize::MAX] {
            assert!(blocks.take(size).is_none());
        }
        let mut slots: Vec<Slot> = (0..32).map(|_| blocks.take(2 * page).unwrap()).collect();
        let slab = Arc::clone(&slots[0].slab);
        for (n, slot) in slots.iter_mut().enumerate() {
            slot.fill(n as u8 + 1);
        }
        assert!(!slab.has_free());
        let dropped = slots.extract_if(.., |slot| slot[0] % 2 == 0).count();
        assert!(dropped == 16 && slab.has_free() && !slab.is_unused());
        assert!(slots.iter().enumerate().all(|(n, slot)| slot.iter().all(|b| usize::from(*b) == 2 * n + 1)));
        // what comes back has lost its content, as proof that the pages were gone
        let again: Vec<Slot> = (0..16).map(|_| blocks.take(2 * page).unwrap()).collect();
        assert!(!slab.has_free() && again.iter().all(|slot| Arc::ptr_eq(&slot.slab, &slab)));
        assert!(again.iter().all(|slot| slot.iter().all(|b| *b == 0)));
        drop((slots, again));
        assert!(slab.is_unused());
    }

    #[test]
    fn slabs_are_filled_again_and_go_when_nobody_needs_them() {
        let (blocks, size) = (Arc::new(SmallBlocks::default()), page_size());
        let mut taken: Vec<Slot> = (0..96).map(|_| blocks.take(size).unwrap()).collect();
        for (n, block) in taken.iter_mut().enumerate() {
            block.fill(n as u8);
        }
        assert!(taken.iter().enumerate().all(|(n, block)| block.len() == size && block.iter().all(|b| *b == n as u8)));
        assert_eq!(listed(&blocks), 0, "three slabs, all full");
        let addresses = |blocks: &[Slot]| blocks.iter().map(|block| block.as_ptr() as usize).max();
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
