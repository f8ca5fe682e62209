//! The rows that come from the transform: corrections, and conversion to the stored type.

use super::residual::{Residual, State, Table};
use super::{Expected, NO_VALUE, ZERO_RUNS, grow_to, past_end};
use crate::format::bytes::{ByteReader, f32_values};
use crate::volume::Dtype;

/// The corrections of reconstructed rows, in the order of the fields from `no_value` on.
pub(super) struct RowCorrections<'a> {
    /// Rows in a plane.
    pub height: usize,
    pub rows: usize,
    pub no_value: Option<NoValueRuns<'a>>,
    pub normals: Option<Normals<'a>>,
    /// The number of leading zeros of each row; empty if the chunk has no counts.
    pub zero_runs: &'a [u16],
    pub residual: Option<Residual<'a>>,
}

impl RowCorrections<'_> {
    pub(crate) fn row(&mut self, row: &mut [f32]) -> Result<(), String> {
        if let Some(runs) = &mut self.no_value {
            runs.apply(row)?;
        }
        if let Some(normals) = &self.normals {
            normals.apply(row, self.rows % self.height, self.rows / self.height);
        }
        if let Some(zeros) = self.zero_runs.get(self.rows) {
            let zeros = usize::from(*zeros).min(row.len());
            row[..zeros].fill(0.0);
        }
        if let Some(residual) = &mut self.residual {
            residual.apply(row)?;
        }
        self.rows += 1;
        Ok(())
    }
}

/// How reconstructed floats become stored samples. Codes are (value - offset) * scale, rounded and clamped.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleEncoder {
    /// The type of samples: float32, which are unchanged, or codes as uint8 or uint16.
    dtype: Dtype,
    /// The real value of code 0.
    offset: f32,
    /// Codes in a step of 1.
    scale: f32,
    /// The largest code.
    most: f32,
    /// The channel's NoValue, whose code is the largest of the type.
    no_value: Option<f32>,
}

impl SampleEncoder {
    /// Creates the conversion to the expected type. The reconstructed floats are codes already if the chunk is
    /// `integer`, else real values.
    pub(crate) fn new(expected: &Expected, integer: bool) -> Self {
        let Expected { dtype, no_value, offset: low, .. } = *expected;
        let max_code = if dtype == Dtype::UInt8 { u8::MAX.into() } else { u16::MAX };
        let most = f32::from(if no_value.is_some() { max_code - 1 } else { max_code });
        let high = expected.scale * most + low;
        let (offset, scale) = if integer { (0.0, 1.0) } else { (low, most / (high - low)) };
        Self { dtype, offset, scale, most, no_value }
    }

    #[inline(always)]
    fn code(&self, value: f32, no_value: u16) -> u16 {
        let q = (value - self.offset) * self.scale;
        // NaN becomes 0
        let code = (q.max(0.0).min(self.most) + 0.5) as i32 as u16;
        match self.no_value {
            Some(none) if none == value => no_value,
            _ => code,
        }
    }

    pub(crate) fn row(&self, row: &[f32], out: &mut [u8]) {
        match self.dtype {
            Dtype::UInt8 => {
                for (out, sample) in out.iter_mut().zip(row) {
                    *out = self.code(*sample, 255) as u8;
                }
            }
            Dtype::UInt16 => {
                for (out, sample) in out.as_chunks_mut::<2>().0.iter_mut().zip(row) {
                    *out = self.code(*sample, 65_535).to_le_bytes();
                }
            }
            _ => {
                for (out, sample) in out.as_chunks_mut::<4>().0.iter_mut().zip(row) {
                    *out = sample.to_le_bytes();
                }
            }
        }
    }
}

/// Rows of the mask are padded to a multiple of this many bits.
const PADDED: usize = 32;

/// The decoder of the mask.
#[derive(Clone, Copy)]
pub(super) struct NoValueRuns<'a> {
    codes: &'a [u8],
    /// Bits that are left of the current run.
    left: usize,
    /// Whether the bits of the current run are set.
    set: bool,
    /// The value of samples whose bit is set.
    value: f32,
}

impl<'a> NoValueRuns<'a> {
    /// Creates a decoder of the coded mask; samples whose bit is set become `value`.
    pub(crate) fn new(codes: &'a [u8], value: f32) -> Self {
        Self { codes, left: 0, set: false, value }
    }

