//! The inverse wavelet transform, in one pass over each box: along Z plane by plane, in each plane along Y row by row,
//! in each row along X.
//!
//! Lifting along Z operates on whole planes and keeps only the four planes of the low half that the next two output
//! planes need. Each output plane at once goes through the same along Y, with rows in place of planes, and each of its
//! rows through X. So the array of coefficients is read once, and all other data stay in the processor's caches.

use super::grow_to;
use super::tree::{Bands, has};

/// The intermediate planes and rows.
#[derive(Debug, Default)]
pub(super) struct TransformBuffers {
    /// The output of a step, before it replaces the step's input.
    step_output: Vec<f32>,
    /// Four planes of the low half along Z, and one output plane.
    planes: Vec<f32>,
    /// Four rows of the low half along Y, and one output row.
    rows: Vec<f32>,
    /// The low half along X, and the output row.
    line: Vec<f32>,
}

impl TransformBuffers {
    /// Returns the number of floats in allocated memory.
    pub(crate) fn floats(&self) -> usize {
        [&self.step_output, &self.planes, &self.rows, &self.line].map(Vec::capacity).iter().sum()
    }
}

/// A plane of an array, at the beginning of `samples`.
#[derive(Clone, Copy)]
struct Plane<'a> {
    samples: &'a [f32],
    /// From one row to the next, in samples.
    stride: usize,
    width: usize,
    height: usize,
}

impl<'a> Plane<'a> {
    fn row(&self, y: usize) -> &'a [f32] {
        &self.samples[y * self.stride..][..self.width]
    }
}

/// Undoes all steps. `sink` is given the rows of the result in order, and may change them.
pub(super) fn inverse(
    coefficients: &mut [f32],
    bands: &Bands,
    lifting: Lifting,
    buffers: &mut TransformBuffers,
    mut sink: impl FnMut(&mut [f32]) -> Result<(), String>,
) -> Result<(), String> {
    let size = bands.size[0];
    let TransformBuffers { step_output, planes, rows, line } = buffers;
    if has(bands.mask[0], 2) {
        grow_to(planes, 5 * size[0] * size[1])?;
    }
    grow_to(rows, 5 * size[0])?;
    // the low half has borders of up to two samples at each end
    grow_to(line, 2 * size[0] + 8)?;
    if bands.steps > 1 {
        grow_to(step_output, bands.volume(1))?;
    }
    for step in (1..bands.steps).rev() {
        let [width, height, depth] = bands.size[step];
        let mut output = step_output[..width * height * depth].chunks_exact_mut(width);
        undo(coefficients, bands, step, lifting, [planes, rows, line], &mut |row| {
            if let Some(output) = output.next() {
                output.copy_from_slice(row);
            }
            Ok(())
        })?;
        for (k, row) in step_output[..width * height * depth].chunks_exact(width).enumerate() {
            coefficients[k / height * size[0] * size[1] + k % height * size[0]..][..width].copy_from_slice(row);
        }
    }
    undo(coefficients, bands, 0, lifting, [planes, rows, line], &mut sink)
}

/// Undoes one step.
fn undo(
    coefficients: &[f32],
    bands: &Bands,
    step: usize,
    lifting: Lifting,
    [planes, rows, line]: [&mut [f32]; 3],
    sink: &mut impl FnMut(&mut [f32]) -> Result<(), String>,
) -> Result<(), String> {
    let [width, height, depth] = bands.size[step];
    let mask = bands.mask[step];
    let [stride, whole, _] = bands.size[0];
    let plane = |z: usize| Plane { samples: &coefficients[z * stride * whole..], stride, width, height };
    let mut rest = |plane: Plane<'_>| along_y(plane, mask, lifting, rows, line, sink);
    if !has(mask, 2) {
        return (0..depth).try_for_each(|z| rest(plane(z)));
    }
    // a plane without gaps is treated as one long row
    let (length, count) = if width == stride { (width * height, 1) } else { (width, height) };
    let row = |z: usize, y: usize| &coefficients[(z * whole + y) * stride..][..length];
    along(depth, [length, count], row, planes, lifting, |samples| rest(Plane { samples, stride: width, width, height }))
}

