//! The two containers of a VDS, a single file or a folder of objects: its description, its stored layers and their
//! chunk tables.

mod cloud;
mod cloud_metadata;
mod container;

use std::ops::Range;
use std::sync::Arc;

pub(super) use cloud::{Cloud, EXTENSION, LAYOUT, STATUS};
pub(super) use container::{Container, MAGIC};

use super::description::{self, Description, MAX_DESCRIPTION_BYTES};
use crate::format::FormatError;
use crate::memory::try_zeroed;
use crate::source::{Blocking, Source};
use crate::volume::ObjectName;

/// How the chunks of a layer are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompressionMethod {
    None,
    Wavelet,
    Rle,
    Zip,
    WaveletNormalizeBlock,
    WaveletLossless,
    WaveletNormalizeBlockLossless,
}

impl CompressionMethod {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Wavelet,
        Self::Rle,
        Self::Zip,
        Self::WaveletNormalizeBlock,
        Self::WaveletLossless,
        Self::WaveletNormalizeBlockLossless,
    ];

    /// Returns the method with a code in the metadata of a stored layer.
    pub(crate) fn of_code(code: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns the method with a name in `LayerStatus`, in all spellings.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let plain = name.replacen("Experimental", "", 1);
        Self::ALL.into_iter().find(|method| method.name() == plain || *method == Self::None && name == "NONE")
    }

    /// Returns whether chunks are compressed by the wavelet codec.
    pub(crate) fn is_wavelet(self) -> bool {
        !matches!(self, Self::None | Self::Rle | Self::Zip)
    }

    /// Returns the format's own name.
    pub(crate) fn name(self) -> &'static str {
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

    /// Returns the name of the codec in lodN.json.
    pub(crate) fn codec(self) -> &'static str {
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
pub(crate) struct ChunkMetadata {
    /// A code for chunks without data, else a hash of the data.
    pub hash: u64,
    /// Wavelet methods: the fraction of the bytes that each adaptive level needs; all zero without such a table.
    pub levels: [u8; 16],
}

/// The content of a chunk, as its metadata says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Content {
    /// It was never written.
    Unwritten,
    /// All samples are NoValue.
    NoValue,
    /// All samples have this value.
    Constant(f32),
    /// The chunk has stored bytes.
    Stored,
}

impl ChunkMetadata {
    /// Parses 8 bytes, or 24 with a table of levels. Further bytes are ignored, missing ones are zero.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut all = [0; 24];
        all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let [hash, low, high] = [0, 8, 16].map(|at| all[at..].first_chunk::<8>().copied().unwrap_or_default());
        let mut levels = [0; 16];
        levels.iter_mut().zip(low.iter().chain(&high)).for_each(|(to, from)| *to = *from);
        Self { hash: u64::from_le_bytes(hash), levels }
    }

    /// Classifies the content. The order of the tests is that of OpenVDS.
    pub(crate) fn content(&self) -> Content {
        match self.hash {
            0 => Content::Unwritten,
            u64::MAX => Content::NoValue,
            hash if hash >> 32 == 0x0101_0101 => Content::Constant(f32::from_bits(hash as u32)),
            _ => Content::Stored,
        }
    }
}

/// The record of one chunk in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub metadata: ChunkMetadata,
    /// The object that has its bytes.
    pub object: ObjectName,
    /// The offset of the bytes in the object.
    pub offset: u64,
    /// The number of bytes; `None` if they go to the end of the object.
    pub length: Option<u64>,
}

/// The table of the chunks of one layer.
pub(crate) trait ChunkTable: Send + Sync {
    /// Returns the source of the chunks' bytes.
    fn source(&self) -> &dyn Source;

    /// Returns the record of a chunk, whose number must be below the layer's number of chunks.
    fn record(&self, chunk: u64, blocking: Blocking) -> Result<Record, FormatError>;

    /// Returns the object of a chunk if nothing is known of it yet and its record is kept with it, so that one request
    /// brings both.
    fn object_of_its_own(&self, _chunk: u64) -> Option<ObjectName> {
        None
    }

    /// Checks that all records of a stored chunk agree. May wait.
    fn check(&self, _chunk: u64, _record: &Record) -> Result<(), FormatError> {
        Ok(())
    }

