//! What of a store's objects is on a local disk.
//!
//! Bytes are kept by the version of their object, which has to be known before they are asked for: that of a file is
//! known since it was opened; those of the objects in a folder come from a listing ([`FolderVersions`]), which is one
//! request for a thousand objects.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lru::LruCache;

use super::client::{At, Client, Fetched, MAX_PAGES, ObjectMeta};
use super::names::prefix_of;
use crate::source::disk_cache::{CacheKey, DiskCache, stable_hash};
use crate::sync::{Condvar, LazyPerProcess, Mutex};

/// An object without an etag counts as one version only if it was last changed so long before it was looked at: another
/// change might get the same time, and clocks differ.
const SETTLED: Duration = Duration::from_secs(60);

/// How long a reader waits for a listing.
const LISTING_TIMEOUT: Duration = Duration::from_secs(2);
/// A folder is listed again when the last listing is so old, and at least so many times as old as it took.
const FRESH: Duration = Duration::from_secs(30);
const PER_LISTING: u32 = 20;
/// Folders of one source whose listings are remembered.
const FOLDERS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// Objects of a folder of which it is remembered that bytes were read from the disk.
const READ_FROM_DISK: NonZeroUsize = NonZeroUsize::new(16 << 10).unwrap();
/// The most names of all sources that are remembered, 32 bytes each, and how many are.
const MOST_NAMES: usize = 1 << 20;
static NAMES: LazyPerProcess<AtomicUsize> = LazyPerProcess::new(|| AtomicUsize::new(0));

/// Bytes of the record of a header: a number of bytes, and these with zeros behind them.
const RECORD: usize = 64;
/// The number of bytes where the object has no such header.
const NONE: u8 = u8::MAX;

/// What tells the versions of an object apart, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CacheVersion {
    has_etag: bool,
    /// A hash of its etag, or else of its size and the time of its last change.
    hash: u64,
}

impl CacheVersion {
    /// Returns the version that a store tells of; `None` if the object may change and still look the same.
    fn new(meta: &ObjectMeta, now: SystemTime) -> Option<Self> {
        // a server that tells no time is said to tell 0
        let seconds = || u64::try_from(meta.modified).ok().filter(|seconds| *seconds > 0);
        let modified = || UNIX_EPOCH.checked_add(Duration::from_secs(seconds()?));
        let is_settled = || now.duration_since(modified()?).ok().filter(|age| *age >= SETTLED);
        Self::of(meta, true).or_else(|| is_settled().and_then(|_| Self::of(meta, false)))
    }

    fn of(meta: &ObjectMeta, has_etag: bool) -> Option<Self> {
        let hash = match has_etag {
            true => stable_hash(meta.etag.as_ref()?.as_bytes()),
            false => stable_hash([meta.size.to_le_bytes(), meta.modified.to_le_bytes()].as_flattened()),
        };
        Some(Self { has_etag, hash })
    }

    fn is_of(self, answer: &ObjectMeta) -> bool {
        Self::of(answer, self.has_etag) == Some(self)
    }

    fn name(self) -> String {
        format!("{} {:016x}", if self.has_etag { "etag" } else { "time" }, self.hash)
    }
}

/// The versions of the objects below one folder.
///
/// A folder is listed when an object in it is first asked for. The reader waits a little, and then goes on without, as
/// for a folder that cannot be listed. While objects are asked for, the folder is listed again after a while: an object
/// that has another version then is a change, which no answer of the store would have shown if all is on the disk.
pub(super) struct FolderVersions {
    client: Arc<Client>,
    /// Set when an object was found to have changed.
    changed: Arc<AtomicBool>,
    folders: Mutex<LruCache<Box<str>, Arc<Folder>>>,
    /// The versions of the objects of which anything was read from the disk, or the size was told, by the hashes of their
    /// keys.
    read: Mutex<LruCache<u64, CacheVersion>>,
}

