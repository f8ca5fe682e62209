//! What all folders of the source share: a bounded number of open files, and what is known of files that were looked at.

use crate::sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lru::LruCache;

use super::{FileStamp, OpenFile};

/// Files open at a time, all folders together.
const OPEN: NonZeroUsize = NonZeroUsize::new(128).unwrap();
/// Missing files whose names are remembered.
const HOLES: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Of these, so many that were asked for last are looked through for those of one folder.
const LAST_HOLES: usize = 512;
/// A file that was missing may be there after this time.
const HOLE_LASTS: Duration = Duration::from_secs(1);
/// Files of which it is known what they were; at most twice as many are remembered.
const KNOWN: usize = 1 << 16;

/// An object of a folder: the folder's number, and the hash of a name.
pub(super) type Key = (u64, u64);

/// See the module.
pub(super) struct OpenFiles {
    files: Mutex<LruCache<Key, Arc<OpenFile>>>,
    holes: Mutex<LruCache<Key, (Box<str>, Instant)>>,
    known: Mutex<Known>,
}

impl OpenFiles {
    pub fn new() -> Self {
        let (files, holes) = (Mutex::new(LruCache::new(OPEN)), Mutex::new(LruCache::new(HOLES)));
        Self { files, holes, known: Mutex::default() }
    }

    /// The file, if it is open.
    pub fn file(&self, key: Key, name: &str) -> Option<Arc<OpenFile>> {
        lock(&self.files).get(&key).filter(|file| &*file.name == name).cloned()
    }

    /// Keeps a file open for a while.
    pub fn keep(&self, key: Key, file: &Arc<OpenFile>) {
        // closing takes its time: not under the lock
        let closed = lock(&self.files).push(key, Arc::clone(file));
        drop(closed);
    }

    /// Whether it is known that there is no such file.
    pub fn is_missing(&self, key: Key, name: &str) -> bool {
        lock(&self.holes).get(&key).is_some_and(|(hole, at)| &**hole == name && at.elapsed() < HOLE_LASTS)
    }

    /// Remembers that there is no such file.
    pub fn keep_missing(&self, key: Key, name: &str) {
        lock(&self.holes).put(key, (name.into(), Instant::now()));
    }

    /// Remembers what a file is, `None` if it is missing; `false` if it was something else before.
    pub fn is_as_before(&self, key: Key, stamp: Option<&FileStamp>) -> bool {
        let digest = stamp.map_or(MISSING, FileStamp::digest);
        lock(&self.known).get_or_insert(key, digest) == digest
    }

    /// Up to `most` files of a folder that were in use last, with what they were; none for those that are missing, as far as
    /// these are among the last of all folders.
    pub fn recent(&self, folder: u64, most: usize) -> Vec<(Box<str>, Option<FileStamp>)> {
        let mut recent = Vec::new();
        for (_, file) in lock(&self.files).iter().filter(|(key, _)| key.0 == folder).take(most) {
            recent.push((file.name.clone(), Some(file.stamp)));
        }
        let holes = lock(&self.holes);
        let of_folder = holes.iter().take(LAST_HOLES).filter(|(key, _)| key.0 == folder);
        recent.extend(of_folder.take(most).map(|(_, (name, _))| (name.clone(), None)));
        recent
    }

    /// Closes the files of a folder.
    pub fn close(&self, folder: u64) {
        let mut files = lock(&self.files);
        let keys: Vec<Key> = files.iter().map(|(key, _)| *key).filter(|key| key.0 == folder).collect();
        let closed: Vec<_> = keys.iter().filter_map(|key| files.pop(key)).collect();
        drop(files);
        drop(closed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// The digest of a file that is not there.
const MISSING: u64 = 0;

/// Digests of files in two generations: what is not asked for while one fills up is forgotten with it.
#[derive(Default)]
struct Known {
    young: HashMap<Key, u64>,
    old: HashMap<Key, u64>,
}

impl Known {
    /// The digest of a file that is known, else `digest`, which is known from now on.
    fn get_or_insert(&mut self, key: Key, digest: u64) -> u64 {
        if let Some(known) = self.young.get(&key) {
            return *known;
        }
        let digest = self.old.get(&key).copied().unwrap_or(digest);
        if self.young.len() >= KNOWN {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, digest);
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_in_use_are_not_forgotten() {
        let mut known = Known::default();
        known.get_or_insert((0, 7), 7);
        for round in 0..5 {
            for n in 0..KNOWN as u64 {
                known.get_or_insert((round, n), n);
                if n % 10_000 == 0 {
                    assert_eq!(known.get_or_insert((0, 7), 99), 7);
                }
            }
        }
        assert!(known.young.len() + known.old.len() <= 2 * KNOWN);
        assert_eq!(known.get_or_insert((1, 8), 99), 99);
    }
}
