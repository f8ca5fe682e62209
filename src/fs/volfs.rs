//! The state of the file system, which all of its operations share.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use lru::LruCache;

use super::computed_contents::ComputedContents;
use super::dataset_counters::CountedDatasets;
use super::handles::Handles;
use super::ino::Ino;
use super::listings::Listings;
use super::marker_pages::MarkerPages;
use super::options::Options;
use super::read_errors::ReadErrors;
use super::readahead::Readahead;
use super::refresh_state::Refreshes;
use super::registries::Registries;
use super::stall::Stalls;
use super::tree::Tree;
use crate::array::Reader;
use crate::catalog::{Catalog, CatalogError, NodeId, NodeKind, OpenDataset, bulkhead_of_name};
use crate::counters::Counters;
use crate::format::OpenWith;
use crate::logging::RecentLines;
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::source::IndexCache;
use crate::sync::Mutex;

/// Bytes of index tables (the offsets of bricks) in memory, all datasets together: enough for one table of 32 MiB and
/// its overhead.
const INDEX_BYTES: usize = 41 << 20;
/// Bytes of idle buffers that are kept for reuse.
const IDLE_BUFFERS: usize = 4 << 20;
/// Bytes of memory that is ready for the next bricks: those of a slice of a volume of 512^3 samples of four bytes, in
/// bricks of 64^3. No more than a part of the cache.
const PREFAULTED: usize = 64 << 20;
const PREFAULTED_PART: usize = 16;
/// The number of datasets whose [`Tree`] is kept in memory; those of others are computed again.
const TREES: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The file system. Its operations are in the other files of this folder.
pub(crate) struct Volfs {
    pub(super) options: Options,
    pub(super) registries: Registries,
    pub(super) catalog: Arc<Catalog>,
    pub(super) reader: Arc<Reader>,
    pool: Arc<Pool>,
    pub(super) counters: Arc<Counters>,
    pub(super) datasets: CountedDatasets,
    pub(super) handles: Handles,
    pub(super) listings: Listings,
    trees: Mutex<LruCache<NodeId, Arc<Tree>>>,
    pub(super) computed_contents: ComputedContents,
    pub(super) read_errors: ReadErrors,
    pub(super) readahead: OnceLock<Box<dyn Readahead>>,
    pub(super) marker_pages: MarkerPages,
    pub(super) refreshes: Refreshes,
    pub(super) stalls: Stalls,
    pub(super) log: Arc<RecentLines>,
    pub(super) started: Instant,
    started_at: SystemTime,
}

impl Volfs {
    /// Creates a file system that shows a source with the built-in formats and views. Reads nothing of the source yet.
    pub(crate) fn new(options: Options, log: Arc<RecentLines>) -> Result<Self, CatalogError> {
        let registries = Registries::of(&options);
        Self::with_registries(options, log, registries)
    }

    /// Like [`Volfs::new`], with other formats and views.
    pub(crate) fn with_registries(
        options: Options,
        log: Arc<RecentLines>,
        registries: Registries,
    ) -> Result<Self, CatalogError> {
        let counters: Arc<Counters> = Arc::default();
        let with = OpenWith { index: IndexCache::new(INDEX_BYTES), quality: options.quality };
        let refreshes = Refreshes::default();
        let tree = options.origin().tree(true, Arc::clone(&counters));
        let catalog = Catalog::new(
            registries.formats,
            tree.map_err(|error| CatalogError::io(&options.source, &error))?,
            with,
            Arc::clone(&refreshes.queue),
        )?;
        let cache = usize::try_from(options.cache_size).unwrap_or(usize::MAX);
        let pool = Pool::new();
        let buffers = BufferPool::for_bricks(IDLE_BUFFERS, PREFAULTED.min(cache / PREFAULTED_PART));
        let reader = Reader::new(cache, options.threads, buffers, Arc::clone(&pool), Arc::clone(&counters));
        Ok(Self {
            options,
            registries,
            catalog: Arc::new(catalog),
            reader,
            pool,
            counters,
            datasets: CountedDatasets::default(),
            handles: Handles::default(),
            listings: Listings::default(),
            trees: Mutex::new(LruCache::new(TREES)),
            computed_contents: ComputedContents::default(),
            read_errors: ReadErrors::default(),
            readahead: OnceLock::new(),
            marker_pages: MarkerPages::default(),
            refreshes,
            stalls: Stalls::default(),
            log,
            started: Instant::now(),
            started_at: SystemTime::now(),
        })
    }

    /// Returns the threads for work that may wait.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns what shows whether the source is gone, and the threads that may look.
    pub(super) fn catalog_and_pool(&self) -> (&Arc<Catalog>, &Arc<Pool>) {
        (&self.catalog, &self.pool)
    }

    /// Returns the options of the mount.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the bytes of all arrays of all datasets that were opened so far.
    pub(crate) fn known_bytes(&self) -> u64 {
        self.catalog.known_bytes()
    }

    /// Returns the bulkhead (the concurrency limit of the pool) for looking up a name in a folder.
    pub(crate) fn bulkhead_of_name(&self, parent: Ino, name: &OsStr) -> Bulkhead {
        match self.catalog.node(parent.node()) {
            Some(folder) if folder.kind == NodeKind::Folder => bulkhead_of_name(folder.id, name),
            _ => Self::bulkhead(parent),
        }
    }

    /// Returns the bulkhead for work on a file or folder.
    pub(crate) fn bulkhead(ino: Ino) -> Bulkhead {
        Bulkhead::new(ino.node().into())
    }

    /// Returns the tree of an open dataset, from memory if it was used lately.
    pub(super) fn tree(&self, node: NodeId, open: &OpenDataset) -> Arc<Tree> {
        let mut trees = self.trees.lock();
        Arc::clone(trees.get_or_insert(node, || Arc::new(Tree::new(open, self.registries.views))))
    }

    /// Returns when a folder or dataset was last written to, and when anything about it last changed.
    pub(super) fn times(&self, node: NodeId) -> (SystemTime, SystemTime) {
        self.catalog.node(node).map_or((self.started_at, self.started_at), |node| node.times())
    }
}

impl Drop for Volfs {
    fn drop(&mut self) {
        self.refreshes.queue.close();
    }
}
