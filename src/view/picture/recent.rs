//! What was computed last, for readers that come again: a map that is bounded in bytes.

use std::hash::Hash;

use crate::memory::LruByWeight;
use crate::sync::Mutex;

/// A map of what was computed last.
pub(crate) struct Recent<K, V> {
    /// None until the first entry: it cannot be made at compile time.
    entries: Mutex<Option<LruByWeight<K, V>>>,
    capacity: usize,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    /// Creates an empty map that holds at most `capacity` bytes.
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { entries: Mutex::new(None), capacity }
    }

    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.entries.lock().as_mut()?.get(key)
    }

    /// Sets the value of `key`, which takes `bytes` bytes.
    pub(crate) fn put(&self, key: K, value: V, bytes: usize) {
        let evicted =
            self.entries.lock().get_or_insert_with(|| LruByWeight::new(self.capacity)).insert(key, value, bytes);
        drop(evicted); // not under the lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        static RECENT: Recent<u32, u32> = Recent::new(2 << 20);
        assert_eq!(RECENT.get(&1), None);
        for key in 1..=2 {
            RECENT.put(key, key * 10, 1 << 20);
        }
        assert_eq!(RECENT.get(&1), Some(10));
        RECENT.put(3, 30, 1 << 20);
        assert_eq!([1, 2, 3].map(|key| RECENT.get(&key)), [Some(10), None, Some(30)]);
        RECENT.put(4, 40, 3 << 20);
        assert_eq!([1, 3, 4].map(|key| RECENT.get(&key)), [Some(10), Some(30), None]);
    }
}
