//! The arithmetic of the transform: one lifting step on rows.
//!
//! Operations are rounded to f32 one by one, in exactly this order; none may be fused.

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

/// Returns the row of the high half that stands in for index `j`, which may be up to two before or behind its `k` rows
/// (mirrored).
#[inline]
pub(super) fn high_row(j: isize, k: usize, even: bool) -> usize {
    let k = k as isize;
    let j = match j {
        ..0 => -1 - j,
        _ if j < k => j,
        _ if even => 2 * k - 2 - j,
        _ => 2 * k - 1 - j,
    };
    j.max(0) as usize
}

/// Returns the row of the low half that stands in for index `j`, which may be one before or up to two behind its `m`
/// rows (mirrored).
#[inline]
pub(super) fn low_row(j: isize, m: usize, even: bool) -> usize {
    let m = m as isize;
    let j = match j {
        ..0 => -1 - j,
        _ if j < m => j,
        _ if even => 2 * m - 1 - j,
        _ => 2 * m - 2 - j,
    };
    j.max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!([-2, -1, 0, 3, 4].map(|j| high_row(j, 4, true)), [1, 0, 0, 3, 2]);
        assert_eq!([3, 4, 5].map(|j| high_row(j, 4, false)), [3, 3, 2]);
        // L[-1] = L[0]; even: L[m] = L[m-1], L[m+1] = L[m-2]; odd: L[m] = L[m-2]
        assert_eq!([-1, 0, 4, 5].map(|j| low_row(j, 4, true)), [0, 0, 3, 2]);
        assert_eq!([4, 5].map(|j| low_row(j, 5, false)), [4, 3]);
    }
}