    /// Writes NoValue into the next row.
    pub(crate) fn apply(&mut self, row: &mut [f32]) -> Result<(), String> {
        let bits = row.len().next_multiple_of(PADDED);
        let mut at = 0;
        while at < bits {
            if self.left == 0 {
                self.next_run()?;
            }
            let end = at + self.left.min(bits - at);
            if self.set {
                let end = end.min(row.len());
                row[at.min(end)..end].fill(self.value);
            }
            self.left -= end - at;
            at = end;
        }
        Ok(())
    }

    /// Reads a run. Its first byte has the bit, the number of further bytes (2 bits) and the low 5 bits of the length;
    /// each further byte has 8 more bits of the length.
    fn next_run(&mut self) -> Result<(), String> {
        let past = || past_end(NO_VALUE);
        let (first, rest) = self.codes.split_first().ok_or_else(past)?;
        let (more, rest) = rest.split_at_checked(usize::from(first >> 1 & 3)).ok_or_else(past)?;
        self.set = first & 1 != 0;
        self.left =
            more.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)) << 5 | usize::from(first >> 3);
        self.codes = rest;
        Ok(())
    }
}

// Block normals are factors for blocks of 8 x 8 x 8 samples, interpolated between the centres of the blocks.
//
// A block with NaN samples has a NaN factor. The residual of such a chunk fits only if an operation on two NaNs keeps
// the same one as the writer's processor did: the first operand. The order of operands is the compiler's choice, so
// the rule is written out for such chunks.

/// The smallest factor; smaller ones are raised to it.
const SMALLEST: f32 = 1e-22;

/// The difference of two factors up to this size is finite.
const LARGE: f32 = 1e38;

/// The factors, interpolated along X: a row for each block along Y and Z.
pub(super) struct Normals<'a> {
    rows: &'a [f32],
    size: [usize; 3],
    blocks: [usize; 3],
    /// Whether factors or their differences may be infinite or NaN.
    special: bool,
}

impl<'a> Normals<'a> {
    /// Interpolates the coded factors along X, into `rows`.
    pub(crate) fn new(coded: &[u8], size: [usize; 3], rows: &'a mut Vec<f32>) -> Result<Self, String> {
        let blocks = size.map(|s| s.div_ceil(8));
        let count = blocks[1] * blocks[2];
        grow_to(rows, count * size[0])?;
        let rows = &mut rows[..count * size[0]];
        let special = f32_values(coded).any(|factor| !factor.is_finite() || factor.abs() > LARGE);
        let mix = if special { mix_special } else { mix };
        let mut line = [0.0; super::MAX_SIDE / 8];
        let line = &mut line[..blocks[0]];
        for (row, coded) in rows.chunks_exact_mut(size[0]).zip(coded.chunks_exact(4 * blocks[0])) {
            for (factor, coded) in line.iter_mut().zip(f32_values(coded)) {
                *factor = coded;
            }
            for (x, factor) in row.iter_mut().enumerate() {
                let (a, b, f) = between(x, blocks[0], blocks[0]);
                *factor = mix(line[a], line[b], f);
            }
        }
        Ok(Self { rows, size, blocks, special })
    }

    /// Multiplies a row of samples.
    pub(crate) fn apply(&self, row: &mut [f32], y: usize, z: usize) {
        let (y0, y1, fy) = between(y, self.blocks[0], self.blocks[1]);
        let (z0, z1, fz) = between(z, self.blocks[0], self.blocks[2]);
        let [a, b, c, d] = [(y0, z0), (y1, z0), (y0, z1), (y1, z1)].map(|(y, z)| {
            let from = (z * self.blocks[1] + y) * self.size[0];
            &self.rows[from..][..row.len()]
        });
        let at_least = |factor: f32| if factor < SMALLEST { SMALLEST } else { factor };
        if self.special {
            for k in 0..row.len() {
                let factor = mix_special(mix_special(a[k], b[k], fy), mix_special(c[k], d[k], fy), fz);
                row[k] = keep_first_nan(at_least(factor), row[k], |factor, sample| factor * sample);
            }
        } else {
            for k in 0..row.len() {
                row[k] *= at_least(mix(mix(a[k], b[k], fy), mix(c[k], d[k], fy), fz));
            }
        }
    }
}

