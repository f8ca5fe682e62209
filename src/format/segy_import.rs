//! What a dataset keeps of the SEG-Y file that it was imported from, so that the file can be made again.

use std::sync::Arc;

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
    /// The layer of the samples, whose last axis is that of the samples of a trace. The other axes are those of the two
    /// other layers.
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
    pub(crate) fn of_code(code: i64) -> Option<Self> {
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
