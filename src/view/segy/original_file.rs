//! The SEG-Y file that a dataset was imported from: headers and samples of the traces that it had, in its order.

use std::sync::Arc;

use super::trace_counts::TraceCounts;
use super::{binary_header, text_header, trace_header};
use crate::format::{Array, FormatError, SegyImport};

/// Bytes before the first trace.
pub(crate) const HEADERS: u64 = (text_header::BYTES + binary_header::BYTES) as u64;

/// Bytes of a trace header.
pub(crate) const TRACE_HEADER: u64 = trace_header::BYTES as u64;

/// The arrays that a file is made of, at LOD 0.
#[derive(Clone)]
pub(crate) struct Arrays {
    /// The samples.
    pub samples: Arc<dyn Array>,
    /// Whether there is a trace.
    pub traces: Arc<dyn Array>,
    /// The headers of the traces.
    pub headers: Arc<dyn Array>,
}

/// The file.
pub(crate) struct OriginalFile {
    pub(super) import: SegyImport,
    pub(super) arrays: Arrays,
    pub(super) counts: Arc<TraceCounts>,
}

impl OriginalFile {
    /// Creates the file.
    pub(crate) fn new(import: SegyImport, arrays: Arrays, counts: Arc<TraceCounts>) -> Result<Self, FormatError> {
        check_length(&import, &arrays, &counts).map_err(FormatError::Unsupported)?;
        Ok(Self { import, arrays, counts })
    }

    /// Returns the bytes of the file.
    pub(super) fn length(&self) -> u64 {
        length(&self.import, &*self.arrays.samples, &self.counts)
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

/// Checks that a file has as many bytes as the import says.
pub(crate) fn check_length(import: &SegyImport, arrays: &Arrays, counts: &TraceCounts) -> Result<(), String> {
    let bytes = length(import, &*arrays.samples, counts);
    match import.file_bytes {
        Some(had) if had != bytes => {
            Err(format!("original.sgy: the file had {had} bytes, but the traces that the import kept have {bytes}"))
        }
        _ => Ok(()),
    }
}

fn length(import: &SegyImport, samples: &dyn Array, counts: &TraceCounts) -> u64 {
    counts.traces().saturating_mul(trace_bytes(import, samples)).saturating_add(HEADERS)
}

/// Returns the bytes of a trace with its header.
pub(crate) fn trace_bytes(import: &SegyImport, samples: &dyn Array) -> u64 {
    let count = samples.info().shape().last().copied().unwrap_or(0);
    TRACE_HEADER.saturating_add(count.saturating_mul(import.sample.size() as u64))
}
