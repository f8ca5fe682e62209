//! The error of the ZFP decoder.

use thiserror::Error;

/// Why a ZFP stream cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum ZfpError {
    /// The stream does not begin with ZFP's magic bytes.
    #[error("it does not begin with \"zfp\"")]
    NotZfp,
    /// The stream is shorter than its header requires.
    #[error("{has} bytes are too few for its ZFP stream")]
    TooShort {
        /// Bytes of the stream.
        has: usize,
    },
    /// The codec version is unknown.
    #[error("ZFP codec version {0} is not supported")]
    Version(u8),
    /// The samples are not float32.
    #[error("its ZFP stream has samples of type {0}, not float32")]
    Scalar(u8),
    /// The array is not three-dimensional.
    #[error("its ZFP stream has {0} dimensions, not 3")]
    Axes(u8),
    /// The shape differs from the brick's.
    #[error("its ZFP stream has the shape {0:?}, not the brick's")]
    Shape([u64; 3]),
    /// The mode's parameters are invalid.
    #[error("ZFP mode {0} is not supported")]
    Mode(u16),
    /// The blocks need more bytes than the stream has.
    #[error("its ZFP stream ends too early: it takes at least {used} bytes and has {has}")]
    Overrun {
        /// Bytes that its blocks take; there may be more blocks.
        used: usize,
        /// Bytes of the stream.
        has: usize,
    },
    /// The output slice has the wrong length.
    #[error("there is room for {has} bytes of samples, not for {wanted}")]
    Room {
        /// Bytes of the slice.
        has: usize,
        /// Bytes of the decoded samples.
        wanted: u64,
    },
    /// libzfp failed without a reason.
    #[error("libzfp cannot decode it")]
    Refused,
}
