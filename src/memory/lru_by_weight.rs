//! A least-recently-used store that is bounded in bytes, not in entries.

use std::hash::Hash;

use lru::LruCache;

/// What an entry costs beside its value: its place in the map, the list and the allocator.
const ENTRY: usize = 128;
/// What is that much smaller than the value does not count, so that a cache of so many bytes holds so many bytes of large values.
const LITTLE: usize = 64;

/// What a value of `bytes` costs.
#[must_use]
pub fn cost(bytes: usize) -> usize {
    bytes.saturating_add(ENTRY.saturating_sub(bytes / LITTLE))
}

/// Values by key, each with a weight in bytes; the least recently used ones go when the sum exceeds the bound.
pub struct LruByWeight<K, V> {
    entries: LruCache<K, (V, usize)>,
    weight: usize,
    bound: usize,
}

impl<K: Hash + Eq, V: Clone> LruByWeight<K, V> {
    /// A store of at most `bound` bytes.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self { entries: LruCache::unbounded(), weight: 0, bound }
    }

    /// The value of `key`, which is now the most recently used.
    pub fn get(&mut self, key: &K) -> Option<V> {
        self.entries.get(key).map(|(value, _)| value.clone())
    }

    /// The value of `key`, which is as recently used as before.
    #[must_use]
    pub fn peek(&self, key: &K) -> Option<V> {
        self.entries.peek(key).map(|(value, _)| value.clone())
    }

    /// What the value of `key` costs; 0 if there is none.
    #[must_use]
    pub fn cost_of(&self, key: &K) -> usize {
        self.entries.peek(key).map_or(0, |(_, cost)| *cost)
    }

    /// Keeps `value`, which weighs `bytes`, and gives back what no longer fits, so that the caller can drop it when no
    /// lock is held. What is heavier than the whole bound comes back itself, and drives out nothing.
    pub fn put(&mut self, key: K, value: V, bytes: usize) -> Vec<(K, V)> {
        let cost = cost(bytes);
        let mut out = Vec::new();
        if let Some((key, (old, weight))) = self.entries.pop_entry(&key) {
            self.weight -= weight;
            out.push((key, old));
        }
        if cost > self.bound {
            out.push((key, value));
            return out;
        }
        self.make_room(cost, &mut out);
        self.weight += cost;
        self.entries.put(key, (value, cost));
        out
    }

    /// Keeps `value` if there is room for it, as the first to go.
    pub fn put_last(&mut self, key: K, value: V, bytes: usize) -> Vec<(K, V)>
    where
        K: Clone,
    {
        if self.weight.saturating_add(cost(bytes)) > self.bound {
            return vec![(key, value)];
        }
        let out = self.put(key.clone(), value, bytes);
        self.entries.demote(&key);
        out
    }

    /// Makes `key` the first to go.
    pub fn demote(&mut self, key: &K) {
        self.entries.demote(key);
    }

    /// Takes out the value of `key`.
    pub fn take(&mut self, key: &K) -> Option<V> {
        let (value, weight) = self.entries.pop(key)?;
        self.weight -= weight;
        Some(value)
    }

    /// Sets another bound, and gives back what no longer fits.
    pub fn set_bound(&mut self, bound: usize) -> Vec<(K, V)> {
        let mut out = Vec::new();
        self.bound = bound;
        self.make_room(0, &mut out);
        out
    }

    fn make_room(&mut self, cost: usize, out: &mut Vec<(K, V)>) {
        while self.weight + cost > self.bound {
            let Some((key, (old, weight))) = self.entries.pop_lru() else { break };
            self.weight -= weight;
            out.push((key, old));
        }
    }

    /// Bytes that may be held.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Bytes held.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut store = LruByWeight::new(3 * cost(100));
        for key in 0..3 {
            store.put(key, key, 100);
        }
        assert_eq!(store.get(&0), Some(0));
        store.put(3, 3, 100);
        assert_eq!(store.get(&1), None);
        assert_eq!(store.get(&0), Some(0));
        assert_eq!(store.weight(), 3 * cost(100));
        assert_eq!(store.set_bound(2 * cost(100)), [(2, 2)]);
        assert_eq!(store.get(&0), Some(0));
    }

    #[test]
    fn what_is_put_last_goes_first_and_drives_out_nothing() {
        let mut store = LruByWeight::new(3 * cost(100));
        store.put(0, 0, 100);
        store.put(1, 1, 100);
        assert_eq!(store.put_last(2, 2, 100), []);
        assert_eq!(store.put_last(3, 3, 100), [(3, 3)]);
        assert_eq!(store.put(4, 4, 100), [(2, 2)]);
        assert_eq!((store.take(&0), store.take(&0), store.weight()), (Some(0), None, 2 * cost(100)));
    }

    #[test]
    fn so_many_bytes_hold_so_many_bytes_of_large_values() {
        let mut store = LruByWeight::new(5 << 20);
        (0..5).for_each(|key| drop(store.put(key, (), 1 << 20)));
        assert!(store.get(&0).is_some());
    }

    #[test]
    fn what_is_heavier_than_the_bound_is_not_kept() {
        let mut store = LruByWeight::new(1000);
        store.put(1, (), 100);
        store.put(2, (), 1000);
        assert!(store.get(&1).is_some());
        assert!(store.get(&2).is_none());
    }
}
