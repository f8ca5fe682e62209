//! The inverse cosine transform of blocks of 8 x 8 samples.
//!
//! Along either axis the transform is a sum of products with cosines, which are numbers of 13 bits after the point here.
//! Which whole numbers these are, and where sums are rounded, decides the last bit of samples: both are those of the
//! default method of libjpeg (after Loeffler, Ligtenberg and Moschytz, 1989), whose products are taken together.

use super::{BLOCK, SIDE};

/// Eight rows of eight numbers.
type Rows = [i16; BLOCK];

/// Bits after the point.
const BITS: u32 = 13;
/// Factors of coefficients 2 and 6 in the sums of the even ones.
const EVEN: [[i32; 2]; 2] = [[10_703, 4433], [4433, -10_704]];
/// Factors of coefficients 1, 3, 5 and 7 in the first four samples; in the last four they have the other sign, in reverse.
const ODD: [[i32; 4]; 4] = [
    [11_363, 9633, 6437, 2260],
    [9633, -2259, -11_362, -6436],
    [6437, -11_362, 2261, 9633],
    [2260, -6436, 9633, -11_363],
];

/// Bits that the result of the first axis keeps after the point.
const KEPT: u32 = 2;

/// Returns the samples of a block whose coefficients but the first are zeros.
pub(super) fn constant(mean: i16) -> [u8; BLOCK] {
    [sample((mean.saturating_add(4)) >> 3); BLOCK]
}

/// Returns the samples of a block of coefficients, row by row.
pub(super) fn samples(coefficients: &Rows) -> [u8; BLOCK] {
    let (mut columns, mut rows) = ([0; BLOCK], [0; BLOCK]);
    transform::<{ BITS - KEPT }>(coefficients, &mut columns);
    transform::<{ BITS + KEPT + 3 }>(&transposed(&columns), &mut rows);
    let mut samples = [0; BLOCK];
    for (to, level) in samples.iter_mut().zip(&transposed(&rows)) {
        *to = sample(*level);
    }
    samples
}

fn sample(level: i16) -> u8 {
    level.saturating_add(128).clamp(0, 255) as u8
}

/// Transforms eight columns, and removes the last `SHIFT` bits.
// one loop over arrays that do not overlap: vector instructions take all columns at a time
#[inline(never)]
fn transform<const SHIFT: u32>(rows: &Rows, out: &mut Rows) {
    for n in 0..SIDE {
        let row = |row: usize| i32::from(rows[row * SIDE + n]);
        let [i0, i1, i2, i3, i4, i5, i6, i7] = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
        let half = 1 << (SHIFT - 1);
        let (outer, inner) = (((i0 + i4) << BITS) + half, ((i0 - i4) << BITS) + half);
        let [near, far] = EVEN.map(|[f2, f6]| (i2 * f2).wrapping_add(i6 * f6));
        let even =
            [outer.wrapping_add(near), inner.wrapping_add(far), inner.wrapping_sub(far), outer.wrapping_sub(near)];
        let odd =
            ODD.map(|[f1, f3, f5, f7]| (i1 * f1).wrapping_add(i3 * f3).wrapping_add((i5 * f5).wrapping_add(i7 * f7)));
        let rounded = |sum: i32| (sum >> SHIFT).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        for at in 0..SIDE / 2 {
            out[at * SIDE + n] = rounded(even[at].wrapping_add(odd[at]));
            out[(SIDE - 1 - at) * SIDE + n] = rounded(even[at].wrapping_sub(odd[at]));
        }
    }
}

#[inline]
fn transposed(rows: &Rows) -> Rows {
    let mut columns = [0; BLOCK];
    for row in 0..SIDE {
        for column in 0..SIDE {
            columns[column * SIDE + row] = rows[row * SIDE + column];
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;

    use super::*;

    /// The transform as it is defined.
    fn exact(coefficients: &Rows) -> [f64; BLOCK] {
        std::array::from_fn(|n| {
            let cosine = |at: usize, k: usize| {
                let scale = if k == 0 { 0.5f64.sqrt() } else { 1.0 };
                scale * ((2 * at + 1) as f64 * k as f64 * PI / 16.0).cos()
            };
            let term = |k: usize| f64::from(coefficients[k]) * cosine(n / SIDE, k / SIDE) * cosine(n % SIDE, k % SIDE);
            128.0 + (0..BLOCK).map(term).sum::<f64>() / 4.0
        })
    }

    proptest! {
        #[test]
        fn samples_are_those_of_the_definition_but_for_the_last_bit(
            mean in -1000..1000_i16, others in prop::collection::vec((1..BLOCK, -300..300_i16), 0..10),
        ) {
            let mut coefficients = [0; BLOCK];
            coefficients[0] = mean;
            others.iter().for_each(|(at, level)| coefficients[*at] = *level);
            // samples are rounded (0.5); so are the results of the first pass, to quarters, of which eight are added with
            // weights of at most 1/2 (0.12); constants have 13 bits (0.2 for the largest coefficients here)
            for (found, exact) in samples(&coefficients).iter().zip(exact(&coefficients)) {
                prop_assert!((f64::from(*found) - exact.clamp(0.0, 255.0)).abs() < 0.5 + 0.12 + 0.2, "{} {}", found, exact);
            }
            coefficients = [0; BLOCK];
            coefficients[0] = mean;
            prop_assert_eq!(samples(&coefficients), constant(mean));
        }

        #[test]
        fn any_coefficients_are_samples(levels in prop::collection::vec(any::<i16>(), BLOCK)) {
            let mut coefficients = [0; BLOCK];
            coefficients.copy_from_slice(&levels);
            samples(&coefficients);
            constant(levels[0]);
        }
    }
}
