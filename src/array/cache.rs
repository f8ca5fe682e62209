//! The cache of decoded bricks, bounded in bytes. A brick is decoded once, however many readers wait for it.
//!
//! Constant and plain bricks never enter the cache. A reader holds a reference to the brick that it copies from, so
//! eviction never takes bytes away from it. Failures are not cached: the next reader tries again.
//!
//! There are two LRU partitions, one for scans and one for all other readers, so that random readers do not evict a
//! layer of bricks in the middle of a scan, and a scan does not evict everything that others use. A lookup searches
//! both.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::copy::Loops;
use super::early_eviction::{BrickKey, GhostList};
use super::output::Rows;
use crate::format::FormatError;
use crate::memory::{Buffer, BufferPool, LruByWeight, OutOfMemory};
use crate::sync::{Condvar, Mutex};
use crate::volume::{AxisPermutation, Layout, Region};

/// A brick to look up, and what the lookup found.
pub(super) type Lookup = (BrickKey, Option<Arc<DecodedBrick>>);

/// A decoded brick, or the reason why there is none: the same for all readers that waited for it.
pub(super) type DecodeResult = Result<Arc<DecodedBrick>, FormatError>;

/// Bricks that were evicted. They are dropped after the cache's lock was released, since unmapping takes time.
type Evicted = Vec<(BrickKey, Arc<DecodedBrick>)>;

/// The samples of one brick, decoded.
pub(super) struct DecodedBrick {
    pub(super) bytes: Buffer,
    pub(super) layout: Layout,
}

impl DecodedBrick {
    /// Returns a new brick with the samples of a region, in C order of permuted axes. A sample has `size` bytes.
    pub(super) fn part(
        &self,
        region: Region,
        order: &AxisPermutation,
        size: usize,
        buffers: &Arc<BufferPool>,
    ) -> Result<Self, OutOfMemory> {
        let strides = order.strides(&region.shape, size as u64);
        let layout = Layout { held: region, first: 0, strides };
        // a brick may own no samples, where a margin is all that is left of it
        if region.shape.contains(&0) {
            return Ok(Self { bytes: buffers.empty(), layout });
        }
        let (length, is_whole) = (region.samples() as usize * size, region == self.layout.held);
        let mut bytes = if is_whole { buffers.take_brick(length)? } else { buffers.try_take(length)? };
        let from = &self.bytes[self.layout.offset_of(&region.start) as usize..];
        Loops::new(&region.shape, &self.layout.strides, &strides, size).copy(&[from], &mut Rows::new(&mut bytes), 0);
        Ok(Self { bytes, layout })
    }
}

/// How long a brick stays that was just decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// As one that any reader may need.
    Shared,
    /// As one that any reader may need, if it was decoded lately already. For codecs that are as fast as the kernel makes
    /// memory: bricks that are used once need none, and evict none.
    IfDecodedAgain,
    /// As one of a scan.
    Scan,
    /// Only for those who wait for it now.
    Never,
}

/// How much of the cache's capacity scans get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScanQuota {
    /// Bytes that scans keep outside of the cache, as planes.
    pub(super) outside: usize,
    /// Capacity of the scan partition, in bytes.
    pub(super) partition: usize,
    /// Makes the shared partition scan-resistant: bricks that leave the scan partition evict nothing there.
    pub(super) scan_resistant: bool,
}

/// The decoded bricks of all datasets.
pub(super) struct BrickCache {
    state: Mutex<State>,
    /// The capacity in bytes, the scans' quota included.
    pub(super) capacity: usize,
}

struct State {
    capacity: usize,
    shared: LruByWeight<BrickKey, Arc<DecodedBrick>>,
    scan: LruByWeight<BrickKey, ScanBrick>,
    scan_resistant: bool,
    /// Bricks that were decoded and not kept, as many as the cache could hold.
    decoded_once: LruByWeight<BrickKey, ()>,
    ghosts: GhostList,
    in_flight: HashMap<BrickKey, Arc<InFlight>>,
}

