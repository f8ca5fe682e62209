//! The file system as plain methods, without a kernel: so that it can be driven and tested without a mount.
//!
//! Every method takes a [`Wait`]: with [`Wait::No`] it answers from memory or says [`FsError::WouldBlock`], and the adapter
//! to the kernel then calls it again with [`Wait::Yes`] on a thread that may wait.

pub mod daemon;
mod error;
pub mod forerunner;
pub mod fuse;
mod handles;
mod ino;
mod left_pages;
pub mod mountinfo;
mod path;
mod process;
mod read;
mod reports;
mod runs;
mod spot;
mod status;
mod tree;
pub mod unmount;
mod xattr;

use crate::sync::Mutex;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use lru::LruCache;

pub use error::FsError;
pub use handles::FolderEntry;
pub use ino::Ino;
pub use process::ProcessError;
pub use read::{Read, ReadAhead};

use crate::array::{Reader, ReaderConfig};
use crate::catalog::{Catalog, CatalogError, Kind, NodeId, listing};
use crate::counters::Counters;
use crate::format::OpenWith;
use crate::logging::RecentLines;
use crate::pool::{Bulkhead, Pool};
use crate::source::{IndexCache, Wait};
use handles::{Handle, Handles, OpenFile};
use left_pages::LeftPages;
use reports::Reports;
use tree::Tree;

/// Memory for tables of where bricks lie, all datasets together: room for one of 32 MiB in order.
const INDEX_BYTES: usize = 41 << 20;
/// BufferPool that wait to be used again.
const IDLE_BUFFERS: usize = 4 << 20;
/// Datasets whose file numbers are remembered.
const TREES: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// How a mount behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is shown: a folder or one dataset, by absolute path without links.
    pub source: PathBuf,
    /// Bytes of decoded bricks held in memory.
    pub cache_size: u64,
    /// Decoding threads.
    pub threads: usize,
    /// Bypass the kernel's page cache.
    pub direct_io: bool,
    /// Follow links that lead out of the source.
    pub follow_links: bool,
    /// What is left out of wavelet-coded samples; see [`OpenWith`].
    pub quality: Option<u8>,
    /// Users other than the one that mounts may read.
    pub allow_other: bool,
    /// The options as status.json shows them: name and value.
    pub shown: Vec<(String, String)>,
}

/// What the kernel wants to know of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Inode number.
    pub ino: Ino,
    /// Bytes.
    pub size: u64,
    /// Whether it is a folder.
    pub folder: bool,
    /// When the source was last written to.
    pub modified: SystemTime,
    /// When anything about the source last changed.
    pub changed: SystemTime,
    /// Whether the answer is good for this moment only.
    pub volatile: bool,
}

/// A handle, and how its file is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The handle.
    pub handle: u64,
    /// Whether the kernel must not keep what is read.
    pub uncached: bool,
}

/// The file system.
pub struct Volfs {
    options: Options,
    catalog: Arc<Catalog>,
    reader: Arc<Reader>,
    pool: Arc<Pool>,
    counters: Arc<Counters>,
    handles: Handles,
    trees: Mutex<LruCache<NodeId, Arc<Tree>>>,
    reports: Reports,
    ahead: OnceLock<Box<dyn ReadAhead>>,
    left_pages: LeftPages,
    log: Arc<RecentLines>,
    started: Instant,
    started_at: SystemTime,
}

impl Volfs {
    /// A file system that shows a source. Nothing of it is read yet.
    ///
    /// # Errors
    /// [`CatalogError::Io`] if the source is not there.
    pub fn new(options: Options, log: Arc<RecentLines>) -> Result<Self, CatalogError> {
        let counters: Arc<Counters> = Arc::default();
        let with = OpenWith { index: IndexCache::new(INDEX_BYTES), quality: options.quality };
        let catalog = Catalog::new(&options.source, options.follow_links, with, Arc::clone(&counters))?;
        let cache = usize::try_from(options.cache_size).unwrap_or(usize::MAX);
        let means = ReaderConfig { cache, idle: IDLE_BUFFERS, threads: options.threads };
        let pool = Pool::new();
        let reader = means.reader(Arc::clone(&pool), Arc::clone(&counters));
        Ok(Self {
            options,
            catalog: Arc::new(catalog),
            reader,
            pool,
            counters,
            handles: Handles::default(),
            trees: Mutex::new(LruCache::new(TREES)),
            reports: Reports::default(),
            ahead: OnceLock::new(),
            left_pages: LeftPages::default(),
            log,
            started: Instant::now(),
            started_at: SystemTime::now(),
        })
    }

    /// The threads for whatever takes time.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// How the mount behaves.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Bytes of all files that are known so far.
    #[must_use]
    pub fn known_bytes(&self) -> u64 {
        self.catalog.known_bytes()
    }

