//! The requests of one store (the head of an object, a range of it, a page of a listing), the bodies of their answers,
//! and the threads that send them.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, StreamExt};
use object_store::list::PaginatedListOptions;
use object_store::path::Path as Key;
use object_store::{Attribute, GetOptions, GetRange, GetResult, ListResult, ObjectStore};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

use super::connect::Backend;
use super::error::StoreError;
use super::http::UserHeaders;
use crate::counters::Counters;
use crate::logging::LogLimit;
use crate::memory::{Buffer, BufferPool};
use crate::pool::try_threads;
use crate::source::{About, EntryKind, ObjectVersion, hash_of, most_connections};
use crate::sync::LazyPerProcess;

/// A cause of failures is logged again after this time.
const LOG_AGAIN: Duration = Duration::from_secs(60);
const BROKEN_ANSWERS: usize = 3;
/// A request whose answer breaks off is not sent again after this time: then the library has tried for long.
const BRIEFLY: Duration = Duration::from_secs(5);
const PAGE: usize = 1000;
/// The most names on a page of a store that sends more than it was asked for, and the longest mark of a next page: it
/// becomes part of an address.
const MAX_PAGE: usize = 10_000;
const MAX_TOKEN: usize = 8 << 10;
/// The most pages of one folder: a store might send one after the other for ever.
pub(super) const MAX_PAGES: usize = 10_000;
/// The longest key that stores have. A longer one, as of folders in folders without end, is not shown.
const MAX_KEY: usize = 1024;
/// The longest etag that is kept.
const MAX_ETAG: usize = 256;
/// Threads that send and receive. Decoding is done elsewhere.
const THREADS: usize = 2;

/// Bytes of unused memory for the bodies of answers that are kept for the next ones.
const IDLE_BODIES: usize = 8 << 20;
/// Memory for so many bytes is taken before they arrive; a store may promise any number.
const MAX_AT_ONCE: u64 = 64 << 20;
/// Bodies of fewer bytes take as many as they have.
const SMALL: usize = 128 << 10;

/// Returns the runtime of the threads. It is started at the first call: a daemon forks before it has threads, and the
/// child of a program has none of its parent's.
pub(super) fn runtime() -> io::Result<Handle> {
    static RUNTIME: LazyPerProcess<OnceLock<Result<Runtime, String>>> = LazyPerProcess::new(OnceLock::new);
    let started = RUNTIME.get_or_init(|| {
        // fails only if there is one already
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).max_blocking_threads(4).thread_name("volfs-store").enable_all();
        try_threads(THREADS).and_then(|()| builder.build()).map_err(|error| error.to_string())
    });
    let failed = |why| io::Error::new(io::ErrorKind::WouldBlock, format!("cannot start the threads of a store: {why}"));
    started.as_ref().map(|runtime| runtime.handle().clone()).map_err(failed)
}

