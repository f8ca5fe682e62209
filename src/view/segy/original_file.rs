//! The SEG-Y file that a dataset was imported from: headers and samples of the traces that it had, in its order.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use super::original_read::OriginalRead;
use super::trace_counts::TraceCounts;
use super::{binary_header, text_header, trace_header};
use crate::format::{Array, FormatError, SegyImport};
use crate::view::computed_file::{ComputedFile, ReadSteps};

/// Bytes before the first trace.
pub const HEADERS: u64 = (text_header::BYTES + binary_header::BYTES) as u64;

/// Bytes of a trace header.
pub const TRACE_HEADER: u64 = trace_header::BYTES as u64;

/// The arrays that a file is made of, at LOD 0.
#[derive(Clone)]
pub struct Arrays {
    /// The samples.
    pub samples: Arc<dyn Array>,
    /// Whether there is a trace.
    pub traces: Arc<dyn Array>,
    /// The headers of the traces.
    pub headers: Arc<dyn Array>,
}

/// The file.
pub struct OriginalFile {
    pub(super) import: SegyImport,
    pub(super) arrays: Arrays,
    pub(super) counts: Arc<TraceCounts>,
}

impl OriginalFile {
    /// Creates the file.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] if it has not as many bytes as the import says.
    pub fn new(import: SegyImport, arrays: Arrays, counts: Arc<TraceCounts>) -> Result<Self, FormatError> {
        let file = Self { import, arrays, counts };
        match file.import.file_bytes {
            Some(bytes) if bytes != file.len() => Err(FormatError::Unsupported(format!(
                "original.sgy: the file had {bytes} bytes, but the traces that the import kept have {}",
                file.len()
            ))),
            _ => Ok(file),
        }
    }

    /// Returns the samples of a trace.
    pub(super) fn samples(&self) -> u64 {
        self.arrays.samples.info().shape().last().copied().unwrap_or(0)
    }

    /// Returns the bytes of a trace with its header.
    pub(super) fn trace_bytes(&self) -> u64 {
        trace_bytes(&self.import, &*self.arrays.samples)
    }
}

/// Returns the bytes of a trace with its header.
pub fn trace_bytes(import: &SegyImport, samples: &dyn Array) -> u64 {
    let count = samples.info().shape().last().copied().unwrap_or(0);
    TRACE_HEADER.saturating_add(count.saturating_mul(import.sample.size() as u64))
}

impl ComputedFile for OriginalFile {
    fn len(&self) -> u64 {
        self.counts.traces().saturating_mul(self.trace_bytes()).saturating_add(HEADERS)
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.arrays.samples
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.import.headers.hash(&mut hasher);
        (self.import.sample.size(), self.import.little_samples, self.counts.traces()).hash(&mut hasher);
        hasher.finish()
    }

    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps> {
        Box::new(OriginalRead::new(self, bytes))
    }
}
