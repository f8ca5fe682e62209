//! Streams that are cut short or have wrong bits: both decoders refuse the same, and return the same of the others.

use super::agreement::decoded;
use super::compressor::Mode;
use super::samples::{SCALARS, stream};

const SHAPES: [&[usize]; 4] = [&[21], &[9, 6], &[5, 8, 5], &[4, 5, 4, 4]];
const MODES: [Mode; 3] = [Mode::Precision(11), Mode::Rate(3.0), Mode::Reversible];

#[test]
fn streams_cut_at_each_byte() {
    for scalar in SCALARS {
        for (shape, mode) in SHAPES.into_iter().zip(MODES.into_iter().cycle()) {
            let whole = stream(scalar, shape, mode, 3);
            assert!(decoded(&whole).is_ok());
            // the longest ones are cut in some places alone
            let step = whole.len().div_ceil(150);
            for length in (0..whole.len()).step_by(step) {
                drop(decoded(&whole[..length]));
            }
            let is_refused = |less: usize| decoded(&whole[..whole.len() - less]).is_err();
            assert!(is_refused(1) && is_refused(8) && is_refused(whole.len() / 2), "{scalar:?} {shape:?}");
        }
    }
}

#[test]
fn streams_with_a_wrong_bit() {
    for scalar in SCALARS {
        for (shape, mode) in SHAPES.into_iter().zip(MODES.into_iter().cycle().skip(1)) {
            let whole = stream(scalar, shape, mode, 4);
            // the extents stay, which samples are allocated for
            let bits = (80..whole.len() * 8).step_by(whole.len().div_ceil(20) | 1);
            for bit in (0..36).chain(bits) {
                let mut wrong = whole.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                drop(decoded(&wrong));
            }
        }
    }
}
