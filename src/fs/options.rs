//! The options of a mount.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// The options of a mount, as parsed from the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder or the one dataset to show: an absolute path without symbolic links.
    pub source: PathBuf,
    /// Size of the cache of decoded bricks, in bytes.
    pub cache_size: u64,
    /// Number of decoding threads.
    pub threads: usize,
    /// Whether to bypass the kernel's page cache.
    pub direct_io: bool,
    /// Whether to follow symbolic links that lead out of the source.
    pub follow_links: bool,
    /// How much of wavelet-coded samples to leave out; see [`OpenWith`](crate::format::OpenWith).
    pub quality: Option<u8>,
    /// Whether users other than the one that mounts may read.
    pub allow_other: bool,
    /// The options as status.json shows them.
    pub shown: Map<String, Value>,
}
