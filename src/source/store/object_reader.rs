//! A dataset in a store (one object, or a folder of objects, which are all keys with one beginning), and what all
//! datasets of a store share.

use std::io::{Error, ErrorKind};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;
use object_store::GetRange;

use super::cache::{CachedObjects, FolderVersions, StoreCache};
use super::client::{At, Client, Fetched, ObjectMeta, Outcome, about, wait_for};
use super::error::StoreError;
use super::names::{Names, prefix_of};
use super::staging::{MAX_REQUESTS, ObjectId, RequestLimit, Reservation, Staging};
use crate::source::{
    Blocking, EntryKind, FileSource, FirstFailure, Folder, LONGEST, NoFolder, ObjectVersion, Source, SourceError,
    StoreKind, StoreUrl, end_by_size, last_bytes, new_number,
};
use crate::sync::Mutex;

/// Objects whose versions are remembered, all sources together.
const VERSIONS: NonZeroUsize = NonZeroUsize::new(16 << 10).unwrap();
/// First bytes of files that are remembered, by the versions of the files.
const HEADS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// How long an object that was not there counts as absent.
const ABSENT_TTL: Duration = Duration::from_secs(1);
/// Reads up to this length get the whole block of this length around them, which is kept: headers and tables are read
/// in small parts.
const SMALL: u64 = 32 << 10;
const BLOCK: u64 = 64 << 10;
/// Gaps up to this length between ranges are fetched along with them: another request costs more.
const MAX_GAP: u64 = 128 << 10;
/// Ranges are merged up to this length, so that there are several to be in flight.
const MAX_MERGED: u64 = 2 << 20;

pub(super) struct Store {
    pub(super) url: StoreUrl,
    pub(super) client: Arc<Client>,
    pub(super) staging: Staging,
    pub(super) names: Names,
    /// What is on a local disk of it, if anything is.
    pub(super) cache: Option<Arc<StoreCache>>,
    pub(super) heads: Mutex<LruCache<ObjectVersion, Arc<[u8]>>>,
    /// What the store said of each object first: a later answer must say the same.
    versions: Mutex<LruCache<ObjectId, (Option<ObjectMeta>, Instant)>>,
}

impl Store {
    /// Creates a store, of which a local disk keeps what was fetched if there is a `cache`.
    pub(super) fn new(url: StoreUrl, signs: Vec<&'static str>, client: Client, cache: Option<StoreCache>) -> Arc<Self> {
        let client = Arc::new(client);
        Arc::new(Self {
            url,
            staging: Staging::default(),
            names: Names::new(Arc::clone(&client), signs),
            client,
            cache: cache.map(Arc::new),
            heads: Mutex::new(LruCache::new(HEADS)),
            versions: Mutex::new(LruCache::new(VERSIONS)),
        })
    }

    /// Remembers what the store told of an object, which must be what it told before, and the version of what was read
    /// from the disk.
    fn note(
        &self,
        object: &ObjectId,
        cached: Option<&CachedObjects>,
        changed: &AtomicBool,
        meta: Option<&ObjectMeta>,
    ) -> Result<(), StoreError> {
        let mut versions = self.versions.lock();
        let is_same = match (versions.peek(object), meta) {
            (Some((Some(before), _)), Some(now)) => before.is_same_version(now),
            (Some((before, _)), now) => before.is_some() == now.is_some(),
            (None, _) => true,
        };
        if !is_same || cached.is_some_and(|cached| cached.has_other(&object.1, meta)) {
            changed.store(true, Ordering::Relaxed);
            return Err(StoreError::replaced());
        }
        versions.put(object.clone(), (meta.cloned(), Instant::now()));
        Ok(())
    }
}

/// Reads one object in the version that it had when it was opened, or those of a folder.
pub(super) struct ObjectReader {
    number: u64,
    store: Arc<Store>,
    key: Box<str>,
    /// The version of the object; `None` for a folder.
    file: Option<ObjectMeta>,
    limit: Arc<RequestLimit>,
    changed: Arc<AtomicBool>,
    cached: Option<Arc<CachedObjects>>,
    /// The first failure of the store here or in a folder that was opened from here.
    failure: FirstFailure,
}

impl ObjectReader {
    /// Opens an object in the version `file`, or a folder. Nothing is sent.
    pub(super) fn new(store: &Arc<Store>, key: &str, file: Option<ObjectMeta>, failure: FirstFailure) -> Self {
        let (number, changed) = (new_number(), Arc::default());
        // one file or folder that hangs must not take all connections
        let limit = Arc::new(RequestLimit::new(MAX_REQUESTS.min(store.client.most_connections / 4)));
        let versions = || FolderVersions::new(&store.client, &changed);
        let cached = store.cache.as_ref().and_then(|cache| CachedObjects::new(cache, key, file.as_ref(), versions));
        let (store, key, cached) = (Arc::clone(store), key.into(), cached.map(Arc::new));
        Self { number, store, key, file, limit, changed, cached, failure }
    }

