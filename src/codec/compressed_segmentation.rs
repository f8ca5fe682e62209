//! Compressed segmentations of Neuroglancer: volumes of 32- or 64-bit ids in small blocks, each with a table of the ids
//! in it and a few bits for each sample.
//!
//! | 32-bit words, little-endian | content |
//! |---|---|
//! | one for each channel | where the channel begins, in words |
//! | in a channel, two for each block, x fastest | 24 bits: where its table begins, in words from the channel's start; 8 bits: bits of a sample; 32 bits: where its samples begin, likewise |
//! | anywhere | samples: indexes into the table, from the lowest bits of a word up, x fastest; tables: ids of one or two words |
//!
//! Blocks at the end are padded. The public description is `src/sliceview/compressed_segmentation/README.md` of the
//! repository `google/neuroglancer`.

use std::ops::Range;

/// A volume of several channels. Extents are along x, y and z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub samples: [usize; 3],
    /// Samples of a block.
    pub block: [usize; 3],
    pub channels: usize,
}

impl Shape {
    fn blocks(&self) -> [usize; 3] {
        [0, 1, 2].map(|axis| self.samples[axis].div_ceil(self.block[axis].max(1)))
    }
}

/// Returns the most bytes that a volume takes with ids of `size` bytes, or more.
pub(crate) fn longest(shape: &Shape, size: usize) -> u64 {
    let padded = [0, 1, 2].map(|axis| shape.blocks()[axis].saturating_mul(shape.block[axis]));
    let product = |numbers: [usize; 3]| numbers.iter().fold(1u64, |all, n| all.saturating_mul(*n as u64));
    // an index of 32 bits and an id of its own for each sample
    let blocks = product(shape.blocks()).saturating_mul(8);
    let channel = product(padded).saturating_mul(4 + size as u64).saturating_add(blocks);
    channel.saturating_add(4).saturating_mul(shape.channels as u64).saturating_add(4 << 10)
}

/// Decodes the samples of a volume that are wanted along x, y and z, ids of `size` bytes, 4 or 8, into `out`, which they
/// fill: x fastest, channels slowest. Blocks without such samples are not looked at.
pub(crate) fn decode(
    stored: &[u8],
    shape: &Shape,
    size: usize,
    wanted: &[Range<usize>; 3],
    out: &mut [u8],
) -> Result<(), String> {
    if (0..3).any(|axis| wanted[axis].is_empty() || wanted[axis].end > shape.samples[axis]) {
        return Err("its shape is not that of the chunk".into());
    }
    match size {
        4 => decode_ids::<4>(stored, shape, wanted, out.as_chunks_mut().0),
        _ => decode_ids::<8>(stored, shape, wanted, out.as_chunks_mut().0),
    }
}

fn decode_ids<const N: usize>(
    stored: &[u8],
    shape: &Shape,
    wanted: &[Range<usize>; 3],
    out: &mut [[u8; N]],
) -> Result<(), String> {
    let channel = wanted.iter().try_fold(1usize, |all, range| all.checked_mul(range.len()));
    let Some(channel) = channel.filter(|n| n.checked_mul(shape.channels) == Some(out.len())) else {
        return Err("its shape is not that of the chunk".into());
    };
    for (number, out) in out.chunks_exact_mut(channel).enumerate() {
        let cut = || format!("channel {number} is cut off");
        let begin = word(stored, number).ok_or_else(cut)? as usize;
        let stored = begin.checked_mul(4).and_then(|at| stored.get(at..)).ok_or_else(cut)?;
        Channel { stored, shape, wanted }.decode(out).map_err(|why| format!("channel {number}: {why}"))?;
    }
    Ok(())
}

fn word(stored: &[u8], number: usize) -> Option<u32> {
    stored.as_chunks::<4>().0.get(number).map(|word| u32::from_le_bytes(*word))
}

struct Channel<'a> {
    stored: &'a [u8],
    shape: &'a Shape,
    wanted: &'a [Range<usize>; 3],
}

