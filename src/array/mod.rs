//! N-dimensional reading: a range of samples becomes boxes, boxes become bricks, and their rows are copied out.

mod access;
mod at_hand;
mod beside;
mod board;
mod boxed;
mod bricks;
mod division;
mod fetch;
mod gate;
mod gather;
mod held;
#[cfg(test)]
mod model_tests;
mod permuted;
#[cfg(test)]
mod permuted_tests;
mod pieces;
mod plain;
#[cfg(test)]
mod plain_tests;
mod plan;
#[cfg(test)]
mod race_tests;
mod reader;
mod scan;
#[cfg(test)]
mod scan_tests;
mod segments;
mod setup;
mod spans;
mod transpose;
mod whole;
mod work;

use thiserror::Error;

pub use boxed::BoxRequest;
pub use gate::Gate;
pub use reader::{Reader, Request};
pub use scan::Scans;
pub use setup::ReaderConfig;

use crate::format::FormatError;
use crate::volume::Dims;

/// A read that failed: which brick, and why.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("brick {brick:?}: {cause}")]
pub struct ReadError {
    /// The brick's place in the grid.
    pub brick: Dims,
    /// What is wrong with it.
    pub cause: FormatError,
}
