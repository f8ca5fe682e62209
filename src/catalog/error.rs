//! Why a folder or dataset of SOURCE cannot be looked at.

use std::io;
use std::path::Path;

use thiserror::Error;

use crate::source::tells_what_is_there;

/// Why a folder or dataset of SOURCE cannot be looked at.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum CatalogError {
    /// It is gone, or another one has taken its place.
    #[error("{0}: changed or gone")]
    Stale(String),
    /// The operating system reported an error.
    #[error("cannot look at {path}: {message}")]
    Io {
        /// The path that was looked at.
        path: String,
        /// The system's message.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
}

impl CatalogError {
    /// Returns whether the system failed, so that nothing is known of what is there: the same look may succeed later.
    pub(crate) fn is_failure_of_system(&self) -> bool {
        matches!(self, Self::Io { kind, .. } if !tells_what_is_there(*kind))
    }

    /// Makes the error of a look for whose result there is no memory.
    pub(super) fn no_memory(path: &Path) -> Self {
        Self::io(path, &io::ErrorKind::OutOfMemory.into())
    }

    /// Makes an error of the system that concerns `path`.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io { path: path.display().to_string(), message: error.to_string(), kind: error.kind() }
    }
}
