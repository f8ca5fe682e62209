//! Opens arbitrary bytes as a VDS, a single file or a folder of objects, makes its files and reads some of its bricks.
//!
//! An input that begins with `HueDataStore` is a file. Any other input is a folder (see `folder.rs`); the name of an
//! object's metadata is the object's name, a zero byte and `vdschunkmetadata`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::vds::Vds;
use crate::format::{Format, FormatError, OpenWith};
use crate::source::IndexCache;

use super::bricks::{self, Kept};
use super::memory_folder::MemoryFolder;
use super::{bounded, folder, views};

/// Larger arrays do not have their chunks counted.
const COUNTED: u64 = 1 << 12;

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    if input.starts_with(b"HueDataStore") {
        return read(BTreeMap::from([(String::new(), input.to_vec())]), Kept::InOneFile);
    }
    read(folder::files(input), Kept::InObjects)
}

/// Opens a dataset of these files, and returns the number of bricks that could be read.
pub(super) fn read(files: BTreeMap<String, Vec<u8>>, kept: Kept) -> u64 {
    let length = files.values().map(Vec::len).sum();
    let objects = Arc::new(MemoryFolder::new(files));
    let with = OpenWith::new(IndexCache::new(1 << 20));
    let opened = bounded::opening(length, || {
        let dataset = match kept {
            Kept::InOneFile => Vds.open(objects.clone(), &with),
            Kept::InObjects => Vds.open_folder(objects.clone(), &with),
        };
        let dataset = match dataset {
            Err(FormatError::Source(error)) => panic!("the system is blamed: {error}"),
            dataset => views::make_all(dataset.ok()?, "vds"),
        };
        let arrays = dataset.layers().iter().flat_map(|layer| &layer.levels);
        for array in arrays.filter(|array| array.info().grid.total() <= COUNTED) {
            array.census().expect("the chunks can be counted");
        }
        Some(dataset)
    });
    let opened = opened.map(|dataset| views::read_computed(dataset, "vds"));
    opened.map_or(0, |dataset| bricks::read_some(&*dataset, kept))
}
