//! Opens arbitrary bytes as a volume in precomputed, makes its files and reads some of its bricks.
//!
//! An input is a folder: see `folder.rs`.

use crate::format::precomputed::Precomputed;

use super::folder;

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    folder::read(&Precomputed, b"", input)
}
