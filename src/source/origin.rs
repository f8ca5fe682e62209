//! SOURCE as a user chooses it, and the tree that it is.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::disk_cache::DiskCacheOptions;
use super::{LocalTree, StoreOption, StoreUrl, Tree, is_url};
use crate::counters::Counters;

#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// An absolute path, or a URL in the form of [`StoreUrl::path`].
    pub(crate) path: PathBuf,
    /// Whether links in folders of this machine that lead out of SOURCE are followed.
    pub(crate) follow_links: bool,
    /// Whether permissions are asked for, where SOURCE is on this machine.
    pub(crate) permissions: bool,
    pub(crate) store_options: Vec<StoreOption>,
    /// The local disk that keeps what an object store has sent.
    pub(crate) disk_cache: Option<DiskCacheOptions>,
}

impl Origin {
    pub(crate) fn is_url(&self) -> bool {
        is_url(&self.path)
    }

    /// Returns its tree. Reads of it are counted in `counters`. `signs` are the names of the files that describe datasets:
    /// a store that lists nothing is asked for them. It is asked again for a while if it fails, longer if it is to `last`,
    /// and only then a disk cache is used. Fails if the URL or the options are wrong; nothing of a local path is looked at.
    pub(crate) fn tree(
        &self,
        signs: Vec<&'static str>,
        last: bool,
        counters: Arc<Counters>,
    ) -> io::Result<Arc<dyn Tree>> {
        if !self.is_url() {
            return Ok(LocalTree::new(&self.path, self.follow_links, self.permissions, counters));
        }
        let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidInput, error);
        if let Some(refusal) = StoreOption::refusal(&self.store_options) {
            return Err(invalid(refusal.to_owned()));
        }
        let url = StoreUrl::parse(&self.path).map_err(|error| invalid(error.to_string()))?;
        self.store_tree(url, signs, last, counters)
    }

    #[cfg(feature = "store")]
    fn store_tree(
        &self,
        url: StoreUrl,
        signs: Vec<&'static str>,
        last: bool,
        counters: Arc<Counters>,
    ) -> io::Result<Arc<dyn Tree>> {
        use super::disk_cache::DiskCache;
        use super::store::{RetryPolicy, StoreTree};
        let disk = self.disk_cache.as_ref().filter(|_| last);
        let cache = disk.map(|options| DiskCache::open(&options.dir, options.budget)).transpose();
        let cache = cache.map_err(|error| io::Error::other(error.to_string()))?;
        let policy = if last { RetryPolicy::MOUNT } else { RetryPolicy::CLI };
        Ok(StoreTree::open(url, signs, &self.store_options, policy, cache, counters)?)
    }

    #[cfg(not(feature = "store"))]
    fn store_tree(&self, _: StoreUrl, _: Vec<&'static str>, _: bool, _: Arc<Counters>) -> io::Result<Arc<dyn Tree>> {
        let text = "this volfs was built without object stores; build it with the feature \"store\"";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }
}
