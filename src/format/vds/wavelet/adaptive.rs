//! The adaptive levels: how much of a chunk it takes for less than its best quality.

/// Levels that a table has.
pub const ADAPTIVE: u8 = 16;

/// How many of a chunk's `whole` bytes it takes to decode it at a level: all without one, and with one what the chunk's
/// adaptive table says. Level 0 is all but the lossless residual, and every level more is a bit plane less.
#[must_use]
pub fn needed(table: &[u8; ADAPTIVE as usize], whole: u64, level: Option<u8>) -> u64 {
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
            [None, Some(0), Some(1), Some(2), Some(3)].map(|l| needed(&table, 1000, l)),
            [1000, 1000, 501, 196, 196]
        );
        assert_eq!(needed(&[255; 16], u64::MAX, Some(255)), u64::MAX);
        assert_eq!(needed(&[1; 16], 1 << 20, Some(15)), 0);
    }
}
