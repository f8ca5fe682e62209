//! A least-recently-used store that is bounded in bytes, not in entries.

use std::hash::Hash;

use lru::LruCache;

/// What an entry costs beside its value: its place in the map, the list and the allocator.
const ENTRY: usize = 128;

/// Values by key, each with a weight in bytes; the least recently used ones go when the sum exceeds the bound.
pub struct Weighted<K, V> {
    entries: LruCache<K, (V, usize)>,
    weight: usize,
    bound: usize,
}

impl<K: Hash + Eq, V: Clone> Weighted<K, V> {
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

    /// Keeps `value`, which weighs `bytes`, and gives back what no longer fits, so that the caller can drop it when no
    /// lock is held. What is heavier than the whole bound comes back itself, and drives out nothing.
    pub fn put(&mut self, key: K, value: V, bytes: usize) -> Vec<V> {
        let cost = bytes.saturating_add(ENTRY);
        let mut out = Vec::new();
        if let Some((old, weight)) = self.entries.pop(&key) {
            self.weight -= weight;
            out.push(old);
        }
        if cost > self.bound {
            out.push(value);
            return out;
        }
        self.make_room(cost, &mut out);
        self.weight += cost;
        self.entries.put(key, (value, cost));
        out
    }

    /// Sets another bound, and gives back what no longer fits.
    pub fn set_bound(&mut self, bound: usize) -> Vec<V> {
        let mut out = Vec::new();
        self.bound = bound;
        self.make_room(0, &mut out);
        out
    }

    fn make_room(&mut self, cost: usize, out: &mut Vec<V>) {
        while self.weight + cost > self.bound {
            let Some((_, (old, weight))) = self.entries.pop_lru() else { break };
            self.weight -= weight;
            out.push(old);
        }
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
        let mut store = Weighted::new(3 * (100 + ENTRY));
        for key in 0..3 {
            store.put(key, key, 100);
        }
        assert_eq!(store.get(&0), Some(0));
        store.put(3, 3, 100);
        assert_eq!(store.get(&1), None);
        assert_eq!(store.get(&0), Some(0));
        assert_eq!(store.weight(), 3 * (100 + ENTRY));
        assert_eq!(store.set_bound(2 * (100 + ENTRY)), [2]);
        assert_eq!(store.get(&0), Some(0));
    }

    #[test]
    fn what_is_heavier_than_the_bound_is_not_kept() {
        let mut store = Weighted::new(1000);
        store.put(1, (), 100);
        store.put(2, (), 1000);
        assert!(store.get(&1).is_some());
        assert!(store.get(&2).is_none());
    }
}
