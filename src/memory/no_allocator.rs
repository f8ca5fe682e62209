//! In place of the allocator with a reserve, on systems other than Linux: memory is there until it is not.

use std::io;

use thiserror::Error;

/// The system has no more memory for this many bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("no memory for {0} bytes; choose a smaller cache, or allow the process more memory")]
pub(crate) struct OutOfMemory(pub(super) usize);

impl From<OutOfMemory> for io::Error {
    fn from(error: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, error)
    }
}

pub(crate) fn has_memory() -> bool {
    true
}

/// Returns an empty vector with room for `count` elements.
pub(crate) fn try_with_capacity<T>(count: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut elements = Vec::new();
    match elements.try_reserve_exact(count) {
        Ok(()) => Ok(elements),
        Err(_) => Err(OutOfMemory(count.saturating_mul(size_of::<T>()))),
    }
}

/// Memory that is about to be allocated.
#[derive(Debug)]
pub(crate) struct Claim;

impl Drop for Claim {
    // callers end a claim by dropping it
    fn drop(&mut self) {}
}

/// Claims memory, which is never refused here.
pub(crate) fn claim(_bytes: usize) -> Result<Claim, OutOfMemory> {
    Ok(Claim)
}

/// Nothing is known of how to give back what the allocator keeps.
pub(crate) fn trim_heap() {}