/// Runs a future and waits for its result. Not to be called on a thread of the runtime.
pub(super) fn wait_for<T>(future: impl Future<Output = T>) -> io::Result<T> {
    Ok(runtime()?.block_on(future))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectMeta {
    pub(super) size: u64,
    /// Seconds since 1970. Stores give fractions only in listings.
    pub(super) modified: i64,
    /// The etag without its quotes; `None` if the store gives none. Of one that is far too long it is a hash, which is
    /// compared but is no condition.
    pub(super) etag: Option<Arc<str>>,
    /// The headers that were written with the object; `None` if they were not asked for.
    pub(super) headers: Option<Arc<UserHeaders>>,
}

impl ObjectMeta {
    fn from_listing(meta: &object_store::ObjectMeta) -> Self {
        let etag = meta.e_tag.as_deref().map(|etag| match etag.trim_matches('"') {
            etag if etag.len() > MAX_ETAG => format!("W/{:016x}", hash_of(etag)).into(),
            etag => etag.into(),
        });
        Self { size: meta.size, modified: meta.last_modified.timestamp(), etag, headers: None }
    }

    fn from_answer(answer: &GetResult) -> Self {
        let mut headers = answer.extensions.get::<UserHeaders>().cloned().unwrap_or_default();
        headers.0.extend(answer.attributes.iter().filter_map(|(attribute, value)| match attribute {
            Attribute::Metadata(name) => Some((name.as_ref().into(), value.as_bytes().into())),
            _ => None,
        }));
        Self { headers: Some(Arc::new(headers)), ..Self::from_listing(&answer.meta) }
    }

    /// Returns whether both are one version, as far as the store tells.
    pub(super) fn is_same_version(&self, other: &Self) -> bool {
        match (&self.etag, &other.etag) {
            (Some(one), Some(other)) => one == other,
            _ => (self.size, self.modified) == (other.size, other.modified),
        }
    }

    /// Returns the etag as a condition has it; `None` without an etag, or for a weak one, which is no condition.
    fn condition(&self) -> Option<String> {
        let etag = self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))?;
        Some(format!("\"{etag}\""))
    }

    /// Returns the value of the header whose name ends with `name`, in any case.
    pub(super) fn header(&self, name: &str) -> Option<Vec<u8>> {
        let end = name.to_ascii_lowercase();
        let mut headers = self.headers.as_ref()?.0.iter();
        headers.find(|(header, _)| header.to_ascii_lowercase().ends_with(&end)).map(|(_, value)| value.to_vec())
    }
}

/// Returns what a look at a key has found: an object, or a folder if there is no `meta`. Stores keep nothing about
/// folders, not even that they are there.
pub(super) fn about(key: &str, meta: Option<&ObjectMeta>) -> About {
    let (size, modified) = meta.map_or((0, 0), |meta| (meta.size, meta.modified));
    let etag = meta.and_then(|meta| meta.etag.as_deref()).map(hash_of);
    let version = ObjectVersion { size, mtime: (modified, 0), inode: (0, hash_of(key)), etag };
    let kind = if meta.is_some() { EntryKind::File } else { EntryKind::Folder };
    About { kind, version, changed: version.modified(), by_links: false, permissions: None }
}

enum Body {
    /// In memory that is used again: the kernel would make the pages of each body anew. Has the bytes that have
    /// arrived, or would have if there were room: more than the expected ones as soon as there is one too many.
    Pooled(Buffer, usize),
    /// One that is longer than what is taken at once.
    Long(BytesMut),
}

impl Body {
    fn new(wanted: u64, buffers: &Arc<BufferPool>) -> Result<Self, StoreError> {
        if wanted > MAX_AT_ONCE {
            return Ok(Self::Long(BytesMut::with_capacity(MAX_AT_ONCE as usize)));
        }
        let wanted = wanted as usize;
        // many small ones wait for their readers at a time: these are rounded up to pages, and no further
        let taken = if wanted < SMALL { buffers.try_take(wanted) } else { buffers.take_scratch(wanted) };
        Ok(Self::Pooled(taken.map_err(io::Error::from)?, 0))
    }

    fn len(&self) -> usize {
        match self {
            Self::Pooled(_, filled) => *filled,
            Self::Long(bytes) => bytes.len(),
        }
    }

    fn add(&mut self, part: &[u8]) {
        match self {
            Self::Pooled(buffer, filled) => {
                let end = filled.saturating_add(part.len());
                if let Some(to) = buffer.get_mut(*filled..end) {
                    to.copy_from_slice(part);
                }
                *filled = end;
            }
            Self::Long(bytes) => bytes.extend_from_slice(part),
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Pooled(mut buffer, filled) => {
                buffer.truncate(filled);
                Bytes::from_owner(buffer)
            }
            Self::Long(bytes) => bytes.freeze(),
        }
    }
}

/// What a request for a range has brought: `None` if there is no such object.
pub(super) type Outcome = Result<Option<Fetched>, StoreError>;

#[derive(Clone, Debug)]
pub(super) struct Fetched {
    pub(super) meta: ObjectMeta,
    /// The bytes of the range, fewer if the object ends before.
    pub(super) bytes: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// A folder: there are keys that begin with this one and `/`.
    Folder,
    File(ObjectMeta),
    Nothing,
}

