//! Opens arbitrary bytes as an N5 container, makes its files and reads some of its bricks.
//!
//! An input is a folder: see `folder.rs`.

use crate::format::n5::N5;

use super::folder;

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    folder::read(&N5, b"", input)
}
