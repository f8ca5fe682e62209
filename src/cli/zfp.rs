//! The option `--zfp`.

use clap::ValueEnum;

use crate::codec::zfp::Decoder;

/// The decoder of ZFP streams, as options have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ZfpDecoder {
    /// That of volfs
    #[default]
    Volfs,
    /// The library libzfp, which returns the same samples and is slower
    Libzfp,
}

impl ZfpDecoder {
    /// Returns the name that the option has for it.
    #[must_use]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Volfs => "volfs",
            Self::Libzfp => "libzfp",
        }
    }

    /// Returns the decoder.
    #[must_use]
    pub(super) fn decoder(self) -> Decoder {
        match self {
            Self::Volfs => Decoder::Volfs,
            Self::Libzfp => Decoder::Libzfp,
        }
    }
}
