//! Caches that all datasets of the source share: open files, names of missing files (a negative cache), and digests of
//! the versions of files that were opened before.
//!
//! A file that is evicted is opened again when it is read again, so that the number of open files is bounded although
//! the number of readers is not.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use lru::LruCache;

use super::super::descriptors::most_open_files;
use super::open_file::OpenFile;
use crate::source::FileStamp;
use crate::sync::Mutex;

/// Names in the negative cache.
const MAX_MISSING: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// The most recently used of these are searched for those of one folder.
const RECENT_MISSING: usize = 512;
/// How long an entry of the negative cache is used.
const MISSING_TTL: Duration = Duration::from_secs(1);
/// Bytes of the stack of a thread that closes files.
const CLOSING_STACK: usize = 64 << 10;
/// Digests in one generation.
const GENERATION: usize = 1 << 16;

/// A file of a dataset: the number of the dataset's file or folder, and the hash of the name in it.
pub(super) type Key = (u64, u64);

/// Returns a number that no file or folder of a dataset has had before.
pub(super) fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The caches of all datasets.
pub(super) struct OpenFiles {
    files: Mutex<LruCache<Key, Arc<OpenFile>>>,
    /// The negative cache.
    missing: Mutex<LruCache<Key, (Box<str>, Instant)>>,
    digests: Mutex<Digests>,
    /// Called when a file is opened and no other is open.
    on_first: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl OpenFiles {
    /// Creates the caches, for as many open files as the limit of the process allows.
    pub(crate) fn new() -> Self {
        let (files, missing) = (Mutex::new(LruCache::new(most_open_files())), Mutex::new(LruCache::new(MAX_MISSING)));
        Self { files, missing, digests: Mutex::default(), on_first: OnceLock::new() }
    }

    /// Returns the file if it is open.
    pub(crate) fn get(&self, key: Key, name: &str) -> Option<Arc<OpenFile>> {
        let file = self.files.lock().get(&key).filter(|file| &*file.name == name).cloned();
        file.inspect(|file| file.mark_used())
    }

    /// Keeps a file open until it is evicted.
    pub(crate) fn insert(&self, key: Key, file: &Arc<OpenFile>) {
        let mut files = self.files.lock();
        // files that are read without being looked up here get a second chance
        for _ in 0..if files.len() < files.cap().get() { 0 } else { files.len() } {
            match files.peek_lru() {
                Some((oldest, file)) if file.was_used() => {
                    let oldest = *oldest;
                    files.promote(&oldest);
                }
                _ => break,
            }
        }
        let is_first = files.is_empty();
        let evicted = files.push(key, Arc::clone(file)).map(|(_, file)| file);
        drop(files);
        close_aside(evicted);
        if let (true, Some(on_first)) = (is_first, self.on_first.get()) {
            on_first();
        }
    }

    /// Closes the files that nobody reads at this moment, and that were not used since the last call.
    pub(crate) fn close_unused(&self) {
        let mut files = self.files.lock();
        let is_unused = |file: &Arc<OpenFile>| Arc::strong_count(file) == 1 && !file.was_used();
        let unused: Vec<Key> = files.iter().filter(|(_, file)| is_unused(file)).map(|(key, _)| *key).collect();
        let closed: Vec<_> = unused.iter().filter_map(|key| files.pop(key)).collect();
        drop(files);
        close_aside(closed);
    }

    /// Returns whether a file is open.
    pub(crate) fn are_any(&self) -> bool {
        !self.files.lock().is_empty()
    }

    /// Has `call` called whenever a file is opened and no other is open. Only the first call has an effect.
    pub(crate) fn on_first(&self, call: Box<dyn Fn() + Send + Sync>) {
        let _ = self.on_first.set(call);
    }

    /// Closes the files that were not used lately: a half of those that nobody reads at this moment. Returns `false`
    /// if there are none.
    pub(crate) fn close_idle(&self) -> bool {
        let mut files = self.files.lock();
        let is_idle = |file: &Arc<OpenFile>| Arc::strong_count(file) == 1;
        let idle: Vec<Key> = files.iter().rev().filter(|(_, file)| is_idle(file)).map(|(key, _)| *key).collect();
        let closed: Vec<_> = idle.iter().take(idle.len().div_ceil(2)).filter_map(|key| files.pop(key)).collect();
        drop(files);
        let are_some = !closed.is_empty();
        close_aside(closed);
        are_some
    }

    /// Removes and returns the files that have no name any more. Readers of them get an error from now on.
    pub(crate) fn take_gone(&self) -> Vec<Arc<OpenFile>> {
        let files: Vec<_> = self.files.lock().iter().map(|(key, file)| (*key, Arc::clone(file))).collect();
        let (gone_files, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, file)| file.is_gone());
        // some may have been evicted meanwhile
        close_aside(others.into_iter().map(|(_, file)| file));
        let mut gone = Vec::new();
        for (key, file) in gone_files {
            file.mark_changed();
            let mut files = self.files.lock();
            if files.peek(&key).is_some_and(|now| Arc::ptr_eq(now, &file)) {
                files.pop(&key);
            }
            drop(files);
            gone.push(file);
        }
        gone
    }