/// Undoes one step along an axis of `depth` slabs, each of `count` rows of `length` samples: `row` returns the rows of
/// a slab, those of the low half first. Four slabs of the low half and one output slab are kept in `slabs`.
#[inline(always)]
fn along<'a>(
    depth: usize,
    [length, count]: [usize; 2],
    row: impl Fn(usize, usize) -> &'a [f32],
    slabs: &mut [f32],
    lifting: Lifting,
    mut sink: impl FnMut(&[f32]) -> Result<(), String>,
) -> Result<(), String> {
    let (low, high, even) = (depth.div_ceil(2), depth / 2, depth.is_multiple_of(2));
    let size = length * count;
    let (low_half, output) = slabs.split_at_mut(4 * size);
    let mut next = 0;
    for j in 0..low {
        while next < low.min(j + 3) {
            let around = four(next as isize - 2, |j| low + mirrored(j, high, !even));
            for y in 0..count {
                let out = &mut low_half[next % 4 * size + y * length..][..length];
                lifting.low(out, row(next, y), around.map(|slab| row(slab, y)));
            }
            next += 1;
        }
        sink(&low_half[j % 4 * size..][..size])?;
        if j < high {
            let around = four(j as isize - 1, |j| mirrored(j, low, even) % 4 * size);
            for y in 0..count {
                let around = around.map(|at| &low_half[at + y * length..][..length]);
                lifting.high(&mut output[y * length..][..length], row(low + j, y), around);
            }
            sink(&output[..size])?;
        }
    }
    Ok(())
}

/// Undoes one step in a plane, along Y and X.
fn along_y(
    plane: Plane<'_>,
    mask: usize,
    lifting: Lifting,
    rows: &mut [f32],
    line: &mut [f32],
    sink: &mut impl FnMut(&mut [f32]) -> Result<(), String>,
) -> Result<(), String> {
    let Plane { width, height, .. } = plane;
    let mut rest = |row: &[f32]| along_x(row, mask, lifting, line, sink);
    if !has(mask, 1) {
        return (0..height).try_for_each(|y| rest(plane.row(y)));
    }
    along(height, [width, 1], |y, _| plane.row(y), rows, lifting, rest)
}

/// Undoes one step in a row.
fn along_x(
    row: &[f32],
    mask: usize,
    lifting: Lifting,
    line: &mut [f32],
    sink: &mut impl FnMut(&mut [f32]) -> Result<(), String>,
) -> Result<(), String> {
    let width = row.len();
    let (line, low_half) = line.split_at_mut(width);
    if !has(mask, 0) {
        line.copy_from_slice(row);
        return sink(line);
    }
    let (low, high, even) = (width.div_ceil(2), width / 2, width.is_multiple_of(2));
    let (l, h) = row.split_at(low);
    // sample j of the low half is at j + 1, between its borders
    let low_half = &mut low_half[..low + 3];
    let inner = 2..high - 1;
    let count = inner.len();
    lifting.low(&mut low_half[3..][..count], &l[2..][..count], four(0, |d| &h[d as usize..][..count]));
    for j in (0..inner.start).chain(inner.end..low) {
        low_half[j + 1] = lifting.low_of(l[j], four(j as isize - 2, |j| h[mirrored(j, high, !even)]));
    }
    for j in [-1, low as isize, low as isize + 1] {
        low_half[(j + 1) as usize] = low_half[mirrored(j, low, even) + 1];
    }
    let mut output = [0.0; 64];
    for (part, h) in h.chunks(output.len()).enumerate() {
        let from = part * output.len();
        let output = &mut output[..h.len()];
        lifting.high(output, h, four(0, |d| &low_half[from + d as usize..][..h.len()]));
        let out = line[2 * from..].as_chunks_mut::<2>().0;
        for ((pair, l), h) in out.iter_mut().zip(&low_half[from + 1..][..h.len()]).zip(output) {
            *pair = [*l, *h];
        }
    }
    if !even {
        line[width - 1] = low_half[low];
    }
    sink(line)
}

