//! Bytes of samples in planes: the first byte of each sample, then the second of each, and so on. Bit planes likewise:
//! the lowest bit of the first byte of each sample, and so on up to the highest of the last byte.
//!
//! Samples are put together in tiles that stay in the nearest cache, by loops that compilers turn into vector
//! instructions: planes are interleaved in pairs, the results in pairs of two bytes, and so on.

const BITS: usize = 8;
/// The largest samples that are put together in tiles.
const WIDEST: usize = 16;
/// Samples of a tile.
const TILE: usize = 256;
/// Samples of a tile of bit planes, and the 64-bit words that a plane of it has.
const BIT_TILE: usize = 64 * WORDS;
const WORDS: usize = 8;

/// Puts the bytes of samples of `size` bytes together. Bytes after the last whole sample are copied. The lengths must be
/// the same.
pub(super) fn unshuffle(planes: &[u8], out: &mut [u8], size: usize) {
    let count = planes.len() / size.max(1);
    match size {
        0 | 1 => out.copy_from_slice(planes),
        2 => tiles::<2>(planes, out, count),
        4 => tiles::<4>(planes, out, count),
        8 => tiles::<8>(planes, out, count),
        16 => tiles::<16>(planes, out, count),
        _ => rest(planes, out, size, count, 0),
    }
}

/// Unshuffles samples of a size that is a power of two.
fn tiles<const SIZE: usize>(planes: &[u8], out: &mut [u8], count: usize) {
    let mut halves = [[0; WIDEST * TILE]; 2];
    let [one, other] = &mut halves;
    let (mut one, mut other) = (one, other);
    let done = count / TILE * TILE;
    for from in (0..done).step_by(TILE) {
        let target = &mut out[from * SIZE..][..TILE * SIZE];
        // the last interleaving writes to the target
        let mut pairs = SIZE / 2;
        for pair in 0..pairs {
            let [a, b] = [0, 1].map(|n| &planes[(2 * pair + n) * count + from..][..TILE]);
            let result = if pairs == 1 { &mut *target } else { &mut one[pair * 2 * TILE..][..2 * TILE] };
            interleave::<1>(a, b, result);
        }
        for width in [2, 4, 8] {
            if pairs == 1 {
                break;
            }
            pairs /= 2;
            for pair in 0..pairs {
                let length = 2 * width * TILE;
                let (a, b) = one[pair * length..][..length].split_at(length / 2);
                let result = if pairs == 1 { &mut *target } else { &mut other[pair * length..][..length] };
                match width {
                    2 => interleave::<2>(a, b, result),
                    4 => interleave::<4>(a, b, result),
                    _ => interleave::<8>(a, b, result),
                }
            }
            std::mem::swap(&mut one, &mut other);
        }
    }
    rest(planes, out, SIZE, count, done);
}

/// Puts units of `WIDTH` bytes together: one of `a`, one of `b`, and so on.
#[inline(always)]
fn interleave<const WIDTH: usize>(a: &[u8], b: &[u8], out: &mut [u8]) {
    let pairs = out.as_chunks_mut::<WIDTH>().0.as_chunks_mut::<2>().0;
    for ((pair, a), b) in pairs.iter_mut().zip(a.as_chunks().0).zip(b.as_chunks().0) {
        *pair = [*a, *b];
    }
}

/// Unshuffles the samples from `done` on, and copies what follows the last of the `count` samples.
fn rest(planes: &[u8], out: &mut [u8], size: usize, count: usize, done: usize) {
    for from in (done..count).step_by(TILE) {
        let until = (from + TILE).min(count);
        for (byte, plane) in planes.chunks_exact(count).take(size).enumerate() {
            let samples = out[from * size..until * size].chunks_exact_mut(size);
            for (sample, value) in samples.zip(&plane[from..until]) {
                sample[byte] = *value;
            }
        }
    }
    out[count * size..].copy_from_slice(&planes[count * size..]);
}

