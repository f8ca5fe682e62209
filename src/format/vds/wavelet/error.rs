//! The errors of wavelet chunks, and the parts of a chunk that they name.

use std::fmt;

use thiserror::Error;

use crate::format::bytes::PastEnd;

/// A part of a chunk, named in error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkPart {
    /// The first 24 bytes.
    Header,
    /// The counts of leading zeros.
    ZeroRuns,
    /// The runs of NoValue samples.
    NoValue,
    /// The factors of the NormalizeBlock methods.
    Normals,
    /// The two thresholds, and the stream's length.
    Thresholds,
    /// The bit-plane stream as a whole.
    Stream,
    /// The counts of entries before the tree.
    Counts,
    /// The coefficients that the stream has as plain floats.
    Coarse,
    /// The tree bits of a level.
    Tree(u8),
    /// The bit planes and signs of a level.
    Values(u8),
    /// The sizes of the residual's planes.
    Residual,
    /// One plane of the residual.
    Plane(u8),
}

impl fmt::Display for ChunkPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header"),
            Self::ZeroRuns => f.write_str("the zero runs"),
            Self::NoValue => f.write_str("the NoValue runs"),
            Self::Normals => f.write_str("the block normals"),
            Self::Thresholds => f.write_str("the thresholds"),
            Self::Stream => f.write_str("the bit-plane stream"),
            Self::Counts => f.write_str("the counts of entries"),
            Self::Coarse => f.write_str("the coarse coefficients"),
            Self::Tree(level) => write!(f, "the tree of level {level}"),
            Self::Values(level) => write!(f, "the values of level {level}"),
            Self::Residual => f.write_str("the head of the residual"),
            Self::Plane(plane) => write!(f, "residual plane {plane}"),
        }
    }
}

/// Why a wavelet chunk cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum WaveletError {
    /// The caller's buffer does not have the chunk's size, or no chunk can have that size.
    #[error("a chunk of {0:?} samples cannot be decoded into {1} bytes")]
    Request([usize; 3], usize),
    /// The data end inside a part.
    #[error("the data ends within {0}")]
    PastEnd(ChunkPart),
    /// A part has an impossible length.
    #[error("{1} is no length for {0}")]
    Length(ChunkPart, i32),
    /// The version is unknown.
    #[error("wavelet version {0} is not known (671 to 673 are)")]
    Version(i32),
    /// The length in the header is not that of the chunk.
    #[error("the header says {announced} bytes, there are {found}")]
    Total {
        /// The length in the header.
        announced: i32,
        /// Bytes of the chunk.
        found: usize,
    },
    /// The chunk does not have the expected number of samples.
    #[error("the header says {announced:?} samples, not {wanted:?}")]
    Size {
        /// Samples along X, Y and Z by the header.
        announced: [i32; 3],
        /// Samples that are expected.
        wanted: [usize; 3],
    },
    /// The flags or the number of dimensions are impossible for this chunk.
    #[error("the flags {0:#x} do not fit the sample format")]
    Flags(u32),
    /// The thresholds are not finite, not positive, or too far apart.
    #[error("thresholds {0} and {1} make no sense")]
    Thresholds(String, String),
    /// The tree has another number of entries than the counts say.
    #[error("the tree of level {level} has {found} {what}, the counts say {announced}")]
    Counts {
        /// The level after which the entries were counted.
        level: u8,
        /// Blocks or singles.
        what: &'static str,
        /// Entries found.
        found: usize,
        /// Entries announced.
        announced: i64,
    },
    /// The tree has more entries than the counts say.
    #[error("the tree of level {0} has more entries than the counts say")]
    TooMany(u8),
    /// The counts announce more entries than there are samples.
    #[error("the counts announce {0} entries of {1} samples")]
    Entries(i64, usize),
    /// An entropy coded part is damaged.
    #[error("{0}: no valid FSE block, {1}")]
    Fse(ChunkPart, &'static str),
}

impl From<PastEnd<ChunkPart>> for WaveletError {
    fn from(error: PastEnd<ChunkPart>) -> Self {
        Self::PastEnd(error.part)
    }
}
