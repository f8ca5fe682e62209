//! How the samples of a chunk are stored.

use std::ops::Range;

use serde_json::Value;

use crate::codec::compressed_segmentation::{self, Shape};
use crate::codec::{jpeg, png};
use crate::format::bytes::whole;
use crate::volume::Dtype;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As they are: x fastest, channels slowest.
    Raw,
    /// With samples of a block along x, y and z.
    CompressedSegmentation([usize; 3]),
    /// An image whose rows follow each other in the order x, y, z.
    Jpeg,
    Png,
}

/// The samples of a chunk: a box of the volume with all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Samples along x, y and z.
    pub extent: [u64; 3],
    pub channels: u64,
    /// Bytes of a sample.
    pub size: usize,
}

impl Chunk {
    /// Returns the number of voxels.
    fn voxels(&self) -> u64 {
        self.extent.iter().fold(1, |all, n| all.saturating_mul(*n))
    }

    /// Returns the bytes of all samples; `u64::MAX` if that is too much.
    pub(super) fn bytes(&self) -> u64 {
        self.voxels().saturating_mul(self.channels).saturating_mul(self.size as u64)
    }

    /// Returns all samples along x, y and z.
    pub(super) fn whole(&self) -> [Range<usize>; 3] {
        self.extent.map(|n| 0..usize::try_from(n).unwrap_or(usize::MAX))
    }

    fn shape(&self, block: [usize; 3]) -> Shape {
        let samples = self.whole().map(|range| range.end);
        Shape { samples, block, channels: usize::try_from(self.channels).unwrap_or(usize::MAX) }
    }
}

/// The most samples of a block of a compressed segmentation.
const MAX_BLOCK: usize = 1 << 28;

impl Encoding {
    /// Parses the encoding of a scale. The error names what is not supported.
    pub(super) fn parse(scale: &Value, dtype: Dtype, channels: u64) -> Result<Self, String> {
        let name = scale.get("encoding").and_then(Value::as_str).unwrap_or_default();
        let only = |what: &str, is: bool| {
            if is {
                Ok(())
            } else {
                Err(format!("its encoding is {name:?} and its samples are {channels} x {dtype}, {what}"))
            }
        };
        match name.to_ascii_lowercase().as_str() {
            "raw" => Ok(Self::Raw),
            "compressed_segmentation" => {
                let is_id = matches!(dtype, Dtype::UInt32 | Dtype::UInt64);
                only("which are not the 32- or 64-bit ids that it has", is_id)?;
                let sizes = scale.get("compressed_segmentation_block_size").and_then(Value::as_array);
                let sizes = sizes.map(|list| list.iter().filter_map(|n| usize::try_from(whole(n)?).ok()).collect());
                let block = sizes.and_then(|sizes: Vec<usize>| <[usize; 3]>::try_from(sizes).ok());
                let samples = |block: &[usize; 3]| block.iter().try_fold(1usize, |all, n| all.checked_mul(*n));
                let block = block.filter(|block| samples(block).is_some_and(|n| (1..=MAX_BLOCK).contains(&n)));
                let block = block.ok_or("its compressed_segmentation_block_size makes no sense")?;
                Ok(Self::CompressedSegmentation(block))
            }
            "jpeg" => {
                only("of which it has 1 or 3 x uint8", dtype == Dtype::UInt8 && matches!(channels, 1 | 3))?;
                Ok(Self::Jpeg)
            }
            "png" => {
                let is_image = matches!(dtype, Dtype::UInt8 | Dtype::UInt16) && (1..=4).contains(&channels);
                only("of which it has 1 to 4 x uint8 or uint16", is_image)?;
                Ok(Self::Png)
            }
            _ => Err(format!("its encoding is {name:?}, which is not supported")),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::CompressedSegmentation(_) => "compressed_segmentation",
            Self::Jpeg => "jpeg",
            Self::Png => "png",
        }
    }

    /// Returns whether the samples of a voxel are beside each other in what is decoded; otherwise channels are slowest.
    pub(super) fn has_pixels(self) -> bool {
        matches!(self, Self::Jpeg | Self::Png)
    }

