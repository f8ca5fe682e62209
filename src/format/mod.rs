//! The formats: one folder for each, and the traits, errors and findings that they share.
//!
//! A format knows which arrays a dataset has and where each of their bricks is stored. It does not cache samples, and
//! does not depend on how they are read. A new format is a folder here and an entry of [`registry`].

mod bytes;
mod chunked;
mod extents;
pub(crate) mod hdf5;
pub(crate) mod n5;
pub(crate) mod netcdf3;
pub(crate) mod precomputed;
mod reoriented;
mod segy;
mod traits;
pub(crate) mod vds;
mod verdicts;
pub(crate) mod wkw;
pub(crate) mod zarr;
pub(crate) mod zgy;

use std::io;

use serde_json::Value;
use thiserror::Error;

pub(crate) use reoriented::Reoriented;
pub(crate) use segy::{SegyImport, SegySample};
pub(crate) use traits::{Array, Census, Dataset, FilesBeside, Format, HiddenLayer, Layer, OpenWith, StoredBrick};
use traits::{MAX_COUNTED_BYTES, MAX_DESCRIBED_BYTES};

use crate::memory::OutOfMemory;
use crate::source::SourceError;
use crate::volume::{Dims, NativeJson};

/// A list of formats. If several recognise a path, the first opens it. Tests may add formats.
#[derive(Clone, Copy)]
pub(crate) struct Registry(&'static [&'static dyn Format]);

impl Registry {
    #[cfg(test)]
    pub(crate) const fn new(formats: &'static [&'static dyn Format]) -> Self {
        Self(formats)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'static dyn Format> {
        self.0.iter().copied()
    }

    /// Returns the format whose arrays descriptions of another format call `name`, in any case.
    pub(crate) fn of_arrays(self, name: &str) -> Option<&'static dyn Format> {
        self.iter().find(|format| format.array_names().iter().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Returns the names of all files that describe datasets.
    pub(crate) fn folder_files(self) -> Vec<&'static str> {
        self.iter().flat_map(Format::folder_files).copied().collect()
    }

    /// Returns the names of all formats in upper case, separated by commas, for messages.
    pub(crate) fn names(self) -> String {
        let names: Vec<String> = self.iter().map(|format| format.name().to_uppercase()).collect();
        names.join(", ")
    }
}

/// Returns the formats of this version.
pub(crate) const fn registry() -> Registry {
    Registry(&[
        &zgy::Zgy,
        &wkw::Wkw,
        &vds::Vds,
        &zarr::Zarr,
        &n5::N5,
        &precomputed::Precomputed,
        &hdf5::Hdf5,
        &netcdf3::NetCdf3,
    ])
}

/// Why a dataset, or a part of one, cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum FormatError {
    /// The file or folder is not of this format.
    #[error("{0}")]
    NotThisFormat(String),
    /// The dataset is valid but uses a feature that is not implemented.
    #[error("{0}")]
    Unsupported(String),
    /// A part of the dataset is damaged; the text names it.
    #[error("{0}")]
    Damaged(String),
    /// An object that holds many bricks is damaged, and all of them with it; the text names the object.
    #[error("{0}")]
    DamagedObject(String),
    /// A bug in volfs; the text names what failed.
    #[error("internal error: {0}")]
    Internal(String),
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// A text describes damage.
impl<T: AsRef<str>> From<T> for FormatError {
    fn from(what: T) -> Self {
        Self::Damaged(what.as_ref().to_owned())
    }
}

impl From<OutOfMemory> for FormatError {
    fn from(error: OutOfMemory) -> Self {
        Self::Source(error.into())
    }
}

impl FormatError {
    /// Puts the name of the damaged part before the text of an error.
    pub(crate) fn of(self, name: &str) -> Self {
        match self {
            Self::Damaged(why) => Self::Damaged(format!("{name}: {why}")),
            other => other,
        }
    }

    /// Returns whether the call failed because there was not enough memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Source(SourceError::Io { kind: io::ErrorKind::OutOfMemory, .. }))
    }

    /// Returns whether the call failed only because it was not allowed to wait.
    pub(crate) fn would_block(&self) -> bool {
        *self == Self::Source(SourceError::WouldBlock)
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    /// Something is damaged, missing or contradicts itself.
    Damage,
    /// Something could not be read, and may be damaged or not.
    Unread,
    /// Nothing is wrong with the data, but their users may want to know.
    Note,
}

/// Something that a check of a dataset's structure found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Finding {
    pub severity: Severity,
    pub layer: Option<String>,
    pub lod: Option<usize>,
    /// The brick that it concerns: its index in the grid.
    pub brick: Option<Dims>,
    pub reason: String,
}

impl Finding {
    /// Describes damage of the whole dataset.
    pub(crate) fn damage(reason: impl Into<String>) -> Self {
        Self { severity: Severity::Damage, layer: None, lod: None, brick: None, reason: reason.into() }
    }

    /// Describes a failure to read something, of the whole dataset.
    pub(crate) fn unread(reason: impl Into<String>) -> Self {
        Self { severity: Severity::Unread, ..Self::damage(reason) }
    }

    /// Describes something about the whole dataset that users may want to know.
    pub(crate) fn note(reason: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::damage(reason) }
    }

    pub(crate) fn of_layer(self, layer: &str) -> Self {
        Self { layer: Some(layer.to_owned()), ..self }
    }

    pub(crate) fn of_lod(self, lod: usize) -> Self {
        Self { lod: Some(lod), ..self }
    }

    pub(crate) fn of_brick(self, brick: Dims) -> Self {
        Self { brick: Some(brick), ..self }
    }
}

/// Returns the keys of a JSON object.
fn native(object: Value) -> NativeJson {
    if let Value::Object(keys) = object { keys } else { NativeJson::new() }
}
