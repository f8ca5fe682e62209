//! The cache itself: lookups, and single flight around the decoder.

use std::collections::HashMap;
use std::sync::Arc;

use super::decoded_brick::{BrickKey, DecodeResult, DecodedBrick};
use super::eviction::{Partition, Partitions, ScanQuota};
use super::single_flight::{InFlight, InFlightGuard};
use crate::sync::{Mutex, MutexGuard};

/// A brick to look up, and what the lookup found.
pub(crate) type Lookup = (BrickKey, Option<Arc<DecodedBrick>>);

/// The decoded bricks of all datasets.
pub(crate) struct BrickCache {
    state: Mutex<State>,
    capacity: usize,
}

struct State {
    partitions: Partitions,
    in_flight: HashMap<BrickKey, Arc<InFlight>>,
}

impl BrickCache {
    /// Creates a cache of at most `capacity` bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { partitions: Partitions::new(capacity), in_flight: HashMap::new() };
        Self { state: Mutex::new(state), capacity }
    }

    /// Looks up many bricks under one lock, and returns how many were found. Never waits for a decoder.
    pub(crate) fn get_many(&self, lookups: &mut [Lookup]) -> usize {
        if lookups.is_empty() {
            return 0;
        }
        let mut state = self.lock();
        for (key, brick) in lookups.iter_mut() {
            *brick = state.partitions.get(key);
        }
        drop(state);
        lookups.iter().filter(|(_, brick)| brick.is_some()).count()
    }

    /// Returns a brick from the cache, from another thread that is decoding it, or from `decode`, which runs here
    /// without any lock; and whether it was in the cache. The result of `decode` is inserted into `partition`; `None`
    /// does not cache it. An error is that of `decode`, whichever thread ran it.
    pub(crate) fn get_or_decode(
        &self,
        key: BrickKey,
        partition: Option<Partition>,
        decode: impl FnOnce() -> DecodeResult,
    ) -> (DecodeResult, bool) {
        let mut state = self.lock();
        if let Some(brick) = state.partitions.get(&key) {
            drop(state);
            return (Ok(brick), true);
        }
        if let Some(in_flight) = state.in_flight.get(&key).cloned() {
            drop(state);
            return (in_flight.wait(), false);
        }
        let in_flight = Arc::new(InFlight::default());
        state.in_flight.insert(key, Arc::clone(&in_flight));
        drop(state);
        let guard = InFlightGuard::new(in_flight, |result: &DecodeResult| self.publish(key, partition, result));
        let result = decode();
        guard.complete(result.clone());
        (result, false)
    }

    /// Inserts a decoded brick and removes it from the table of bricks in flight.
    fn publish(&self, key: BrickKey, partition: Option<Partition>, result: &DecodeResult) {
        let mut state = self.lock();
        state.in_flight.remove(&key);
        let evicted = match result {
            Ok(brick) => state.partitions.insert_decoded(key, Arc::clone(brick), partition),
            Err(_) => Vec::new(),
        };
        drop(state);
        drop(evicted);
    }

    /// Returns a brick without marking it as used, and without counting a hit.
    pub(crate) fn peek(&self, key: BrickKey) -> Option<Arc<DecodedBrick>> {
        self.lock().partitions.peek(&key)
    }

    /// Returns whether a brick is there, without marking it as used, and without counting a hit.
    pub(crate) fn contains(&self, key: BrickKey) -> bool {
        self.lock().partitions.contains(&key)
    }

    /// Removes a brick.
    pub(crate) fn remove(&self, key: BrickKey) {
        let removed = self.lock().partitions.remove(&key);
        drop(removed);
    }

    /// The capacity in bytes, the scans' quota included.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the bytes that it may still grow by: less than its capacity and what it holds tell, where scans keep planes
    /// outside of it.
    pub(crate) fn room(&self) -> usize {
        self.lock().partitions.room()
    }

    /// Sets the share of the capacity that scans get. Cached bricks under `wanted` move to the scan partition, as its
    /// most recently used ones.
    pub(crate) fn set_scan_quota(&self, quota: ScanQuota, wanted: impl Iterator<Item = BrickKey>) {
        let evicted = self.lock().partitions.set_quota(quota, wanted);
        drop(evicted);
    }

    /// Makes bricks of the scan partition the first to be evicted, in the order of `keys`. `page_cached` means that what
    /// was read of them is in the kernel's page cache, too: they stay no longer than they are likely to be used again.
    pub(crate) fn demote(&self, keys: impl DoubleEndedIterator<Item = BrickKey>, page_cached: bool) {
        self.lock().partitions.demote(keys, page_cached);
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().partitions.bytes()
    }

    /// Bricks that are being decoded.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().in_flight.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::format::FormatError;
    use crate::memory::BufferPool;
    use crate::volume::{ArrayId, Layout};

    const SHARED: Option<Partition> = Some(Partition::Shared);
    const SCAN: Option<Partition> = Some(Partition::Scan);

    fn brick(bytes: usize) -> DecodeResult {
        let layout = Layout::c_order([0].into(), [bytes as u64].into(), [bytes as u64].into(), 1);
        Ok(Arc::new(DecodedBrick { bytes: BufferPool::new(0).take(bytes).into(), layout }))
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
                    let (got, was_cached) = cache.get_or_decode(key, SHARED, || {
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
        assert!(cache.get_or_decode(key, SHARED, || unreachable!("it is cached")).1);
        let mut lookups = [(key, None), ((key.0, 6), None)];
        assert_eq!(cache.get_many(&mut lookups), 1);
        assert!(cache.peek(key).is_some() && cache.contains(key));
    }

    #[test]
    fn a_failure_reaches_all_waiters_and_is_not_cached() {
        let cache = cache(1 << 20);
        let key = (ArrayId::next(), 0);
        let bad = || Err(FormatError::Damaged("bad".into()));
        assert_eq!(cache.get_or_decode(key, SHARED, bad).0.err(), Some(FormatError::Damaged("bad".into())));
        assert!(cache.get_or_decode(key, SHARED, || brick(10)).0.is_ok());
        let panicked =
            catch_unwind(AssertUnwindSafe(|| cache.get_or_decode((key.0, 1), SHARED, || panic!("on purpose"))));
        assert!(panicked.is_err());
        assert!(cache.get_or_decode((key.0, 1), SHARED, || brick(10)).0.is_ok());
    }

    #[test]
    fn the_capacity_is_kept_and_a_larger_brick_is_served() {
        let cache = cache(10_000);
        let array = ArrayId::next();
        for n in 0..50 {
            assert!(cache.get_or_decode((array, n), SHARED, || brick(3000)).0.is_ok());
            assert!(cache.bytes() <= 10_000);
        }
        assert!(cache.get_or_decode((array, 98), None, || brick(10)).0.is_ok());
        assert!(!cache.contains((array, 98)), "without a partition it is not cached");
        cache.set_scan_quota(ScanQuota { outside: 5000, ..ScanQuota::default() }, std::iter::empty());
        assert!(cache.bytes() <= 5000);
        cache.set_scan_quota(ScanQuota::default(), std::iter::empty());
        assert!(cache.get_or_decode((array, 99), SHARED, || brick(20_000)).0.is_ok());
        assert!(!cache.contains((array, 99)));
        assert!(cache.contains((array, 49)));
    }

    #[test]
    fn scans_and_other_readers_do_not_evict_each_others_bricks() {
        let cache = cache(20 * 1200);
        let array = ArrayId::next();
        let read = |n: u64, partition| assert!(cache.get_or_decode((array, n), partition, || brick(1000)).0.is_ok());
        let held = |from: u64, to: u64| (from..to).filter(|n| cache.contains((array, *n))).count();
        for n in 0..20 {
            read(n, SHARED);
        }
        let quota = ScanQuota { partition: 10 * 1200, scan_resistant: true, ..ScanQuota::default() };
        cache.set_scan_quota(quota, (0..2).map(|n| (array, n)));
        // the bricks that the scan wants moved to its partition; of the others the most recently used ones are left
        assert_eq!((held(0, 2), held(2, 20)), (2, 10));
        for n in 100..150 {
            read(n, SCAN);
        }
        assert_eq!((held(2, 20), held(140, 150)), (10, 10));
        for n in 200..250 {
            read(n, SHARED);
        }
        assert_eq!((held(140, 150), held(240, 250)), (10, 10));
        cache.demote((145..150).map(|n| (array, n)), false);
        (300..303).for_each(|n| read(n, SCAN));
        assert_eq!((held(140, 145), held(145, 148), held(148, 150)), (5, 0, 2), "demoted bricks are evicted first");
        cache.set_scan_quota(ScanQuota::default(), std::iter::empty());
        assert_eq!((held(140, 150), held(240, 250)), (7, 10));
        assert!(cache.bytes() <= 20 * 1200);
    }
}
