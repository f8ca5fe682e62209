//! The option `--zfp`.

use clap::ValueEnum;

use crate::codec::zfp::Decoder;

/// The decoder of ZFP streams, as options have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ZfpDecoder {
    /// That of volfs
    #[default]
    Volfs,
    /// The library libzfp, which returns the same samples and is slower
    Libzfp,
}

impl ZfpDecoder {
    /// Returns the name that the option has for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Volfs => "volfs",
            Self::Libzfp => "libzfp",
        }
    }

    /// Returns the decoder.
    pub(crate) fn decoder(self) -> Decoder {
        match self {
            Self::Volfs => Decoder::Volfs,
            Self::Libzfp => Decoder::Libzfp,
        }
    }
}

/// Reads the name of a decoder.
pub(crate) fn zfp(text: &str) -> Result<ZfpDecoder, String> {
    let known = [ZfpDecoder::Volfs, ZfpDecoder::Libzfp];
    known.into_iter().find(|decoder| decoder.name() == text).ok_or_else(|| "neither volfs nor libzfp".to_owned())
}