#[derive(Default)]
struct Folder {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    versions: Option<Versions>,
    /// The last listing failed: what `versions` has is of an earlier one, and only tells the next one what has changed.
    has_failed: bool,
    is_being_listed: bool,
    /// When the last listing ended, and how long it took.
    listed: Option<(Instant, Duration)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Listed {
    /// The hash of its name.
    name: u64,
    size: u64,
    /// `None` if its versions cannot be told apart.
    version: Option<CacheVersion>,
}

/// The objects of a folder, in the order of the hashes of their names. They are counted in [`NAMES`].
#[derive(Default)]
struct Versions(Vec<Listed>);

impl Drop for Versions {
    fn drop(&mut self) {
        NAMES.fetch_sub(self.0.len(), Relaxed);
    }
}

impl Versions {
    fn get(&self, name: u64) -> Option<Listed> {
        let at = self.0.binary_search_by_key(&name, |listed| listed.name).ok()?;
        self.0.get(at).copied()
    }

    /// Returns whether an object has changed or is gone in a later listing.
    fn differ(&self, now: &Self) -> bool {
        // a version that could not be told from others may have become one that can
        let is_same = |a: &Listed, b: Listed| a.size == b.size && (a.version.is_none() || a.version == b.version);
        self.0.iter().any(|listed| !now.get(listed.name).is_some_and(|now| is_same(listed, now)))
    }
}

impl FolderVersions {
    /// Lists with `client`; sets `changed` when an object has changed.
    pub(super) fn new(client: &Arc<Client>, changed: &Arc<AtomicBool>) -> Self {
        let (client, changed) = (Arc::clone(client), Arc::clone(changed));
        let (folders, read) = (Mutex::new(LruCache::new(FOLDERS)), Mutex::new(LruCache::new(READ_FROM_DISK)));
        Self { client, changed, folders, read }
    }

    /// Returns what a listing says of the object of a key; `None` if that is not known, or there is no such object. If
    /// `asks`, the folder is listed when that is due, and the first listing is waited for a moment.
    fn get(&self, key: &str, asks: bool) -> Option<Listed> {
        if !self.client.can_list() {
            return None;
        }
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        let folder = Arc::clone(self.folders.lock().get_or_insert(parent.into(), Arc::default));
        let mut state = folder.state.lock();
        let is_due = |(at, took): (Instant, Duration)| at.elapsed() >= FRESH.max(took.saturating_mul(PER_LISTING));
        if asks && !state.is_being_listed && state.listed.is_none_or(is_due) {
            state.is_being_listed = true;
            self.client.runtime.spawn(self.list(parent, &folder));
        }
        let until = Instant::now() + LISTING_TIMEOUT;
        while asks && state.listed.is_none() {
            let left = until.checked_duration_since(Instant::now())?;
            folder.arrived.wait_for(&mut state, left);
        }
        state.versions.as_ref().filter(|_| !state.has_failed)?.get(stable_hash(name.as_bytes()))
    }

    fn list(&self, parent: &str, folder: &Arc<Folder>) -> impl Future<Output = ()> + use<> {
        let (client, changed) = (Arc::clone(&self.client), Arc::clone(&self.changed));
        let (prefix, folder) = (prefix_of(parent), Arc::downgrade(folder));
        async move {
            let began = Instant::now();
            let listed = list_all(&client, &prefix).await;
            // the source may be closed by now
            let Some(folder) = folder.upgrade() else { return };
            let mut state = folder.state.lock();
            if let (Some(before), Some(now)) = (&state.versions, &listed)
                && before.differ(now)
            {
                changed.store(true, Relaxed);
            }
            state.has_failed = listed.is_none();
            let before = listed.and_then(|listed| state.versions.replace(listed));
            state.listed = Some((Instant::now(), began.elapsed()));
            state.is_being_listed = false;
            drop(state);
            drop(before);
            folder.arrived.notify_all();
        }
    }
}

/// Lists a folder; `None` if that fails, or there are too many names.
async fn list_all(client: &Client, prefix: &str) -> Option<Versions> {
    let (mut versions, mut token) = (Versions::default(), None);
    for _ in 0..MAX_PAGES {
        let page = client.list(prefix, token).await.ok()?;
        let (now, before) = (SystemTime::now(), versions.0.len());
        versions.0.extend(page.entries.iter().filter_map(|(name, at)| {
            let At::File(meta) = at else { return None };
            let (name, version) = (stable_hash(name.as_bytes()), CacheVersion::new(meta, now));
            Some(Listed { name, size: meta.size, version })
        }));
        let added = versions.0.len() - before;
        if NAMES.fetch_add(added, Relaxed).saturating_add(added) > MOST_NAMES {
            return None;
        }
        token = page.next;
        if token.is_none() {
            versions.0.sort_unstable_by_key(|listed| listed.name);
            versions.0.shrink_to_fit();
            return Some(versions);
        }
    }
    None
}

/// The cache, and the name that the store has in it: the bucket, with its endpoint or account.
pub(super) struct StoreCache {
    pub(super) cache: DiskCache,
    pub(super) place: String,
}

pub(super) struct CachedObjects {
    cache: Arc<StoreCache>,
    dataset: Box<str>,
    versions: Source,
}

enum Source {
    File(CacheVersion),
    Folder(FolderVersions),
}

impl CachedObjects {
    /// Those of a dataset that is the object `file`, or a folder; `None` if versions of the object cannot be told apart.
    pub(super) fn new(
        cache: &Arc<StoreCache>,
        key: &str,
        file: Option<&ObjectMeta>,
        folder: impl FnOnce() -> FolderVersions,
    ) -> Option<Self> {
        let versions = match file {
            Some(meta) => Source::File(CacheVersion::new(meta, SystemTime::now())?),
            None => Source::Folder(folder()),
        };
        Some(Self { cache: Arc::clone(cache), dataset: key.into(), versions })
    }