impl Channel<'_> {
    fn decode<const N: usize>(&self, out: &mut [[u8; N]]) -> Result<(), String> {
        let [blocks_x, blocks_y, _] = self.shape.blocks();
        let blocks = |axis: usize| {
            let (wanted, block) = (&self.wanted[axis], self.shape.block[axis].max(1));
            wanted.start / block..wanted.end.div_ceil(block)
        };
        for z in blocks(2) {
            for y in blocks(1) {
                for x in blocks(0) {
                    let number = x + blocks_x * (y + blocks_y * z);
                    self.block(number, [x, y, z], out)
                        .ok_or_else(|| format!("block {number} is damaged or cut off"))?;
                }
            }
        }
        Ok(())
    }

    /// Decodes what is wanted of a block. `None` if a part of it lies outside of the channel's bytes.
    fn block<const N: usize>(&self, number: usize, at: [usize; 3], out: &mut [[u8; N]]) -> Option<()> {
        let (header, values) = (word(self.stored, 2 * number)?, word(self.stored, 2 * number + 1)?);
        let ids = self.stored.get(4 * (header & 0xff_ffff) as usize..)?.as_chunks::<N>().0;
        let rows = self.rows(at)?;
        if header >> 24 == 0 {
            let id = *ids.first()?;
            return rows.try_for_each(out, |_, row| {
                let (eights, rest) = row.as_chunks_mut::<8>();
                eights.fill([id; 8]);
                rest.fill(id);
                Some(())
            });
        }
        let values = self.stored.get(usize::try_from(values).ok()?.checked_mul(4)?..)?;
        match header >> 24 {
            1 => packed::<1, 2, N>(values, ids, &rows, out),
            2 => packed::<2, 4, N>(values, ids, &rows, out),
            4 => packed::<4, 16, N>(values, ids, &rows, out),
            8 => packed::<8, 256, N>(values, ids, &rows, out),
            16 => rows.try_for_each(out, |first, row| whole::<2, N>(values, first, ids, row)),
            32 => rows.try_for_each(out, |first, row| whole::<4, N>(values, first, ids, row)),
            _ => None,
        }
    }

    /// Returns the rows of what is wanted of the block at this place among the blocks.
    fn rows(&self, at: [usize; 3]) -> Option<Rows> {
        let (block, wanted) = (&self.shape.block, self.wanted);
        let (mut count, mut in_block, mut in_out) = ([0; 3], [0; 3], [0; 3]);
        for axis in 0..3 {
            let begin = at[axis].checked_mul(block[axis])?;
            let (first, end) = (wanted[axis].start.max(begin), wanted[axis].end.min(begin.saturating_add(block[axis])));
            count[axis] = end.checked_sub(first)?;
            (in_block[axis], in_out[axis]) = (first - begin, first - wanted[axis].start);
        }
        let steps_in_block = [block[0], block[0].checked_mul(block[1])?];
        // no number of a sample in the block is greater
        steps_in_block[1].checked_mul(block[2])?;
        let steps = [steps_in_block, [wanted[0].len(), wanted[0].len() * wanted[1].len()]];
        let number = |at: [usize; 3], steps: [usize; 2]| at[0] + at[1] * steps[0] + at[2] * steps[1];
        let first = [number(in_block, steps[0]), number(in_out, steps[1])];
        Some(Rows { length: count[0], count: [count[1], count[2]], first, steps })
    }
}

/// Rows along x of a box of samples.
struct Rows {
    /// Samples of a row.
    length: usize,
    /// Rows along y and z.
    count: [usize; 2],
    /// The numbers of the first sample: in its block, and in what is wanted.
    first: [usize; 2],
    /// What is added to these numbers from one row to the next along y and z.
    steps: [[usize; 2]; 2],
}

impl Rows {
    /// Calls `decode` for each row, with the number of its first sample in the block, and its samples in `out`.
    #[inline]
    fn try_for_each<const N: usize>(
        &self,
        out: &mut [[u8; N]],
        mut decode: impl FnMut(usize, &mut [[u8; N]]) -> Option<()>,
    ) -> Option<()> {
        for z in 0..self.count[1] {
            for y in 0..self.count[0] {
                let at = |n: usize| self.first[n] + y * self.steps[n][0] + z * self.steps[n][1];
                decode(at(0), out.get_mut(at(1)..at(1) + self.length)?)?;
            }
        }
        Some(())
    }
}

/// Decodes rows of samples of `BITS` bits, which are indexes into a table of `ENTRIES`, 2^`BITS`, or fewer.
fn packed<const BITS: usize, const ENTRIES: usize, const N: usize>(
    values: &[u8],
    ids: &[[u8; N]],
    rows: &Rows,
    out: &mut [[u8; N]],
) -> Option<()> {
    if let Some(table) = ids.first_chunk::<ENTRIES>() {
        return rows
            .try_for_each(out, |first, row| unpack::<BITS, N>(values, first, row, |index| table[index % ENTRIES]));
    }
    // the bytes of the channel end with the table
    let mut greatest = 0;
    rows.try_for_each(out, |first, row| {
        unpack::<BITS, N>(values, first, row, |index| {
            greatest = index.max(greatest);
            ids.get(index).copied().unwrap_or([0; N])
        })
    })?;
    (greatest < ids.len()).then_some(())
}

