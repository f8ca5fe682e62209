//! HDF5 and netCDF-4: groups and datasets in one file, and the pyramids of Imaris and BigDataViewer.
//!
//! [`file`] reads the superblock, [`header`] the messages of an object, [`groups`] links and [`attributes`] attributes;
//! [`heap`] is where these are stored. [`dataset`] makes an array of a header, [`tree`] layers of all
//! arrays. [`chunks`] finds the chunks of an [`array`](mod@array), one by one: no index is read as a whole.
//! A dataset whose samples are those of others is a [`virtual_array`] of its [`sources`], as each [`mapping`] says.
//!
//! The public description is the HDF5 File Format Specification of The HDF Group, version 3.0.

mod array;
mod attributes;
mod chunks;
mod data_type;
mod dataset;
mod file;
mod filters;
mod groups;
mod header;
mod heap;
mod mapping;
mod message;
mod sources;
mod tree;
mod virtual_array;

use std::sync::Arc;

use super::chunked::of_layers;
use super::{Dataset, FilesBeside, Format, FormatError, OpenWith};
use crate::source::Source;

pub(crate) struct Hdf5;

impl Format for Hdf5 {
    fn name(&self) -> &'static str {
        "hdf5"
    }

    /// Those of files that may begin with a block of the user: the superblock is looked for when they are opened.
    fn extensions(&self) -> &'static [&'static str] {
        &["h5", "hdf5", "he5", "nc4", "ims"]
    }

    fn is_file(&self, head: &[u8]) -> bool {
        // MATLAB's files begin with a text
        head.starts_with(&file::MAGIC) || head == b"MATLAB 7.3 MAT-f"
    }

    fn open(&self, source: Arc<dyn Source>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let (info, layers) = tree::open(source, with)?;
        of_layers(layers, info, with.beside.as_ref().and_then(FilesBeside::opened))
    }
}
