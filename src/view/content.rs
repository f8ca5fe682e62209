//! The content of a virtual file.

use std::sync::Arc;

use super::array_file::ArrayFile;
use super::computed_file::ComputedFile;
use crate::format::Array;
use crate::volume::{ArrayInfo, Dims, Dtype};

/// The content of a virtual file.
#[derive(Clone)]
pub(crate) enum Content {
    /// A few bytes, computed when the file is opened.
    Bytes(Arc<[u8]>),
    /// The samples of an array, behind a header or not.
    Array(ArrayFile),
    /// Bytes that are computed from samples when they are read.
    Computed(Arc<dyn ComputedFile>),
}

impl Content {
    /// Returns the bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Array(file) => file.len(),
            Self::Computed(file) => file.len(),
        }
    }

    /// Returns the array that the file shows, if it shows one.
    pub(crate) fn array(&self) -> Option<&Arc<dyn Array>> {
        match self {
            Self::Bytes(_) => None,
            Self::Array(file) => Some(file.array()),
            Self::Computed(file) => Some(file.array()),
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes().into())
    }
}

/// Shape and type of the array that a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownArray {
    /// Samples along each axis of the file's array, slowest first.
    pub shape: Dims,
    /// The type of its samples.
    pub dtype: Dtype,
}

impl ShownArray {
    /// Returns shape and type of the stored array.
    pub(crate) fn stored(info: &ArrayInfo) -> Self {
        Self { shape: info.shape(), dtype: info.dtype }
    }
}