// The arithmetic of the transform: one lifting step on rows. Operations are rounded to f32 one by one, in exactly this
// order; none may be fused.

/// The variant of the transform.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifting {
    /// Samples are integers: sums are rounded.
    pub integer: bool,
    /// The factor of the low half.
    pub gain: f32,
}

impl Lifting {
    /// Creates the variant for integers or floats, with or without a gain.
    pub(crate) fn new(integer: bool, gain: bool) -> Self {
        Self { integer, gain: if gain { std::f32::consts::FRAC_1_SQRT_2 } else { 1.0 } }
    }

    /// Undoes the update step: the low half is `low`, corrected by the four `high` rows around it.
    #[inline]
    pub(crate) fn low(self, out: &mut [f32], low: &[f32], high: [&[f32]; 4]) {
        if self.integer {
            each(out, low, high, |low, high| Self { integer: true, ..self }.low_of(low, high));
        } else {
            each(out, low, high, |low, high| Self { integer: false, ..self }.low_of(low, high));
        }
    }

    /// Undoes the update step for one sample.
    #[inline(always)]
    pub(crate) fn low_of(self, low: f32, high: [f32; 4]) -> f32 {
        match self.integer {
            true => away(self.gain * low) + rint(update(high)),
            false => self.gain * low + update(high),
        }
    }

    /// Undoes the prediction step: the high half is `high`, corrected by the four rows of the low half around it.
    #[inline]
    pub(crate) fn high(self, out: &mut [f32], high: &[f32], low: [&[f32]; 4]) {
        if self.integer {
            each(out, high, low, |high, low| high + rint(predict(low)));
        } else {
            each(out, high, low, |high, low| high + predict(low));
        }
    }
}

#[inline(always)]
fn each(out: &mut [f32], one: &[f32], four: [&[f32]; 4], f: impl Fn(f32, [f32; 4]) -> f32) {
    let count = out.len();
    let [a, b, c, d] = four;
    let (one, a, b, c, d) = (&one[..count], &a[..count], &b[..count], &c[..count], &d[..count]);
    for k in 0..count {
        out[k] = f(one[k], [a[k], b[k], c[k], d[k]]);
    }
}

#[inline(always)]
fn update([a, b, c, d]: [f32; 4]) -> f32 {
    ((a + d) + (b + c) * -9.0) * (1.0 / 32.0)
}

#[inline(always)]
fn predict([a, b, c, d]: [f32; 4]) -> f32 {
    ((a + d) + (b + c) * -9.0) * (-1.0 / 16.0)
}

/// Rounds to the nearest integer, ties to even, without a function call.
#[inline(always)]
fn rint(v: f32) -> f32 {
    // floats of at least this size have no fractions
    const WHOLE: f32 = 8_388_608.0;
    let size = v.abs();
    let rounded = (size + WHOLE) - WHOLE;
    (if size < WHOLE { rounded } else { size }).copysign(v)
}

/// Rounds away from zero.
#[inline(always)]
fn away(v: f32) -> f32 {
    let rounded = rint(v.abs());
    let size = v.abs();
    (if rounded < size { rounded + 1.0 } else { rounded }).copysign(v)
}

/// Returns the rows at four indices from `first` on.
#[inline(always)]
pub(super) fn four<T>(first: isize, at: impl Fn(isize) -> T) -> [T; 4] {
    [at(first), at(first + 1), at(first + 2), at(first + 3)]
}

/// Returns the row that stands in for index `j` of `count` rows, which may be up to two before or behind them
/// (mirrored). Before the first row it is repeated, and behind the last one if `repeats_last`: in the low half if the
/// axis is even, in the high half if it is odd.
#[inline]
pub(super) fn mirrored(j: isize, count: usize, repeats_last: bool) -> usize {
    let n = count as isize;
    let j = match j {
        ..0 => -1 - j,
        _ if j < n => j,
        _ if repeats_last => 2 * n - 1 - j,
        _ => 2 * n - 2 - j,
    };
    j.max(0) as usize
}

#[cfg(test)]
#[allow(clippy::excessive_precision)]
mod tests {
    use super::*;

