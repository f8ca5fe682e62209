//! Parses the header of 16 bytes, which `header.wkw` and each data file begin with:
//!
//! | byte | content |
//! |---|---|
//! | 0 | `WKW` |
//! | 3 | version, 1 |
//! | 4 | low 4 bits: log2 of the side of a block in voxels; high 4 bits: log2 of the side of a file in blocks |
//! | 5 | block type: 1 raw, 2 LZ4, 3 LZ4HC |
//! | 6 | voxel type |
//! | 7 | bytes of a voxel, all channels together |
//! | 8 | offset of the first block in the file, 64 bits little-endian |

use crate::format::FormatError;
use crate::source::{Blocking, Folder, SourceError};
use crate::volume::Dtype;

/// Bytes of a header.
pub(super) const BYTES: usize = 16;
/// The longest side of a data file in blocks.
const FILE_LEN: u64 = 256;
/// Bytes of the largest block.
const BLOCK_BYTES: u64 = 0x7fff_ffff;

/// How the blocks of a data file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockType {
    Raw,
    Lz4,
    Lz4Hc,
}

impl BlockType {
    pub(super) fn name(self) -> &'static str {
        ["RAW", "LZ4", "LZ4HC"][self as usize]
    }

    pub(super) fn codec(self) -> &'static str {
        ["raw", "lz4", "lz4hc"][self as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub block_log: u32,
    pub file_log: u32,
    pub blocks: BlockType,
    pub dtype: Dtype,
    /// Bytes of a voxel, all channels together.
    pub voxel: u8,
    pub data_offset: u64,
}

impl Header {
    /// Reads the header that an object begins with; `None` if there is no such object.
    pub(super) fn read(folder: &dyn Folder, object: &str, blocking: Blocking) -> Result<Option<Self>, FormatError> {
        let fault = |why: String| FormatError::DamagedObject(format!("{object}: {why}"));
        let mut bytes = [0; BYTES];
        match folder.read_at(object, 0, &mut bytes, blocking) {
            Ok(true) => Self::parse(&bytes).map(Some).map_err(fault),
            Ok(false) => Ok(None),
            Err(SourceError::TooShort { size, .. }) => Err(fault(format!("it has only {size} bytes"))),
            Err(e) => Err(e.into()),
        }
    }

    fn parse(bytes: &[u8; BYTES]) -> Result<Self, String> {
        let [w, k, w2, version, logs, blocks, voxel_type, voxel, data_offset @ ..] = *bytes;
        if [w, k, w2] != *b"WKW" {
            return Err("it does not begin with WKW".into());
        }
        if version != 1 {
            return Err(format!("version {version} is not known"));
        }
        let blocks = match blocks {
            1 => BlockType::Raw,
            2 => BlockType::Lz4,
            3 => BlockType::Lz4Hc,
            other => return Err(format!("block type {other} is not known")),
        };
        let dtype = dtype_of(voxel_type).ok_or_else(|| format!("voxel type {voxel_type} is not known"))?;
        if voxel == 0 || usize::from(voxel) % dtype.size() != 0 {
            return Err(format!("voxel size {voxel} is not a multiple of {dtype}"));
        }
        let data_offset = u64::from_le_bytes(data_offset);
        let (block_log, file_log) = (u32::from(logs & 15), u32::from(logs >> 4));
        let header = Self { block_log, file_log, blocks, dtype, voxel, data_offset };
        if header.block_bytes() > BLOCK_BYTES {
            return Err(format!("a block of {} bytes is too large", header.block_bytes()));
        }
        if header.file_len() > FILE_LEN {
            return Err(format!("{} blocks along each side of a file are too many", header.file_len()));
        }
        Ok(header)
    }

    /// Returns the voxels along a side of a block.
    pub(super) fn block_len(&self) -> u64 {
        1 << self.block_log
    }

    /// Returns the blocks along a side of a data file.
    pub(super) fn file_len(&self) -> u64 {
        1 << self.file_log
    }

    /// Returns the voxels along a side of a data file.
    pub(super) fn cube_len(&self) -> u64 {
        1 << (self.block_log + self.file_log)
    }

    /// Returns the blocks of a data file.
    pub(super) fn blocks_of_file(&self) -> u64 {
        1 << (3 * self.file_log)
    }

    /// Returns the bytes of a block when decoded, at most 2^53.
    pub(super) fn block_bytes(&self) -> u64 {
        u64::from(self.voxel) << (3 * self.block_log)
    }

    /// Returns the values of a voxel.
    pub(super) fn channels(&self) -> u64 {
        u64::from(self.voxel) / self.dtype.size() as u64
    }