    /// Returns whether [`ChunkTable::check`] does anything.
    fn has_checks(&self) -> bool {
        false
    }

    /// Returns the next chunks from `chunk` on, all below `total`, that may have been written. Those before them were
    /// not. May wait.
    fn written_run(&self, chunk: u64, total: u64) -> Result<Range<u64>, FormatError> {
        Ok(chunk..total)
    }

    /// Visits the offset and the length of each part of the table that lies among the chunks. May wait.
    fn visit_pages(&self, _visit: &mut dyn FnMut(u64, u64)) -> Result<(), FormatError> {
        Ok(())
    }

    /// Returns the bytes of the records of all chunks; `None` if each takes a request of its own.
    fn cost(&self) -> Option<u64>;
}

/// A stored layer, as its container describes it.
pub(crate) struct StoredLayer {
    pub method: CompressionMethod,
    pub tolerance: Option<f32>,
    /// The number of chunks, if the container has it.
    pub chunks: Option<u64>,
    /// The number of chunks that were written, if the container has it.
    pub valid: Option<u64>,
    pub table: Box<dyn ChunkTable>,
}

/// The syntax of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// The JSON of `VolumeDataLayout`.
    Json,
    /// The text of `VDSObject`.
    Object,
}

/// The location of a description.
pub(crate) struct DescriptionText {
    source: Arc<dyn Source>,
    object: ObjectName,
    offset: u64,
    length: u64,
    pub syntax: Syntax,
}

impl DescriptionText {
    /// Describes the text in `length` bytes of an object, from `offset` on.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        object: ObjectName,
        (offset, length): (u64, u64),
        syntax: Syntax,
    ) -> Result<Self, FormatError> {
        if length > MAX_DESCRIPTION_BYTES {
            return Err(FormatError::Damaged(format!("its description claims {length} bytes")));
        }
        Ok(Self { source, object, offset, length, syntax })
    }

    /// Reads and parses the text. May wait.
    pub(crate) fn read(&self) -> Result<Description, FormatError> {
        let mut text = try_zeroed(self.length as usize)?;
        if !self.source.read_at(&self.object, self.offset, &mut text, Blocking::Yes)? {
            return Err(FormatError::Damaged(format!("{} is not there", self.object)));
        }
        self.source.check_unchanged()?;
        let described = match self.syntax {
            Syntax::Json => description::from_json(&text),
            Syntax::Object => description::from_object(&text),
        };
        described.map_err(|why| FormatError::Damaged(format!("bad layout: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_methods_are_known() {
        for method in CompressionMethod::ALL {
            assert_eq!(CompressionMethod::of_name(method.name()), Some(method));
        }
        assert_eq!(CompressionMethod::of_name("NONE"), Some(CompressionMethod::None));
        assert_eq!(
            CompressionMethod::of_name("WaveletNormalizeBlockExperimental"),
            Some(CompressionMethod::WaveletNormalizeBlock)
        );
        let lossless = CompressionMethod::of_name("WaveletNormalizeBlockExperimentalLossless");
        assert_eq!(lossless, Some(CompressionMethod::WaveletNormalizeBlockLossless));
        assert_eq!(CompressionMethod::of_name("zip"), None);
        assert_eq!(
            (CompressionMethod::of_code(3), CompressionMethod::of_code(-1), CompressionMethod::of_code(7)),
            (Some(CompressionMethod::Zip), None, None)
        );
    }

    #[test]
    fn metadata_is_classified_in_the_formats_order() {
        let content = |bytes: &[u8]| ChunkMetadata::of(bytes).content();
        assert_eq!(content(&[]), Content::Unwritten);
        assert_eq!(content(&[255; 8]), Content::NoValue);
        assert_eq!(content(&[0, 0, 0x80, 0x3f, 1, 1, 1, 1]), Content::Constant(1.0));
        assert_eq!(content(&[1, 0, 0, 0, 0, 0, 0, 0]), Content::Stored);
        let bytes: Vec<u8> = (0..24).collect();
        assert_eq!(ChunkMetadata::of(&bytes).levels, std::array::from_fn(|n| n as u8 + 8));
    }
}
