//! From bit planes to the coefficients of a block: the transposition of a matrix of bits, by words.

use super::order::order;
use super::planes::{Planes, WORD};
use super::scalar::Int;

/// As many coefficients as are transposed faster one after the other.
const FEW: usize = 24;

/// Turns planes from `low` on, of numbers in base -2, to the coefficients of a block in their places, eight planes at a
/// time. Only the first `known` coefficients have ones.
#[inline(always)]
pub(super) fn transpose<I: Int, const N: usize>(planes: &Planes, low: usize, known: usize, block: &mut [I; N]) {
    match I::BYTES - low / 8 {
        1 => by_groups::<I, N, 1>(planes, known, block),
        2 => by_groups::<I, N, 2>(planes, known, block),
        3 => by_groups::<I, N, 3>(planes, known, block),
        4 => by_groups::<I, N, 4>(planes, known, block),
        5 => by_groups::<I, N, 5>(planes, known, block),
        6 => by_groups::<I, N, 6>(planes, known, block),
        7 => by_groups::<I, N, 7>(planes, known, block),
        _ => by_groups::<I, N, 8>(planes, known, block),
    }
}

/// Transposes `G` times eight planes.
#[inline(always)]
fn by_groups<I: Int, const N: usize, const G: usize>(planes: &Planes, known: usize, block: &mut [I; N]) {
    if known <= FEW {
        return few::<I, N, G>(&planes[0], known, block);
    }
    for (planes, order) in planes.iter().zip(order::<N>().as_chunks::<WORD>().0) {
        let groups = planes.as_chunks().0.iter().take(I::BYTES).rev();
        let mut bytes = [[0; WORD]; G];
        bytes.iter_mut().zip(groups).for_each(|(bytes, rows)| *bytes = bytes_of(rows));
        // two loops, of which the first one is in vectors
        let mut words = [I::default(); WORD];
        for (n, word) in words.iter_mut().enumerate() {
            let bits = (0..I::BITS - 7).step_by(8).rev();
            *word =
                bytes.iter().zip(bits).fold(I::default(), |word, (group, bit)| word.with_byte(group[n], bit)).decoded();
        }
        for (word, at) in words.iter().zip(order) {
            block[usize::from(*at) % N] = *word;
        }
    }
}

/// Transposes `G` times eight planes of the first coefficients alone.
#[inline(always)]
fn few<I: Int, const N: usize, const G: usize>(planes: &[u64; WORD], known: usize, block: &mut [I; N]) {
    for (column, order) in order::<N>().as_chunks::<8>().0.iter().enumerate().take(known.div_ceil(8)) {
        let groups = planes.as_chunks::<8>().0.iter().take(I::BYTES).rev();
        let mut bytes = [[0; 8]; G];
        for (bytes, rows) in bytes.iter_mut().zip(groups) {
            let rows = rows.iter().rev().fold(0, |word, row| word << 8 | row >> (8 * column) & 0xff);
            *bytes = turned(rows).to_le_bytes();
        }
        for (n, at) in order.iter().enumerate() {
            let bits = (0..I::BITS - 7).step_by(8).rev();
            let word = bytes.iter().zip(bits).fold(I::default(), |word, (group, bit)| word.with_byte(group[n], bit));
            block[usize::from(*at) % N] = word.decoded();
        }
    }
}

/// Returns, for each of 64 columns, the byte of its bits in eight rows; the first row has the lowest bit.
#[inline(always)]
fn bytes_of(rows: &[u64; 8]) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes.as_chunks_mut().0.iter_mut().zip(columns_of(rows)).for_each(|(to, word)| *to = turned(word).to_le_bytes());
    bytes
}

/// Returns the eight columns of bytes of eight rows; the first row has the lowest byte.
#[inline(always)]
fn columns_of(rows: &[u64; 8]) -> [u64; 8] {
    let mut words = *rows;
    // squares beside the diagonal are exchanged
    for (step, mask) in [(4, 0xffff_ffff), (2, 0xffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)] {
        for at in 0..8 {
            if at & step == 0 {
                let (low, high) = (words[at], words[at + step]);
                let moved = (low >> (8 * step) ^ high) & mask;
                words[at] = low ^ moved << (8 * step);
                words[at + step] = high ^ moved;
            }
        }
    }
    words
}

/// Turns the 8 x 8 bits of a word.
#[inline(always)]
fn turned(word: u64) -> u64 {
    let mut word = word;
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0xcccc_0000_cccc), (28, 0xf0f0_f0f0)] {
        let moved = (word >> shift ^ word) & mask;
        word ^= moved ^ moved << shift;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_coefficients_are_transposed_as_all_are() {
        let mut state = 1u64;
        for known in 0..=FEW {
            let mut planes: Planes = [[0; 64]; 4];
            for plane in &mut planes[0] {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *plane = state & ((1 << known) - 1);
            }
            for low in [0, 9, 23] {
                let (mut few, mut all) = ([0i32; 64], [0i32; 64]);
                transpose(&planes, low, known, &mut few);
                transpose(&planes, low, WORD, &mut all);
                assert_eq!(few, all, "{known} {low}");
                assert_eq!(few.iter().any(|number| *number != 0), known > 0);
                let (mut few, mut all) = ([0i64; 64], [0i64; 64]);
                transpose(&planes, low, known, &mut few);
                transpose(&planes, low, WORD, &mut all);
                assert_eq!(few, all, "{known} {low}");
            }
        }
    }
}