    /// The file or folder called `name` in a folder.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if there is none, [`FsError::Stale`] if the folder is of a changed source.
    pub fn lookup(&self, parent: Ino, name: &OsStr, wait: Wait) -> Result<Attributes, FsError> {
        let spot = self.spot(parent, wait)?;
        // what the mount says of itself needs no source
        if !spot::is_about(parent, name) {
            self.fresh(&spot, wait)?;
        }
        let child = self.child(&spot, name, wait)?.ok_or(FsError::NotFound)?;
        self.attributes(&child, wait)
    }

    /// What is known of a file or folder.
    ///
    /// # Errors
    /// [`FsError::Stale`] if it is of a changed source and no longer known.
    pub fn getattr(&self, ino: Ino, handle: Option<u64>, wait: Wait) -> Result<Attributes, FsError> {
        let mut attributes = self.attributes(&self.spot(ino, wait)?, wait)?;
        // an open file has the size of what it shows, also where that is computed anew each time
        if let Some(Handle::File(file) | Handle::Ahead(file)) = handle.and_then(|h| self.handles.get(h)).as_deref() {
            attributes.size = file.content.len();
        }
        Ok(attributes)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`FsError::Stale`] if its source changed, [`FsError::Io`] if its content cannot be computed.
    pub fn open(&self, ino: Ino, wait: Wait) -> Result<Opened, FsError> {
        let spot = self.spot(ino, wait)?;
        self.look_again(&spot, wait)?;
        let content = self.content(&spot, wait)?;
        let uncached = spot.is_volatile() || self.options.direct_io;
        let file = OpenFile::new(ino, content, spot.belongs());
        Ok(Opened { handle: self.handles.add(Handle::File(Arc::new(file))), uncached })
    }

    /// Opens a folder: its entries are those of this moment.
    ///
    /// # Errors
    /// [`FsError::Stale`] if its source changed, [`FsError::NotAFolder`] if it is a file.
    pub fn opendir(&self, ino: Ino, wait: Wait) -> Result<Opened, FsError> {
        let spot = self.spot(ino, wait)?;
        self.look_again(&spot, wait)?;
        let entries = self.entries(ino, &spot, wait)?;
        Ok(Opened { handle: self.handles.add(Handle::Folder(entries)), uncached: true })
    }

    /// Hands the entries of an open folder from number `from` on to `add`, with the number of the next, until it says
    /// `false`.
    ///
    /// # Errors
    /// [`FsError::BadHandle`].
    pub fn readdir(
        &self,
        handle: u64,
        from: u64,
        mut add: impl FnMut(&FolderEntry, u64) -> bool,
    ) -> Result<(), FsError> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::Folder(entries)) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                for (n, entry) in entries.iter().enumerate().skip(from) {
                    if !add(entry, n as u64 + 1) {
                        break;
                    }
                }
                Ok(())
            }
            _ => Err(FsError::BadHandle),
        }
    }

    /// Closes a file or folder.
    pub fn release(&self, handle: u64) {
        if let (Some(file), Some(ahead)) = (self.handles.remove(handle), self.ahead.get()) {
            ahead.stop(file);
        }
    }

    /// An extended attribute of a file.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`] if it has none of that name.
    pub fn getxattr(&self, ino: Ino, name: &OsStr, wait: Wait) -> Result<Vec<u8>, FsError> {
        // what others ask for all the time (security labels, access lists) is answered without a look
        let name = xattr::known(name).ok_or(FsError::NoAttribute)?;
        let (shown, format) = self.spot(ino, wait)?.array().ok_or(FsError::NoAttribute)?;
        Ok(xattr::value(&shown, format, name))
    }

    /// The names of a file's extended attributes, each with a zero byte behind it.
    ///
    /// # Errors
    /// Those of finding the file.
    pub fn listxattr(&self, ino: Ino, wait: Wait) -> Result<Vec<u8>, FsError> {
        Ok(self.spot(ino, wait)?.array().map(|_| xattr::names()).unwrap_or_default())
    }

    /// The bulkhead of the pool for looking up a name.
    #[must_use]
    pub fn bulkhead_of_name(&self, parent: Ino, name: &OsStr) -> Bulkhead {
        match self.catalog.node(parent.node()) {
            Some(folder) if folder.kind == Kind::Folder => listing::bulkhead(folder.id, name),
            _ => Self::bulkhead(parent),
        }
    }

    /// The bulkhead of the pool for work on a file or folder.
    #[must_use]
    pub fn bulkhead(ino: Ino) -> Bulkhead {
        Bulkhead::new(ino.node().into())
    }

    /// The text of status.json at this moment.
    fn status(&self) -> String {
        status::status(&self.options, self.started, &self.counters, self.reader.bytes_held())
    }

    fn tree(&self, node: NodeId, open: &crate::catalog::OpenDataset) -> Arc<Tree> {
        let mut trees = self.trees.lock();
        Arc::clone(trees.get_or_insert(node, || Arc::new(Tree::of(open))))
    }

    /// When a folder or dataset was last written to, and when anything about it last changed.
    fn times(&self, node: NodeId) -> (SystemTime, SystemTime) {
        self.catalog.node(node).map_or((self.started_at, self.started_at), |node| node.times())
    }
}