    fn line(size: usize, integer: bool, gain: bool, row: &[f32]) -> Vec<f32> {
        let mut whole = row.to_vec();
        whole.resize(size, 0.0);
        let along = |size: [usize; 3]| {
            let mut out = Vec::new();
            // one step only
            let mut bands = Bands::new(size);
            bands.steps = 1;
            let lifting = Lifting::new(integer, gain);
            inverse(&mut whole.clone(), &bands, lifting, &mut TransformBuffers::default(), |row| {
                out.extend_from_slice(row);
                Ok(())
            })
            .unwrap();
            out
        };
        let out = along([size, 1, 1]);
        assert_eq!(out, along([1, size, 1]));
        assert_eq!(out, along([1, 1, size]));
        out
    }

    #[test]
    fn a_line_of_floats() {
        let out = line(8, false, true, &[1.0, 2.0, 3.0, 4.0]);
        let expected: [f32; 8] =
            [0.707106769, 1.01646602, 1.41421354, 1.76776695, 2.12132025, 2.51906753, 2.82842708, 2.91681528];
        assert_eq!(out, expected);
        let out = line(8, false, true, &[0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(out, [-0.5625, 0.576171875, -0.25, -0.087890625, 0.03125, 0.033203125, 0.0, -0.00390625]);
        let out = line(8, false, true, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(out, [0.0, -0.001953125, 0.0, 0.03515625, 0.03125, -0.123046875, -0.28125, 0.6796875]);
        let out = line(9, false, true, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(out, [0.0, -0.001953125, 0.0, 0.033203125, 0.03125, -0.087890625, -0.25, 0.556640625, -0.5625]);
        let out = line(9, false, true, &[1.0, 2.0, 3.0, 4.0, 5.0, 1.0, -1.0, 2.0, 0.5]);
        let expected: [f32; 9] = [
            0.0821067691,
            1.77134871,
            1.50796354,
            0.772649765,
            1.88694525,
            3.94264698,
            2.10967708,
            3.33775163,
            3.37928391,
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_line_of_integers() {
        let row = [10.0, 20.0, 30.0, 40.0, 5.0, -3.0, 2.0, 1.0];
        assert_eq!(line(8, true, false, &row), [7.0, 18.0, 20.0, 22.0, 30.0, 37.0, 39.0, 41.0]);
        assert_eq!(line(8, true, true, &row), [5.0, 15.0, 15.0, 16.0, 22.0, 27.0, 28.0, 30.0]);
        let row = [-10.0, -20.0, 30.0, 40.0, -25.0, 5.0, -3.0, 2.0, 1.0];
        assert_eq!(line(9, true, false, &row), [-13.0, -15.0, -20.0, 1.0, 30.0, 44.0, 39.0, 5.0, -25.0]);
    }

    #[test]
    fn rounding_equals_that_of_the_standard_library() {
        for v in [0.0f32, 0.5, 1.5, 2.5, 0.499_999_97, 3.2, 8_388_607.5, 8_388_609.0, 1e30, f32::INFINITY] {
            for v in [v, -v] {
                assert_eq!(rint(v).to_bits(), v.round_ties_even().to_bits(), "{v}");
                let expected = if v >= 0.0 { v.ceil() } else { v.floor() };
                assert_eq!(away(v).to_bits(), expected.to_bits(), "{v}");
            }
        }
    }

    #[test]
    fn borders() {
        // h[-1] = h[0], h[-2] = h[1]; even: h[k] = h[k-2]; odd: h[k] = h[k-1], h[k+1] = h[k-2]
        assert_eq!([-2, -1, 0, 3, 4].map(|j| mirrored(j, 4, false)), [1, 0, 0, 3, 2]);
        assert_eq!([3, 4, 5].map(|j| mirrored(j, 4, true)), [3, 3, 2]);
        // L[-1] = L[0]; even: L[m] = L[m-1], L[m+1] = L[m-2]; odd: L[m] = L[m-2]
        assert_eq!([-1, 0, 4, 5].map(|j| mirrored(j, 4, true)), [0, 0, 3, 2]);
        assert_eq!([4, 5].map(|j| mirrored(j, 5, false)), [4, 3]);
    }
}
