//! From bit planes to the coefficients of a block: the transposition of a matrix of bits, by words.

use super::order::order;
use super::planes::{Planes, Read, WORD};
use super::scalar::Int;

/// Turns planes, of numbers in base -2, to the coefficients of a block in their places.
#[inline(always)]
pub(super) fn transpose<I: Int, const N: usize>(planes: &Planes, read: Read, block: &mut [I; N]) {
    match N {
        ..WORD => by_bits(&planes[0], read, block),
        _ => by_bytes(planes, read.low, block),
    }
}

/// Adds the planes of a few coefficients one after the other.
#[inline(always)]
fn by_bits<I: Int, const N: usize>(planes: &[u64; 64], read: Read, block: &mut [I; N]) {
    let mut words = [I::default(); N];
    for plane in planes.get(read.low..read.top).unwrap_or_default().iter().rev() {
        for (bit, word) in words.iter_mut().enumerate() {
            *word = word.with_bit(*plane, bit);
        }
    }
    for (word, at) in words.iter().zip(order::<N>()) {
        block[usize::from(*at) % N] = word.shifted(read.low).decoded();
    }
}

/// Transposes eight planes at a time.
#[inline(always)]
fn by_bytes<I: Int, const N: usize>(planes: &Planes, low: usize, block: &mut [I; N]) {
    match I::BYTES - low / 8 {
        1 => by_groups::<I, N, 1>(planes, block),
        2 => by_groups::<I, N, 2>(planes, block),
        3 => by_groups::<I, N, 3>(planes, block),
        4 => by_groups::<I, N, 4>(planes, block),
        5 => by_groups::<I, N, 5>(planes, block),
        6 => by_groups::<I, N, 6>(planes, block),
        7 => by_groups::<I, N, 7>(planes, block),
        _ => by_groups::<I, N, 8>(planes, block),
    }
}

/// Transposes `G` times eight planes.
#[inline(always)]
fn by_groups<I: Int, const N: usize, const G: usize>(planes: &Planes, block: &mut [I; N]) {
    for (planes, order) in planes.iter().zip(order::<N>().as_chunks::<WORD>().0) {
        let groups = planes.as_chunks().0.iter().take(I::BYTES).rev();
        let mut bytes = [[0; WORD]; G];
        bytes.iter_mut().zip(groups).for_each(|(bytes, rows)| *bytes = columns(rows));
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

/// Returns, for each of 64 columns, the byte of its bits in eight rows; the first row has the lowest bit.
#[inline(always)]
fn columns(rows: &[u64; 8]) -> [u8; 64] {
    let mut words = *rows;
    // 8 x 8 bytes, then the 8 x 8 bits of each word: blocks beside the diagonal are exchanged
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
    for word in &mut words {
        for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0xcccc_0000_cccc), (28, 0xf0f0_f0f0)] {
            let moved = (*word >> shift ^ *word) & mask;
            *word ^= moved ^ moved << shift;
        }
    }
    let mut bytes = [0; 64];
    bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
    bytes
}
