//! What of a store's objects is on a local disk.
//!
//! Bytes are kept by the version of their object, which has to be known before they are asked for: that of a file is
//! known since it was opened; those of the objects in a folder come from a listing ([`FolderVersions`]).

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use super::client::Fetched;
use super::folder_versions::FolderVersions;
use super::meta::Meta;
use super::version::Version;
use crate::source::disk_cache::{DiskCache, ObjectVersion};

/// The cache, and the name that the store has in it.
pub struct StoreCache {
    /// The cache.
    pub cache: DiskCache,
    /// The bucket, with its endpoint or account.
    pub place: String,
}

/// How the objects of one source are found in the cache.
pub struct OnDisk {
    cache: Arc<StoreCache>,
    /// The key of the dataset.
    dataset: Box<str>,
    versions: Versions,
}

enum Versions {
    /// The dataset is one object.
    Of(Version),
    /// The dataset is a folder.
    In(FolderVersions),
}

impl OnDisk {
    /// The only object of a dataset; `None` if its versions cannot be told apart.
    pub fn file(cache: &Arc<StoreCache>, key: &str, meta: &Meta) -> Option<Self> {
        let version = Version::of(meta, SystemTime::now())?;
        Some(Self { cache: Arc::clone(cache), dataset: key.into(), versions: Versions::Of(version) })
    }

    /// The objects in a folder.
    pub fn folder(cache: &Arc<StoreCache>, key: &str, versions: FolderVersions) -> Self {
        Self { cache: Arc::clone(cache), dataset: key.into(), versions: Versions::In(versions) }
    }

    /// Returns the version of an object; may wait for it a moment.
    fn object(&self, key: &str) -> Option<ObjectVersion> {
        let version = match &self.versions {
            Versions::Of(version) => *version,
            Versions::In(versions) => versions.of(key)?.version?,
        };
        self.named(key, version)
    }

    fn named(&self, key: &str, version: Version) -> Option<ObjectVersion> {
        let object = key.strip_prefix(&*self.dataset)?.trim_start_matches('/');
        Some(ObjectVersion::new(&self.cache.place, &self.dataset, object, &version.name()))
    }

    /// Returns the size of an object, if a listing told it; may wait for that a moment.
    pub fn size(&self, key: &str) -> Option<u64> {
        match &self.versions {
            Versions::Of(_) => None,
            Versions::In(versions) => versions.of(key).map(|listed| listed.size),
        }
    }

    /// Fills `out` with the bytes of an object from `offset` on; `false` if they are not on the disk.
    pub fn read(&self, key: &str, offset: u64, out: &mut [u8]) -> bool {
        self.object(key).is_some_and(|object| self.cache.cache.get(&object, offset, out))
    }

    /// Returns whether a range of an object seems to be on the disk.
    pub fn has(&self, key: &str, range: &Range<u64>) -> bool {
        let length = range.end.saturating_sub(range.start);
        self.object(key).is_some_and(|object| self.cache.cache.has(&object, range.start, length))
    }

    /// Keeps what was fetched, from `offset` on, if it is of the version that would be asked for. Never waits.
    pub fn keep(&self, key: &str, offset: u64, fetched: &Fetched) {
        let version = match &self.versions {
            Versions::Of(version) => Some(*version),
            Versions::In(versions) => versions.known(key).and_then(|listed| listed.version),
        };
        let version = version.filter(|version| version.is_of(&fetched.meta));
        if let Some(object) = version.and_then(|version| self.named(key, version)) {
            self.cache.cache.put(&object, offset, fetched.bytes.clone());
        }
    }
}
