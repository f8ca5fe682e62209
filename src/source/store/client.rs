//! The requests of one store: the head of an object, a range of it, a page of a listing.

use std::io;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use object_store::list::PaginatedListOptions;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, GetResult, ListResult, ObjectStore};
use tokio::sync::Semaphore;

use super::body::Body;
use super::connect::Backend;
use super::error::StoreError;
use super::meta::Meta;
use super::metrics::Metrics;
use crate::counters::Counters;
use crate::log_limit::{Decision, LogLimit};
use crate::memory::BufferPool;
use crate::source::descriptors::most_connections;

/// A cause of failures is logged again after this time.
const LOG_AGAIN: Duration = Duration::from_secs(60);

/// How often an answer that breaks off is asked for again.
const BROKEN_ANSWERS: usize = 3;

/// A request whose answer breaks off is not sent again after this time: then the library has tried for long.
const BRIEFLY: Duration = Duration::from_secs(5);

/// Bytes of unused memory for the bodies of answers that are kept for the next ones.
const IDLE_BODIES: usize = 8 << 20;

/// The most names that a store gives at a time.
const PAGE: usize = 1000;

/// What one request for a range has brought.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    /// What the store tells of the object.
    pub meta: Meta,
    /// The bytes of the range, fewer if the object ends before.
    pub bytes: Bytes,
}

/// A page of a listing.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Names of folders.
    pub folders: Vec<String>,
    /// Names of objects.
    pub files: Vec<(String, Meta)>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

impl Page {
    /// Returns whether there are no names.
    pub(crate) fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty()
    }
}

/// One store.
pub(crate) struct Client {
    backend: Backend,
    /// The URL of its bucket, for messages.
    base: String,
    /// What is counted of it.
    pub metrics: Arc<Metrics>,
    counters: Arc<Counters>,
    /// Recycles the memory of bodies.
    buffers: Arc<BufferPool>,
    /// One permit for each connection that the limit on open descriptors allows.
    connections: Semaphore,
    most_connections: usize,
}

impl Client {
    /// Creates a client. Bytes are counted in `counters` as read from the source.
    pub(crate) fn new(backend: Backend, base: String, metrics: Arc<Metrics>, counters: Arc<Counters>) -> Self {
        let most_connections = most_connections();
        let connections = Semaphore::new(most_connections);
        let buffers = BufferPool::new(IDLE_BODIES);
        Self { backend, base, metrics, counters, buffers, connections, most_connections }
    }

    /// Returns whether names can be listed.
    pub(crate) fn can_list(&self) -> bool {
        self.backend.pages.is_some()
    }

    /// Returns how many requests of one file or folder may be in flight at a time: at most `wanted`, and not so many that
    /// one that hangs takes all connections.
    pub(crate) fn most_in_flight(&self, wanted: usize) -> usize {
        wanted.min(self.most_connections / 4).max(1)
    }

    /// Returns what an error message says that was being done.
    pub(crate) fn doing(&self, what: &str) -> String {
        format!("cannot {what} {}", self.base)
    }

    /// Returns what the store tells of an object; `None` if there is none.
    pub(crate) async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let _connection = self.connections.acquire().await;
        Ok(self.answer(key, options).await?.as_ref().map(Meta::of_answer))
    }

    /// Fetches a range of an object; `None` if there is no object. A version other than that of `expected` is an error.
    pub(crate) async fn get(
        &self,
        key: &str,
        range: Range<u64>,
        expected: Option<&Meta>,
    ) -> Result<Option<Fetched>, StoreError> {
        let _connection = self.connections.acquire().await;
        let mut attempt = 0;
        loop {
            let options = GetOptions {
                range: Some(GetRange::Bounded(range.clone())),
                if_match: expected.and_then(Meta::condition),
                ..GetOptions::default()
            };
            let Some(answer) = self.answer(key, options).await? else { return Ok(None) };
            match self.fetched(answer, &range, expected).await {
                // of a store without etags the library does not ask for the rest of an answer again
                Err(error) if !error.is_other_version && attempt < BROKEN_ANSWERS => attempt += 1,
                fetched => return fetched.map(Some),
            }
        }
    }

    /// Collects an answer, which must be of the version of `expected`.
    async fn fetched(
        &self,
        answer: GetResult,
        range: &Range<u64>,
        expected: Option<&Meta>,
    ) -> Result<Fetched, StoreError> {
        let meta = Meta::of_answer(&answer);
        // not every store knows conditions
        if expected.is_some_and(|expected| !expected.is_same_version(&meta)) {
            let mut other = StoreError::new(io::ErrorKind::InvalidData, "the object was replaced");
            other.is_other_version = true;
            return Err(other);
        }
        let wanted = range.end.min(meta.size).saturating_sub(range.start);
        let bytes = self.body(answer, wanted).await?;
        self.metrics.add_bytes(bytes.len() as u64);
        self.counters.source_bytes.add(bytes.len() as u64);
        Ok(Fetched { meta, bytes })
    }

    /// Collects the bytes of an answer, which must be exactly `wanted`.
    async fn body(&self, answer: GetResult, wanted: u64) -> Result<Bytes, StoreError> {
        let mut stream = answer.into_stream();
        let mut body = Body::new(wanted);
        while let Some(part) = stream.next().await {
            let part = part.map_err(|error| self.failed(&error))?;
            body.add(part, &self.buffers).map_err(|error| self.logged(error))?;
            if body.len() as u64 > wanted {
                break;
            }
        }
        if body.len() as u64 != wanted {
            let text = format!("it sent {} bytes instead of {wanted}", body.len());
            return Err(self.logged(StoreError::new(io::ErrorKind::UnexpectedEof, text)));
        }
        Ok(body.into_bytes())
    }

    async fn answer(&self, key: &str, options: GetOptions) -> Result<Option<GetResult>, StoreError> {
        let key = parsed(key)?;
        match unbroken(|| self.backend.objects.get_opts(&key, options.clone())).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => match StoreError::of(&error) {
                None => Ok(None),
                Some(explained) if explained.is_other_version || explained.is_beyond_end => Err(explained),
                Some(explained) => Err(self.logged(explained)),
            },
        }
    }

    /// Returns a page of the names in the folder `prefix`, which is empty or ends in `/`, from `token` on.
    pub(crate) async fn list(&self, prefix: &str, token: Option<String>) -> Result<Page, StoreError> {
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
            Ok(page) => Ok(Page { next: page.page_token, ..page_of(prefix, page.result) }),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &object_store::Error) -> StoreError {
        let absent = || StoreError::new(io::ErrorKind::NotFound, "there is no such bucket or folder");
        self.logged(StoreError::of(error).unwrap_or_else(absent))
    }

    /// Logs a failure, each cause once a minute.
    fn logged(&self, error: StoreError) -> StoreError {
        static LIMIT: LazyLock<LogLimit> = LazyLock::new(|| LogLimit::new(LOG_AGAIN));
        if let Decision::Log { suppressed } = LIMIT.decide((&self.base, &error.text), Instant::now()) {
            if suppressed > 0 {
                log::warn!("{suppressed} more failures that are not named here");
            }
            log::warn!("{}: {}", self.base, error.text);
        }
        error
    }
}

