//! What the tables of a VDS say of a layer and of each of its chunks (sections 1.1, 1.2 and 3).

pub mod cloud;
pub mod container;
mod pages;
mod tags;
mod text;

pub use cloud::Cloud;
pub use container::Container;
pub use text::{Spelling, Text};

use crate::format::FormatError;
use crate::source::{Source, Wait};
use crate::volume::ObjectName;

/// How the chunks of a layer are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    None,
    Wavelet,
    Rle,
    Zip,
    WaveletNormalizeBlock,
    WaveletLossless,
    WaveletNormalizeBlockLossless,
}

impl Method {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Wavelet,
        Self::Rle,
        Self::Zip,
        Self::WaveletNormalizeBlock,
        Self::WaveletLossless,
        Self::WaveletNormalizeBlockLossless,
    ];

    /// The method of a number in the metadata of a file.
    pub fn of_code(code: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// The method of a name in LayerStatus, in all spellings.
    pub fn of_name(name: &str) -> Option<Self> {
        let plain = name.replacen("Experimental", "", 1);
        Self::ALL.into_iter().find(|method| method.name() == plain || *method == Self::None && name == "NONE")
    }

    /// Whether chunks are coded by the wavelet codec.
    pub fn is_wavelet(self) -> bool {
        !matches!(self, Self::None | Self::Rle | Self::Zip)
    }

    /// The format's own name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Wavelet => "Wavelet",
            Self::Rle => "RLE",
            Self::Zip => "Zip",
            Self::WaveletNormalizeBlock => "WaveletNormalizeBlock",
            Self::WaveletLossless => "WaveletLossless",
            Self::WaveletNormalizeBlockLossless => "WaveletNormalizeBlockLossless",
        }
    }

    /// The name of the codec in lodN.json.
    pub fn codec(self) -> &'static str {
        match self {
            Self::None => "raw",
            Self::Wavelet => "wavelet",
            Self::Rle => "rle",
            Self::Zip => "zip",
            Self::WaveletNormalizeBlock => "wavelet-normalized",
            Self::WaveletLossless => "wavelet-lossless",
            Self::WaveletNormalizeBlockLossless => "wavelet-normalized-lossless",
        }
    }
}

/// The metadata of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// What kind of chunk it is, or else a number that tells its data from others.
    pub hash: u64,
    /// Wavelet: what part of the stored bytes each adaptive level needs; all zero where there is no such table.
    pub levels: [u8; 16],
}

/// What there is of a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// It was never written.
    Unwritten,
    /// Nothing but NoValue.
    NoValue,
    /// This value all over.
    Constant(f32),
    /// Data.
    Stored,
}

impl Metadata {
    /// The metadata in 8 bytes, or in 24 with a table of levels. More are ignored, fewer are zero.
    pub fn of(bytes: &[u8]) -> Self {
        let mut all = [0; 24];
        all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let [hash, low, high] = [0, 8, 16].map(|at| all[at..].first_chunk::<8>().copied().unwrap_or_default());
        let mut levels = [0; 16];
        levels.iter_mut().zip(low.iter().chain(&high)).for_each(|(to, from)| *to = *from);
        Self { hash: u64::from_le_bytes(hash), levels }
    }

    /// The order of the tests is the format's (section 3).
    pub fn content(&self) -> Content {
        match self.hash {
            0 => Content::Unwritten,
            u64::MAX => Content::NoValue,
            hash if hash >> 32 == 0x0101_0101 => Content::Constant(f32::from_bits(hash as u32)),
            _ => Content::Stored,
        }
    }
}

/// What a table says of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub metadata: Metadata,
    /// The object that its bytes are in.
    pub object: ObjectName,
    /// Where they begin.
    pub offset: u64,
    /// How many there are; `None`: to the end of the object.
    pub length: Option<u64>,
}

/// Where the chunks of one layer are.
pub trait ChunkTable: Send + Sync {
    /// The source of the chunks' bytes.
    fn source(&self) -> &dyn Source;

    /// What there is of a chunk, which the layer has.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if the tables make no sense for it, and those of the source.
    fn record(&self, chunk: u64, wait: Wait) -> Result<Record, FormatError>;

    /// Makes sure that all that is said of a stored chunk agrees. May wait.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if it does not, and those of the source.
    fn check(&self, _chunk: u64, _record: &Record) -> Result<(), FormatError> {
        Ok(())
    }

    /// Whether [`ChunkTable::check`] does anything.
    fn has_checks(&self) -> bool {
        false
    }

    /// Bytes to read for the records of all chunks; `None` where each takes a request of its own.
    fn cost(&self) -> Option<u64>;
}

/// A stored layer, as its container describes it.
pub struct StoredLayer {
    pub method: Method,
    pub tolerance: Option<f32>,
    /// Chunks, where the container says it.
    pub chunks: Option<u64>,
    pub table: Box<dyn ChunkTable>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_methods_are_known() {
        for method in Method::ALL {
            assert_eq!(Method::of_name(method.name()), Some(method));
        }
        assert_eq!(Method::of_name("NONE"), Some(Method::None));
        assert_eq!(Method::of_name("WaveletNormalizeBlockExperimental"), Some(Method::WaveletNormalizeBlock));
        let lossless = Method::of_name("WaveletNormalizeBlockExperimentalLossless");
        assert_eq!(lossless, Some(Method::WaveletNormalizeBlockLossless));
        assert_eq!(Method::of_name("zip"), None);
        assert_eq!((Method::of_code(3), Method::of_code(-1), Method::of_code(7)), (Some(Method::Zip), None, None));
    }

    #[test]
    fn metadata_is_classified_in_the_formats_order() {
        let content = |bytes: &[u8]| Metadata::of(bytes).content();
        assert_eq!(content(&[]), Content::Unwritten);
        assert_eq!(content(&[255; 8]), Content::NoValue);
        assert_eq!(content(&[0, 0, 0x80, 0x3f, 1, 1, 1, 1]), Content::Constant(1.0));
        assert_eq!(content(&[1, 0, 0, 0, 0, 0, 0, 0]), Content::Stored);
        let bytes: Vec<u8> = (0..24).collect();
        assert_eq!(Metadata::of(&bytes).levels, std::array::from_fn(|n| n as u8 + 8));
    }
}