    /// Returns whether the negative cache has the name.
    pub(crate) fn is_missing(&self, key: Key, name: &str) -> bool {
        let mut names = self.missing.lock();
        names.get(&key).is_some_and(|(missing, at)| &**missing == name && at.elapsed() < MISSING_TTL)
    }

    /// Adds a name to the negative cache.
    pub(crate) fn insert_missing(&self, key: Key, name: &str) {
        self.missing.lock().put(key, (name.into(), Instant::now()));
    }

    /// Remembers the version of a file, `None` if it is missing. Returns `false` if another version was known.
    pub(crate) fn is_as_before(&self, key: Key, stamp: Option<&FileStamp>) -> bool {
        let digest = stamp.map_or(MISSING, FileStamp::digest);
        self.digests.lock().get_or_insert(key, digest) == digest
    }

    /// Returns up to `most` open files of a folder with their versions, and up to `most` missing ones with `None`: the
    /// most recently used. Missing ones are found only among the recent ones of all folders.
    pub(crate) fn recent(&self, folder: u64, most: usize) -> Vec<(Box<str>, Option<FileStamp>)> {
        let mut recent = Vec::new();
        for (_, file) in self.files.lock().iter().filter(|(key, _)| key.0 == folder).take(most) {
            recent.push((file.name.clone(), Some(file.stamp)));
        }
        let missing = self.missing.lock();
        let of_folder = missing.iter().take(RECENT_MISSING).filter(|(key, _)| key.0 == folder);
        recent.extend(of_folder.take(most).map(|(_, (name, _))| (name.clone(), None)));
        recent
    }

    /// Closes the files of a dataset's file or folder.
    pub(crate) fn close(&self, folder: u64) {
        let mut files = self.files.lock();
        let keys: Vec<Key> = files.iter().map(|(key, _)| *key).filter(|key| key.0 == folder).collect();
        let closed: Vec<_> = keys.iter().filter_map(|key| files.pop(key)).collect();
        drop(files);
        close_aside(closed);
    }
}

/// Closes files that are in no cache any more, after the lock of the cache is released, since that takes time; one that
/// somebody still reads is closed by its last reader. A file that is not local is closed by a thread of its own: its
/// server is told, which may never answer, and the caller may be a reader of another dataset.
fn close_aside(files: impl IntoIterator<Item = Arc<OpenFile>>) {
    let remote: Vec<_> = files.into_iter().filter_map(Arc::into_inner).filter(|file| !file.is_local()).collect();
    if !remote.is_empty() {
        // without a thread they are closed here
        let close = thread::Builder::new().name("volfs-close".into()).stack_size(CLOSING_STACK);
        let _ = close.spawn(move || drop(remote));
    }
}

/// The digest of a file that is not there.
const MISSING: u64 = 0;

/// Digests of the versions of files in two generations. A digest that is not used while a generation fills up is
/// forgotten.
#[derive(Default)]
struct Digests {
    young: HashMap<Key, u64>,
    old: HashMap<Key, u64>,
}

impl Digests {
    /// Returns the digest of a file if one is known; else stores and returns `digest`.
    fn get_or_insert(&mut self, key: Key, digest: u64) -> u64 {
        if let Some(known) = self.young.get(&key) {
            return *known;
        }
        let digest = self.old.get(&key).copied().unwrap_or(digest);
        if self.young.len() >= GENERATION {
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
        let mut known = Digests::default();
        known.get_or_insert((0, 7), 7);
        for round in 0..5 {
            for n in 0..GENERATION as u64 {
                known.get_or_insert((round, n), n);
                if n % 10_000 == 0 {
                    assert_eq!(known.get_or_insert((0, 7), 99), 7);
                }
            }
        }
        assert!(known.young.len() + known.old.len() <= 2 * GENERATION);
        assert_eq!(known.get_or_insert((1, 8), 99), 99);
    }
}
