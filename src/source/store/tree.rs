//! A store as a tree of folders and files.

use std::ffi::OsStr;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lru::LruCache;

use super::client::Client;
use super::connect::connect;
use super::error::{Patience, StoreError};
use super::file::StoredFile;
use super::folder::StoredFolder;
use super::meta::{Meta, about_folder};
use super::metrics::Metrics;
use super::names::{At, prefix_of};
use super::on_disk::StoreCache;
use super::opened::Store;
use super::runtime;
use crate::counters::Counters;
use crate::source::disk_cache::DiskCache;
use crate::source::store_options::StoreOption;
use crate::source::store_status::StoreStatus;
use crate::source::url::StoreUrl;
use crate::source::{
    About, EntryKind, FileSource, FileStamp, Folder, NoFolder, Place, RecentWrites, SourceError, Tree,
};
use crate::sync::Mutex;

/// How long a mount asks a store again. A store that loses a machine may need some 8 seconds until it answers again; one
/// that does not answer at all ends in an error after a minute and a half at most.
pub(crate) const LASTING: Patience = Patience { retries: 60, time: Duration::from_secs(60) };
/// How long a command asks before there is a mount: somebody waits for it.
pub(crate) const BRIEF: Patience = Patience { retries: 3, time: Duration::from_secs(12) };

/// First bytes of files that are remembered, by the versions of the files.
const HEADS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Longer beginnings are not remembered.
const MAX_HEAD: u64 = 64;

/// In folders with more objects only those are looked into whose names say that they are datasets.
const MAX_LOOKS: usize = 256;

/// A bucket, or what is below a key in it.
pub(crate) struct StoreTree {
    shared: Arc<Shared>,
    source: PathBuf,
}

struct Shared {
    store: Arc<Store>,
    heads: Mutex<LruCache<FileStamp, Arc<[u8]>>>,
}

impl StoreTree {
    /// Creates the tree of a URL. Nothing is sent yet. Bytes are counted in `counters`.
    pub(crate) fn open(
        url: StoreUrl,
        options: &[StoreOption],
        patience: Patience,
        disk: Option<DiskCache>,
        counters: Arc<Counters>,
    ) -> io::Result<Arc<Self>> {
        // the HTTP client looks for the runtime's ciphers
        runtime::handle()?;
        let metrics: Arc<Metrics> = Arc::default();
        let backend = connect(&url, options, patience, &metrics).map_err(|error| error.to_io_error())?;
        let cache = disk.map(|cache| StoreCache { cache, place: place_of(&url.base, &backend.endpoint) });
        Ok(Self::of(url.clone(), Client::new(backend, url.base, metrics, counters), cache))
    }

    /// Creates the tree of a URL whose store is known.
    pub(super) fn of(url: StoreUrl, client: Client, cache: Option<StoreCache>) -> Arc<Self> {
        let source = url.path();
        let store = Store::new(url, Arc::new(client), cache);
        Arc::new(Self { shared: Arc::new(Shared { store, heads: Mutex::new(LruCache::new(HEADS)) }), source })
    }
}

/// Returns the name that a bucket has in a disk cache.
fn place_of(base: &str, endpoint: &str) -> String {
    if endpoint.is_empty() { base.to_owned() } else { format!("{base}@{endpoint}") }
}

impl Shared {
    fn place(self: &Arc<Self>, key: &str) -> io::Result<Box<dyn Place>> {
        let failed = |error: StoreError| error.to_io_error();
        let (about, meta) = match self.store.names.look(key).map_err(failed)? {
            At::Nothing => return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such object or folder")),
            At::Folder => (about_folder(key), None),
            At::File(meta) => (meta.about(key), Some(meta)),
        };
        Ok(Box::new(StorePlace { shared: Arc::clone(self), key: key.into(), about, meta }))
    }
}

impl Tree for StoreTree {
    fn source(&self) -> &Path {
        &self.source
    }

