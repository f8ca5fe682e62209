//! What the sources of one store share, and the requests of one source.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;
use std::num::NonZeroUsize;

use super::client::{Client, Fetched};
use super::error::StoreError;
use super::folder_versions::FolderVersions;
use super::in_flight::{InFlight, MAX_REQUESTS};
use super::meta::Meta;
use super::names::Names;
use super::on_disk::{OnDisk, StoreCache};
use super::runtime;
use super::staging::{ObjectId, Outcome, Reservation, Staging};
use crate::source::SourceError;
use crate::source::url::StoreUrl;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, AtomicUsize};

/// Objects whose versions are remembered, all sources together.
const VERSIONS: NonZeroUsize = NonZeroUsize::new(16 << 10).unwrap();
/// How long an object that was not there counts as absent.
const ABSENT_TTL: Duration = Duration::from_secs(1);
/// Reads up to this length get the whole block of this length around them, which is kept: headers and tables are read in
/// small parts.
const SMALL: u64 = 32 << 10;
const BLOCK: u64 = 64 << 10;
/// Gaps up to this length between ranges are fetched along with them: another request costs more.
const MAX_GAP: u64 = 128 << 10;
/// Ranges are merged up to this length, so that there are several to be in flight.
const MAX_MERGED: u64 = 2 << 20;

/// One store, as its sources share it.
pub(crate) struct Store {
    /// SOURCE.
    pub url: StoreUrl,
    /// Its requests.
    pub client: Arc<Client>,
    /// What is being fetched.
    pub staging: Staging,
    /// What is at its keys.
    pub names: Names,
    /// What is on a local disk of it, if anything is.
    pub cache: Option<Arc<StoreCache>>,
    /// Names whose versions are remembered.
    listed_names: Arc<AtomicUsize>,
    /// What the store said of each object first: a later answer must say the same.
    versions: Mutex<LruCache<ObjectId, (Option<Meta>, Instant)>>,
}

impl Store {
    /// Creates a store, of which a local disk keeps what was fetched if there is a `cache`.
    pub(crate) fn new(url: StoreUrl, client: Arc<Client>, cache: Option<StoreCache>) -> Arc<Self> {
        let names = Names::new(Arc::clone(&client));
        Arc::new(Self {
            url,
            client,
            staging: Staging::default(),
            names,
            cache: cache.map(Arc::new),
            listed_names: Arc::default(),
            versions: Mutex::new(LruCache::new(VERSIONS)),
        })
    }
}

/// An open file or folder of a store: what its objects were read as.
pub(crate) struct Opened {
    number: u64,
    /// The store.
    pub store: Arc<Store>,
    in_flight: Arc<InFlight>,
    changed: Arc<AtomicBool>,
    on_disk: Option<Arc<OnDisk>>,
}

impl Opened {
    /// Opens something in a store. Nothing is sent.
    pub(crate) fn new(store: &Arc<Store>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let in_flight = Arc::new(InFlight::new(store.client.most_in_flight(MAX_REQUESTS)));
        Self { number, store: Arc::clone(store), in_flight, changed: Arc::default(), on_disk: None }
    }

    /// Opens an object in this version. Nothing is sent.
    pub(crate) fn file(store: &Arc<Store>, key: &str, meta: &Meta) -> Self {
        let mut opened = Self::new(store);
        opened.expect(key, meta);
        opened.on_disk = store.cache.as_ref().and_then(|cache| OnDisk::file(cache, key, meta)).map(Arc::new);
        opened
    }

    /// Opens a folder. Nothing is sent.
    pub(crate) fn folder(store: &Arc<Store>, key: &str) -> Self {
        let mut opened = Self::new(store);
        let versions = FolderVersions::new(&store.client, &store.listed_names, &opened.changed);
        opened.on_disk = store.cache.as_ref().map(|cache| Arc::new(OnDisk::folder(cache, key, versions)));
        opened
    }

    fn is_on_disk(&self, key: &str, range: &Range<u64>) -> bool {
        self.on_disk.as_ref().is_some_and(|on_disk| on_disk.has(key, range))
    }

    /// Returns the size of an object without asking for it, where there is a local disk that may have its bytes.
    pub(crate) fn listed_size(&self, key: &str) -> Option<u64> {
        self.on_disk.as_ref()?.size(key)
    }

