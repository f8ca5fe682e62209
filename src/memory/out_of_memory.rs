//! The error of memory that cannot be had.

use std::io;

use thiserror::Error;

/// The system has no more memory for this many bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("no memory for {0} bytes; choose a smaller --cache-size, or allow the process more memory")]
pub(crate) struct OutOfMemory(pub(super) usize);

impl From<OutOfMemory> for io::Error {
    fn from(error: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, error)
    }
}
