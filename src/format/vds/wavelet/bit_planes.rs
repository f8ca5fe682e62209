//! Puts coefficients together from their bits in the planes of all levels.

use super::tree::{PackedPosition, TreeLinks, has};
use super::walk::{BitField, EntryLists};

/// Coefficients that are put together at a time.
const TILE: usize = 256;

/// The most levels of a stream.
const MAX_LEVELS: usize = 256;

/// The value of bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The lowest level that is decoded.
    pub lowest: u8,
    /// The threshold of level 0.
    pub finest: f32,
    /// The absolute value of a coefficient with no bit set.
    pub base: f32,
}

/// Which value counts of a position that is listed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// No position is listed twice.
    None,
    LastWins,
    FirstNonZeroWins,
}

/// The array of coefficients, which has the shape of the chunk.
pub(super) struct CoefficientArray<'a> {
    /// X fastest, no padding.
    pub samples: &'a mut [f32],
    /// Its size, X first.
    pub size: [usize; 3],
    /// Which of several values counts; unless it is [`Duplicates::None`], positions may also lie outside.
    pub duplicates: Duplicates,
}

impl CoefficientArray<'_> {
    fn strides(&self) -> [usize; 3] {
        [1, self.size[0], self.size[0] * self.size[1]]
    }

    /// Writes a coefficient of a stream that may be faulty.
    fn put(&mut self, block: PackedPosition, [dx, dy, dz]: [usize; 3], value: f32) {
        let [x, y, z] = block.position();
        let position = PackedPosition::new([x + dx, y + dy, z + dz]);
        if (0..3).all(|d| position.position()[d] < self.size[d])
            && let Some(sample) = self.samples.get_mut(position.index(self.strides()))
            && (self.duplicates != Duplicates::FirstNonZeroWins || *sample == 0.0)
        {
            *sample = value;
        }
    }
}

/// Writes the coefficients of all entries in `lists`, of which the walk has visited the levels from `scale.lowest` on.
pub(super) fn write(
    stream: &[u8],
    links: &TreeLinks,
    lists: &EntryLists,
    scale: Scale,
    array: &mut CoefficientArray<'_>,
) {
    let from = usize::from(scale.lowest);
    let fields = lists.fields.each_ref().map(|fields| fields.get(from..).unwrap_or(&[]));
    let [blocks, singles] = fields;
    Entries { fields: blocks, positions: lists.blocks.items(), set: links.block }.write(stream, scale, array);
    Entries { fields: singles, positions: lists.singles.items(), set: 0 }.write(stream, scale, array);
}

/// One list of entries, and its bit fields in each level, the finest first.
struct Entries<'a> {
    fields: &'a [BitField],
    positions: &'a [PackedPosition],
    /// The dimensions in which an entry extends.
    set: usize,
}

impl Entries<'_> {
    fn write(&self, stream: &[u8], scale: Scale, array: &mut CoefficientArray<'_>) {
        let mut sets = [0; 8];
        let block_len = 1 << self.set.count_ones();
        for (set, o) in sets.iter_mut().zip((0..8).filter(|o| o & !self.set == 0)) {
            *set = o;
        }
        let sets = &sets[..block_len];
        let mut finest = scale.finest;
        for _ in 0..scale.lowest {
            finest *= 2.0;
        }
        let mut planes = [Plane::default(); MAX_LEVELS];
        let mut before = 0;
        for (level, field) in self.fields.iter().enumerate().rev() {
            let mut first = before;
            while first < field.known {
                let count = TILE.min(field.known - first);
                let mut threshold = finest;
                let mut used = 0;
                for (plane, field) in planes.iter_mut().zip(self.fields.iter().take(level + 1)) {
                    *plane = Plane { bits: bits(stream, field.plane, first), threshold };
                    threshold *= 2.0;
                    used += 1;
                }
                let mut values = [0.0; TILE];
                add(
                    &mut values[..count.next_multiple_of(8)],
                    scale.base,
                    &planes[..used],
                    &bits(stream, field.signs, first - before),
                );
                self.scatter(&values[..count], first, sets, array);
                first += count;
            }
            before = field.known;
        }
    }

    /// Writes the values of the coefficients from number `first` on to their positions.
    fn scatter(&self, values: &[f32], first: usize, sets: &[usize], array: &mut CoefficientArray<'_>) {
        let block_len = sets.len();
        let positions = self.positions.get(first / block_len..).unwrap_or(&[]);
        let strides = array.strides();
        if array.duplicates != Duplicates::None {
            for (position, values) in positions.iter().zip(values.chunks_exact(block_len)) {
                for (set, value) in sets.iter().zip(values) {
                    array.put(*position, std::array::from_fn(|d| usize::from(has(*set, d))), *value);
                }
            }
        } else if block_len == 8 {
            for (position, values) in positions.iter().zip(values.as_chunks::<8>().0) {
                let at = position.index(strides);
                for (row, pair) in values.as_chunks::<2>().0.iter().enumerate() {
                    let at = at + (row & 1) * strides[1] + (row >> 1) * strides[2];
                    if let Some(samples) = array.samples.get_mut(at..at + 2) {
                        samples.copy_from_slice(pair);
                    }
                }
            }
        } else {
            let offset = |set: &usize| (0..3).map(|d| (set >> d & 1) * strides[d]).sum::<usize>();
            let offsets: [usize; 8] = std::array::from_fn(|o| sets.get(o).map_or(0, offset));
            for (position, values) in positions.iter().zip(values.chunks_exact(block_len)) {
                let at = position.index(strides);
                for (offset, value) in offsets.iter().zip(values) {
                    if let Some(sample) = array.samples.get_mut(at + offset) {
                        *sample = *value;
                    }
                }
            }
        }
    }
}