    /// Returns the key of the bytes of an object, or of the header `part` of it; may wait a moment for the version of
    /// the object. With the `answer` of a store it does not wait, and returns `None` if the answer is of another
    /// version. No object has a line break in its name that is followed by the name of such a header.
    fn cache_key(&self, key: &str, answer: Option<&ObjectMeta>, part: &str) -> Option<CacheKey> {
        let version = match &self.versions {
            Source::File(version) => *version,
            Source::Folder(versions) => versions.get(key, answer.is_none())?.version?,
        };
        if answer.is_some_and(|answer| !version.is_of(answer)) {
            return None;
        }
        let object = key.strip_prefix(&*self.dataset)?.trim_start_matches('/');
        let object = if part.is_empty() { object.to_owned() } else { format!("{object}\n{part}") };
        Some(CacheKey::new(&self.cache.place, &self.dataset, &object, &version.name()))
    }

    /// Returns the value of a header that was kept, or `None` inside if the object has none.
    pub(super) fn header(&self, key: &str, name: &str) -> Option<Option<Vec<u8>>> {
        let mut record = [0; RECORD];
        let is_kept = self.cache.cache.get(&self.cache_key(key, None, name)?, 0, &mut record);
        match record.split_first().filter(|_| is_kept)? {
            (&NONE, _) => self.with_version(key, Some(None)),
            (length, value) => self.with_version(key, Some(Some(value.get(..usize::from(*length))?.to_vec()))),
        }
    }

    /// Keeps the value of a header of an object, if it is short, and of the version that would be asked for.
    pub(super) fn keep_header(&self, key: &str, name: &str, meta: &ObjectMeta, value: Option<&[u8]>) {
        let mut record = vec![0; RECORD];
        let length = value.map_or(0, <[u8]>::len);
        let (Ok(number), Some(room)) = (u8::try_from(length), record.get_mut(1..=length)) else { return };
        room.copy_from_slice(value.unwrap_or_default());
        record[0] = if value.is_some() { number } else { NONE };
        if let Some(key) = self.cache_key(key, Some(meta), name) {
            self.cache.cache.put(&key, 0, record);
        }
    }

    /// Returns the size of an object, if a listing told it; may wait for that a moment.
    pub(super) fn size(&self, key: &str) -> Option<u64> {
        match &self.versions {
            Source::File(_) => None,
            Source::Folder(versions) => self.with_version(key, versions.get(key, true).map(|listed| listed.size)),
        }
    }

    /// Returns a `value` of an object; if there is one, remembers that it is of the version in the listing.
    fn with_version<T>(&self, key: &str, value: Option<T>) -> Option<T> {
        if value.is_some()
            && let Source::Folder(versions) = &self.versions
            && let Some(version) = versions.get(key, false).and_then(|listed| listed.version)
        {
            versions.read.lock().put(stable_hash(key.as_bytes()), version);
        }
        value
    }

