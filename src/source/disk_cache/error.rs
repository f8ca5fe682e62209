//! Why a folder cannot be a disk cache.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a folder cannot be a disk cache.
#[derive(Debug, Error)]
pub(crate) enum DiskCacheError {
    /// The operating system reported an error.
    #[error("cannot {doing} the disk cache {}: {error}", dir.display())]
    Io {
        /// What failed.
        doing: &'static str,
        /// The folder.
        dir: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Nothing is there that could be shown or cleared.
    #[error("{} is not a disk cache of volfs: it has no CACHEDIR.TAG of volfs", .0.display())]
    NoCache(PathBuf),
    /// The folder is not empty, and volfs did not make it.
    #[error("{} holds files that are not of a disk cache, such as {name}; give an empty folder, or one that does not exist", dir.display())]
    ForeignFiles {
        /// The folder.
        dir: PathBuf,
        /// The name of one of them.
        name: String,
    },
    /// The folder belongs to another user.
    #[error("the disk cache {} belongs to another user (id {owner}); give a folder of your own", dir.display())]
    OtherOwner {
        /// The folder.
        dir: PathBuf,
        /// The user's number.
        owner: u32,
    },
    /// The path is another user's link, which may lead to any folder.
    #[error("the disk cache {} is a link that belongs to another user (id {owner}); give a folder of your own", dir.display())]
    OthersLink {
        /// The path.
        dir: PathBuf,
        /// The user's number.
        owner: u32,
    },
    /// Others could put data into the folder.
    #[error("other users may write to the disk cache {dir}; type: chmod 700 {dir}", dir = .0.display())]
    WritableByOthers(PathBuf),
}

impl DiskCacheError {
    pub(super) fn io(doing: &'static str, dir: impl Into<PathBuf>, error: impl Into<io::Error>) -> Self {
        Self::Io { doing, dir: dir.into(), error: error.into() }
    }
}
