//! The file system as plain methods of [`Volfs`], which know nothing of FUSE, mounts or signals: they can be driven and
//! tested without a mount.
//!
//! Every method that may have to read the source takes a [`Blocking`](crate::source::Blocking). With `Blocking::No` it
//! answers from memory or fails with [`FsError::WouldBlock`]; the caller then calls it again with `Blocking::Yes`, on a
//! thread that may wait.

mod attributes;
mod error;
mod folders;
mod handles;
mod ino;
mod metrics;
mod open;
mod read;
mod readahead;
mod refresh;
mod resolve;
mod stall;
mod status;
#[cfg(test)]
mod view_tests;

pub(crate) use attributes::{Attributes, LONGEST_NAME, TTL};
pub(crate) use error::FsError;
pub(crate) use handles::{FolderEntry, Maker};
pub(crate) use ino::Ino;
pub(crate) use metrics::{Metered, metrics};
pub(crate) use open::{OpenReply, Pages};
pub(crate) use read::{Opened, ReadRequest};
pub(crate) use readahead::{Readahead, advice_ranges};
pub(crate) use resolve::{DOT_VOLFS, DOT_VOLFS_OF_SOURCE};

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use lru::LruCache;
use serde_json::{Map, Value};

use self::error::ReadErrors;
use self::folders::Listings;
use self::handles::Handles;
use self::open::ComputedContents;
use self::readahead::MarkerPages;
use self::refresh::Refreshes;
use self::stall::Stall;
use self::status::CountedDatasets;
use crate::array::Reader;
use crate::catalog::{Catalog, CatalogError, NodeId, NodeKind, OpenDataset, bulkhead_of_name};
use crate::counters::Counters;
use crate::format::{self, OpenWith, Registry};
use crate::logging::RecentLines;
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::source::disk_cache::DiskCacheOptions;
use crate::source::{IndexCache, Origin, StoreOption};
use crate::sync::Mutex;
use crate::view::{self, Tree, View};

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
    options: Options,
    registries: Registries,
    catalog: Arc<Catalog>,
    reader: Arc<Reader>,
    pool: Arc<Pool>,
    counters: Arc<Counters>,
    datasets: CountedDatasets,
    handles: Handles,
    listings: Listings,
    trees: Mutex<LruCache<NodeId, Arc<Tree>>>,
    computed_contents: ComputedContents,
    read_errors: ReadErrors,
    readahead: OnceLock<Box<dyn Readahead>>,
    marker_pages: MarkerPages,
    refreshes: Refreshes,
    /// What stalled at the last look.
    stalls: Mutex<Vec<Stall>>,
    log: Arc<RecentLines>,
    started: Instant,
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
        let with = OpenWith { index: IndexCache::new(INDEX_BYTES), quality: options.quality, beside: None };
        let refreshes = Refreshes::default();
        let tree = options.origin().tree(registries.formats.folder_files(), true, Arc::clone(&counters));
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
            stalls: Mutex::default(),
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
    fn catalog_and_pool(&self) -> (&Arc<Catalog>, &Arc<Pool>) {
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
    fn tree(&self, node: NodeId, open: &OpenDataset) -> Arc<Tree> {
        let mut trees = self.trees.lock();
        Arc::clone(trees.get_or_insert(node, || Arc::new(Tree::new(open, self.registries.views))))
    }

    /// Returns when a folder or dataset was last written to, and when anything about it last changed.
    fn times(&self, node: NodeId) -> (SystemTime, SystemTime) {
        self.catalog.node(node).map_or((self.started_at, self.started_at), |node| node.last_look().0)
    }
}

impl Drop for Volfs {
    fn drop(&mut self) {
        // its thread finds that this is gone
        self.refreshes.queue.wake();
    }
}

/// The options of a mount, as parsed from the command line.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The folder or the one dataset to show: an absolute path without symbolic links, or a URL.
    pub source: PathBuf,
    /// Size of the cache of decoded bricks, in bytes.
    pub cache_size: u64,
    /// Number of decoding threads.
    pub threads: usize,
    /// Whether to bypass the kernel's page cache.
    pub direct_io: bool,
    /// Whether to follow symbolic links that lead out of the source.
    pub follow_links: bool,
    /// The options of an object store.
    pub store_options: Vec<StoreOption>,
    /// The local disk that keeps what an object store has sent.
    pub disk_cache: Option<DiskCacheOptions>,
    /// How much of wavelet-coded samples to leave out; see [`OpenWith`](crate::format::OpenWith).
    pub quality: Option<u8>,
    /// The [names](crate::view::VIEW_NAMES) of the views that are shown; `None`: all.
    pub views: Option<Vec<&'static str>>,
    /// Whether users other than the one that mounts may read.
    pub allow_other: bool,
    /// What is shown as owner and mode in place of the source's.
    pub ownership: Ownership,
    /// The options as status.json shows them.
    pub shown: Map<String, Value>,
}

