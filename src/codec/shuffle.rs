//! Bytes of samples in planes: the first byte of each sample, then the second of each, and so on. Bit planes likewise:
//! the lowest bit of the first byte of each sample, and so on up to the highest of the last byte.

/// Bytes of a vector register that every machine has.
const LANES: usize = 16;
/// Samples of a tile of bit planes: a vector of each plane has one bit of so many samples.
const TILE: usize = LANES * BITS;
const BITS: usize = 8;
/// The largest sample that bit planes are decoded for in tiles on the stack.
const WIDEST: usize = 16;

type Lanes = [u8; LANES];

/// Puts the bytes of samples of `size` bytes together. Bytes after the last whole sample are copied. The lengths must be
/// the same.
pub(super) fn unshuffle(planes: &[u8], out: &mut [u8], size: usize) {
    let count = planes.len() / size.max(1);
    match size {
        2 => whole_lanes::<2>(planes, out, count),
        4 => whole_lanes::<4>(planes, out, count),
        8 => whole_lanes::<8>(planes, out, count),
        16 => whole_lanes::<16>(planes, out, count),
        0 | 1 => out.copy_from_slice(planes),
        _ => rest(planes, out, size, count, 0),
    }
}

/// Unshuffles samples of a size that is a power of two.
fn whole_lanes<const SIZE: usize>(planes: &[u8], out: &mut [u8], count: usize) {
    let done = count / LANES * LANES;
    if count >= LANES {
        let mut parts = planes.chunks_exact(count);
        let lanes: [&[Lanes]; SIZE] = std::array::from_fn(|_| parts.next().unwrap_or_default().as_chunks().0);
        for (n, target) in out.as_chunks_mut::<LANES>().0.chunks_exact_mut(SIZE).take(count / LANES).enumerate() {
            let tile: [Lanes; SIZE] = std::array::from_fn(|plane| lanes[plane].get(n).copied().unwrap_or_default());
            target.copy_from_slice(&transpose(tile));
        }
    }
    rest(planes, out, SIZE, count, done);
}

/// Unshuffles the samples from `done` on, and copies what follows the last of the `count` samples.
fn rest(planes: &[u8], out: &mut [u8], size: usize, count: usize, done: usize) {
    /// Samples whose bytes are put together before those of the next ones, so that they stay in the nearest cache.
    const NEAR: usize = 512;
    for from in (done..count).step_by(NEAR) {
        let until = (from + NEAR).min(count);
        for (byte, plane) in planes.chunks_exact(count).take(size).enumerate() {
            let samples = out[from * size..until * size].chunks_exact_mut(size);
            for (sample, value) in samples.zip(&plane[from..until]) {
                sample[byte] = *value;
            }
        }
    }
    out[count * size..].copy_from_slice(&planes[count * size..]);
}

/// Transposes a matrix of bytes whose rows are `SIZE` vectors: the rows of the result, put one after another, have
/// `SIZE` bytes. The place of a byte is a number of which the high bits are the row and the low bits the column.
/// Interleaving the two halves of all places rotates these bits by one.
#[inline(always)]
fn transpose<const SIZE: usize>(mut rows: [Lanes; SIZE]) -> [Lanes; SIZE] {
    for _ in 0..SIZE.ilog2() {
        let mut next = [[0; LANES]; SIZE];
        for row in 0..SIZE / 2 {
            let (a, b) = (rows[row], rows[row + SIZE / 2]);
            next[2 * row] = std::array::from_fn(|n| if n % 2 == 0 { a[n / 2] } else { b[n / 2] });
            next[2 * row + 1] = std::array::from_fn(|n| if n % 2 == 0 { a[HALF + n / 2] } else { b[HALF + n / 2] });
        }
        rows = next;
    }
    rows
}

const HALF: usize = LANES / 2;

/// Puts the bits of samples of `size` bytes together, of which there are a multiple of 8. Bytes after the last one are
/// copied. The lengths must be the same.
pub(super) fn unshuffle_bits(planes: &[u8], out: &mut [u8], size: usize) {
    let size = size.max(1);
    let count = planes.len() / size;
    let bytes = count / BITS;
    if bytes == 0 {
        return out.copy_from_slice(planes);
    }
    let mut done = 0;
    if size <= WIDEST {
        let mut tile = [0; WIDEST * TILE];
        let tile = &mut tile[..size * TILE];
        for target in out[..count * size].chunks_exact_mut(size * TILE) {
            for (byte, plane) in tile.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
                let row = |bit: usize| planes.get((byte * BITS + bit) * bytes + done..)?.first_chunk().copied();
                let rows: [Lanes; BITS] = std::array::from_fn(|bit| row(bit).unwrap_or_default());
                for (to, from) in plane.as_chunks_mut::<LANES>().0.iter_mut().zip(transpose(rows)) {
                    *to = transpose_bits(from);
                }
            }
            unshuffle(tile, target, size);
            done += LANES;
        }
    }
    for at in done..bytes {
        let samples = &mut out[at * BITS * size..][..BITS * size];
        for byte in 0..size {
            let bits: [u8; BITS] = std::array::from_fn(|bit| planes[(byte * BITS + bit) * bytes + at]);
            let values = transpose_word(u64::from_le_bytes(bits)).to_le_bytes();
            for (sample, value) in samples.chunks_exact_mut(size).zip(values) {
                sample[byte] = value;
            }
        }
    }
    let end = bytes * BITS * size;
    out[end..].copy_from_slice(&planes[end..]);
}

#[inline(always)]
fn transpose_bits(lanes: Lanes) -> Lanes {
    let mut result = lanes;
    for word in result.as_chunks_mut::<BITS>().0 {
        *word = transpose_word(u64::from_le_bytes(*word)).to_le_bytes();
    }
    result
}

/// Transposes 8 x 8 bits: exchanges the two bits beside the diagonal of each square of 2 x 2, then the squares of 2 x 2
/// of each of 4 x 4, then those of 4 x 4.
#[inline(always)]
fn transpose_word(bits: u64) -> u64 {
    let exchange = |bits: u64, by: u32, those: u64| {
        let differ = (bits ^ (bits >> by)) & those;
        bits ^ differ ^ (differ << by)
    };
    let bits = exchange(bits, 7, 0x00aa_00aa_00aa_00aa);
    let bits = exchange(bits, 14, 0x0000_cccc_0000_cccc);
    exchange(bits, 28, 0x0000_0000_f0f0_f0f0)
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