pub(super) struct Page {
    /// First the objects, then the folders: of an object and a folder of one name the folder is shown.
    pub(super) entries: Vec<(Box<str>, At)>,
    /// Where the next page begins; `None` after the last.
    pub(super) next: Option<String>,
}

pub(super) struct Client {
    pub(super) runtime: Handle,
    pub(super) backend: Backend,
    /// The URL of its bucket, for messages.
    pub(super) base: String,
    counters: Arc<Counters>,
    buffers: Arc<BufferPool>,
    /// One permit for each connection that the limit on open descriptors allows.
    connections: Semaphore,
    pub(super) most_connections: usize,
}

impl Client {
    /// Creates a client. Bytes are counted in `counters` as read from the source.
    pub(super) fn new(backend: Backend, base: String, counters: Arc<Counters>) -> io::Result<Self> {
        let (most_connections, buffers) = (most_connections(), BufferPool::new(IDLE_BODIES));
        let connections = Semaphore::new(most_connections);
        Ok(Self { runtime: runtime()?, backend, base, counters, buffers, connections, most_connections })
    }

    pub(super) fn can_list(&self) -> bool {
        self.backend.pages.is_some()
    }

    pub(super) async fn head(&self, key: &str) -> Result<Option<ObjectMeta>, StoreError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let _connection = self.connections.acquire().await;
        Ok(self.answer(key, options).await?.as_ref().map(ObjectMeta::from_answer))
    }

    /// Fetches a range of an object; `None` if there is no object. A version other than that of `expected` is an error.
    pub(super) async fn get(&self, key: &str, range: GetRange, expected: Option<&ObjectMeta>) -> Outcome {
        let _connection = self.connections.acquire().await;
        let mut attempt = 0;
        loop {
            let options = GetOptions {
                range: Some(range.clone()),
                if_match: expected.and_then(ObjectMeta::condition),
                ..GetOptions::default()
            };
            let Some(answer) = self.answer(key, options).await? else { return Ok(None) };
            match self.fetched(answer, &range, expected).await {
                // of a store without etags the library does not ask for the rest of an answer again
                Err(error) if !error.is_other_version && attempt < BROKEN_ANSWERS => attempt += 1,
                fetched => return fetched,
            }
        }
    }

    /// Collects an answer, which must be of the version of `expected`, and have all bytes of the range.
    async fn fetched(&self, answer: GetResult, range: &GetRange, expected: Option<&ObjectMeta>) -> Outcome {
        let meta = ObjectMeta::from_answer(&answer);
        // not every store knows conditions
        if expected.is_some_and(|expected| !expected.is_same_version(&meta)) {
            return Err(StoreError::replaced());
        }
        let wanted = match range {
            GetRange::Bounded(range) => range.end.min(meta.size).saturating_sub(range.start),
            GetRange::Offset(start) => meta.size.saturating_sub(*start),
            GetRange::Suffix(length) => meta.size.min(*length),
        };
        let mut body = Body::new(wanted, &self.buffers).map_err(|error| self.logged(error))?;
        let mut stream = answer.into_stream();
        while let Some(part) = stream.next().await {
            body.add(&part.map_err(|error| self.failed(&error))?);
            if body.len() as u64 > wanted {
                break;
            }
        }
        if body.len() as u64 != wanted {
            let text = format!("expected {wanted} bytes, got {}", body.len());
            return Err(self.logged(StoreError::new(io::ErrorKind::UnexpectedEof, text)));
        }
        self.backend.metrics.bytes.add(wanted);
        self.counters.source_bytes.add(wanted);
        Ok(Some(Fetched { meta, bytes: body.into_bytes() }))
    }

    async fn answer(&self, key: &str, options: GetOptions) -> Result<Option<GetResult>, StoreError> {
        let invalid = |_| StoreError::new(io::ErrorKind::InvalidInput, "not a key that volfs can ask for");
        let key = Key::parse(key).map_err(invalid)?;
        match unbroken(|| self.backend.objects.get_opts(&key, options.clone())).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => match StoreError::from_library(&error) {
                None => Ok(None),
                Some(explained) if explained.is_other_version || explained.is_beyond_end => Err(explained),
                Some(explained) => Err(self.logged(explained)),
            },
        }
    }

    /// Returns a page of the names in the folder `prefix`, which is empty or ends in `/`, from `token` on;
    /// `Unsupported` if the store has no listings.
    pub(super) async fn list(&self, prefix: &str, token: Option<String>) -> Result<Page, StoreError> {
        let unsupported = || StoreError::new(io::ErrorKind::Unsupported, "a web server does not list its files");
        let pages = self.backend.pages.as_ref().ok_or_else(unsupported)?;
        let prefix_or_none = Some(prefix).filter(|prefix| !prefix.is_empty());
        let options = || PaginatedListOptions {
            delimiter: Some("/".into()),
            max_keys: Some(PAGE),
            page_token: token.clone(),
            ..PaginatedListOptions::default()
        };
        let _connection = self.connections.acquire().await;
        match unbroken(|| pages.list_paginated(prefix_or_none, options())).await {
            Ok(page) => {
                let entries = entries_of(prefix, &page.result);
                if entries.len() > MAX_PAGE || page.page_token.as_ref().is_some_and(|token| token.len() > MAX_TOKEN) {
                    return Err(self.logged(StoreError::new(io::ErrorKind::InvalidData, "its listing makes no sense")));
                }
                Ok(Page { entries, next: page.page_token })
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &object_store::Error) -> StoreError {
        let absent = || StoreError::new(io::ErrorKind::NotFound, "there is no such bucket or folder");
        self.logged(StoreError::from_library(error).unwrap_or_else(absent))
    }

    /// Logs a failure, each cause once a minute.
    fn logged(&self, error: StoreError) -> StoreError {
        static LIMIT: LazyPerProcess<LogLimit> = LazyPerProcess::new(|| LogLimit::new(LOG_AGAIN));
        LIMIT.warn((&self.base, &error.text), &format!("{}: {}", self.base, error.text));
        error
    }
}

/// Sends a request, and sends it again if its answer breaks off: the library does so only if an answer does not begin.
/// A panic of the library is an error: it panics where a service of credentials answers with something that no URL can
/// be made of, and the threads that wait for this request would wait for ever.
async fn unbroken<T, F>(send: impl Fn() -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let (began, mut attempt) = (Instant::now(), 0);
    let has_broken = |error: &object_store::Error| {
        StoreError::from_library(error).is_some_and(|error| error.kind == io::ErrorKind::ConnectionReset)
    };
    loop {
        let answer = AssertUnwindSafe(send()).catch_unwind().await;
        let source = || "its answer makes no sense".into();
        match answer.unwrap_or_else(|_| Err(object_store::Error::Generic { store: "store", source: source() })) {
            Err(error) if attempt < BROKEN_ANSWERS && began.elapsed() < BRIEFLY && has_broken(&error) => attempt += 1,
            answer => return answer,
        }
    }
}

fn entries_of(prefix: &str, listed: &ListResult) -> Vec<(Box<str>, At)> {
    let entry = |key: &Key, at: At| {
        let name = key.as_ref().strip_prefix(prefix)?.trim_end_matches('/');
        // the object that some programs make to stand for the folder itself has no name
        let is_name = !name.is_empty() && !name.contains('/') && !matches!(name, "." | "..");
        (is_name && key.as_ref().len() <= MAX_KEY).then(|| (name.into(), at))
    };
    let files = listed.objects.iter().filter_map(|m| entry(&m.location, At::File(ObjectMeta::from_listing(m))));
    files.chain(listed.common_prefixes.iter().filter_map(|key| entry(key, At::Folder))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(etag: Option<&str>, size: u64) -> ObjectMeta {
        let headers = UserHeaders(vec![("x-amz-meta-VDSChunkMetadata".into(), b"AAA=".as_slice().into())]);
        ObjectMeta { size, modified: 7, etag: etag.map(Into::into), headers: Some(Arc::new(headers)) }
    }

    #[test]
    fn versions_are_compared_by_etag_or_else_by_size_and_time() {
        assert!(meta(Some("a"), 1).is_same_version(&meta(Some("a"), 2)));
        assert!(!meta(Some("a"), 1).is_same_version(&meta(Some("b"), 1)));
        assert!(meta(Some("a"), 1).is_same_version(&meta(None, 1)));
        assert!(!meta(None, 1).is_same_version(&meta(None, 2)));
        assert_eq!((meta(Some("W/\"a"), 1).condition(), meta(Some("a"), 1).condition()), (None, Some("\"a\"".into())));
        let version = |meta: &ObjectMeta| about("k", Some(meta)).version;
        assert_ne!(version(&meta(Some("a"), 1)), version(&meta(Some("b"), 1)));
    }

    #[test]
    fn of_a_very_long_etag_a_hash_is_kept() {
        let listed = |etag: String| {
            let (location, last_modified) = ("k".into(), Default::default());
            let meta = object_store::ObjectMeta { location, last_modified, size: 1, e_tag: Some(etag), version: None };
            ObjectMeta::from_listing(&meta)
        };
        let [one, other] = ["a", "b"].map(|last| listed("x".repeat(100_000) + last));
        assert!(one.etag.as_deref().is_some_and(|etag| etag.len() < 20) && one.condition().is_none());
        assert!(one.is_same_version(&one) && !one.is_same_version(&other));
    }

    #[test]
    fn a_header_is_found_by_the_end_of_its_name_in_any_case() {
        assert_eq!(meta(None, 0).header("vdschunkmetadata"), Some(b"AAA=".to_vec()));
        assert_eq!(meta(None, 0).header("chunkmetadat"), None);
        assert_eq!(meta(None, 0).header("a much longer name than that of the header is"), None);
    }

    #[test]
    fn parts_are_put_together_whatever_their_lengths() {
        let buffers = BufferPool::new(1 << 20);
        let bytes: Vec<u8> = (0..20_000u32).map(|n| (n * 7 / 5) as u8).collect();
        for wanted in [20_000, 19_999, 20_001, MAX_AT_ONCE + 1] {
            for length in [20_000, 19_990, 7_000, 500] {
                let mut body = Body::new(wanted, &buffers).unwrap();
                for part in bytes.chunks(length) {
                    body.add(part);
                    if body.len() as u64 > wanted {
                        break;
                    }
                }
                assert_eq!(body.len(), bytes.len(), "one that is too long is told by its length");
                if wanted >= 20_000 {
                    assert!(body.into_bytes() == bytes, "{wanted} in parts of {length}");
                }
            }
        }
        assert_eq!(Body::new(0, &buffers).unwrap().into_bytes().len(), 0);
    }

    #[test]
    fn memory_is_used_again() {
        let buffers = BufferPool::new(1 << 20);
        let address = |buffers: &Arc<BufferPool>| {
            let mut body = Body::new(300_000, buffers).unwrap();
            for _ in 0..3 {
                body.add(&[1; 100_000]);
            }
            body.into_bytes().as_ptr() as usize
        };
        let first = address(&buffers);
        assert_eq!(address(&buffers), first);
    }

    #[test]
    fn a_body_takes_little_more_than_its_bytes() {
        let buffers = BufferPool::new(0);
        for wanted in [5_000, 40_000, 127_000, 131_072, 200_000, 1_000_000] {
            let mut body = Body::new(wanted, &buffers).unwrap();
            for _ in 0..2 {
                body.add(&vec![1; wanted as usize / 2]);
            }
            let Body::Pooled(buffer, _) = &body else { panic!("several parts are in one buffer") };
            assert!(buffer.capacity() as u64 <= wanted + (wanted / 3).max(4096), "{wanted}: {}", buffer.capacity());
        }
    }
}