    /// Fills `out` with the bytes of an object from `offset` on; `false` if they are not on the disk.
    pub(super) fn read(&self, key: &str, offset: u64, out: &mut [u8]) -> bool {
        let is_kept = self.cache_key(key, None, "").is_some_and(|key| self.cache.cache.get(&key, offset, out));
        self.with_version(key, is_kept.then_some(())).is_some()
    }

    /// Returns whether the store tells of another version of an object in a folder than that of which bytes were read from
    /// the disk, or the size from a listing; `None` of an object that is not there.
    pub(super) fn has_other(&self, key: &str, answer: Option<&ObjectMeta>) -> bool {
        let Source::Folder(versions) = &self.versions else { return false };
        let read = versions.read.lock().peek(&stable_hash(key.as_bytes())).copied();
        read.is_some_and(|version| answer.is_none_or(|answer| !version.is_of(answer)))
    }

    /// Returns whether a range of an object, as far as the object has bytes there, seems to be on the disk.
    pub(super) fn has(&self, key: &str, range: &Range<u64>) -> bool {
        let end = self.size(key).map_or(range.end, |size| range.end.min(size));
        let length = end.saturating_sub(range.start);
        let is_kept = |key: CacheKey| self.cache.cache.has(&key, range.start, length);
        length == 0 || self.cache_key(key, None, "").is_some_and(is_kept)
    }

    /// Keeps what was fetched, from `offset` on, if it is of the version that would be asked for. Never blocks.
    pub(super) fn keep(&self, key: &str, offset: u64, fetched: &Fetched) {
        if let Some(key) = self.cache_key(key, Some(&fetched.meta), "") {
            self.cache.cache.put(&key, offset, fetched.bytes.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Fixture;
    use super::*;

    #[test]
    fn a_folder_is_listed_for_the_first_who_asks_and_again_when_that_is_old() {
        let store = Fixture::new(&[("d/a", b"1"), ("d/b", b"12"), ("d/c", b"123")]);
        let changed = Arc::default();
        let versions = FolderVersions::new(&Arc::new(store.client("s3://bucket")), &changed);
        assert!(versions.get("d/a", false).is_none(), "an answer of the store asks for no listing");
        let start = Instant::now();
        let sizes = ["d/a", "d/b", "d/c", "d/d"].map(|key| versions.get(key, true).map(|listed| listed.size));
        assert_eq!(sizes, [Some(1), Some(2), Some(3), None]);
        assert!(start.elapsed() < LISTING_TIMEOUT, "who waits for a listing goes on when it arrives");
        let folder = Arc::clone(versions.folders.lock().get("d").unwrap());
        let is_listed_again = |took| {
            let before = Some((Instant::now().checked_sub(FRESH).unwrap(), took));
            folder.state.lock().listed = before;
            versions.get("d/a", true);
            let mut state = folder.state.lock();
            while state.is_being_listed {
                folder.arrived.wait_for(&mut state, LISTING_TIMEOUT);
            }
            state.listed != before
        };
        assert!(!is_listed_again(FRESH), "it took too long for that");
        store.put("d/d", b"new", None);
        assert!(is_listed_again(Duration::ZERO) && !changed.load(Relaxed));
        assert_eq!(versions.get("d/d", true).map(|listed| listed.size), Some(3));
        store.put("d/b", b"21", None);
        assert!(is_listed_again(Duration::ZERO) && changed.load(Relaxed));
    }

    #[test]
    fn an_object_without_an_etag_has_a_version_when_it_is_old() {
        let meta =
            |modified, etag: Option<&str>| ObjectMeta { size: 5, modified, etag: etag.map(Into::into), headers: None };
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        assert!(CacheVersion::new(&meta(999, Some("a")), now).is_some());
        let old = CacheVersion::new(&meta(900, None), now).unwrap();
        assert_eq!([950, 2000, 0].map(|modified| CacheVersion::new(&meta(modified, None), now)), [None; 3]);
        assert!(old.is_of(&meta(900, Some("b"))) && !old.is_of(&meta(901, None)));
        let etag = CacheVersion::new(&meta(1, Some("a")), now).unwrap();
        assert!(etag.is_of(&meta(2, Some("a"))) && !etag.is_of(&meta(1, Some("b"))) && !etag.is_of(&meta(1, None)));
        assert_ne!(etag.name(), old.name());
    }
}
