//! The options of a mount.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::source::disk_cache::DiskCacheOptions;
use crate::source::{Origin, StoreOption};

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
    /// The [names](crate::view::view_names) of the views that are shown; `None`: all.
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