#[inline(always)]
fn mix(low: f32, high: f32, f: f32) -> f32 {
    (high - low) * f + low
}

/// Like [`mix`], with the NaNs of the writer.
fn mix_special(low: f32, high: f32, f: f32) -> f32 {
    let span = keep_first_nan(high, low, |high, low| high - low);
    keep_first_nan(keep_first_nan(span, f, |span, f| span * f), low, |part, low| part + low)
}

/// Applies an operation as x86 processors do: the result is the first operand that is NaN (made quiet); a NaN that the
/// operation itself produces is the default NaN.
fn keep_first_nan(a: f32, b: f32, of: impl Fn(f32, f32) -> f32) -> f32 {
    const QUIET: u32 = 1 << 22;
    const DEFAULT_NAN: u32 = 0xffc0_0000;
    match (a.is_nan(), b.is_nan(), of(a, b)) {
        (true, ..) => f32::from_bits(a.to_bits() | QUIET),
        (_, true, _) => f32::from_bits(b.to_bits() | QUIET),
        (.., result) if result.is_nan() => f32::from_bits(DEFAULT_NAN),
        (.., result) => result,
    }
}

/// Returns the two of `n` blocks between whose centres index `j` lies, and its distance from the first as a fraction.
/// The number of blocks along X matters on all axes, as in OpenVDS.
fn between(j: usize, n_x: usize, n: usize) -> (usize, usize, f32) {
    let r = j as f32 / 8.0 - 3.5 / 8.0;
    let mut a = r.floor() as isize;
    if a == n_x as isize - 1 {
        a -= 1;
    }
    let last = n as isize - 1;
    let b = (a + 1).clamp(0, last);
    let a = a.clamp(0, last);
    (a as usize, b as usize, (r - a as f32).clamp(0.0, 1.0))
}

/// Rows of at least this many samples have counts of two bytes.
const LONG: usize = 256;

/// Decodes the counts of all rows into `counts`; `column` and `table` are scratch memory. Returns whether the chunk has
/// counts.
pub(super) fn read_zero_runs(
    coded: &[u8],
    size: [usize; 3],
    table: &mut Table,
    column: &mut Vec<u8>,
    counts: &mut Vec<u16>,
) -> Result<bool, String> {
    if coded.is_empty() {
        return Ok(false);
    }
    let rows = size[1] * size[2];
    grow_to(column, rows)?;
    grow_to(counts, rows)?;
    let (column, counts) = (&mut column[..rows], &mut counts[..rows]);
    counts.fill(0);
    let mut reader = ByteReader::new(ZERO_RUNS, coded);
    let shifts: &[u32] = if size[0] < LONG { &[0] } else { &[0, 8] };
    for shift in shifts {
        read_column(&mut reader, table, column)?;
        for (count, byte) in counts.iter_mut().zip(column.iter()) {
            *count |= u16::from(*byte) << shift;
        }
    }
    Ok(true)
}

