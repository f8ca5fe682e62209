//! Bounds of the memory that an input may cost.

use super::allocations::{Allocated, measure};

/// Bytes that opening may take for each byte of the input. A value of a JSON list takes two bytes of text and 32 of
/// memory, and a list that grows is there twice; an entry of VDS metadata takes a KiB while it is parsed.
const FOR_EACH_BYTE: u64 = 512;
/// Bytes that opening may take for any input: pages of tables, and a few lists.
const FOR_ANY: u64 = 2 << 20;

/// Runs `work`, which opens or describes an input of `length` bytes.
///
/// # Panics
/// If `work` had memory allocated that is out of proportion to the input.
pub fn opening<T>(length: usize, work: impl FnOnce() -> T) -> T {
    at_most(FOR_ANY + FOR_EACH_BYTE * length as u64, "opening", work)
}

/// Runs `work` on this thread.
///
/// # Panics
/// If `work` had more than `most` bytes allocated at a time.
pub fn at_most<T>(most: u64, what: &str, work: impl FnOnce() -> T) -> T {
    let (result, Allocated { most: used, .. }) = measure(work);
    assert!(used <= most, "{what} had {used} bytes allocated at a time: more than {most}");
    result
}
