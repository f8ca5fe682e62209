//! Opens arbitrary bytes as a WKW dataset with one layer and one cube, makes its files and reads some of its bricks.
//!
//! An input consists of the length of the description (two bytes, little-endian), the description, the header of the
//! mag (16 bytes), and the cube.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::wkw::Wkw;
use crate::format::{Format, FormatError, OpenWith};
use crate::source::IndexCache;

use super::bricks::{self, Kept};
use super::memory_folder::MemoryFolder;
use super::{bounded, views};

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let Some((length, rest)) = input.split_first_chunk() else { return 0 };
    let (text, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    let (header, cube) = rest.split_at(rest.len().min(16));
    let mut files = BTreeMap::from([("color/1/header.wkw".to_owned(), header.to_vec())]);
    files.insert("color/1/z0/y0/x0.wkw".to_owned(), cube.to_vec());
    if !text.is_empty() {
        files.insert("datasource-properties.json".to_owned(), text.to_vec());
    }
    read(files)
}

/// Opens a dataset of these files, and returns the number of bricks that could be read.
pub(super) fn read(files: BTreeMap<String, Vec<u8>>) -> u64 {
    let length = files.values().map(Vec::len).sum();
    let folder = Arc::new(MemoryFolder::new(files));
    let opened = bounded::opening(length, || match Wkw.open_folder(folder, &OpenWith::new(IndexCache::new(1 << 20))) {
        Err(FormatError::Source(error)) => panic!("the system is blamed: {error}"),
        dataset => Some(views::make_all(dataset.ok()?, "wkw")),
    });
    let opened = opened.map(|dataset| views::read_computed(dataset, "wkw"));
    // a cube is one file: whatever a brick names lies within it
    opened.map_or(0, |dataset| bricks::read_some(&*dataset, Kept::InOneFile))
}
