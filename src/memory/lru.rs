//! An LRU cache whose capacity is in bytes, not in entries.

use std::hash::Hash;

use lru::LruCache;

/// Bytes that a small decoded brick takes besides its samples: in the map, the list and the allocator, and its layout.
/// Measured: 380 to 400. Other entries take less.
const OVERHEAD: usize = 400;
/// The overhead counts one byte less for each this many bytes of the value. So it is nothing for large values, and a
/// cache of n bytes holds n bytes of them.
const BYTES_PER_OVERHEAD_BYTE: usize = 16;

/// Returns the weight of an entry with a value of `bytes` bytes: with the overhead, which counts less the larger the
/// value is.
pub(crate) fn entry_weight(bytes: usize) -> usize {
    bytes.saturating_add(OVERHEAD.saturating_sub(bytes / BYTES_PER_OVERHEAD_BYTE))
}

/// A map that evicts its least recently used entries when the sum of all weights exceeds its capacity. The weight of an
/// entry is given by [`entry_weight`].
///
/// Methods return evicted entries instead of dropping them, so that a caller can drop them after it has released its
/// lock.
pub(crate) struct LruByWeight<K, V> {
    entries: LruCache<K, (V, usize)>,
    weight: usize,
    capacity: usize,
}

impl<K: Hash + Eq, V: Clone> LruByWeight<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { entries: LruCache::unbounded(), weight: 0, capacity }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        self.entries.get(key).map(|(value, _)| value.clone())
    }

    /// Returns the value of `key` to be changed, and makes it the most recently used.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(value, _)| value)
    }

    /// Returns the value of `key` without touching the order of eviction.
    pub(crate) fn peek(&self, key: &K) -> Option<V> {
        self.entries.peek(key).map(|(value, _)| value.clone())
    }

    /// Returns whether `key` has an entry, without touching the order of eviction.
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.entries.contains(key)
    }

    pub(crate) fn weight_of(&self, key: &K) -> usize {
        self.entries.peek(key).map_or(0, |(_, weight)| *weight)
    }

    /// Inserts `value`, which takes `bytes` bytes, as the most recently used. Returns the evicted entries and the
    /// previous value of `key`. An entry heavier than the whole capacity is returned itself, and evicts nothing else.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) -> Vec<(K, V)> {
        let added = entry_weight(bytes);
        let mut evicted = Vec::new();
        if let Some((key, (old, weight))) = self.entries.pop_entry(&key) {
            self.weight -= weight;
            evicted.push((key, old));
        }
        if added > self.capacity {
            evicted.push((key, value));
            return evicted;
        }
        self.make_room(added, &mut evicted);
        self.weight += added;
        self.entries.put(key, (value, added));
        evicted
    }

    /// Inserts `value` as the least recently used, which is evicted first. If there is no room the entry is returned
    /// itself.
    pub(crate) fn insert_least_recent(&mut self, key: K, value: V, bytes: usize) -> Vec<(K, V)>
    where
        K: Clone,
    {
        if self.weight.saturating_add(entry_weight(bytes)) > self.capacity {
            return vec![(key, value)];
        }
        let evicted = self.insert(key.clone(), value, bytes);
        self.entries.demote(&key);
        evicted
    }

    pub(crate) fn demote(&mut self, key: &K) {
        self.entries.demote(key);
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (value, weight) = self.entries.pop(key)?;
        self.weight -= weight;
        Some(value)
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) -> Vec<(K, V)> {
        let mut evicted = Vec::new();
        self.capacity = capacity;
        self.make_room(0, &mut evicted);
        evicted
    }

    /// Evicts entries until `added` bytes fit.
    fn make_room(&mut self, added: usize, evicted: &mut Vec<(K, V)>) {
        while self.weight + added > self.capacity {
            let Some((key, (old, weight))) = self.entries.pop_lru() else { break };
            self.weight -= weight;
            evicted.push((key, old));
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted_first() {
        let mut store = LruByWeight::new(3 * entry_weight(100));
        for key in 0..3 {
            store.insert(key, key, 100);
        }
        assert_eq!(store.get(&0), Some(0));
        store.insert(3, 3, 100);
        assert_eq!(store.get(&1), None);
        assert_eq!(store.get(&0), Some(0));
        assert_eq!(store.weight(), 3 * entry_weight(100));
        assert_eq!(store.set_capacity(2 * entry_weight(100)), [(2, 2)]);
        assert_eq!(store.get(&0), Some(0));
    }

    #[test]
    fn what_is_inserted_least_recent_is_evicted_first_and_evicts_nothing() {
        let mut store = LruByWeight::new(3 * entry_weight(100));
        store.insert(0, 0, 100);
        store.insert(1, 1, 100);
        assert_eq!(store.insert_least_recent(2, 2, 100), []);
        assert_eq!(store.insert_least_recent(3, 3, 100), [(3, 3)]);
        assert_eq!(store.insert(4, 4, 100), [(2, 2)]);
        assert_eq!((store.remove(&0), store.remove(&0), store.weight()), (Some(0), None, 2 * entry_weight(100)));
    }

    #[test]
    fn the_overhead_of_large_values_does_not_count() {
        let mut store = LruByWeight::new(5 << 20);
        (0..5).for_each(|key| drop(store.insert(key, (), 1 << 20)));
        assert!(store.get(&0).is_some());
    }

    #[test]
    fn a_value_heavier_than_the_capacity_is_not_kept() {
        let mut store = LruByWeight::new(1000);
        store.insert(1, (), 100);
        store.insert(2, (), 1000);
        assert!(store.get(&1).is_some());
        assert!(store.get(&2).is_none());
    }
}
