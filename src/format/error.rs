//! Why a dataset, or a part of one, cannot be read.

use std::io;

use thiserror::Error;

use crate::memory::OutOfMemory;
use crate::source::SourceError;

/// Why a dataset, or a part of one, cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum FormatError {
    /// The file or folder is not of this format.
    #[error("{0}")]
    NotThisFormat(String),
    /// The dataset is valid but uses a feature that is not implemented.
    #[error("{0}")]
    Unsupported(String),
    /// A part of the dataset is damaged; the text names it.
    #[error("{0}")]
    Damaged(String),
    /// An object that holds many bricks is damaged, and all of them with it; the text names the object.
    #[error("{0}")]
    DamagedObject(String),
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl From<OutOfMemory> for FormatError {
    fn from(error: OutOfMemory) -> Self {
        Self::Source(error.into())
    }
}

impl FormatError {
    /// Returns whether the call failed for want of memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Source(SourceError::Io { kind: io::ErrorKind::OutOfMemory, .. }))
    }

    /// Returns whether the call failed only because it was not allowed to wait.
    pub(crate) fn would_block(&self) -> bool {
        *self == Self::Source(SourceError::WouldBlock)
    }
}
