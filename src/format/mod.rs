//! The formats: one folder for each, and the traits, errors and findings that they share.
//!
//! A format knows which arrays a dataset has and where each of their bricks is stored. It does not cache samples, and
//! does not depend on how they are read. A new format is a folder here and an entry of [`registry`].

mod bytes;
mod extents;
mod traits;
pub(crate) mod vds;
pub(crate) mod wkw;
pub(crate) mod zgy;

use std::io;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

pub(crate) use traits::{Array, Census, Dataset, Format, HiddenLayer, Layer, OpenWith, StoredBrick};
use traits::{MAX_COUNTED_BYTES, MAX_DESCRIBED_BYTES};

use crate::memory::OutOfMemory;
use crate::source::SourceError;
use crate::volume::{Dims, NativeJson};

/// A list of formats. If several recognise a path, the first opens it. Tests may add formats.
#[derive(Clone, Copy)]
pub(crate) struct Registry(&'static [&'static dyn Format]);

impl Registry {
    /// Creates a registry of these formats.
    #[cfg(test)]
    pub(crate) const fn new(formats: &'static [&'static dyn Format]) -> Self {
        Self(formats)
    }

    /// Returns the formats in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static dyn Format> {
        self.0.iter().copied()
    }

    /// Returns the names of all formats in upper case, separated by commas, for messages.
    pub(crate) fn names(self) -> String {
        let names: Vec<String> = self.iter().map(|format| format.name().to_uppercase()).collect();
        names.join(", ")
    }
}

/// Returns the formats of this version.
pub(crate) const fn registry() -> Registry {
    Registry(&[&zgy::Zgy, &wkw::Wkw, &vds::Vds])
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
impl From<String> for FormatError {
    fn from(what: String) -> Self {
        Self::Damaged(what)
    }
}

impl From<&str> for FormatError {
    fn from(what: &str) -> Self {
        Self::Damaged(what.into())
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
    /// How much it matters.
    pub severity: Severity,
    /// The layer that it concerns; `None` for the whole dataset.
    pub layer: Option<String>,
    /// The level that it concerns.
    pub lod: Option<usize>,
    /// The brick that it concerns: its index in the grid.
    pub brick: Option<Dims>,
    /// What was found.
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

    /// Limits the finding to a layer.
    pub(crate) fn of_layer(self, layer: &str) -> Self {
        Self { layer: Some(layer.to_owned()), ..self }
    }

    /// Limits the finding to a level of its layer.
    pub(crate) fn of_lod(self, lod: usize) -> Self {
        Self { lod: Some(lod), ..self }
    }

    /// Limits the finding to a brick of its level.
    pub(crate) fn of_brick(self, brick: Dims) -> Self {
        Self { brick: Some(brick), ..self }
    }
}

/// A SEG-Y file with fixed trace length and without extended textual headers, whose samples were stored without loss.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SegyImport {
    /// The textual and the binary header, as they were: 3600 bytes.
    pub headers: Arc<[u8]>,
    /// The type of the samples in the file.
    pub sample: SegySample,
    /// Whether the numbers of trace headers are little-endian.
    pub little_headers: bool,
    /// Whether samples are little-endian. Those of [`SegySample::Ibm`] never are.
    pub little_samples: bool,
    /// The layer of the samples. Its last axis runs along the samples of a trace; the two other layers have the same other
    /// axes.
    pub samples: usize,
    /// The layer of the traces, of type uint8: a value for each, 0 if the file does not have the trace.
    pub traces: usize,
    /// The layer of the trace headers, of type uint8: 240 values for each trace.
    pub trace_headers: usize,
    /// The array's axis by which the file is sorted, if the import says so.
    pub sorted_by: Option<usize>,
    /// The bytes of the file, if the import has kept their number.
    pub file_bytes: Option<u64>,
}

/// The type of samples in a SEG-Y file, and how a dataset stores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegySample {
    /// Floating point of IBM, 4 bytes, as float32.
    Ibm,
    /// IEEE 754, 4 bytes, as float32.
    Float,
    /// Signed, 4 bytes, as float32.
    Int32,
    /// Unsigned, 4 bytes, as float32.
    UInt32,
    /// Signed, 2 bytes, as uint16 that are greater by 32768.
    Int16,
    /// Unsigned, 2 bytes, as they are.
    UInt16,
    /// Signed, 1 byte, as uint8 that are greater by 128.
    Int8,
    /// Unsigned, 1 byte, as they are.
    UInt8,
}

impl SegySample {
    /// Returns the type with a code of the standard, if a dataset can store it without loss.
    pub(crate) fn from_code(code: i64) -> Option<Self> {
        Some(match code {
            1 => Self::Ibm,
            2 => Self::Int32,
            3 => Self::Int16,
            5 => Self::Float,
            8 => Self::Int8,
            10 => Self::UInt32,
            11 => Self::UInt16,
            16 => Self::UInt8,
            _ => return None,
        })
    }

    /// Returns the bytes of a sample in the file.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Ibm | Self::Float | Self::Int32 | Self::UInt32 => 4,
            Self::Int16 | Self::UInt16 => 2,
            Self::Int8 | Self::UInt8 => 1,
        }
    }
}

/// Returns the keys of a JSON object.
fn native(object: Value) -> NativeJson {
    match object {
        Value::Object(keys) => keys,
        _ => NativeJson::new(),
    }
}
