//! What SOURCE is: a path of this machine or a URL, and how it is to be read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk_cache::DiskCacheOptions;
use super::store_options::StoreOption;
use super::url::{StoreUrl, is_url};
use super::{LocalTree, SourceRoot, Tree};
use crate::counters::Counters;

/// SOURCE, as a user chooses it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// An absolute path, or a URL in the form of [`StoreUrl::path`].
    pub path: PathBuf,
    /// Whether links in folders of this machine that lead out of SOURCE are followed.
    pub follow_links: bool,
    /// Whether it is asked who may read what, where SOURCE is on this machine.
    pub permissions: bool,
    /// The options of an object store.
    pub store_options: Vec<StoreOption>,
    /// The local disk that keeps what an object store has sent.
    pub disk_cache: Option<DiskCacheOptions>,
}

impl Origin {
    /// Returns whether it is a URL.
    pub(crate) fn is_url(&self) -> bool {
        is_url(&self.path)
    }

    /// Returns its tree. Reads of it are counted in `counters`. It is asked again for a while if it fails, longer if it
    /// is to `last`, and only then a disk cache is used. Nothing of a local path is looked at.
    pub(crate) fn tree(&self, last: bool, counters: Arc<Counters>) -> io::Result<Arc<dyn Tree>> {
        if !self.is_url() {
            let root = SourceRoot::new(&self.path, self.follow_links, self.permissions);
            return Ok(LocalTree::with_root(&self.path, root, counters));
        }
        let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidInput, error);
        if let Some(refusal) = StoreOption::refusal(&self.store_options) {
            return Err(invalid(refusal.to_owned()));
        }
        let url = StoreUrl::parse(&self.path).map_err(|error| invalid(error.to_string()))?;
        let disk = self.disk_cache.as_ref().filter(|_| last);
        store_tree(url, &self.store_options, last, disk, counters)
    }
}

/// Returns SOURCE without what may be secret, for messages.
pub(crate) fn shown(source: &Path) -> PathBuf {
    if !is_url(source) {
        return source.to_owned();
    }
    match StoreUrl::parse(source) {
        Ok(url) => url.path(),
        Err(_) => PathBuf::from("the URL"),
    }
}

#[cfg(feature = "store")]
fn store_tree(
    url: StoreUrl,
    options: &[StoreOption],
    last: bool,
    disk: Option<&DiskCacheOptions>,
    counters: Arc<Counters>,
) -> io::Result<Arc<dyn Tree>> {
    use super::disk_cache::DiskCache;
    use super::store::{BRIEF, LASTING, StoreTree};
    let cache = disk.map(|options| DiskCache::open(&options.dir, options.budget)).transpose();
    let cache = cache.map_err(|error| io::Error::other(error.to_string()))?;
    Ok(StoreTree::open(url, options, if last { LASTING } else { BRIEF }, cache, counters)?)
}

#[cfg(not(feature = "store"))]
fn store_tree(
    _: StoreUrl,
    _: &[StoreOption],
    _: bool,
    _: Option<&DiskCacheOptions>,
    _: Arc<Counters>,
) -> io::Result<Arc<dyn Tree>> {
    let text = "this volfs was built without object stores; build it with the feature \"store\"";
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}
