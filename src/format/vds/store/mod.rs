//! The two containers of a VDS, a single file and a folder of objects: where they have the description, the stored
//! layers and the tables of their chunks; compression methods, and the metadata of chunks.

mod cloud;
mod cloud_metadata;
mod container;

use std::ops::Range;
use std::sync::Arc;

pub(super) use cloud::{Cloud, EXTENSION, LAYOUT, STATUS};
pub(super) use container::{Container, MAGIC};

use super::description::{self, Description, MAX_DESCRIPTION_BYTES};
use crate::format::FormatError;
use crate::format::bytes::read_bytes;
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
    /// All methods, by their codes in the metadata of stored layers: the format's own name, and that of the codec in
    /// lodN.json.
    const ALL: [(Self, &str, &str); 7] = [
        (Self::None, "None", "raw"),
        (Self::Wavelet, "Wavelet", "wavelet"),
        (Self::Rle, "RLE", "rle"),
        (Self::Zip, "Zip", "zip"),
        (Self::WaveletNormalizeBlock, "WaveletNormalizeBlock", "wavelet-normalized"),
        (Self::WaveletLossless, "WaveletLossless", "wavelet-lossless"),
        (Self::WaveletNormalizeBlockLossless, "WaveletNormalizeBlockLossless", "wavelet-normalized-lossless"),
    ];

    pub(crate) fn of_code(code: i32) -> Option<Self> {
        Some(Self::ALL.get(usize::try_from(code).ok()?)?.0)
    }

    /// Returns the method with a name in `LayerStatus`, in all spellings.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let plain = if name == "NONE" { "None".into() } else { name.replacen("Experimental", "", 1) };
        Self::ALL.iter().find(|(_, name, _)| *name == plain).map(|(method, ..)| *method)
    }

    /// Returns whether chunks are compressed by the wavelet codec.
    pub(crate) fn is_wavelet(self) -> bool {
        !matches!(self, Self::None | Self::Rle | Self::Zip)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the name of the codec in lodN.json.
    pub(crate) fn codec(self) -> &'static str {
        Self::ALL[self as usize].2
    }
}

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
    Unwritten,
    NoValue,
    Constant(f32),
    Stored,
}

impl ChunkMetadata {
    /// Parses 8 bytes, or 24 with a table of levels. Further bytes are ignored, missing ones are zero.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let (mut hash, mut levels) = ([0; 8], [0; 16]);
        hash.iter_mut().chain(&mut levels).zip(bytes).for_each(|(to, from)| *to = *from);
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
    /// Returns the record of a chunk, whose number must be below the layer's number of chunks.
    fn record(&self, chunk: u64, blocking: Blocking) -> Result<Record, FormatError>;

    /// Returns the object of a chunk if nothing is known of it yet and its record is kept with it, so that one request
    /// brings both.
    fn unread_object(&self, _chunk: u64) -> Option<ObjectName> {
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
    fn written_run(&self, chunk: u64, total: u64) -> Result<Range<u64>, FormatError>;

    /// Visits the offset and the length of each part of the table that lies among the chunks. May wait.
    fn visit_pages(&self, _visit: &mut dyn FnMut(u64, u64)) -> Result<(), FormatError> {
        Ok(())
    }

    /// Returns the bytes of the records of all chunks; `None` if each record takes a request.
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

/// The location of a description.
pub(crate) struct DescriptionText {
    source: Arc<dyn Source>,
    object: ObjectName,
    offset: u64,
    length: u64,
    /// It is the JSON of `VolumeDataLayout`; else the text of `VDSObject`.
    pub is_json: bool,
}

impl DescriptionText {
    /// Returns it, unless the text is too long.
    fn checked(self) -> Result<Self, FormatError> {
        match self.length {
            ..=MAX_DESCRIPTION_BYTES => Ok(self),
            length => Err(format!("its description claims {length} bytes").into()),
        }
    }

    /// Reads and parses the text. May wait.
    pub(crate) fn read(&self) -> Result<Description, FormatError> {
        let text = read_bytes(&*self.source, &self.object, self.offset, self.length)?;
        let text = text.ok_or_else(|| format!("{} is not there", &*self.object))?;
        self.source.check_unchanged()?;
        let parse = if self.is_json { description::from_json } else { description::from_object };
        Ok(parse(&text).map_err(|why| format!("bad layout: {why}"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_methods_are_known() {
        for (code, (method, name, codec)) in (0..).zip(CompressionMethod::ALL) {
            assert_eq!((method.name(), method.codec()), (name, codec));
            assert_eq!([CompressionMethod::of_name(name), CompressionMethod::of_code(code)], [Some(method); 2]);
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
