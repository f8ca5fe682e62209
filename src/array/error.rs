//! Why a read failed.

use thiserror::Error;

use crate::format::FormatError;
use crate::volume::Dims;

/// A read that failed: which brick, and why.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("brick {brick:?}: {cause}")]
pub struct ReadError {
    /// The brick's place in the grid, in the array's own order of axes.
    pub brick: Dims,
    /// What is wrong with the brick, or with its source.
    pub cause: FormatError,
}