/// Decodes a row of samples of `BITS` bits, 8 at most, the first of which has the number `first` in its block.
#[inline]
fn unpack<const BITS: usize, const N: usize>(
    values: &[u8],
    first: usize,
    row: &mut [[u8; N]],
    mut id_of: impl FnMut(usize) -> [u8; N],
) -> Option<()> {
    let mut bit = first.checked_mul(BITS)?;
    // the bits of eight samples are in one number of 64 bits, wherever they begin: those of 8 bits begin with a byte
    let mut next = |count: usize| {
        let bytes = values.get(bit / 8..)?;
        let held = match bytes.first_chunk::<8>() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => {
                let bytes = bytes.get(..(bit % 8 + count * BITS).div_ceil(8))?;
                bytes.iter().rev().fold(0, |held, byte| held << 8 | u64::from(*byte))
            }
        } >> (bit % 8);
        bit += count * BITS;
        Some(held)
    };
    let index = |held: u64, n: usize| (held >> (n * BITS)) as usize & ((1 << BITS) - 1);
    let (eights, rest) = row.as_chunks_mut::<8>();
    for eight in eights {
        let held = next(8)?;
        for (n, to) in eight.iter_mut().enumerate() {
            *to = id_of(index(held, n));
        }
    }
    if !rest.is_empty() {
        let held = next(rest.len())?;
        for (n, to) in rest.iter_mut().enumerate() {
            *to = id_of(index(held, n));
        }
    }
    Some(())
}

