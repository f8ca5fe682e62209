//! The properties that a chunk must have, known from its layer before any of its bytes are read.

/// The types of samples that wavelet chunks can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// 32-bit floats.
    F32,
    /// Codes of one byte.
    U8,
    /// Codes of two bytes.
    U16,
}

impl Sample {
    /// Returns the bytes of one sample.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::F32 => 4,
        }
    }
}

/// The properties that a chunk must have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Expected {
    /// Samples along X, Y and Z, of which X is the fastest.
    pub size: [usize; 3],
    /// The type of the samples.
    pub sample: Sample,
    /// The channel's NoValue, if it has one.
    pub no_value: Option<f32>,
    /// The factor of codes: the real value is code * scale + offset.
    pub scale: f32,
    /// The real value of code 0.
    pub offset: f32,
    /// The method is one of the NormalizeBlock methods.
    pub normalized: bool,
    /// The method is one of the lossless methods.
    pub lossless: bool,
}
