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

use super::chunked::{Hidden, of_layers};
use super::{Dataset, FilesBeside, Format, FormatError, OpenWith};
use crate::source::{Source, SourceError};

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

/// Returns a fault of the file as the reason why something is not shown; fails if the system has failed.
fn settled<T>(result: Result<T, FormatError>) -> Result<Result<T, Hidden>, FormatError> {
    Ok(match result {
        Ok(found) => Ok(found),
        Err(FormatError::Damaged(why) | FormatError::DamagedObject(why)) => Err(Hidden::damaged(why)),
        Err(FormatError::Unsupported(why)) => Err(Hidden::unsupported(why)),
        Err(FormatError::Source(error @ SourceError::TooShort { .. })) => Err(Hidden::damaged(error.to_string())),
        Err(error) => return Err(error),
    })
}
