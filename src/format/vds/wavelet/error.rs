//! What can be wrong with a chunk, and where.

use std::fmt;

use thiserror::Error;

/// A part of a chunk, as error messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
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
    /// The counts of entries in front of the stream.
    Counts,
    /// The coefficients that stand in the stream as they are.
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

impl fmt::Display for Part {
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
pub enum WaveletError {
    /// The caller's buffer is not of the chunk's size, or there are no such chunks.
    #[error("a chunk of {0:?} samples cannot be decoded into {1} bytes")]
    Request([usize; 3], usize),
    /// A part is not there as a whole.
    #[error("the data ends within {0}")]
    PastEnd(Part),
    /// A part has a length that no such part has.
    #[error("{1} is no length for {0}")]
    Length(Part, i32),
    /// The version word is none that is known.
    #[error("wavelet version {0} is not known (671 to 673 are)")]
    Version(i32),
    /// The header's size is not the number of bytes that there are.
    #[error("the header says {said} bytes, there are {found}")]
    Total {
        /// The header's number.
        said: i32,
        /// Bytes that there are.
        found: usize,
    },
    /// The chunk holds another number of samples than it should.
    #[error("the header says {said:?} samples, not {wanted:?}")]
    Size {
        /// The header's numbers.
        said: [i32; 3],
        /// What the chunk should hold.
        wanted: [usize; 3],
    },
    /// The flags, or the number of dimensions, make no sense for this chunk.
    #[error("the flags {0:#x} do not fit the sample format")]
    Flags(u32),
    /// The thresholds are not finite, not positive, or too far apart.
    #[error("thresholds {0} and {1} make no sense")]
    Thresholds(String, String),
    /// The tree does not have as many entries as the counts say.
    #[error("the tree of level {level} has {found} {what}, the counts say {said}")]
    Counts {
        /// The level after which they were counted.
        level: u8,
        /// Blocks or singles.
        what: &'static str,
        /// Entries found.
        found: usize,
        /// Entries announced.
        said: i64,
    },
    /// The tree has more entries than the counts say.
    #[error("the tree of level {0} has more entries than the counts say")]
    TooMany(u8),
    /// The counts announce more entries than there are samples.
    #[error("the counts announce {0} entries of {1} samples")]
    Entries(i64, usize),
    /// An entropy coded part is damaged.
    #[error("{0}: no valid FSE block, {1}")]
    Fse(Part, &'static str),
}
