//! The order of the blocks in a data file: Morton order (Z-order), x fastest.

/// Returns the number of the block at (x, y, z), each below 256: bit `i` of x, y and z is bit `3 i`, `3 i + 1` and `3 i
/// + 2` of it.
pub(super) fn morton(at: [u64; 3]) -> u64 {
    let [x, y, z] = at.map(spread);
    x | y << 1 | z << 2
}

/// Returns x, y and z of the block with a number below 2^24: the inverse of [`morton`].
pub(super) fn position(number: u64) -> [u64; 3] {
    [0, 1, 2].map(|axis| (0..8).fold(0, |n, bit| n | (number >> (3 * bit + axis) & 1) << bit))
}

/// Inserts two zeros between each of eight bits and the next.
fn spread(n: u64) -> u64 {
    let n = (n | n << 8) & 0x00_f00f;
    let n = (n | n << 4) & 0x0c_30c3;
    (n | n << 2) & 0x24_9249
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_the_three_coordinates_are_interleaved() {
        let known = [([0; 3], 0), ([1, 0, 0], 1), ([0, 1, 0], 2), ([0, 0, 1], 4), ([1, 1, 1], 7), ([2, 0, 0], 8)];
        for (at, number) in known.into_iter().chain([([29, 20, 3], 13_029), ([255; 3], 0xff_ffff)]) {
            assert_eq!(morton(at), number);
            assert_eq!(position(number), at);
        }
        for n in 0..256 {
            let slowly = (0..8).fold(0, |out, bit| out | (n >> bit & 1) << (3 * bit));
            assert_eq!(spread(n), slowly);
        }
    }
}
