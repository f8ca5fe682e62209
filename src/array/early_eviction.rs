//! The ghost list of the cache: which bricks are evicted early, and which of them stay after all.
//!
//! The kernel's page cache holds what a scan has read. So the bricks behind it are evicted long before the cache is
//! full, and their memory goes to the next bricks: a brick that is decoded into memory which nobody has touched before
//! costs a page fault for every page. A reader that comes back, in another direction say, decodes such bricks again. So
//! the keys of evicted bricks are kept as *ghosts*: every ghost that is decoded again pays for several bricks that
//! stay, and each of those for another one when it is used again.

use std::collections::VecDeque;

use crate::memory::{LruByWeight, entry_weight};
use crate::volume::ArrayId;

/// An array, and the number of a brick in its grid.
pub(super) type BrickKey = (ArrayId, u64);

/// The last bricks stay in any case, as many as have this many bytes or a part of the cache: requests that come out of
/// order still need them.
const RECENT: usize = 4 << 20;
const RECENT_PART: usize = 16;
/// One brick in so many has a ghost and stands for the others.
const SAMPLED: usize = 8;
/// Bytes that may stay for each byte that was decoded again.
const PAID_BY_GHOST: usize = 8;

/// The bricks that scans have passed lately, and the ghosts of those that were evicted.
pub(super) struct GhostList {
    /// Those that were passed last and may be evicted, with their bytes; the oldest first.
    recent: VecDeque<(BrickKey, usize)>,
    recent_bytes: usize,
    ghosts: LruByWeight<BrickKey, ()>,
    /// Bytes of bricks that may stay.
    credit: usize,
    capacity: usize,
}

impl GhostList {
    /// For a cache of `capacity` bytes. What would not fit into it leaves no ghost.
    pub(super) fn new(capacity: usize) -> Self {
        let ghosts = LruByWeight::new(capacity);
        Self { recent: VecDeque::new(), recent_bytes: 0, ghosts, credit: 0, capacity }
    }

    /// Adds a brick that a scan has passed.
    pub(super) fn add(&mut self, key: BrickKey, bytes: usize) {
        // so that the list is bounded however small the bricks are
        let weight = entry_weight(bytes);
        self.recent.push_back((key, weight));
        self.recent_bytes += weight;
    }

    /// Returns the next brick to evict, if there is one, and leaves its ghost.
    pub(super) fn next_to_evict(&mut self) -> Option<BrickKey> {
        while self.recent_bytes > RECENT.min(self.capacity / RECENT_PART) {
            let (key, bytes) = self.recent.pop_front()?;
            self.recent_bytes -= bytes;
            match self.credit.checked_sub(bytes) {
                Some(credit) => self.credit = credit,
                None => {
                    if is_sampled(&key) {
                        self.ghosts.insert(key, (), bytes.saturating_mul(SAMPLED));
                    }
                    return Some(key);
                }
            }
        }
        None
    }

    /// Records that a brick of `bytes` bytes had to be decoded.
    pub(super) fn record_decoded(&mut self, key: &BrickKey, bytes: usize) {
        if is_sampled(key) && self.ghosts.remove(key).is_some() {
            self.pay(bytes.saturating_mul(SAMPLED * PAID_BY_GHOST));
        }
    }

    /// Lets bricks of `bytes` bytes stay: as many as a scan uses again of those that had stayed.
    pub(super) fn pay(&mut self, bytes: usize) {
        self.credit = self.credit.saturating_add(bytes).min(self.capacity);
    }
}

/// Whether a brick is one of those that have ghosts: no more of one row or column of bricks than of another.
fn is_sampled(&(_, number): &BrickKey) -> bool {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SAMPLED.ilog2()) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRICK: usize = 1 << 20;

    #[test]
    fn bricks_are_evicted_until_they_are_missed() {
        let (array, mut list) = (ArrayId::next(), GhostList::new(1 << 30));
        let pass = |list: &mut GhostList, numbers: std::ops::Range<u64>| -> Vec<u64> {
            numbers
                .filter_map(|n| {
                    list.add((array, n), BRICK);
                    list.next_to_evict().map(|key| key.1)
                })
                .collect()
        };
        let kept = (RECENT / BRICK) as u64; // a part of the cache would be more
        assert_eq!(pass(&mut list, 0..400), (0..400 - kept).collect::<Vec<u64>>());
        // bricks that were never evicted pay for nothing
        (1000..2000).for_each(|n| list.record_decoded(&(array, n), BRICK));
        assert_eq!(list.credit, 0);
        (0..100).for_each(|n| list.record_decoded(&(array, n), BRICK));
        let paid = list.credit / BRICK;
        assert!((500..1025).contains(&paid), "about eight times as many stay as were decoded again: {paid}");
        (0..100).for_each(|n| list.record_decoded(&(array, n), BRICK));
        assert_eq!(list.credit / BRICK, paid, "a ghost pays once");
        assert_eq!(pass(&mut list, 400..400 + paid as u64).len(), 0);
        assert_eq!(pass(&mut list, 3000..3010).len(), 10, "the credit is used up");
    }

    #[test]
    fn no_more_ghosts_than_bricks_would_fit() {
        let (array, mut list) = (ArrayId::next(), GhostList::new(100 * BRICK));
        for n in 0..10_000 {
            list.add((array, n), BRICK);
            list.next_to_evict();
        }
        assert!(list.ghosts.weight() <= 100 * BRICK);
        (0..9_000).for_each(|n| list.record_decoded(&(array, n), BRICK));
        assert_eq!(list.credit, 0, "they would have been evicted in any case");
        (9_000..10_000).for_each(|n| list.record_decoded(&(array, n), BRICK));
        assert_eq!(list.credit, 100 * BRICK, "the credit is no more than the cache");
    }
}
