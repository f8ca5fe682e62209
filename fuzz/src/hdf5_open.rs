//! Opens arbitrary bytes as an HDF5 or netCDF-3 file, makes its files and reads some of its bricks.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::format::hdf5::Hdf5;
use crate::format::netcdf3::NetCdf3;
use crate::format::{FilesBeside, Format, OpenWith};
use crate::source::IndexCache;

use super::bricks::{self, Kept};
use super::memory_folder::{MemoryFolder, files_beside};
use super::{bounded, views};

/// Reads one input: a file. Returns the number of bricks.
#[must_use]
pub fn run(file: &[u8]) -> u64 {
    // the sources of the virtual datasets of the project's own files
    static PARTS: LazyLock<FilesBeside> =
        LazyLock::new(|| files_beside(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdf5/any.h5")));
    PARTS.folder().expect("it is in memory");
    let with = OpenWith { beside: Some(PARTS.clone()), ..OpenWith::new(IndexCache::new(1 << 20)) };
    let source = Arc::new(MemoryFolder::of_one_file(file.to_vec()));
    let opened = bounded::opening(file.len(), || {
        let format: &dyn Format = if file.starts_with(b"CDF") { &NetCdf3 } else { &Hdf5 };
        let dataset = format.open(source, &with).ok()?;
        Some(views::make_all(dataset, "hdf5"))
    });
    let opened = opened.map(|dataset| views::read_computed(dataset, "hdf5"));
    opened.map_or(0, |dataset| bricks::read_some(&*dataset, Kept::InOneFile))
}
