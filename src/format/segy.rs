//! What a dataset says of the SEG-Y file that it was imported from, and the codes of the standard.

use std::sync::Arc;

/// A SEG-Y file with fixed trace length and without extended textual headers, whose samples were stored without loss.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SegyImport {
    /// The textual and the binary header, as they were: 3600 bytes.
    pub headers: Arc<[u8]>,
    pub sample: SegySample,
    /// Whether the numbers of trace headers are little-endian.
    pub little_headers: bool,
    /// Whether samples are little-endian. Those of [`SegySample::Ibm`] never are.
    pub little_samples: bool,
    /// The layer of the samples. Its last axis runs along the samples of a trace; the two other layers have the same
    /// other axes.
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

/// The codes of sample formats: their names, and the type if a dataset can store it without loss.
const FORMATS: [(i64, &str, Option<SegySample>); 14] = [
    (1, "4-byte IBM floating point", Some(SegySample::Ibm)),
    (2, "4-byte integer", Some(SegySample::Int32)),
    (3, "2-byte integer", Some(SegySample::Int16)),
    (4, "4-byte fixed point with gain", None),
    (5, "4-byte IEEE floating point", Some(SegySample::Float)),
    (6, "8-byte IEEE floating point", None),
    (7, "3-byte integer", None),
    (8, "1-byte integer", Some(SegySample::Int8)),
    (9, "8-byte integer", None),
    (10, "4-byte unsigned integer", Some(SegySample::UInt32)),
    (11, "2-byte unsigned integer", Some(SegySample::UInt16)),
    (12, "8-byte unsigned integer", None),
    (15, "3-byte unsigned integer", None),
    (16, "1-byte unsigned integer", Some(SegySample::UInt8)),
];

/// Returns the name of a sample format code of the standard.
pub(super) fn format_name(code: i64) -> Option<&'static str> {
    FORMATS.iter().find(|format| format.0 == code).map(|format| format.1)
}

impl SegySample {
    /// Returns the type with a code of the standard, if a dataset can store it without loss.
    pub(crate) fn from_code(code: i64) -> Option<Self> {
        FORMATS.iter().find(|format| format.0 == code)?.2
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
