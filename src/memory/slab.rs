//! Memory of huge pages, for the buffers of replies.
//!
//! The kernel looks up every page of a reply when it copies it to the client, and the processor every page that a copy touches:
//! in huge pages both are quicker. A huge page is larger than any reply, so that a few replies share two of them.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Advice, MmapMut};

/// Bytes of a huge page, on most machines.
const HUGE: usize = 2 << 20;
/// Replies at a time; those beyond get other memory.
const SLOTS: usize = 3;
/// Bytes of a slot: the longest reply, what a header before the samples adds to it, and what is left over.
pub(super) const SLOT: usize = 2 * HUGE / SLOTS / 4096 * 4096;

/// The slots, of which each belongs to one user at a time.
pub(super) struct Slab {
    first: NonNull<u8>,
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
    /// Memory for the slots, if there is any to be had. It takes room only when slots are used.
    pub fn new() -> Option<Arc<Self>> {
        let mut map = MmapMut::map_anon(3 * HUGE).ok()?;
        // without huge pages it is memory like any other
        let _ = map.advise(Advice::HugePage);
        let before = map.as_ptr().align_offset(HUGE);
        let first = NonNull::from(map.get_mut(before..before.checked_add(SLOTS * SLOT)?)?).cast();
        Some(Arc::new(Self { first, free: AtomicU32::new((1 << SLOTS) - 1), _map: map }))
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
        // SAFETY: slots are numbered below SLOTS, and the slab has SLOTS times SLOT bytes from `first` on.
        unsafe { self.slab.first.add(self.number as usize * SLOT) }
    }
}

impl Deref for Slot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: these bytes lie within the slab's map, which was zeros at first, and nobody else has the slot.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), SLOT) }
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for reading; the slot is borrowed by one at a time.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), SLOT) }
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
        let slab = Slab::new().unwrap();
        let mut slots: Vec<Slot> = (0..SLOTS).map(|_| slab.take().unwrap()).collect();
        assert!(slab.take().is_none());
        for (n, slot) in slots.iter_mut().enumerate() {
            assert_eq!(slot.len(), SLOT);
            slot.fill(n as u8 + 1);
        }
        assert!(slots.iter().enumerate().all(|(n, slot)| slot.iter().all(|b| *b == n as u8 + 1)));
        let at = slots[1].as_ptr();
        slots.remove(1);
        assert_eq!(slab.take().unwrap().as_ptr(), at);
        drop(slots);
        assert_eq!(slab.free.load(Ordering::Relaxed), (1 << SLOTS) - 1);
    }
}
