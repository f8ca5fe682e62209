//! The error of a read.

use thiserror::Error;

use crate::format::FormatError;
use crate::volume::Dims;

/// A read that failed: which brick, and why.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("brick {brick:?}: {cause}")]
pub(crate) struct ReadError {
    /// The brick's index in the grid, in the array's own order of axes.
    pub brick: Dims,
    /// The error of the format or of the source.
    pub cause: FormatError,
}