/// A brick in the scan partition.
#[derive(Clone)]
struct ScanBrick {
    brick: Arc<DecodedBrick>,
    /// A scan has passed it, and what the scan has read is in the kernel's page cache.
    passed: bool,
}

/// A brick that one thread is decoding, while others wait for the result.
#[derive(Default)]
struct InFlight {
    result: Mutex<Option<DecodeResult>>,
    completed: Condvar,
}

impl BrickCache {
    /// Creates a cache of at most `capacity` bytes, all of it shared at first.
    pub(super) fn new(capacity: usize) -> Self {
        let (shared, scan, ghosts) = (LruByWeight::new(capacity), LruByWeight::new(0), GhostList::new(capacity));
        let (decoded_once, in_flight) = (LruByWeight::new(capacity), HashMap::new());
        let state = State { capacity, shared, scan, scan_resistant: false, decoded_once, ghosts, in_flight };
        Self { state: Mutex::new(state), capacity }
    }

    /// Looks up many bricks under one lock, and returns how many were found. Never waits for a decoder.
    pub(super) fn get_many(&self, lookups: &mut [Lookup]) -> usize {
        if lookups.is_empty() {
            return 0;
        }
        let mut state = self.state.lock();
        for (key, brick) in lookups.iter_mut() {
            *brick = state.get(key);
        }
        drop(state);
        lookups.iter().filter(|(_, brick)| brick.is_some()).count()
    }

    /// Returns a brick from the cache, from another thread that is decoding it, or from `decode`, which runs here
    /// without any lock; and whether it was in the cache. An error is that of `decode`, whichever thread ran it.
    pub(super) fn get_or_decode(
        &self,
        key: BrickKey,
        keep: Keep,
        decode: impl FnOnce() -> DecodeResult,
    ) -> (DecodeResult, bool) {
        let mut state = self.state.lock();
        if let Some(brick) = state.get(&key) {
            return (Ok(brick), true);
        }
        if let Some(in_flight) = state.in_flight.get(&key).cloned() {
            drop(state);
            return (in_flight.wait(), false);
        }
        let in_flight = Arc::new(InFlight::default());
        state.in_flight.insert(key, Arc::clone(&in_flight));
        drop(state);
        let panicked = |_| Err(FormatError::Internal("the decoder panicked".into()));
        let result = catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(panicked);
        let mut state = self.state.lock();
        state.in_flight.remove(&key);
        let evicted = match &result {
            Ok(brick) => state.insert_decoded(key, Arc::clone(brick), keep),
            Err(_) => Evicted::new(),
        };
        drop(state);
        drop(evicted);
        // by now no thread can find the entry any more; without waiters the notification would be a needless system
        // call
        if Arc::strong_count(&in_flight) > 1 {
            *in_flight.result.lock() = Some(result.clone());
            in_flight.completed.notify_all();
        }
        (result, false)
    }

    /// Returns a brick without marking it as used, and without counting a hit.
    pub(super) fn peek(&self, key: BrickKey) -> Option<Arc<DecodedBrick>> {
        let state = self.state.lock();
        state.scan.peek(&key).map(|scan| scan.brick).or_else(|| state.shared.peek(&key))
    }

    /// Returns whether a brick is there, without marking it as used, and without counting a hit.
    pub(super) fn contains(&self, key: BrickKey) -> bool {
        let state = self.state.lock();
        state.scan.contains(&key) || state.shared.contains(&key)
    }

    /// Removes a part of a brick, which is decoded whole now.
    pub(super) fn remove_part(&self, part: BrickKey, brick: BrickKey) {
        let mut state = self.state.lock();
        let removed = state.shared.remove(&part);
        if let Some(part) = &removed {
            state.decoded_once.insert(brick, (), part.bytes.capacity());
        }
        drop(state);
        drop(removed);
    }

    /// Removes a brick.
    pub(super) fn remove(&self, key: BrickKey) {
        let mut state = self.state.lock();
        let removed = (state.scan.remove(&key), state.shared.remove(&key));
        drop(state);
        drop(removed);
    }