/// The owner, group and mode that a user wants all files and folders to have, as `-o uid=, gid=, umask=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ownership {
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// What is taken from 0444 for files and 0555 for folders.
    pub umask: Option<u32>,
}

impl Options {
    /// Returns what is shown, and how it is read.
    pub(crate) fn origin(&self) -> Origin {
        let (path, store_options) = (self.source.clone(), self.store_options.clone());
        let permissions = self.allow_other;
        Origin {
            path,
            follow_links: self.follow_links,
            permissions,
            store_options,
            disk_cache: self.disk_cache.clone(),
        }
    }
}

#[cfg(test)]
impl Options {
    /// Returns the options of a small mount for tests.
    pub(crate) fn for_tests(source: impl Into<PathBuf>) -> Self {
        Self {
            source: source.into(),
            cache_size: 1 << 20,
            threads: 1,
            direct_io: false,
            follow_links: false,
            store_options: Vec::new(),
            disk_cache: None,
            quality: None,
            views: None,
            allow_other: false,
            ownership: Ownership::default(),
            shown: Map::new(),
        }
    }

    /// Returns the options of a small mount of the demo data.
    pub(crate) fn demo() -> Self {
        Self::for_tests(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/demo"))
    }
}

/// The formats and views that a file system uses. The default is all built-in ones. Others can be passed to
/// [`Volfs::with_registries`](self::Volfs::with_registries), to test a format or a view without a mount.
#[derive(Clone, Copy)]
pub(crate) struct Registries {
    /// The formats, in the order in which they are asked whether a file is theirs.
    pub formats: Registry,
    /// The views, in the order of their nodes.
    pub views: &'static [View],
}

impl Registries {
    /// Returns the built-in ones that a mount with these options uses.
    pub(crate) fn of(options: &Options) -> Self {
        let formats = format::registry();
        match &options.views {
            // a process has one mount
            Some(names) => Self { formats, views: view::views_of(names).leak() },
            None => Self { formats, views: view::registry() },
        }
    }
}

impl Default for Registries {
    fn default() -> Self {
        Self { formats: format::registry(), views: view::registry() }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::source::Blocking;
    use crate::view::Entry;

    /// A view with one file for each layer, which holds the layer's name.
    const LAYER_NAME: View =
        View::new(None, |_| vec![Entry::file("name.txt", |layer| Ok(layer.name().to_owned().into()))]);

    #[test]
    fn a_mount_shows_the_views_that_are_chosen() {
        let names_in = |views: Option<Vec<&'static str>>| {
            let fs = Arc::new(Volfs::new(Options { views, ..Options::demo() }, Arc::default()).unwrap());
            let find = |parent, name: &str| fs.lookup(parent, OsStr::new(name), Blocking::Yes).map(|found| found.ino);
            let layer = find(find(Ino::ROOT, "cells").unwrap(), "color").unwrap();
            let read = fs.opendir(layer, Blocking::Yes).unwrap().handle;
            let mut names = Vec::new();
            fs.readdir(read, 2, Blocking::Yes, |entry, _| {
                names.extend(entry.name.to_str().filter(|name| !name.starts_with("lod1.")).map(str::to_owned));
                true
            })
            .unwrap();
            (names.into_iter().filter(|name| !name.starts_with("lod2.")).collect::<Vec<_>>(), find(layer, "lod1.npy"))
        };
        let (some, npy) = names_in(Some(vec!["raw", "tiff"]));
        assert_eq!(some, ["lod0.raw", "lod0.json", "tiff"]);
        assert_eq!(npy, Err(FsError::NotFound));
        let (all, npy) = names_in(None);
        assert!(all.len() > 5 && npy.is_ok());
    }

    #[test]
    fn a_view_that_is_passed_in_replaces_the_built_in_ones() {
        let options = Options::demo();
        let registries = Registries { views: &[LAYER_NAME], ..Registries::default() };
        let fs = Arc::new(Volfs::with_registries(options, Arc::default(), registries).unwrap());
        let find = |parent, name: &str| fs.lookup(parent, OsStr::new(name), Blocking::Yes).map(|found| found.ino);
        let layer = find(find(Ino::ROOT, "north.zgy").unwrap(), "data").unwrap();

        let mut names = Vec::new();
        let folder = fs.opendir(layer, Blocking::Yes).unwrap().handle;
        fs.readdir(folder, 2, Blocking::Yes, |entry, _| {
            names.push(entry.name.clone());
            true
        })
        .unwrap();
        assert_eq!(names, ["name.txt"]);
        assert_eq!(find(layer, "lod0.raw").unwrap_err(), FsError::NotFound);

        let handle = fs.open(find(layer, "name.txt").unwrap(), Blocking::Yes).unwrap().handle;
        let (done, answer) = mpsc::channel();
        fs.read(ReadRequest { handle, offset: 0, size: 100, cached: true }, move |bytes| {
            done.send(bytes.unwrap().to_vec()).unwrap();
        });
        assert_eq!(answer.recv_timeout(Duration::from_secs(60)).unwrap(), b"data");
    }
}
