//! Slabs: memory for several blocks of the same size. There are those of huge pages for the buffers of replies, and
//! those of ordinary pages for small bricks.
//!
//! The kernel looks up every page of a reply when it copies it to the client, and the processor translates the address
//! of every page that a copy touches: both are faster with huge pages. A huge page is larger than any reply, so
//! several share it. Small bricks share a slab since the kernel then makes the pages of all of them in one call.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Advice, MmapMut, UncheckedAdvice};
use rustix::param::page_size;

/// Bytes of a huge page on most machines.
const HUGE_PAGE: usize = 2 << 20;
/// The most bytes of a slab of ordinary pages.
const ORDINARY: usize = 1 << 20;

/// A fixed number of slots of the same size. A slot has one owner at a time.
pub(super) struct Slab {
    first: NonNull<u8>,
    /// Bytes of a slot.
    slot: usize,
    /// One bit for each slot, set while the slot is free.
    free: AtomicU32,
    /// The value of `free` when all slots are.
    all: u32,
    /// One bit for each slot, set while it has pages; `None` if those of free slots are kept.
    present: Option<AtomicU32>,
    map: MmapMut,
}

// SAFETY: the memory at `first` belongs to the slab alone. It is accessed only through slots, and each slot has one
// owner, which acquired it by clearing a bit of `free`.
unsafe impl Send for Slab {}
// SAFETY: as above; `free` and `present` are atomic.
unsafe impl Sync for Slab {}

impl Slab {
    /// Creates as many slots of `slot` bytes as fit into `pages` huge pages, 32 at most. Returns `None` if none fits or
    /// if the kernel refuses the memory. Pages take memory from their first use on.
    pub(crate) fn of_huge_pages(pages: usize, slot: usize) -> Option<Arc<Self>> {
        let bytes = pages.checked_mul(HUGE_PAGE)?;
        let slots = u32::try_from(bytes.checked_div(slot)?).ok()?.min(u32::BITS);
        if slots == 0 {
            return None;
        }
        let mut map = MmapMut::map_anon(bytes.checked_add(HUGE_PAGE)?).ok()?;
        // where huge pages are disabled, ordinary pages do as well
        let _ = map.advise(Advice::HugePage);
        let before = map.as_ptr().align_offset(HUGE_PAGE);
        let first = NonNull::from(map.get_mut(before..before.checked_add(bytes)?)?).cast();
        let all = u32::MAX >> (u32::BITS - slots);
        Some(Arc::new(Self { first, slot, free: AtomicU32::new(all), all, present: None, map }))
    }

    /// Creates as many slots of `slot` bytes as fit into a MiB, 32 at most, all with their pages. A slot that is free
    /// again takes no memory. Returns `None` if none fits, if slots are not whole pages, or if the kernel refuses the
    /// memory.
    pub(crate) fn of_pages(slot: usize) -> Option<Arc<Self>> {
        let slots = ORDINARY.checked_div(slot)?.min(u32::BITS as usize);
        if slots == 0 || !slot.is_multiple_of(page_size()) {
            return None;
        }
        let mut map = MmapMut::map_anon(slots * slot).ok()?;
        // one call replaces a fault for every page; where the kernel does not know it, there are faults
        let _ = map.advise(Advice::PopulateWrite);
        let first = NonNull::from(map.get_mut(..)?).cast();
        let all = u32::MAX >> (u32::BITS - slots as u32);
        Some(Arc::new(Self { first, slot, free: AtomicU32::new(all), all, present: Some(AtomicU32::new(all)), map }))
    }

    /// Returns the bytes of a slot.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Returns whether all slots are free.
    pub(crate) fn is_unused(&self) -> bool {
        self.free.load(Ordering::Acquire) == self.all
    }

    /// Returns whether a slot is free.
    pub(crate) fn has_free(&self) -> bool {
        self.free.load(Ordering::Acquire) != 0
    }

    /// Takes the free slot with the lowest number, which is the most likely one to be in the processor's cache.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Slot> {
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
    /// Makes the pages of a slot that was free before, in one call.
    pub(crate) fn populate(&self) {
        let Slab { slot, present: Some(present), map, .. } = &*self.slab else { return };
        if present.fetch_or(1 << self.number, Ordering::Relaxed) >> self.number & 1 == 0 {
            let _ = map.advise_range(Advice::PopulateWrite, self.number as usize * slot, *slot);
        }
    }

    fn start(&self) -> NonNull<u8> {
        // SAFETY: `number` is that of a bit that the slab was made with in `free`: there are only as many as slots of
        // `slot` bytes fit into the map from `first` on.
        unsafe { self.slab.first.add(self.number as usize * self.slab.slot) }
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
        let Slab { slot, present, map, .. } = &*self.slab;
        if let Some(present) = present {
            present.fetch_and(!(1 << self.number), Ordering::Relaxed);
            // SAFETY: the pages are those of this slot alone, since slots are whole pages, and nobody else has it. They
            // are zeros from now on
            let _ =
                unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, self.number as usize * slot, *slot) };
        }
        self.slab.free.fetch_or(1 << self.number, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_overlap_and_are_reused() {
        for (pages, slot, count) in [(2, 341 * 4096, 3), (1, 34 * 4096, 15), (1, 4096, 32)] {
            let slab = Slab::of_huge_pages(pages, slot).unwrap();
            let mut slots: Vec<Slot> = std::iter::from_fn(|| slab.take()).collect();
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
        let page = page_size();
        assert!(Slab::of_pages(page / 2).is_none() && Slab::of_pages(0).is_none() && Slab::of_pages(2 << 20).is_none());
        let slab = Slab::of_pages(2 * page).unwrap();
        let mut slots: Vec<Slot> = std::iter::from_fn(|| slab.take()).collect();
        assert_eq!(slots.len(), 32);
        for (n, slot) in slots.iter_mut().enumerate() {
            slot.fill(n as u8 + 1);
        }
        let dropped = slots.extract_if(.., |slot| slot[0] % 2 == 0).count();
        assert!(dropped == 16 && slab.has_free() && !slab.is_unused());
        assert!(slots.iter().enumerate().all(|(n, slot)| slot.iter().all(|b| usize::from(*b) == 2 * n + 1)));
        // what comes back has lost its content, as proof that the pages were gone
        let again: Vec<Slot> = std::iter::from_fn(|| slab.take()).collect();
        assert!(again.len() == 16 && !slab.has_free());
        again.iter().for_each(Slot::populate);
        assert!(again.iter().all(|slot| slot.iter().all(|b| *b == 0)));
        drop((slots, again));
        assert!(slab.is_unused());
    }
}