    fn object(&self, key: &str) -> ObjectId {
        (self.number, key.into())
    }

    /// Returns the key of an object of this source; `None` if it is known to be absent by a listing.
    fn key_of(&self, object: &str) -> Result<Option<String>, SourceError> {
        if self.file.is_some() {
            return Ok(Some(self.key.to_string()));
        }
        if !object.split('/').all(|name| !matches!(name, "" | "." | "..")) {
            let error = Error::new(ErrorKind::InvalidInput, "not a name below a folder");
            return Err(SourceError::io(format!("cannot open {object}"), &error));
        }
        let key = prefix_of(&self.key) + object;
        let is_absent = self.known(&key).is_none() && self.store.names.known(&key) == Some(At::Nothing);
        Ok((!is_absent).then_some(key))
    }

    /// Returns what is known of an object; the inner `None` if it was not there a moment ago.
    fn known(&self, key: &str) -> Option<Option<ObjectMeta>> {
        match self.store.versions.lock().get(&self.object(key))? {
            (None, at) if at.elapsed() >= ABSENT_TTL => None,
            (known, _) => Some(known.clone()),
        }
    }

    /// Returns the bytes of an object, if they are known.
    fn known_size(&self, key: &str) -> Option<u64> {
        let known = || self.known(key).map(|meta| meta.map_or(0, |meta| meta.size));
        let size = self.file.as_ref().map(|meta| meta.size).or_else(known);
        size.or_else(|| self.cached.as_ref()?.size(key))
    }

    /// Returns what the store tells of an object, the headers written with it included; `None` if it does not exist.
    /// What is in flight answers, or else a request for its first bytes if `with_bytes`, or for its head alone.
    fn meta(&self, key: &str, with_bytes: bool) -> Result<Option<ObjectMeta>, SourceError> {
        self.check_unchanged()?;
        let has_headers = |meta: &Option<ObjectMeta>| meta.as_ref().is_none_or(|meta| meta.headers.is_some());
        let known = || self.known(key).filter(|meta| with_bytes || has_headers(meta));
        if let Some(known) = known() {
            return Ok(known);
        }
        let object = self.object(key);
        let fetched = self.store.staging.any_of(&object).or_else(|| with_bytes.then(|| self.fetch(key, 0..1)));
        let outcome = match (fetched, known()) {
            (Some(outcome), _) => outcome.map(|fetched| fetched.map(|fetched| fetched.meta)),
            // what was in flight has come, and was read, since it was looked for
            (None, Some(known)) => Ok(known),
            (None, None) => {
                wait_for(self.store.client.head(key)).unwrap_or_else(|error| Err(error.into())).and_then(|meta| {
                    self.store.note(&object, self.cached.as_deref(), &self.changed, meta.as_ref()).map(|()| meta)
                })
            }
        };
        outcome.map_err(|error| self.failed("read from", &error))
    }

    fn read_object(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        let (length, size) = (out.len() as u64, self.file.as_ref().map(|meta| meta.size));
        let too_short = |size| SourceError::TooShort { offset, length, size };
        let end = offset.checked_add(length).filter(|end| *end <= size.unwrap_or(LONGEST));
        let end = end.ok_or(too_short(size.unwrap_or(0)))?;
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        let Some(key) = self.key_of(object)? else { return Ok(false) };
        if let Some(meta) = &self.file {
            // many objects of other datasets may have been read since the last time
            self.store.versions.lock().put(self.object(&key), (Some(meta.clone()), Instant::now()));
        }
        if out.is_empty() {
            return Ok(self.file.is_some() || self.meta(&key, true)?.is_some());
        }
        self.check_unchanged()?;
        let is_kept = self.cached.as_ref().is_some_and(|cached| cached.read(&key, offset, out));
        self.check_unchanged()?;
        if is_kept {
            return Ok(true);
        }
        let fetched = match self.known(&key) {
            Some(None) => Ok(None),
            _ => self.fetch(&key, offset..end).map_err(|error| self.failed("read from", &error)),
        };
        self.check_unchanged()?;
        match (fetched?, &self.file) {
            (Some(fetched), _) if fetched.bytes.len() == out.len() => {
                out.copy_from_slice(&fetched.bytes);
                Ok(true)
            }
            // an object that is gone was removed since
            (_, Some(_)) => Err(SourceError::Changed),
            (Some(fetched), None) => Err(too_short(fetched.meta.size)),
            (None, None) => Ok(false),
        }
    }