    /// Returns the bytes that it may still grow by: less than its capacity and what it holds tell, where scans keep
    /// planes outside of it.
    pub(super) fn room(&self) -> usize {
        let state = self.state.lock();
        state.shared.capacity().saturating_add(state.scan.capacity()).saturating_sub(state.bytes())
    }

    /// Sets the share of the capacity that scans get. Cached bricks under `wanted` move to the scan partition, as its
    /// most recently used ones.
    pub(super) fn set_scan_quota(&self, quota: ScanQuota, wanted: impl Iterator<Item = BrickKey>) {
        let evicted = self.state.lock().set_quota(quota, wanted);
        drop(evicted);
    }

    /// Makes bricks of the scan partition the first to be evicted, in the order of `keys`. `page_cached` means that
    /// what was read of them is in the kernel's page cache, too: they stay no longer than they are likely to be used
    /// again.
    pub(super) fn demote(&self, keys: impl DoubleEndedIterator<Item = BrickKey>, page_cached: bool) {
        let mut state = self.state.lock();
        for key in keys.rev() {
            if let Some(found) = state.scan.get_mut(&key) {
                found.passed = page_cached;
                state.scan.demote(&key);
            }
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes()
    }

    /// Bricks that are being decoded.
    pub(super) fn in_flight(&self) -> usize {
        self.state.lock().in_flight.len()
    }
}

impl State {
    /// Returns a brick and makes it the most recently used of its partition.
    fn get(&mut self, key: &BrickKey) -> Option<Arc<DecodedBrick>> {
        self.scan.get(key).map(|scan| scan.brick).or_else(|| self.shared.get(key))
    }

    /// Inserts a brick that was just decoded. Returns what is evicted, which may be the brick itself.
    fn insert_decoded(&mut self, key: BrickKey, brick: Arc<DecodedBrick>, keep: Keep) -> Evicted {
        let bytes = brick.bytes.capacity();
        self.ghosts.record_decoded(&key, bytes);
        match keep {
            Keep::Never => vec![(key, brick)],
            Keep::IfDecodedAgain if self.decoded_once.remove(&key).is_none() => {
                self.decoded_once.insert(key, (), bytes);
                vec![(key, brick)]
            }
            Keep::Shared | Keep::IfDecodedAgain => self.shared.insert(key, brick, bytes),
            Keep::Scan => self.insert_for_scan(key, brick),
        }
    }

    fn insert_for_scan(&mut self, key: BrickKey, brick: Arc<DecodedBrick>) -> Evicted {
        let bytes = brick.bytes.capacity();
        let displaced = self.scan.insert(key, ScanBrick { brick, passed: false }, bytes);
        self.move_to_shared(displaced)
    }

    /// Moves bricks that left the scan partition to the shared one, if these fit. Of those that were passed only the
    /// last stay, or those that will be missed.
    fn move_to_shared(&mut self, bricks: Vec<(BrickKey, ScanBrick)>) -> Evicted {
        let mut evicted = Vec::new();
        for (key, ScanBrick { brick, passed }) in bricks {
            let bytes = brick.bytes.capacity();
            if passed {
                self.ghosts.add(key, bytes);
            }
            evicted.extend(match self.scan_resistant {
                true => self.shared.insert_least_recent(key, brick, bytes),
                false => self.shared.insert(key, brick, bytes),
            });
        }
        while let Some(key) = self.ghosts.next_to_evict() {
            evicted.extend(self.shared.remove(&key).map(|brick| (key, brick)));
        }
        evicted
    }

    /// Sets the capacities of both partitions. Bricks under `wanted` move to the scan partition, as its most recently
    /// used ones.
    fn set_quota(&mut self, quota: ScanQuota, wanted: impl Iterator<Item = BrickKey>) -> Evicted {
        self.scan_resistant = quota.scan_resistant;
        let displaced = self.scan.set_capacity(quota.partition);
        let mut evicted = Vec::new();
        for key in wanted {
            if let Some(found) = self.scan.get_mut(&key) {
                found.passed = false;
            } else if let Some(brick) = self.shared.remove(&key) {
                self.ghosts.pay(brick.bytes.capacity());
                evicted.extend(self.insert_for_scan(key, brick));
            }
        }
        let reserved = quota.outside.saturating_add(self.scan.capacity());
        evicted.extend(self.shared.set_capacity(self.capacity.saturating_sub(reserved)));
        evicted.extend(self.move_to_shared(displaced));
        evicted
    }