    /// Returns the offset of the end of the header, and of the jump table behind it if blocks are compressed.
    pub(super) fn end(&self) -> u64 {
        BYTES as u64 + if self.blocks == BlockType::Raw { 0 } else { 8 * self.blocks_of_file() }
    }

    /// Returns whether an `elementClass`, the type of whole voxels in a layer's description, is that of these voxels:
    /// it has the bits of all channels. It is sometimes wrong: header.wkw decides.
    pub(super) fn is_of_class(&self, class: &str) -> bool {
        let is_digit = |c: char| c.is_ascii_digit();
        let (name, bits) = class.split_at(class.find(is_digit).unwrap_or(class.len()));
        let (kind, usual) = match name {
            "float" => ("float", "32"),
            "double" => ("float", "64"),
            name => (name, ""),
        };
        let bits = if bits.is_empty() { usual } else { bits };
        kind == self.dtype.name().trim_end_matches(is_digit) && bits.parse() == Ok(8 * u32::from(self.voxel))
    }
}

/// Returns the type of a code. Codes above 6 are missing in the published description, but every implementation has
/// them.
fn dtype_of(code: u8) -> Option<Dtype> {
    use Dtype::{Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let known = [UInt8, UInt16, UInt32, UInt64, Float32, Float64, Int8, Int16, Int32, Int64];
    known.get(usize::from(code).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(version: u8, logs: u8, blocks: u8, voxel_type: u8, voxel: u8) -> [u8; BYTES] {
        [b'W', b'K', b'W', version, logs, blocks, voxel_type, voxel, 16, 0, 0, 0, 0, 0, 0, 0]
    }

    #[test]
    fn a_header_is_parsed() {
        let header = Header::parse(&bytes(1, 0x55, 2, 1, 3)).unwrap();
        assert_eq!((header.block_len(), header.file_len(), header.cube_len()), (32, 32, 1024));
        assert_eq!((header.dtype, header.channels(), header.block_bytes()), (Dtype::UInt8, 3, 98_304));
        assert_eq!((header.blocks.name(), header.data_offset, header.end()), ("LZ4", 16, 262_160));
        let sizes: Vec<_> = (1..=10).map(|code| dtype_of(code).unwrap().size()).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 4, 8, 1, 2, 4, 8]);
    }

    #[test]
    fn invalid_headers_are_refused() {
        let fault = |bytes| Header::parse(&bytes).unwrap_err();
        assert_eq!(fault([0; BYTES]), "it does not begin with WKW");
        assert_eq!(fault(bytes(0, 0x55, 1, 1, 1)), "version 0 is not known");
        assert_eq!(fault(bytes(2, 0x55, 1, 1, 1)), "version 2 is not known");
        assert_eq!(fault(bytes(1, 0x55, 0, 1, 1)), "block type 0 is not known");
        assert_eq!(fault(bytes(1, 0x55, 4, 1, 1)), "block type 4 is not known");
        assert_eq!(fault(bytes(1, 0x55, 1, 0, 1)), "voxel type 0 is not known");
        assert_eq!(fault(bytes(1, 0x55, 1, 11, 1)), "voxel type 11 is not known");
        assert_eq!(fault(bytes(1, 0x55, 1, 1, 0)), "voxel size 0 is not a multiple of uint8");
        assert_eq!(fault(bytes(1, 0x55, 1, 2, 3)), "voxel size 3 is not a multiple of uint16");
        assert_eq!(fault(bytes(1, 0xff, 1, 1, 1)), "a block of 35184372088832 bytes is too large");
        assert_eq!(fault(bytes(1, 0x95, 1, 1, 1)), "512 blocks along each side of a file are too many");
        assert!(Header::parse(&bytes(1, 0x8a, 1, 1, 1)).is_ok());
    }

    #[test]
    fn a_class_names_the_bits_of_all_channels() {
        let header =
            |dtype, voxel| Header { block_log: 5, file_log: 5, blocks: BlockType::Raw, dtype, voxel, data_offset: 0 };
        assert!(header(Dtype::UInt8, 3).is_of_class("uint24"));
        assert!(header(Dtype::UInt16, 4).is_of_class("uint32") && header(Dtype::UInt32, 4).is_of_class("uint32"));
        assert!(header(Dtype::Float32, 4).is_of_class("float") && header(Dtype::Float32, 12).is_of_class("float96"));
        assert!(header(Dtype::Float64, 8).is_of_class("double") && header(Dtype::Int64, 8).is_of_class("int64"));
        for wrong in ["uint16", "int8", "float", "", "uint", "uint8x", "uint99999999999"] {
            assert!(!header(Dtype::UInt8, 1).is_of_class(wrong), "{wrong}");
        }
    }
}
