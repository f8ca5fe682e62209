//! Which disk cache a mount has.

use std::path::PathBuf;

/// Where a disk cache is, and how much it may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskCacheOptions {
    /// The folder, as an absolute path.
    pub dir: PathBuf,
    /// Bytes that its files may take, for all processes that share it.
    pub budget: u64,
}
