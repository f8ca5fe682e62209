//! Decodes arbitrary bytes as a compressed segmentation, and compares the result with a naive decoder. The first seven
//! bytes of the input are the extents of the volume and of a block, and a choice of channels and size of ids.

use crate::codec::compressed_segmentation::{self, Shape};

use super::bounded;

/// Reads one input. Returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let Some((head, stored)) = input.split_first_chunk::<7>() else { return 0 };
    let [x, y, z, block_x, block_y, block_z, choice] = head.map(usize::from);
    let samples = [x, y, z].map(|n| n % 24 + 1);
    let block = [block_x, block_y, block_z].map(|n| n % 12 + 1);
    let (channels, size) = (choice / 2 % 3 + 1, if choice % 2 == 0 { 4 } else { 8 });
    let shape = Shape { samples, block, channels };
    let length = samples.iter().product::<usize>() * channels * size;
    let decoded = |fill| {
        let mut out = vec![fill; length];
        let done = bounded::at_most(4 << 10, "a compressed segmentation", || {
            compressed_segmentation::decode(stored, &shape, size, &samples.map(|n| 0..n), &mut out)
        });
        done.map(|()| out)
    };
    let one = decoded(0);
    assert!(decoded(1) == one, "the samples depend on what the buffer held");
    assert!(one.as_ref().ok() == naive(stored, &shape, size).as_ref(), "the naive decoder differs");
    u64::from(one.is_ok())
}

/// Decodes a volume by the description of the format, sample by sample; `None` if it is damaged.
fn naive(stored: &[u8], shape: &Shape, size: usize) -> Option<Vec<u8>> {
    let Shape { samples, block, channels } = *shape;
    let word = |at: usize| Some(u32::from_le_bytes(stored.get(4 * at..4 * at + 4)?.try_into().ok()?) as usize);
    let grid = [0, 1, 2].map(|axis| samples[axis].div_ceil(block[axis]));
    let mut out = Vec::new();
    for channel in 0..channels {
        let start = word(channel)?;
        for n in 0..samples.iter().product() {
            let at = [n % samples[0], n / samples[0] % samples[1], n / samples[0] / samples[1]];
            let number = [2, 1, 0].into_iter().fold(0, |number, axis| number * grid[axis] + at[axis] / block[axis]);
            let within = [2, 1, 0].into_iter().fold(0, |within, axis| within * block[axis] + at[axis] % block[axis]);
            let (header, values) = (word(start + 2 * number)?, word(start + 2 * number + 1)?);
            let bits = header >> 24;
            let index = match bits {
                0 => 0,
                1 | 2 | 4 | 8 | 16 | 32 => {
                    let bit = within * bits;
                    // as much of the word as there is
                    let bytes = stored.get(4 * (start + values) + bit / 8..)?.get(..bits.div_ceil(8))?;
                    let value = bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
                    (value >> (bit % 8) & ((1 << bits) - 1)) as usize
                }
                _ => return None,
            };
            let id = 4 * (start + (header & 0xff_ffff)) + size * index;
            out.extend_from_slice(stored.get(id..id + size)?);
        }
    }
    Some(out)
}
