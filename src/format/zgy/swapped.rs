//! The 64-bit numbers of ZGY version 1: two little-endian halves of 32 bits, the more significant one first.

use crate::format::byte_reader::{ByteReader, PastEnd};

/// Reads a half-swapped number.
pub(super) fn swapped_u64(fields: &mut ByteReader<'_, &'static str>) -> Result<u64, PastEnd<&'static str>> {
    fields.u64().map(swap_halves)
}

/// Puts the halves of a half-swapped number in order; the exchange is its own inverse.
pub(super) fn swap_halves(number: u64) -> u64 {
    number.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_numbers_have_their_halves_exchanged() {
        let mut fields = ByteReader::new("test", &[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 128, 3, 0, 0, 0]);
        assert_eq!(swapped_u64(&mut fields), Ok(1));
        assert_eq!(swapped_u64(&mut fields), Ok(0x8000_0002_0000_0003));
    }
}