/// Returns the bits of a tile: from bit `first` on, of a field that begins at byte `field` of the stream. Bits beyond
/// the end of the field are arbitrary.
#[inline]
fn bits(stream: &[u8], field: usize, first: usize) -> [u8; TILE / 8] {
    const BYTES: usize = TILE / 8;
    let bytes = stream.get(field + first / 8..).unwrap_or(&[]);
    let mut here = [0; BYTES + 8];
    let bytes = match bytes.first_chunk() {
        Some(whole) => whole,
        None => {
            here[..bytes.len()].copy_from_slice(bytes);
            &here
        }
    };
    let mut bits = [0; BYTES];
    let words = bytes.as_chunks::<8>().0;
    for ((word, next), bits) in words.iter().zip(words.iter().skip(1)).zip(bits.as_chunks_mut::<8>().0) {
        let [word, next] = [word, next].map(|w| u64::from_le_bytes(*w));
        // the next word has no bits for a whole byte's place
        *bits = (word >> (first % 8) | next << 1 << (63 - first % 8)).to_le_bytes();
    }
    bits
}

/// The bits of a tile in one level, and the value of each.
#[derive(Clone, Copy, Default)]
struct Plane {
    bits: [u8; TILE / 8],
    threshold: f32,
}

/// For each index of 4 bits a SIMD mask of four lanes: all ones in the lanes whose bit is set.
const LANES: [[u32; 4]; 16] = {
    let mut lanes = [[0; 4]; 16];
    let mut k = 0;
    while k < 64 {
        lanes[k / 4][k % 4] = if (k / 4) >> (k % 4) & 1 != 0 { u32::MAX } else { 0 };
        k += 1;
    }
    lanes
};

/// Makes each value the sum of `base` and the thresholds of its bits. Low planes come first: the order fixes the
/// rounding.
fn add(values: &mut [f32], base: f32, planes: &[Plane], signs: &[u8; TILE / 8]) {
    for (group, (values, sign)) in values.as_chunks_mut::<8>().0.iter_mut().zip(signs).enumerate() {
        let (mut low, mut high) = ([base; 4], [base; 4]);
        for plane in planes {
            let byte = usize::from(plane.bits[group]);
            let (a, b) = (&LANES[byte & 15], &LANES[byte >> 4]);
            for k in 0..4 {
                low[k] += f32::from_bits(plane.threshold.to_bits() & a[k]);
                high[k] += f32::from_bits(plane.threshold.to_bits() & b[k]);
            }
        }
        let (a, b) = (&LANES[usize::from(*sign) & 15], &LANES[usize::from(*sign) >> 4]);
        for k in 0..4 {
            values[k] = f32::from_bits(low[k].to_bits() ^ a[k] & 1 << 31);
            values[k + 4] = f32::from_bits(high[k].to_bits() ^ b[k] & 1 << 31);
        }
    }
}
