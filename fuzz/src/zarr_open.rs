//! Opens arbitrary bytes as a Zarr hierarchy, makes its files and reads some of its bricks.
//!
//! An input that begins with `PK` is a zip file. Any other input is a folder: see `folder.rs`.

use crate::format::zarr::Zarr;

use super::folder;

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    folder::read(&Zarr, b"PK", input)
}