/// Decodes one byte of every count.
fn read_column(reader: &mut ByteReader<'_>, table: &mut Table, column: &mut [u8]) -> Result<(), String> {
    let part = ZERO_RUNS;
    match reader.i32()? {
        0 => column.fill(reader.i32()? as u8),
        ..0 => column.copy_from_slice(reader.take(column.len())?),
        length => {
            let bits = table.read(reader.take(length as usize)?, part)?;
            let mut state = State::new(table, bits, part)?;
            state.fill(table, bits, column, part)?;
            state.finish(part)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_over_rows_and_padding() {
        // 3 clear, 31 set (over the padding), 100000 clear, in one, two and four bytes
        let run = |set: u32, more: u32, length: u32| ((length & 31) << 3 | more << 1 | set, length >> 5);
        let mut codes = Vec::new();
        for (first, rest) in [run(0, 0, 3), run(1, 1, 31), run(0, 3, 100_000)] {
            codes.push(first as u8);
            codes.extend(&rest.to_le_bytes()[..(first >> 1 & 3) as usize]);
        }
        assert_eq!(codes.len(), 1 + 2 + 4);
        let mut runs = NoValueRuns::new(&codes, 9.0);
        let mut row = [1.0; 5];
        runs.apply(&mut row).unwrap();
        assert_eq!(row, [1.0, 1.0, 1.0, 9.0, 9.0]);
        let mut row = [1.0; 5];
        runs.apply(&mut row).unwrap();
        assert_eq!(row, [9.0, 9.0, 1.0, 1.0, 1.0]);
        // 100034 bits are 3126 rows of 32, and a bit more
        for _ in 2..3126 {
            runs.apply(&mut row).unwrap();
        }
        assert_eq!(runs.apply(&mut row), Err("the data ends within the NoValue runs".into()));
    }

    #[test]
    fn between_centres() {
        assert_eq!(between(0, 4, 4), (0, 0, 0.0));
        assert_eq!(between(4, 4, 4), (0, 1, 0.0625));
        assert_eq!(between(12, 4, 4), (1, 2, 0.0625));
        // beyond the last centre its factor is used
        assert_eq!(between(31, 4, 4), (2, 3, 1.0));
        // the index of the last block along X, on an axis with more blocks
        assert_eq!(between(31, 4, 8), (2, 3, 1.0));
        assert_eq!(between(39, 4, 8), (4, 5, 0.4375));
        assert_eq!(between(31, 8, 4), (3, 3, 0.4375));
    }

    #[test]
    fn the_first_nan_is_kept() {
        let [one, two] = [0x7f80_0001, 0xffc0_0002].map(f32::from_bits);
        let kept = |v: f32| v.to_bits();
        assert_eq!(kept(keep_first_nan(one, two, |a, b| a + b)), 0x7fc0_0001);
        assert_eq!(kept(keep_first_nan(two, one, |a, b| a + b)), 0xffc0_0002);
        assert_eq!(kept(keep_first_nan(1.0, one, |a, b| a * b)), 0x7fc0_0001);
        assert_eq!(kept(keep_first_nan(f32::INFINITY, f32::INFINITY, |a, b| a - b)), 0xffc0_0000);
        assert_eq!(kept(mix_special(one, two, 0.5)), 0xffc0_0002);
        assert_eq!(mix_special(2.0, 4.0, 0.25), 2.5);
    }

    #[test]
    fn factors_are_multiplied() {
        let coded: Vec<u8> = [2.0f32, 4.0].iter().flat_map(|f| f.to_le_bytes()).collect();
        let mut rows = Vec::new();
        let normals = Normals::new(&coded, [16, 1, 1], &mut rows).unwrap();
        let mut row = [1.0; 16];
        normals.apply(&mut row, 0, 0);
        assert_eq!((row[0], row[4], row[11], row[15]), (2.0, 2.125, 3.875, 4.0));
        // also where a factor is not finite
        let coded: Vec<u8> = [2.0f32, f32::INFINITY].iter().flat_map(|f| f.to_le_bytes()).collect();
        let mut row = [3.0; 16];
        Normals::new(&coded, [16, 1, 1], &mut rows).unwrap().apply(&mut row, 0, 0);
        assert!(row[0] == 6.0 && !row[15].is_finite(), "{row:?}");
    }

    fn counts(coded: &[u8], size: [usize; 3]) -> Result<Option<Vec<u16>>, String> {
        let (mut table, mut column, mut counts) = Default::default();
        Ok(read_zero_runs(coded, size, &mut table, &mut column, &mut counts)?.then_some(counts))
    }

    #[test]
    fn columns_of_three_kinds() {
        assert_eq!(counts(&[], [64, 2, 2]), Ok(None));
        let fse = b"\x11\0\0\0\xa1\xe7\xffo\x81\x86X\xff\x0f\xf0|\xfc\x9a\xaa\xd4\xef\x03";
        let found = counts(fse, [64, 64, 1]).unwrap().unwrap();
        assert_eq!((&found[..8], found.iter().sum::<u16>()), (&[53, 31, 24, 33, 24, 33, 26, 0][..], 224));
        assert_eq!(counts(b"\0\0\0\0\x07\0\0\0", [64, 3, 1]), Ok(Some(vec![7; 3])));
        let two = b"\xff\xff\xff\xff\x01\x02\x03\0\0\0\0\x01\0\0\0";
        assert_eq!(counts(two, [256, 3, 1]), Ok(Some(vec![257, 258, 259])));
        assert_eq!(counts(&two[..10], [256, 3, 1]), Err("the data ends within the zero runs".into()));
        assert_eq!(counts(&two[..6], [64, 3, 1]), Err("the data ends within the zero runs".into()));
    }
}
