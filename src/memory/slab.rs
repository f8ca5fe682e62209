//! Memory of huge pages, for the buffers of replies.
//!
//! The kernel looks up every page of a reply when it copies it to the client, and the processor every page that a copy touches:
//! in huge pages both are quicker. A huge page is larger than any reply, so that several replies share one.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Advice, MmapMut};

/// Bytes of a huge page, on most machines.
const HUGE: usize = 2 << 20;

/// The slots, of which each belongs to one user at a time.
pub(super) struct Slab {
    first: NonNull<u8>,
    /// Bytes of a slot.
    slot: usize,
    /// A bit for each slot that is free.
    free: AtomicU32,
    _map: MmapMut,
}

// SAFETY: the memory behind `first` belongs to the slab alone. Its parts are reached through slots only, and each of them has one
// owner, who got it by clearing a bit of `free`.
unsafe impl Send for Slab {}
// SAFETY: as above; `free` is atomic.
unsafe impl Sync for Slab {}

impl Slab {
    /// As many slots of `slot` bytes as there is room for in so many huge pages, if there are any to be had. They take memory only
    /// when they are used.
    pub fn new(pages: usize, slot: usize) -> Option<Arc<Self>> {
        let bytes = pages.checked_mul(HUGE)?;
        let slots = u32::try_from(bytes.checked_div(slot)?).ok()?.min(u32::BITS);
        if slots == 0 {
            return None;
        }
        let mut map = MmapMut::map_anon(bytes.checked_add(HUGE)?).ok()?;
        // without huge pages it is memory like any other
        let _ = map.advise(Advice::HugePage);
        let before = map.as_ptr().align_offset(HUGE);
        let first = NonNull::from(map.get_mut(before..before.checked_add(bytes)?)?).cast();
        Some(Arc::new(Self { first, slot, free: AtomicU32::new(u32::MAX >> (u32::BITS - slots)), _map: map }))
    }

    /// A slot that nobody uses, always the first: it is the one that the processor's cache still holds.
    pub fn take(self: &Arc<Self>) -> Option<Slot> {
        let claim = |free: u32| (free != 0).then_some(free & free.wrapping_sub(1));
        let free = self.free.fetch_update(Ordering::AcqRel, Ordering::Relaxed, claim).ok()?;
        Some(Slot { slab: Arc::clone(self), number: free.trailing_zeros() })
    }
}

/// The memory of one reply. Its content is arbitrary.
pub(super) struct Slot {
    slab: Arc<Slab>,
    number: u32,
}

impl Slot {
    fn start(&self) -> NonNull<u8> {
        // SAFETY: the numbers are those of bits that `new` has set in `free`: as many as there is room for, of `slot` bytes each, from
        // `first` on.
        unsafe { self.slab.first.add(self.number as usize * self.slab.slot) }
    }
}

impl Deref for Slot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: these bytes lie within the slab's map, which was zeros at first, and nobody else has the slot.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.slab.slot) }
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for reading; the slot is borrowed by one at a time.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.slab.slot) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slab.free.fetch_or(1 << self.number, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_apart_and_come_back() {
        for (pages, slot, count) in [(2, 341 * 4096, 3), (1, 34 * 4096, 15), (1, 4096, 32)] {
            let slab = Slab::new(pages, slot).unwrap();
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
        assert!(Slab::new(1, 3 << 20).is_none() && Slab::new(1, 0).is_none());
    }
}
