//! Raw LZ4 blocks: without frame, length prefix or dictionary.

use lz4_flex::block::decompress_into;
use thiserror::Error;

/// Why a block cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Lz4Error {
    /// The input is not an LZ4 block, or decodes to more bytes than expected.
    #[error("not a valid LZ4 block: {0}")]
    Invalid(String),
    /// The block is valid, but decodes to fewer bytes than expected.
    #[error("the LZ4 block decodes to {found} bytes, not {wanted}")]
    Short {
        /// Bytes that the block decodes to.
        found: usize,
        /// Bytes expected.
        wanted: usize,
    },
}

/// Returns the most bytes that a block of `length` bytes can decode to: no byte of LZ4 stands for more than 255.
#[must_use]
pub fn most(length: u64) -> u64 {
    length.saturating_mul(255)
}

/// Returns the most bytes that a block takes which decodes to `bytes` bytes.
#[must_use]
pub fn longest(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 255).saturating_add(16)
}

/// Decodes a block, which must fill `out` exactly.
///
/// # Errors
/// [`Lz4Error`]; the content of `out` is then unspecified.
pub fn decode(stored: &[u8], out: &mut [u8]) -> Result<(), Lz4Error> {
    match decompress_into(stored, out) {
        Ok(found) if found == out.len() => Ok(()),
        Ok(found) => Err(Lz4Error::Short { found, wanted: out.len() }),
        Err(e) => Err(Lz4Error::Invalid(e.to_string())),
    }
}

/// Bytes of a block of zeros that the counting bytes of its match do not cover: the match covers all but one byte before
/// it and five after it, and its length is stored minus 4, of which the token holds 15.
const NOT_COUNTED: u64 = 1 + 5 + 4 + 15;

/// Returns the length of [`zeros`].
#[must_use]
pub fn zeros_length(bytes: u64) -> Option<u64> {
    Some(bytes.checked_sub(NOT_COUNTED)? / 255 + 4 + 1 + 6)
}

/// Returns the block that compressors write for `bytes` zeros: a literal, one long match, five literals. `None` if that
/// is too short for a match.
#[must_use]
pub fn zeros(bytes: u64) -> Option<Vec<u8>> {
    let rest = usize::try_from(bytes.checked_sub(NOT_COUNTED)?).ok()?;
    let mut block = vec![0x1f, 0, 1, 0];
    block.resize(4 + rest / 255, 255);
    block.push((rest % 255) as u8);
    block.extend([0x50, 0, 0, 0, 0, 0]);
    Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_decodes_to_its_length_and_no_other() {
        let block = [&[0x13, b'a', 1, 0, 0x50][..], b"bcdef"].concat();
        let mut out = [0; 13];
        assert_eq!(decode(&block, &mut out), Ok(()));
        assert_eq!(&out, b"aaaaaaaabcdef");
        assert_eq!(decode(&block, &mut [0; 14]), Err(Lz4Error::Short { found: 13, wanted: 14 }));
        for wrong in [&block[..9], &block[..4], &[0x13, b'a', 2, 0, 0x50, 0, 0, 0, 0, 0], &[0xff; 40], &[]] {
            assert!(decode(wrong, &mut [0; 13]).is_err(), "{wrong:?}");
        }
        assert!(matches!(decode(&block, &mut [0; 12]), Err(Lz4Error::Invalid(_))));
    }

    #[test]
    fn zeros_are_as_compressors_write_them() {
        for (bytes, length) in [(1, 139), (2, 267), (4, 524), (8, 1038)] {
            assert_eq!(zeros(bytes << 15).map(|block| block.len()), Some(length));
            assert_eq!(zeros_length(bytes << 15), Some(length as u64));
        }
        for bytes in [25, 26, 279, 280, 281, 512, 4096, 100_000] {
            let mut out = vec![1; bytes];
            assert_eq!(decode(&zeros(bytes as u64).unwrap(), &mut out), Ok(()), "{bytes}");
            assert!(out.iter().all(|b| *b == 0) && bytes as u64 <= most(zeros(bytes as u64).unwrap().len() as u64));
        }
        assert_eq!((zeros(24), zeros_length(24)), (None, None));
    }
}