    /// Fills `out` from the local disk; `false` if it has not all of it.
    pub(crate) fn read_from_disk(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<bool, SourceError> {
        let Some(on_disk) = &self.on_disk else { return Ok(false) };
        self.check_unchanged()?;
        let is_read = on_disk.read(key, offset, out);
        self.check_unchanged()?;
        Ok(is_read)
    }

    /// Returns the value of the header of an object whose name ends with `name`, from the local disk if it is there;
    /// `None` if there is none, or no such object.
    pub(crate) fn header(&self, key: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        if let Some(on_disk) = &self.on_disk
            && let Some(kept) = on_disk.header(key, name)
        {
            self.check_unchanged()?;
            return Ok(kept);
        }
        let Some(meta) = self.meta(key, false)? else { return Ok(None) };
        let value = meta.header(name);
        if let Some(on_disk) = &self.on_disk {
            on_disk.keep_header(key, name, &meta, value.as_deref());
        }
        Ok(value)
    }

    fn object(&self, key: &str) -> ObjectId {
        (self.number, key.into())
    }

    /// Returns whether an object was found to have changed.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Returns an error if an object was found to have changed.
    pub(crate) fn check_unchanged(&self) -> Result<(), SourceError> {
        if self.has_changed() { Err(SourceError::Changed) } else { Ok(()) }
    }

    /// Sets the version that an object must have.
    pub(crate) fn expect(&self, key: &str, meta: &Meta) {
        self.store.versions.lock().put(self.object(key), (Some(meta.clone()), Instant::now()));
    }

    /// Returns what is known of an object; the inner `None` if it was not there a moment ago.
    pub(crate) fn known(&self, key: &str) -> Option<Option<Meta>> {
        let mut versions = self.store.versions.lock();
        match versions.get(&self.object(key))? {
            (None, at) if at.elapsed() >= ABSENT_TTL => None,
            (known, _) => Some(known.clone()),
        }
    }

    /// Returns what the store tells of an object, the headers written with it included; `None` if there is none. What is
    /// in flight answers, or else a request for its first bytes if `with_bytes`, or for its head alone.
    pub(crate) fn meta(&self, key: &str, with_bytes: bool) -> Result<Option<Meta>, SourceError> {
        self.check_unchanged()?;
        let told = |known: Option<Option<Meta>>| match known {
            Some(Some(meta)) => (meta.headers.is_some() || with_bytes).then_some(Some(meta)),
            Some(None) => Some(None),
            None => None,
        };
        if let Some(known) = told(self.known(key)) {
            return Ok(known);
        }
        let object = self.object(key);
        let outcome = match self.store.staging.any_of(&object) {
            Some(outcome) => outcome.map(|fetched| fetched.map(|fetched| fetched.meta)),
            None if with_bytes => self.fetch(key, 0..1).map(|fetched| fetched.map(|fetched| fetched.meta)),
            None => match told(self.known(key)) {
                // what was in flight has come, and was read, since it was looked for
                Some(known) => Ok(known),
                None => self.head(key, &object),
            },
        };
        outcome.map_err(|error| self.source_error(&error))
    }

    fn head(&self, key: &str, object: &ObjectId) -> Result<Option<Meta>, StoreError> {
        let head = runtime::wait_for(self.store.client.head(key)).unwrap_or_else(|error| Err(error.into()));
        let head = head.and_then(|meta| note(&self.store, object, &self.changed, meta));
        head.map_err(|error| self.mark(error))
    }

    /// Reads a range of an object, shorter if the object ends before; `None` if there is no object.
    pub(crate) fn read(&self, key: &str, range: Range<u64>) -> Result<Option<Fetched>, SourceError> {
        self.check_unchanged()?;
        if self.known(key) == Some(None) {
            return Ok(None);
        }
        let fetched = self.fetch(key, range).map_err(|error| self.source_error(&error));
        self.check_unchanged()?;
        fetched
    }

    fn fetch(&self, key: &str, range: Range<u64>) -> Outcome {
        let object = self.object(key);
        let is_small = range.end - range.start <= SMALL;
        let widen = |range: &Range<u64>| match is_small {
            true => range.start / BLOCK * BLOCK..range.end.div_ceil(BLOCK).saturating_mul(BLOCK),
            false => range.clone(),
        };
        self.store.staging.get(&object, range, is_small, widen, |range| self.request(&object, range))
    }

    /// Fetches ranges of objects ahead of those who read them, neighbours together. Returns whether there was room for
    /// all of them; there always is if they are `awaited`.
    pub(crate) fn will_need(&self, ranges: &mut [(String, Range<u64>)], awaited: bool) -> bool {
        ranges.sort_unstable_by(|a, b| (&a.0, a.1.start).cmp(&(&b.0, b.1.start)));
        let mut merged: Vec<(&str, Range<u64>)> = Vec::new();
        let staging = &self.store.staging;
        let is_missing = |key: &str, range: &Range<u64>| {
            !staging.has_or_had(&self.object(key), range) && !self.is_on_disk(key, range)
        };
        for (key, range) in ranges.iter().filter(|(key, range)| range.end > range.start && is_missing(key, range)) {
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
            if self.known(key) == Some(None) {
                continue;
            }
            match self.store.staging.reserve(&object, &range, awaited) {
                Reservation::Requested => continue,
                Reservation::NoRoom => return false,
                Reservation::Made => {}
            }
            if let Err(error) = self.request(&object, range.clone()) {
                self.store.staging.arrive(&object, &range, Err(error));
                break;
            }
        }
        true
    }

    /// Starts to fetch a range.
    fn request(&self, object: &ObjectId, range: Range<u64>) -> Result<(), StoreError> {
        let expected = self.store.versions.lock().peek(object).and_then(|(meta, _)| meta.clone());
        let (store, object) = (Arc::clone(&self.store), object.clone());
        let (in_flight, changed) = (Arc::clone(&self.in_flight), Arc::clone(&self.changed));
        let on_disk = self.on_disk.clone();
        runtime::handle()?.spawn(async move {
            let length = range.end - range.start;
            let _permit = in_flight.admit(length).await;
            let outcome = match store.client.get(&object.1, range.clone(), expected.as_ref()).await {
                // an empty object has no range
                Err(error) if error.is_beyond_end => store
                    .client
                    .head(&object.1)
                    .await
                    .map(|meta| meta.map(|meta| Fetched { meta, bytes: Bytes::new() })),
                outcome => outcome,
            };
            let outcome = outcome.and_then(|fetched| {
                note(&store, &object, &changed, fetched.as_ref().map(|fetched| fetched.meta.clone()))?;
                Ok(fetched)
            });
            if outcome.as_ref().is_err_and(|error| error.is_other_version) {
                changed.store(true, Ordering::Relaxed);
            }
            if let Ok(Some(fetched)) = &outcome {
                in_flight.record(length, fetched.bytes.len() as u64);
            }
            let to_keep = on_disk.zip(outcome.as_ref().ok().and_then(Option::clone));
            store.staging.arrive(&object, &range, outcome);
            // after those who wait have it
            if let Some((on_disk, fetched)) = to_keep {
                on_disk.keep(&object.1, range.start, &fetched);
            }
        });
        Ok(())
    }

    fn mark(&self, error: StoreError) -> StoreError {
        if error.is_other_version {
            self.changed.store(true, Ordering::Relaxed);
        }
        error
    }

    fn source_error(&self, error: &StoreError) -> SourceError {
        // without the key: what fails for one object fails for many, and one line of the log is enough for them
        error.to_source_error(self.store.client.doing("read from"))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.store.staging.forget(self.number);
    }
}

/// Remembers what a store told of an object, which must be what it told before.
fn note(
    store: &Store,
    object: &ObjectId,
    changed: &AtomicBool,
    meta: Option<Meta>,
) -> Result<Option<Meta>, StoreError> {
    let mut versions = store.versions.lock();
    let is_same = match (versions.peek(object), &meta) {
        (Some((Some(before), _)), Some(now)) => before.is_same_version(now),
        (Some((before, _)), now) => before.is_some() == now.is_some(),
        (None, _) => true,
    };
    if !is_same {
        changed.store(true, Ordering::Relaxed);
        let mut error = StoreError::new(std::io::ErrorKind::InvalidData, "the object was replaced");
        error.is_other_version = true;
        return Err(error);
    }
    versions.put(object.clone(), (meta.clone(), Instant::now()));
    Ok(meta)
}
