//! Parses `elementClass`, the type of the voxels in a layer's description. It is sometimes wrong: header.wkw decides.

use super::header::Header;
use crate::volume::Dtype;

/// A kind of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberKind {
    Unsigned,
    Signed,
    Float,
}

/// Returns whether an element class, which has the bits of a whole voxel, is that of the voxels of this header.
pub(super) fn matches_header(class: &str, header: &Header) -> bool {
    let kind = match header.dtype {
        Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64 => NumberKind::Unsigned,
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => NumberKind::Signed,
        Dtype::Float32 | Dtype::Float64 => NumberKind::Float,
    };
    parse(class) == Some((kind, 8 * u32::from(header.voxel)))
}

fn parse(class: &str) -> Option<(NumberKind, u32)> {
    let digits = class.find(|c: char| c.is_ascii_digit()).unwrap_or(class.len());
    let (name, bits) = class.split_at(digits);
    let (kind, usual) = match name {
        "uint" => (NumberKind::Unsigned, None),
        "int" => (NumberKind::Signed, None),
        "float" => (NumberKind::Float, Some(32)),
        "double" => (NumberKind::Float, Some(64)),
        _ => return None,
    };
    let bits = if bits.is_empty() { usual? } else { bits.parse().ok()? };
    Some((kind, bits))
}

#[cfg(test)]
mod tests {
    use super::super::header::BlockType;
    use super::*;

    #[test]
    fn a_class_names_the_bits_of_all_channels() {
        let header =
            |dtype, voxel| Header { block_log: 5, file_log: 5, blocks: BlockType::Raw, dtype, voxel, data_offset: 0 };
        assert!(matches_header("uint24", &header(Dtype::UInt8, 3)));
        assert!(
            matches_header("uint32", &header(Dtype::UInt16, 4)) && matches_header("uint32", &header(Dtype::UInt32, 4))
        );
        assert!(
            matches_header("float", &header(Dtype::Float32, 4))
                && matches_header("float96", &header(Dtype::Float32, 12))
        );
        assert!(
            matches_header("double", &header(Dtype::Float64, 8)) && matches_header("int64", &header(Dtype::Int64, 8))
        );
        for wrong in ["uint16", "int8", "float", "", "uint", "uint8x", "uint99999999999"] {
            assert!(!matches_header(wrong, &header(Dtype::UInt8, 1)), "{wrong}");
        }
    }
}
