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

/// Bytes of the record of a header: a number of bytes, and these with zeros behind them.
const RECORD: usize = 64;
/// What stands for the number where the object has no such header.
const NONE: u8 = u8::MAX;

/// The cache, and the name that the store has in it.
pub(crate) struct StoreCache {
    /// The cache.
    pub cache: DiskCache,
    /// The bucket, with its endpoint or account.
    pub place: String,
}

/// How the objects of one source are found in the cache.
pub(crate) struct OnDisk {
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
    pub(crate) fn file(cache: &Arc<StoreCache>, key: &str, meta: &Meta) -> Option<Self> {
        let version = Version::of(meta, SystemTime::now())?;
        Some(Self { cache: Arc::clone(cache), dataset: key.into(), versions: Versions::Of(version) })
    }

    /// The objects in a folder.
    pub(crate) fn folder(cache: &Arc<StoreCache>, key: &str, versions: FolderVersions) -> Self {
        Self { cache: Arc::clone(cache), dataset: key.into(), versions: Versions::In(versions) }
    }

    fn object(&self, key: &str) -> Option<ObjectVersion> {
        self.part(key, self.version(key)?, "")
    }

    /// Returns the version of an object; may wait for it a moment.
    fn version(&self, key: &str) -> Option<Version> {
        match &self.versions {
            Versions::Of(version) => Some(*version),
            Versions::In(versions) => versions.of(key)?.version,
        }
    }

    /// Returns the name of something about an object. No object has a line break in its name that is followed by one
    /// of the names of `part`.
    fn part(&self, key: &str, version: Version, part: &str) -> Option<ObjectVersion> {
        let object = key.strip_prefix(&*self.dataset)?.trim_start_matches('/');
        let object = if part.is_empty() { object.to_owned() } else { format!("{object}\n{part}") };
        Some(ObjectVersion::new(&self.cache.place, &self.dataset, &object, &version.name()))
    }

    /// Returns the value of a header that was kept, or `None` inside if the object has none; may wait a moment for the
    /// version of the object.
    pub(crate) fn header(&self, key: &str, name: &str) -> Option<Option<Vec<u8>>> {
        let mut record = [0; RECORD];
        let is_kept = self.cache.cache.get(&self.part(key, self.version(key)?, name)?, 0, &mut record);
        match record.split_first().filter(|_| is_kept)? {
            (&NONE, _) => Some(None),
            (length, value) => Some(Some(value.get(..usize::from(*length))?.to_vec())),
        }
    }

    /// Keeps the value of a header of an object, if it is short, and of the version that would be asked for.
    pub(crate) fn keep_header(&self, key: &str, name: &str, meta: &Meta, value: Option<&[u8]>) {
        let mut record = vec![0; RECORD];
        let length = value.map_or(0, <[u8]>::len);
        let (Ok(number), Some(room)) = (u8::try_from(length), record.get_mut(1..=length)) else { return };
        room.copy_from_slice(value.unwrap_or_default());
        record[0] = if value.is_some() { number } else { NONE };
        let version = self.known_version(key).filter(|version| version.is_of(meta));
        if let Some(object) = version.and_then(|version| self.part(key, version, name)) {
            self.cache.cache.put(&object, 0, record);
        }
    }

    fn known_version(&self, key: &str) -> Option<Version> {
        match &self.versions {
            Versions::Of(version) => Some(*version),
            Versions::In(versions) => versions.known(key).and_then(|listed| listed.version),
        }
    }

    /// Returns the size of an object, if a listing told it; may wait for that a moment.
    pub(crate) fn size(&self, key: &str) -> Option<u64> {
        match &self.versions {
            Versions::Of(_) => None,
            Versions::In(versions) => versions.of(key).map(|listed| listed.size),
        }
    }

    /// Fills `out` with the bytes of an object from `offset` on; `false` if they are not on the disk.
    pub(crate) fn read(&self, key: &str, offset: u64, out: &mut [u8]) -> bool {
        self.object(key).is_some_and(|object| self.cache.cache.get(&object, offset, out))
    }

    /// Returns whether a range of an object, as far as the object has bytes there, seems to be on the disk.
    pub(crate) fn has(&self, key: &str, range: &Range<u64>) -> bool {
        let end = self.size(key).map_or(range.end, |size| range.end.min(size));
        let length = end.saturating_sub(range.start);
        length == 0 || self.object(key).is_some_and(|object| self.cache.cache.has(&object, range.start, length))
    }

    /// Keeps what was fetched, from `offset` on, if it is of the version that would be asked for. Never waits.
    pub(crate) fn keep(&self, key: &str, offset: u64, fetched: &Fetched) {
        let version = self.known_version(key).filter(|version| version.is_of(&fetched.meta));
        if let Some(object) = version.and_then(|version| self.part(key, version, "")) {
            self.cache.cache.put(&object, offset, fetched.bytes.clone());
        }
    }
}
