//! Sample types.

use std::fmt;

/// The type of one sample. Samples are little-endian wherever they are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dtype {
    /// Signed, 1 byte.
    Int8,
    /// Unsigned, 1 byte.
    UInt8,
    /// Signed, 2 bytes.
    Int16,
    /// Unsigned, 2 bytes.
    UInt16,
    /// Signed, 4 bytes.
    Int32,
    /// Unsigned, 4 bytes.
    UInt32,
    /// Signed, 8 bytes.
    Int64,
    /// Unsigned, 8 bytes.
    UInt64,
    /// IEEE 754, 4 bytes.
    Float32,
    /// IEEE 754, 8 bytes.
    Float64,
}

impl Dtype {
    /// Returns the bytes of one sample.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 => 8,
        }
    }

    /// Returns NumPy's name: `int8`, `float32`, ...
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::UInt8 => "uint8",
            Self::Int16 => "int16",
            Self::UInt16 => "uint16",
            Self::Int32 => "int32",
            Self::UInt32 => "uint32",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
        }
    }

    /// Returns whether samples are integers.
    pub(crate) const fn is_integer(self) -> bool {
        !matches!(self, Self::Float32 | Self::Float64)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