/// Sends a request, and sends it again if its answer breaks off: the library does so only if an answer does not begin.
async fn unbroken<T, F>(send: impl Fn() -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let (began, mut attempt) = (Instant::now(), 0);
    let has_broken = |error: &object_store::Error| {
        StoreError::of(error).is_some_and(|error| error.kind == io::ErrorKind::ConnectionReset)
    };
    loop {
        match unpanicked(send()).await {
            Err(error) if attempt < BROKEN_ANSWERS && began.elapsed() < BRIEFLY && has_broken(&error) => attempt += 1,
            answer => return answer,
        }
    }
}

fn parsed(key: &str) -> Result<Key, StoreError> {
    Key::parse(key).map_err(|_| StoreError::new(io::ErrorKind::InvalidInput, "not a key that volfs can ask for"))
}

/// Returns the names behind `prefix` in a listing.
fn page_of(prefix: &str, listed: ListResult) -> Page {
    let name = |key: &Key| {
        let name = key.as_ref().strip_prefix(prefix)?.trim_end_matches('/');
        // the object that some programs make to stand for the folder itself has no name
        (!name.is_empty() && !name.contains('/') && !matches!(name, "." | "..")).then(|| name.to_owned())
    };
    let files = listed.objects.iter().filter_map(|meta| Some((name(&meta.location)?, Meta::of_listed(meta))));
    Page { folders: listed.common_prefixes.iter().filter_map(name).collect(), files: files.collect(), next: None }
}

/// Waits for a result of the library. A panic is an error: the library panics where a service of credentials answers with
/// something that no URL can be made of, and who waits for this request would wait for ever.
async fn unpanicked<T>(request: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
    let panicked = |_| object_store::Error::Generic { store: "store", source: "its answer makes no sense".into() };
    AssertUnwindSafe(request).catch_unwind().await.unwrap_or_else(|panic| Err(panicked(panic)))
}

/// Objects in memory, as a store of tests.
#[cfg(test)]
pub(crate) mod in_memory {
    use std::pin::Pin;

    use object_store::list::{PaginatedListResult, PaginatedListStore};
    use object_store::memory::InMemory;

    use super::*;

    /// Lists one page of everything.
    pub(crate) struct Pages(pub Arc<InMemory>);

    type Listed<'a> = Pin<Box<dyn Future<Output = object_store::Result<PaginatedListResult>> + Send + 'a>>;

    impl PaginatedListStore for Pages {
        fn list_paginated<'a, 'b, 'future>(
            &'a self,
            prefix: Option<&'b str>,
            _options: PaginatedListOptions,
        ) -> Listed<'future>
        where
            'a: 'future,
            'b: 'future,
            Self: 'future,
        {
            Box::pin(async move {
                let prefix = prefix.map(Key::parse).transpose().map_err(object_store::Error::from)?;
                let result = self.0.list_with_delimiter(prefix.as_ref()).await?;
                Ok(PaginatedListResult { result, page_token: None })
            })
        }
    }

    /// Returns a backend of objects in memory; without listings unless `lists`.
    pub(crate) fn backend(objects: &Arc<InMemory>, lists: bool) -> Backend {
        let pages = lists.then(|| Arc::new(Pages(Arc::clone(objects))) as Arc<dyn PaginatedListStore>);
        Backend { objects: Arc::clone(objects) as _, pages, endpoint: String::new() }
    }
}
