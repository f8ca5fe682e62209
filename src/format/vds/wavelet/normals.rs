//! Block normals: factors for blocks of 8 x 8 x 8 samples, interpolated between the centres of the blocks.
//!
//! A block with NaN samples has a NaN factor. The residual of such a chunk fits only if an operation on two NaNs keeps
//! the same one as the writer's processor did: the first operand. The order of operands is the compiler's choice, so
//! the rule is written out for such chunks.

use super::grow::grow_to;
use crate::format::bytes::f32_values;

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
    pub(crate) fn new(coded: &[u8], size: [usize; 3], rows: &'a mut Vec<f32>) -> Self {
        let blocks = size.map(|s| s.div_ceil(8));
        let count = blocks[1] * blocks[2];
        grow_to(rows, count * size[0]);
        let rows = &mut rows[..count * size[0]];
        let special = f32_values(coded).any(|factor| !factor.is_finite() || factor.abs() > LARGE);
        let mix = if special { mix_special } else { mix };
        let mut line = [0.0; super::bands::MAX_SIDE / 8];
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
        Self { rows, size, blocks, special }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let normals = Normals::new(&coded, [16, 1, 1], &mut rows);
        let mut row = [1.0; 16];
        normals.apply(&mut row, 0, 0);
        assert_eq!((row[0], row[4], row[11], row[15]), (2.0, 2.125, 3.875, 4.0));
    }
}