/// Puts the bits of samples of `size` bytes together, of which there are a multiple of 8. Bytes after the last one are
/// copied. The lengths must be the same.
pub(super) fn unshuffle_bits(planes: &[u8], out: &mut [u8], size: usize) {
    let size = size.max(1);
    let count = planes.len() / size;
    let bytes = count / BITS;
    if bytes == 0 {
        return out.copy_from_slice(planes);
    }
    let end = bytes * BITS * size;
    let mut done = 0;
    if size <= WIDEST {
        let mut tile = [0; WIDEST * BIT_TILE];
        let tile = &mut tile[..size * BIT_TILE];
        for target in out[..end].chunks_exact_mut(size * BIT_TILE) {
            for (byte, plane) in tile.as_chunks_mut().0.iter_mut().enumerate() {
                tile_of_bits(&planes[byte * BITS * bytes..][..BITS * bytes], done, plane);
            }
            unshuffle(tile, target, size);
            done += BIT_TILE / BITS;
        }
    }
    for at in done..bytes {
        let samples = &mut out[at * BITS * size..][..BITS * size];
        for byte in 0..size {
            let mut rows = std::array::from_fn(|bit| [u64::from(planes[(byte * BITS + bit) * bytes + at])]);
            transpose(&mut rows);
            for (sample, [value]) in samples.chunks_exact_mut(size).zip(rows) {
                sample[byte] = value as u8;
            }
        }
    }
    out[end..].copy_from_slice(&planes[end..]);
}

/// Puts the bits of one byte of the samples of a tile together, from byte `at` of each of the eight planes on.
#[inline(always)]
fn tile_of_bits(planes: &[u8], at: usize, out: &mut [u8; BIT_TILE]) {
    const PLANE: usize = BIT_TILE / BITS;
    let length = planes.len() / BITS;
    let mut rows = [[0; WORDS]; BITS];
    for (bit, row) in rows.iter_mut().enumerate() {
        let plane = &planes[bit * length + at..][..PLANE];
        for (word, bytes) in row.iter_mut().zip(plane.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
    transpose(&mut rows);
    let (mut one, mut other) = ([0; BIT_TILE], [0; BIT_TILE]);
    for (bytes, word) in one.as_chunks_mut().0.iter_mut().zip(rows.as_flattened()) {
        *bytes = word.to_le_bytes();
    }
    for (pair, result) in one.as_chunks::<{ 2 * PLANE }>().0.iter().zip(other.chunks_exact_mut(2 * PLANE)) {
        interleave::<1>(&pair[..PLANE], &pair[PLANE..], result);
    }
    for (pair, result) in other.as_chunks::<{ 4 * PLANE }>().0.iter().zip(one.chunks_exact_mut(4 * PLANE)) {
        interleave::<2>(&pair[..2 * PLANE], &pair[2 * PLANE..], result);
    }
    interleave::<4>(&one[..4 * PLANE], &one[4 * PLANE..], out);
}

/// Transposes the 8 x 8 bits that the bytes at one place of eight rows have. First the two bits beside the diagonal of
/// each square of 2 x 2 are exchanged, then the squares of 2 x 2 of each of 4 x 4, then those of 4 x 4.
#[inline(always)]
fn transpose<const WORDS: usize>(rows: &mut [[u64; WORDS]; BITS]) {
    for (by, those) in [(1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333), (4, 0x0f0f_0f0f_0f0f_0f0f)] {
        for row in (0..BITS).filter(|row| row & by == 0) {
            let (before, after) = rows.split_at_mut(row + by);
            for (a, b) in before[row].iter_mut().zip(&mut after[0]) {
                let differ = ((*a >> by) ^ *b) & those;
                *b ^= differ;
                *a ^= differ << by;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn samples_are_put_together(size in 1usize..40, bytes in prop::collection::vec(any::<u8>(), 0..6000)) {
            let count = bytes.len() / size;
            let mut shuffled = bytes.clone();
            (0..count * size).for_each(|n| shuffled[n % size * count + n / size] = bytes[n]);
            let mut out = vec![1; bytes.len()];
            unshuffle(&shuffled, &mut out, size);
            prop_assert_eq!(&out, &bytes);

            let (whole, planes) = (count / 8 * 8 * size, count / 8);
            let bytes = &bytes[..whole + bytes.len() % size];
            let mut shuffled = bytes.to_vec();
            shuffled[..whole].fill(0);
            for n in 0..whole * 8 {
                let (sample, bit) = (n / 8 / size, n % (8 * size));
                shuffled[bit * planes + sample / 8] |= (bytes[n / 8] >> (n % 8) & 1) << (sample % 8);
            }
            let mut out = vec![1; bytes.len()];
            unshuffle_bits(&shuffled, &mut out, size);
            prop_assert_eq!(&out, bytes);
        }
    }
}