    fn look(&self, path: &Path) -> io::Result<Option<Box<dyn Place>>> {
        match self.shared.store.url.key_of(path) {
            Some(key) => self.shared.place(&key).map(Some),
            None => Ok(None),
        }
    }

    fn about_base(&self, path: &Path) -> io::Result<About> {
        // the folder around the only dataset, which perhaps nobody may list
        if path != self.source {
            return Ok(about_folder(&self.shared.store.url.key_of(path).unwrap_or_default()));
        }
        Ok(*self.shared.place(&self.shared.store.url.key)?.about())
    }

    fn is_gone(&self) -> bool {
        // what is below a key may all be removed and still be no mistake; and a bucket that is gone says so itself
        false
    }

    fn store_status(&self) -> Option<StoreStatus> {
        let store = &self.shared.store;
        let disk = store.cache.as_ref().map(|cache| cache.cache.statistics());
        Some(StoreStatus { disk, ..store.client.metrics.status(store.staging.bytes()) })
    }
}

/// What was found at a key.
struct StorePlace {
    shared: Arc<Shared>,
    key: Box<str>,
    about: About,
    /// `None` for a folder.
    meta: Option<Meta>,
}

impl StorePlace {
    fn not_a_file() -> io::Error {
        io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")
    }
}

impl Place for StorePlace {
    fn about(&self) -> &About {
        &self.about
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn is_in_crowd(&self) -> bool {
        let (parent, _) = self.key.rsplit_once('/').unwrap_or(("", &self.key));
        self.shared.store.names.count_known(parent) > MAX_LOOKS
    }

    fn is_crowd(&self) -> bool {
        self.shared.store.names.count_known(&self.key) == usize::MAX
    }

    fn find(&self, name: &Path) -> io::Result<Option<Box<dyn Place>>> {
        let names: Option<Vec<&str>> = name.iter().map(OsStr::to_str).collect();
        // keys are text
        let names = names.ok_or(io::ErrorKind::NotFound)?;
        self.shared.place(&(prefix_of(&self.key) + &names.join("/"))).map(Some)
    }

    fn find_beside(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        self.find(name.as_ref())
    }

    fn subfolder(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        Ok(self.find(name.as_ref())?.filter(|place| place.about().is_folder()))
    }

    fn visit(&self, visit: &mut dyn FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()> {
        let listed = self.shared.store.names.visit(&self.key, &mut |name, kind| visit(name.as_ref(), kind));
        listed.map_err(|error| error.to_io_error())
    }

    fn read_head(&self, most: u64) -> io::Result<Vec<u8>> {
        let meta = self.meta.as_ref().ok_or_else(Self::not_a_file)?;
        let most = most.min(meta.size);
        if most == 0 {
            return Ok(Vec::new());
        }
        let known = self.shared.heads.lock().get(&self.about.stamp).cloned();
        if let Some(head) = known.filter(|head| head.len() as u64 == most) {
            return Ok(head.to_vec());
        }
        let fetched = runtime::wait_for(self.shared.store.client.get(&self.key, 0..most, Some(meta)))?;
        let fetched = fetched.map_err(|error| error.to_io_error())?.ok_or(io::ErrorKind::NotFound)?;
        if most <= MAX_HEAD {
            self.shared.heads.lock().put(self.about.stamp, Arc::from(&*fetched.bytes));
        }
        Ok(fetched.bytes.to_vec())
    }

    fn open_file(&self, _path: &Path, _recent: &Arc<RecentWrites>) -> Result<Arc<dyn FileSource>, SourceError> {
        // an etag tells versions apart however fast they follow each other, so nothing has to be read again
        let meta = self.meta.clone().ok_or_else(|| SourceError::io("cannot open it", &Self::not_a_file()))?;
        Ok(Arc::new(StoredFile::new(&self.shared.store, &self.key, meta)))
    }

    fn open_folder(self: Box<Self>, _recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        if !self.about.is_folder() {
            return Err(NoFolder::NotAFolder);
        }
        Ok(Arc::new(StoredFolder::new(&self.shared.store, &self.key)))
    }
}
