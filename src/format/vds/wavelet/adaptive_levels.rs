//! Adaptive levels: how many bytes of a chunk a lower quality needs.

/// Levels in the table of a chunk's metadata.
pub(crate) const ADAPTIVE_LEVELS: u8 = 16;

/// Returns how many of the `whole` bytes of a chunk are needed to decode it at a level: all without a level, else what
/// the chunk's adaptive table says. Level 0 leaves out only the lossless residual; each further level leaves out one
/// more bit plane.
///
/// An entry of the table is the fraction, in 255ths, of the bytes of the level before it; zero ends the table.
pub(crate) fn bytes_needed(table: &[u8; ADAPTIVE_LEVELS as usize], whole: u64, level: Option<u8>) -> u64 {
    let Some(level) = level else { return whole };
    let factors = table.iter().take(usize::from(level) + 1).take_while(|factor| **factor != 0);
    factors.fold(whole, |bytes, factor| (u128::from(bytes) * u128::from(*factor) / 255) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_parts_of_the_one_below() {
        let mut table = [0; 16];
        table[..3].copy_from_slice(&[255, 128, 100]);
        assert_eq!(
            [None, Some(0), Some(1), Some(2), Some(3)].map(|l| bytes_needed(&table, 1000, l)),
            [1000, 1000, 501, 196, 196]
        );
        assert_eq!(bytes_needed(&[255; 16], u64::MAX, Some(255)), u64::MAX);
        assert_eq!(bytes_needed(&[1; 16], 1 << 20, Some(15)), 0);
    }
}
