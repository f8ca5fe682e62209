//! Eviction: two LRU partitions, one for scans and one for all other readers.
//!
//! Within each partition the least recently used brick is evicted first. Two partitions keep random readers from
//! evicting a layer of bricks in the middle of a scan, and keep a scan from evicting everything that others use. A
//! lookup searches both.

use std::sync::Arc;

use super::decoded_brick::{BrickKey, DecodedBrick};
use super::passed::PassedBricks;
use crate::memory::LruByWeight;

/// The part of the cache that a brick is inserted into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partition {
    /// For all readers.
    Shared,
    /// For scans.
    Scan,
}

/// How much of the cache's capacity scans get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanQuota {
    /// Bytes that scans keep outside of the cache, in segments.
    pub outside: usize,
    /// Capacity of the scan partition, in bytes.
    pub partition: usize,
    /// Makes the shared partition scan-resistant: bricks that leave the scan partition evict nothing there.
    pub scan_resistant: bool,
}

/// Bricks that were evicted. The caller drops them after it has released the cache's lock, since unmapping takes time.
pub(super) type Evicted = Vec<(BrickKey, Arc<DecodedBrick>)>;

/// Both partitions.
pub(super) struct Partitions {
    capacity: usize,
    shared: LruByWeight<BrickKey, Arc<DecodedBrick>>,
    scan: LruByWeight<BrickKey, ScanBrick>,
    scan_resistant: bool,
    passed: PassedBricks,
}

/// A brick in the scan partition.
#[derive(Clone)]
struct ScanBrick {
    brick: Arc<DecodedBrick>,
    /// A scan has passed it, and what the scan has read is in the kernel's page cache.
    passed: bool,
}

impl Partitions {
    /// Creates empty partitions that hold at most `capacity` bytes together, all of it shared at first.
    pub(crate) fn new(capacity: usize) -> Self {
        let (shared, scan, passed) = (LruByWeight::new(capacity), LruByWeight::new(0), PassedBricks::new(capacity));
        Self { capacity, shared, scan, scan_resistant: false, passed }
    }

    /// Returns a brick and makes it the most recently used of its partition.
    pub(crate) fn get(&mut self, key: &BrickKey) -> Option<Arc<DecodedBrick>> {
        self.scan.get(key).map(|scan| scan.brick).or_else(|| self.shared.get(key))
    }

    /// Whether a brick is there, without touching the order of eviction.
    pub(crate) fn contains(&self, key: &BrickKey) -> bool {
        self.scan.contains(key) || self.shared.contains(key)
    }

    /// Returns a brick without marking it as used.
    pub(crate) fn peek(&self, key: &BrickKey) -> Option<Arc<DecodedBrick>> {
        self.scan.peek(key).map(|scan| scan.brick).or_else(|| self.shared.peek(key))
    }

    /// Inserts a brick that was just decoded; `None` evicts it at once.
    pub(crate) fn insert_decoded(
        &mut self,
        key: BrickKey,
        brick: Arc<DecodedBrick>,
        partition: Option<Partition>,
    ) -> Evicted {
        self.passed.record_decoded(&key, brick.bytes.capacity());
        self.insert(key, brick, partition)
    }

    /// Inserts a brick; `None` evicts it at once.
    fn insert(&mut self, key: BrickKey, brick: Arc<DecodedBrick>, partition: Option<Partition>) -> Evicted {
        let bytes = brick.bytes.capacity();
        match partition {
            None => vec![(key, brick)],
            Some(Partition::Shared) => self.shared.insert(key, brick, bytes),
            Some(Partition::Scan) => {
                let displaced = self.scan.insert(key, ScanBrick { brick, passed: false }, bytes);
                self.move_to_shared(displaced)
            }
        }
    }

    /// Moves bricks that left the scan partition to the shared one, if these fit. Of those that were passed only the
    /// last stay, or those that will be missed.
    fn move_to_shared(&mut self, bricks: Vec<(BrickKey, ScanBrick)>) -> Evicted {
        let mut evicted = Vec::new();
        for (key, ScanBrick { brick, passed }) in bricks {
            let bytes = brick.bytes.capacity();
            if passed {
                self.passed.add(key, bytes);
            }
            evicted.extend(if self.scan_resistant {
                self.shared.insert_least_recent(key, brick, bytes)
            } else {
                self.shared.insert(key, brick, bytes)
            });
        }
        while let Some(key) = self.passed.next_to_evict() {
            evicted.extend(self.shared.remove(&key).map(|brick| (key, brick)));
        }
        evicted
    }

    /// Removes a brick from both partitions.
    pub(crate) fn remove(&mut self, key: &BrickKey) -> [Option<Arc<DecodedBrick>>; 2] {
        [self.scan.remove(key).map(|scan| scan.brick), self.shared.remove(key)]
    }

    /// Sets the capacities of both partitions. Bricks under `wanted` move to the scan partition, as its most recently
    /// used ones.
    pub(crate) fn set_quota(&mut self, quota: ScanQuota, wanted: impl Iterator<Item = BrickKey>) -> Evicted {
        self.scan_resistant = quota.scan_resistant;
        let displaced = self.scan.set_capacity(quota.partition);
        let mut evicted = Vec::new();
        for key in wanted {
            if let Some(found) = self.scan.get_mut(&key) {
                found.passed = false;
            } else if let Some(brick) = self.shared.remove(&key) {
                self.passed.record_reused(brick.bytes.capacity());
                evicted.extend(self.insert(key, brick, Some(Partition::Scan)));
            }
        }
        let reserved = quota.outside.saturating_add(self.scan.capacity());
        evicted.extend(self.shared.set_capacity(self.capacity.saturating_sub(reserved)));
        evicted.extend(self.move_to_shared(displaced));
        evicted
    }

    /// Makes bricks of the scan partition the first to be evicted, in the order of `keys`. `passed` means that what was
    /// read of them is in the kernel's page cache, too.
    pub(crate) fn demote(&mut self, keys: impl DoubleEndedIterator<Item = BrickKey>, passed: bool) {
        for key in keys.rev() {
            if let Some(found) = self.scan.get_mut(&key) {
                found.passed = passed;
                self.scan.demote(&key);
            }
        }
    }

    /// Bytes that both partitions may still grow by.
    pub(crate) fn room(&self) -> usize {
        self.shared.capacity().saturating_add(self.scan.capacity()).saturating_sub(self.bytes())
    }

    /// Bytes held in both partitions.
    pub(crate) fn bytes(&self) -> usize {
        self.shared.weight() + self.scan.weight()
    }
}