/// Decodes a row of samples of `B` bytes.
#[inline]
fn whole<const B: usize, const N: usize>(
    values: &[u8],
    first: usize,
    ids: &[[u8; N]],
    row: &mut [[u8; N]],
) -> Option<()> {
    let (values, _) = values.as_chunks::<B>();
    let values = values.get(first..first.checked_add(row.len())?)?;
    for (to, index) in row.iter_mut().zip(values) {
        let index = index.iter().rev().fold(0, |index, byte| index << 8 | usize::from(*byte));
        *to = *ids.get(index)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Encodes ids with the fewest bits that the format has for each block, or with more.
    fn encode(ids: &[u64], shape: &Shape, size: usize, more: usize) -> Vec<u8> {
        let channel = shape.samples.iter().product::<usize>();
        let (mut heads, mut body) = (Vec::new(), Vec::<u32>::new());
        for ids in ids.chunks(channel) {
            heads.push((shape.channels + body.len()) as u32);
            let [nx, ny, nz] = shape.blocks();
            let (mut headers, mut rest) = (Vec::new(), Vec::new());
            for number in 0..nx * ny * nz {
                let at = [number % nx, number / nx % ny, number / nx / ny];
                let in_block: Vec<u64> = (0..shape.block.iter().product::<usize>())
                    .map(|n| {
                        let [bx, by, _] = shape.block;
                        let within = [n % bx, n / bx % by, n / bx / by];
                        let [x, y, z] =
                            [0, 1, 2].map(|a| (at[a] * shape.block[a] + within[a]).min(shape.samples[a] - 1));
                        ids[x + shape.samples[0] * (y + shape.samples[1] * z)]
                    })
                    .collect();
                let table: Vec<u64> = in_block.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
                let fewest = [0, 1, 2, 4, 8, 16, 32].into_iter().position(|bits| table.len() as u64 <= 1 << bits);
                let bits = [0, 1, 2, 4, 8, 16, 32][(fewest.unwrap() + more).min(6)];
                let base = 2 * nx * ny * nz;
                let values = base + rest.len();
                let mut words = vec![0u32; (in_block.len() * bits as usize).div_ceil(32)];
                for (n, id) in in_block.iter().enumerate().filter(|_| bits > 0) {
                    let (index, bit) = (table.binary_search(id).unwrap() as u32, n * bits as usize);
                    words[bit / 32] |= index << (bit % 32);
                }
                rest.extend(words);
                headers.extend([(base + rest.len()) as u32 | bits << 24, values as u32]);
                for id in table {
                    rest.push(id as u32);
                    if size == 8 {
                        rest.push((id >> 32) as u32);
                    }
                }
            }
            body.extend(headers.into_iter().chain(rest));
        }
        heads.into_iter().chain(body).flat_map(u32::to_le_bytes).collect()
    }

    fn decoded(stored: &[u8], shape: &Shape, size: usize) -> Result<Vec<u8>, String> {
        part(stored, shape, size, &shape.samples.map(|n| 0..n))
    }

    fn part(stored: &[u8], shape: &Shape, size: usize, wanted: &[Range<usize>; 3]) -> Result<Vec<u8>, String> {
        let mut out = vec![0xaa; wanted.iter().map(|range| range.len()).product::<usize>() * shape.channels * size];
        decode(stored, shape, size, wanted, &mut out).map(|()| out)
    }

    proptest! {
        #[test]
        fn volumes_of_every_shape_come_back(
            samples in prop::array::uniform3(1..20_usize), block in prop::array::uniform3(1..10_usize), channels in 1..3_usize,
            distinct in prop::sample::select(vec![1, 2, 3, 9, 200, 70_000_u64]), is_long in any::<bool>(), more in 0..3_usize, seed in any::<u64>(),
        ) {
            let (shape, size) = (Shape { samples, block, channels }, if is_long { 8 } else { 4 });
            let count = samples.iter().product::<usize>() * channels;
            let id = |n: usize| (n as u64).wrapping_mul(seed | 1).rotate_left(17) % distinct * if is_long { 1 << 33 | 5 } else { 3 };
            let ids: Vec<u64> = (0..count).map(id).collect();
            let stored = encode(&ids, &shape, size, more);
            prop_assert!(stored.len() as u64 <= longest(&shape, size));
            let expected: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()[..size].to_vec()).collect();
            prop_assert_eq!(decoded(&stored, &shape, size), Ok(expected));
            let wanted = [0, 1, 2].map(|a| {
                let first = seed as usize / (a + 1) % samples[a];
                first..first + 1 + seed as usize / (a + 7) % (samples[a] - first)
            });
            let is_wanted = |n: &usize| {
                let at = [n % samples[0], n / samples[0] % samples[1], n / samples[0] / samples[1] % samples[2]];
                (0..3).all(|a| wanted[a].contains(&at[a]))
            };
            let some = (0..count).filter(is_wanted).flat_map(|n| ids[n].to_le_bytes()[..size].to_vec()).collect();
            prop_assert_eq!(part(&stored, &shape, size, &wanted), Ok(some));
            prop_assert!(decode(&stored, &shape, size, &wanted, &mut vec![0; (count + 1) * size]).is_err());
            for cut in [0, 3, 4, 11, stored.len() / 2] {
                prop_assert!(decoded(&stored[..cut.min(stored.len() - 1)], &shape, size).is_err());
            }
        }

        #[test]
        fn any_bytes_are_samples_or_an_error(mut stored in prop::collection::vec(any::<u8>(), 0..300), bits in any::<u8>(), lies in any::<bool>()) {
            let shape = Shape { samples: [9, 5, 4], block: [8, 4, 4], channels: 1 };
            if lies && stored.len() > 8 {
                stored[..4].copy_from_slice(&[1, 0, 0, 0]);
                stored[6..8].copy_from_slice(&[0, bits]);
            }
            let _ = (decoded(&stored, &shape, 4), decoded(&stored, &shape, 8));
        }
    }

    #[test]
    fn indexes_beyond_a_table_and_unknown_numbers_of_bits_are_refused() {
        let shape = Shape { samples: [4, 1, 1], block: [4, 1, 1], channels: 1 };
        let volume =
            |words: &[u32]| decoded(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>(), &shape, 4);
        assert!(volume(&[1, 2 << 24 | 3, 2, 0b10_01_00_00, 7, 8, 9]).is_ok());
        for (bits, values, table) in [
            (2, 0b11_00_00_00, 3),
            (3, 0, 3),
            (64, 0, 3),
            (255, 0, 3),
            (8, 3, 3),
            (16, 3, 3),
            (32, 1 << 31, 3),
            (0, 0, 6),
            (1, 0, 7),
        ] {
            assert!(volume(&[1, bits << 24 | table, 2, values, 7, 8, 9]).is_err(), "{bits} bits, {values}, {table}");
        }
        let words: [u32; 7] = [1, 2 << 24 | 3, 2, 0b10_01_00_00, 7, 8, 9];
        assert!(
            decode(words.map(u32::to_le_bytes).as_flattened(), &shape, 4, &[0..4, 0..1, 0..1], &mut [0; 12]).is_err()
        );
        assert!(volume(&[u32::MAX, 3, 2, 0]).is_err());
        assert!(volume(&[1, 1 << 24 | 3, u32::MAX, 0, 7, 8]).is_err());
    }
}