    /// Returns the value of the header of an object whose name ends with `name`, from the local disk if it is there.
    fn header(&self, object: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let Some(key) = self.key_of(object)? else { return Ok(None) };
        if let Some(kept) = self.cached.as_ref().and_then(|cached| cached.header(&key, name)) {
            self.check_unchanged()?;
            return Ok(kept);
        }
        let Some(meta) = self.meta(&key, false)? else { return Ok(None) };
        let value = meta.header(name);
        if let Some(cached) = &self.cached {
            cached.keep_header(&key, name, &meta, value.as_deref());
        }
        Ok(value)
    }

    fn fetch(&self, key: &str, range: Range<u64>) -> Outcome {
        let object = self.object(key);
        let is_small = range.end - range.start <= SMALL;
        let wide = match is_small {
            true => range.start / BLOCK * BLOCK..range.end.div_ceil(BLOCK).saturating_mul(BLOCK),
            false => range.clone(),
        };
        self.store.staging.get(&object, &range, (&wide, is_small), || self.request(&object, wide.clone()))
    }

    fn request(&self, object: &ObjectId, range: Range<u64>) {
        let expected = self.store.versions.lock().peek(object).and_then(|(meta, _)| meta.clone());
        let (store, object, cached) = (Arc::clone(&self.store), object.clone(), self.cached.clone());
        let (limit, changed) = (Arc::clone(&self.limit), Arc::clone(&self.changed));
        self.store.client.runtime.spawn(async move {
            let length = range.end - range.start;
            let _permit = limit.admit(length).await;
            let wanted = match range.start > LONGEST {
                true => GetRange::Suffix(length),
                false => range.clone().into(),
            };
            let outcome = match store.client.get(&object.1, wanted, expected.as_ref()).await {
                // an empty object has no range
                Err(error) if error.is_beyond_end => {
                    let head = store.client.head(&object.1).await;
                    head.map(|meta| meta.map(|meta| Fetched { meta, bytes: Bytes::new() }))
                }
                outcome => outcome,
            };
            let outcome = outcome.and_then(|fetched| {
                let meta = fetched.as_ref().map(|fetched| &fetched.meta);
                store.note(&object, cached.as_deref(), &changed, meta).map(|()| fetched)
            });
            if outcome.as_ref().is_err_and(|error| error.is_other_version) {
                changed.store(true, Ordering::Relaxed);
            }
            if let Ok(Some(fetched)) = &outcome {
                limit.record(length, fetched.bytes.len() as u64);
            }
            let to_keep = cached.zip(outcome.as_ref().ok().and_then(Option::clone));
            store.staging.arrive(&object, &range, outcome);
            // when the threads that wait have it
            if let Some((cached, fetched)) = to_keep {
                let last = fetched.meta.size.saturating_sub(fetched.bytes.len() as u64);
                cached.keep(&object.1, range.start.min(last), &fetched);
            }
        });
    }

    /// Returns an error without the key: what fails for one object fails for many, and one line of the log is enough.
    fn failed(&self, doing: &str, error: &StoreError) -> SourceError {
        error.to_source_error(format!("cannot {doing} {}", self.store.client.base))
    }
}