    /// Returns the most bytes that a chunk takes.
    pub(super) fn longest(self, chunk: &Chunk) -> u64 {
        match self {
            Self::Raw => chunk.bytes(),
            Self::CompressedSegmentation(block) => compressed_segmentation::longest(&chunk.shape(block), chunk.size),
            Self::Jpeg => jpeg::longest(chunk.bytes()),
            Self::Png => png::longest(chunk.bytes()),
        }
    }

    /// Returns the memory that decoding takes besides `stored` and decoded bytes.
    pub(super) fn scratch(self, chunk: &Chunk, stored: u64) -> u64 {
        match self {
            Self::Raw | Self::CompressedSegmentation(_) => 0,
            Self::Jpeg => jpeg::scratch(chunk.voxels(), chunk.channels as usize),
            Self::Png => png::scratch(stored, chunk.bytes()),
        }
    }

    /// Returns the samples of a block along x, y and z, where blocks can be decoded by themselves.
    pub(super) fn block(self) -> Option<[usize; 3]> {
        match self {
            Self::CompressedSegmentation(block) => Some(block),
            Self::Raw | Self::Jpeg | Self::Png => None,
        }
    }

    /// Decodes samples of a chunk into `out`, which has their bytes: those that are wanted along x, y and z, which are
    /// all of them where blocks cannot be decoded by themselves.
    pub(super) fn decode(
        self,
        stored: &[u8],
        chunk: &Chunk,
        wanted: &[Range<usize>; 3],
        out: &mut [u8],
    ) -> Result<(), String> {
        match self {
            Self::Raw if stored.len() == out.len() => {
                out.copy_from_slice(stored);
                Ok(())
            }
            Self::Raw => Err(format!("it has {} bytes, not {}", stored.len(), out.len())),
            Self::CompressedSegmentation(block) => {
                compressed_segmentation::decode(stored, &chunk.shape(block), chunk.size, wanted, out)
            }
            Self::Jpeg => jpeg::decode(stored, chunk.channels as usize, out),
            Self::Png => png::decode(stored, chunk.channels as usize, chunk.size, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_encoding_has_its_own_samples() {
        use Dtype::{Float32, Int8, UInt8, UInt16, UInt32, UInt64};
        let parsed = |name: &str, dtype, channels| {
            let scale = json!({"encoding": name, "compressed_segmentation_block_size": [8, 4, 2]});
            Encoding::parse(&scale, dtype, channels)
        };
        assert_eq!(parsed("RAW", Float32, 7), Ok(Encoding::Raw));
        assert_eq!(parsed("compressed_segmentation", UInt64, 2), Ok(Encoding::CompressedSegmentation([8, 4, 2])));
        assert_eq!(parsed("jpeg", UInt8, 3), Ok(Encoding::Jpeg));
        assert_eq!(parsed("png", UInt16, 4), Ok(Encoding::Png));
        for (name, dtype, channels) in [
            ("compressed_segmentation", UInt16, 1),
            ("jpeg", Int8, 1),
            ("jpeg", UInt8, 2),
            ("jpeg", UInt16, 1),
            ("png", UInt32, 1),
            ("png", UInt8, 5),
            ("compresso", UInt32, 1),
            ("jxl", UInt8, 1),
            ("", UInt8, 1),
            ("fpzip", Float32, 1),
        ] {
            let why = parsed(name, dtype, channels).unwrap_err();
            assert!(why.contains(&format!("{name:?}")), "{why}");
        }
        for size in [
            json!(null),
            json!([8, 8]),
            json!([0, 8, 8]),
            json!([8, 8, -8]),
            json!([1 << 20, 1 << 20, 1 << 20]),
            json!([8.5, 8, 8]),
        ] {
            let scale = json!({"encoding": "compressed_segmentation", "compressed_segmentation_block_size": size});
            assert!(Encoding::parse(&scale, UInt32, 1).is_err(), "{size}");
        }
    }

    #[test]
    fn raw_samples_have_one_length() {
        let chunk = Chunk { extent: [2, 1, 1], channels: 1, size: 2 };
        let mut out = [0; 4];
        assert_eq!(Encoding::Raw.decode(&[1, 2, 3, 4], &chunk, &chunk.whole(), &mut out), Ok(()));
        assert_eq!(out, [1, 2, 3, 4]);
        assert!(Encoding::Raw.decode(&[1, 2, 3], &chunk, &chunk.whole(), &mut out).unwrap_err().contains("not 4"));
    }
}