    fn bytes(&self) -> usize {
        self.shared.weight() + self.scan.weight()
    }
}

impl InFlight {
    /// Waits for the decoding thread and returns its result.
    fn wait(&self) -> DecodeResult {
        let mut result = self.result.lock();
        loop {
            match &*result {
                Some(known) => return known.clone(),
                None => self.completed.wait(&mut result),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::memory::entry_weight;
    use crate::volume::{ArrayId, Dims};

    fn brick(bytes: usize) -> DecodeResult {
        let layout = Layout::c_order([0].into(), [bytes as u64].into(), [bytes as u64].into(), 1);
        Ok(Arc::new(DecodedBrick { bytes: BufferPool::new(0).take(bytes), layout }))
    }

    fn cache(capacity: usize) -> BrickCache {
        BrickCache::new(capacity)
    }

    #[test]
    fn a_brick_is_decoded_once_however_many_wait() {
        let cache = cache(1 << 20);
        let (decoded, start, key) = (AtomicUsize::new(0), Barrier::new(8), (ArrayId::next(), 5));
        let found = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let (got, was_cached) = cache.get_or_decode(key, Keep::Shared, || {
                        decoded.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(50));
                        brick(1000)
                    });
                    assert_eq!(got.unwrap().bytes.len(), 1000);
                    found.fetch_add(usize::from(was_cached), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(decoded.into_inner(), 1);
        assert!(found.into_inner() < 8, "at least the thread that decoded it did not find it");
        assert!(cache.get_or_decode(key, Keep::Shared, || unreachable!("it is cached")).1);
        let mut lookups = [(key, None), ((key.0, 6), None)];
        assert_eq!(cache.get_many(&mut lookups), 1);
        assert!(cache.peek(key).is_some() && cache.contains(key));
    }

    #[test]
    fn a_failure_reaches_all_waiters_and_is_not_cached() {
        let cache = cache(1 << 20);
        let key = (ArrayId::next(), 0);
        let bad = || -> DecodeResult { Err(FormatError::Damaged("bad".into())) };
        assert_eq!(cache.get_or_decode(key, Keep::Shared, bad).0.err(), Some(FormatError::Damaged("bad".into())));
        assert!(cache.get_or_decode(key, Keep::Shared, || brick(10)).0.is_ok());
        let panicked = cache.get_or_decode((key.0, 1), Keep::Shared, || panic!("on purpose")).0.err();
        assert_eq!(panicked.unwrap().to_string(), "internal error: the decoder panicked");
        assert!(cache.get_or_decode((key.0, 1), Keep::Shared, || brick(10)).0.is_ok());
    }

    #[test]
    fn the_capacity_is_kept_and_a_larger_brick_is_served() {
        let cache = cache(10_000);
        let array = ArrayId::next();
        for n in 0..50 {
            assert!(cache.get_or_decode((array, n), Keep::Shared, || brick(3000)).0.is_ok());
            assert!(cache.bytes() <= 10_000);
        }
        assert!(cache.get_or_decode((array, 98), Keep::Never, || brick(10)).0.is_ok());
        assert!(!cache.contains((array, 98)), "without a partition it is not cached");
        cache.set_scan_quota(ScanQuota { outside: 5000, ..ScanQuota::default() }, std::iter::empty());
        assert!(cache.bytes() <= 5000);
        cache.set_scan_quota(ScanQuota::default(), std::iter::empty());
        assert!(cache.get_or_decode((array, 99), Keep::Shared, || brick(20_000)).0.is_ok());
        assert!(!cache.contains((array, 99)));
        assert!(cache.contains((array, 49)));
    }

    #[test]
    fn bricks_that_may_be_used_once_are_kept_when_they_are_decoded_again() {
        let cache = cache(4 * 1350);
        let array = ArrayId::next();
        let read = |n: u64| assert!(cache.get_or_decode((array, n), Keep::IfDecodedAgain, || brick(1000)).0.is_ok());
        read(0);
        assert_eq!((cache.contains((array, 0)), cache.bytes()), (false, 0));
        read(0);
        assert!(cache.contains((array, 0)));
        (1..6).for_each(read);
        assert!(cache.contains((array, 0)), "the others have evicted nothing");
        // more than the cache could have held were decoded since
        read(1);
        assert!(!cache.contains((array, 1)));
        read(5);
        assert!(cache.contains((array, 5)));
    }

    #[test]
    fn a_brick_of_which_a_part_was_kept_was_decoded_before() {
        let cache = cache(10_000);
        let (array, read) = (ArrayId::next(), |key, keep| cache.get_or_decode(key, keep, || brick(1000)).0.is_ok());
        assert!(read((array, 100), Keep::Shared));
        cache.remove_part((array, 100), (array, 0));
        assert!(!cache.contains((array, 100)));
        assert!(read((array, 0), Keep::IfDecodedAgain) && cache.contains((array, 0)));
    }

    #[test]
    fn scans_and_other_readers_do_not_evict_each_others_bricks() {
        let cache = cache(20 * 1350);
        let array = ArrayId::next();
        let read = |n: u64, keep| assert!(cache.get_or_decode((array, n), keep, || brick(1000)).0.is_ok());
        let held = |from: u64, to: u64| (from..to).filter(|n| cache.contains((array, *n))).count();
        for n in 0..20 {
            read(n, Keep::Shared);
        }
        let quota = ScanQuota { partition: 10 * 1350, scan_resistant: true, ..ScanQuota::default() };
        cache.set_scan_quota(quota, (0..2).map(|n| (array, n)));
        // the bricks that the scan wants moved to its partition; of the others the most recently used ones are left
        assert_eq!((held(0, 2), held(2, 20)), (2, 10));
        for n in 100..150 {
            read(n, Keep::Scan);
        }
        assert_eq!((held(2, 20), held(140, 150)), (10, 10));
        for n in 200..250 {
            read(n, Keep::Shared);
        }
        assert_eq!((held(140, 150), held(240, 250)), (10, 10));
        cache.demote((145..150).map(|n| (array, n)), false);
        (300..303).for_each(|n| read(n, Keep::Scan));
        assert_eq!((held(140, 145), held(145, 148), held(148, 150)), (5, 0, 2), "demoted bricks are evicted first");
        cache.set_scan_quota(ScanQuota::default(), std::iter::empty());
        assert_eq!((held(140, 150), held(240, 250)), (7, 10));
        assert!(cache.bytes() <= 20 * 1350);
    }

    #[test]
    fn small_bricks_weigh_what_they_take() {
        // counts of the owner, links of the list, a place in the table, and two blocks of the allocator
        let besides = size_of::<DecodedBrick>() + size_of::<BrickKey>() + 10 * size_of::<usize>();
        assert!(entry_weight(64) >= 64 + besides, "{besides}");
    }

    #[test]
    fn nothing_of_a_brick_is_an_empty_brick() {
        let buffers = BufferPool::new(0);
        let brick = |shape: Dims| {
            let held = Region { start: [4, 4].into(), shape };
            let bytes = buffers.take(held.samples() as usize * 4);
            DecodedBrick { bytes, layout: Layout { held, first: 0, strides: [8, 2].into() } }
        };
        for (held, wanted) in [([3, 3], [3, 0]), ([3, 0], [3, 0]), ([0, 3], [0, 3]), ([0, 0], [0, 0])] {
            let region = Region { start: [4, 4].into(), shape: wanted.into() };
            let part = brick(held.into()).part(region, &AxisPermutation::IDENTITY, 2, &buffers).unwrap();
            assert_eq!((part.bytes.len(), part.layout.held), (0, region));
        }
    }
}