impl Source for ObjectReader {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        if let Some(meta) = &self.file {
            return Ok(Some(meta.size));
        }
        let Some(key) = self.key_of(object)? else { return Ok(None) };
        if let Some(size) = self.cached.as_ref().and_then(|cached| cached.size(&key)) {
            return Ok(Some(size));
        }
        Ok(self.failure.noted(self.meta(&key, true))?.map(|meta| meta.size))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        self.failure.noted(self.read_object(object, offset, out, blocking))
    }

    /// Asks for the end without asking for the size before, if nothing is known of the object.
    fn read_end(&self, object: &str, length: u64) -> Result<Option<(u64, Vec<u8>)>, SourceError> {
        let Some(key) = self.key_of(object)? else { return Ok(None) };
        let (object_id, range) = (self.object(&key), last_bytes(length));
        // what was fetched ahead has told the size
        let has_size = self.known_size(&key).is_some() && !self.store.staging.has(&object_id, &range);
        // Azure has no such requests
        if has_size || length == 0 || length > LONGEST || self.store.url.kind == StoreKind::Azure {
            return end_by_size(self, object, length);
        }
        self.check_unchanged()?;
        let request = || self.request(&object_id, range.clone());
        let fetched = self.store.staging.get(&object_id, &range, (&range, false), request);
        self.check_unchanged()?;
        match self.failure.noted(fetched.map_err(|error| self.failed("read from", &error)))? {
            Some(Fetched { meta, bytes }) if bytes.len() as u64 == length.min(meta.size) => {
                Ok(Some((meta.size, bytes.to_vec())))
            }
            // another answer has told the size meanwhile
            Some(_) => end_by_size(self, object, length),
            None => Ok(None),
        }
    }

    fn tag(&self, object: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        self.failure.noted(self.header(object, name))
    }

    fn fetches_ahead(&self) -> bool {
        true
    }

    /// Fetches neighbours together.
    fn will_need(&self, ranges: &[(&str, Range<u64>)], awaited: bool) -> bool {
        let (staging, size) = (&self.store.staging, self.file.as_ref().map_or(LONGEST, |meta| meta.size));
        let is_missing = |key: &str, range: &Range<u64>| {
            range.end > range.start
                && self.known(key) != Some(None)
                && !staging.has_or_had(&self.object(key), range)
                && !self.cached.as_ref().is_some_and(|cached| cached.has(key, range))
        };
        let within = |key: &str, range: &Range<u64>| match (range.start > LONGEST, self.known_size(key)) {
            (false, _) => range.start..range.end.min(size),
            (true, Some(size)) => size.saturating_sub(range.end - range.start)..size,
            (true, None) if self.store.url.kind == StoreKind::Azure => 0..0,
            (true, None) => range.clone(),
        };
        let keyed = ranges.iter().filter_map(|(object, range)| {
            let key = self.key_of(object).ok()??;
            // last bytes may have been requested before the size was known
            let is_requested = range.start > LONGEST && staging.has_or_had(&self.object(&key), range);
            let range = within(&key, range);
            (!is_requested).then_some((key, range))
        });
        let mut ranges: Vec<(String, Range<u64>)> = keyed.filter(|(key, range)| is_missing(key, range)).collect();
        ranges.sort_unstable_by(|a, b| (&a.0, a.1.start).cmp(&(&b.0, b.1.start)));
        let mut merged: Vec<(&str, Range<u64>)> = Vec::new();
        for (key, range) in &ranges {
            match merged.last_mut() {
                Some((last_key, last))
                    if last_key == key
                        && range.start <= last.end.saturating_add(MAX_GAP)
                        && (range.end <= last.end || range.end - last.start <= MAX_MERGED) =>
                {
                    last.end = last.end.max(range.end);
                }
                _ => merged.push((key, range.clone())),
            }
        }
        for (key, range) in merged {
            let object = self.object(key);
            match staging.reserve(&object, &range, awaited) {
                Reservation::Made => self.request(&object, range),
                Reservation::Requested => {}
                Reservation::NoRoom => return false,
            }
        }
        true
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        if self.has_changed() { Err(SourceError::Changed) } else { Ok(()) }
    }
}

impl FileSource for ObjectReader {
    fn version(&self) -> ObjectVersion {
        about(&self.key, self.file.as_ref()).version
    }

    fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }
}

impl Folder for ObjectReader {
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder> {
        // a path of the machine that wrote the description
        if path.starts_with('/') {
            return Err(NoFolder::Outside);
        }
        let mut names: Vec<&str> = self.key.split('/').filter(|name| !name.is_empty()).collect();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop().ok_or(NoFolder::Outside)?),
                name => names.push(name),
            }
        }
        let (key, store) = (names.join("/"), &self.store);
        let is_below = store.url.key.is_empty() || format!("{key}/").starts_with(&prefix_of(&store.url.key));
        if !is_below {
            return Err(NoFolder::Outside);
        }
        if store.client.can_list() {
            match store.names.look(&key) {
                Ok(At::Folder) => {}
                Ok(At::File(_)) => return Err(NoFolder::NotAFolder),
                Ok(At::Nothing) => return Err(NoFolder::Absent),
                // list permission may be missing while read is allowed
                Err(error) if error.kind == ErrorKind::PermissionDenied => {}
                Err(error) => self.failure.noted(Err(self.failed("list", &error)))?,
            }
        }
        Ok(Arc::new(Self::new(store, &key, None, self.failure.clone())))
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<bool, SourceError> {
        let key = prefix_of(&self.key) + below;
        if !self.store.client.can_list() {
            return Ok(false);
        }
        match self.store.names.visit(key.trim_end_matches('/'), visit) {
            Err(error) if error.kind == ErrorKind::PermissionDenied => Ok(false),
            listed => self.failure.noted(listed.map_err(|error| self.failed("list", &error))).map(|()| true),
        }
    }

    fn identity(&self) -> (u64, u64) {
        self.version().inode
    }

    fn is_changed(&self) -> bool {
        self.has_changed()
    }

    fn failure(&self) -> Option<SourceError> {
        self.failure.get()
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        self.store.staging.forget(self.number);
    }
}
