//! Samples to compress.

use proptest::prelude::*;

use super::compressor::{Mode, compress};
use crate::codec::zfp::scalar::Scalar;

/// All types.
pub(crate) const SCALARS: [Scalar; 4] = [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64];

/// Pseudo-random numbers.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n.max(1)
    }
}

/// Returns samples of a wave and noise, some of them with any bits.
pub(crate) fn samples(scalar: Scalar, count: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed | 1);
    let (slope, noise) = (random.below(400) as f64 / 900.0, [0.0, 1e-3, 0.3][random.below(3) as usize]);
    let (scale, odd) = (2f64.powi(random.below(80) as i32 - 40), random.below(4) == 0);
    let mut value = |at: usize| (at as f64 * slope).sin() + noise * (random.below(1 << 20) as f64 / 1048576.0 - 0.5);
    let mut other = Random(!seed | 1);
    (0..count)
        .flat_map(|at| {
            let (value, bits) = (value(at), other.next());
            // any bits but those of infinities and of what is no number
            let is_odd = odd && bits % 5 == 0;
            match scalar {
                Scalar::Int32 if is_odd => (bits as i32 >> 2).to_ne_bytes().to_vec(),
                Scalar::Int32 => ((value * 1e8) as i32).to_ne_bytes().to_vec(),
                Scalar::Int64 if is_odd => (bits.cast_signed() >> 2).to_ne_bytes().to_vec(),
                Scalar::Int64 => ((value * 1e17) as i64).to_ne_bytes().to_vec(),
                Scalar::Float32 if is_odd => (bits as u32 & 0xbfff_ffff).to_ne_bytes().to_vec(),
                Scalar::Float32 => ((value * scale) as f32).to_ne_bytes().to_vec(),
                Scalar::Float64 if is_odd => (bits & 0xbfff_ffff_ffff_ffff).to_ne_bytes().to_vec(),
                Scalar::Float64 => (value * scale).to_ne_bytes().to_vec(),
            }
        })
        .collect()
}

/// Returns a stream of such samples.
pub(crate) fn stream(scalar: Scalar, shape: &[usize], mode: Mode, seed: u64) -> Vec<u8> {
    compress(&samples(scalar, shape.iter().product(), seed), scalar.code(), shape, mode)
}

/// Any type.
pub(crate) fn scalars() -> impl Strategy<Value = Scalar> {
    prop::sample::select(SCALARS.to_vec())
}

/// Any small shape of one to four axes.
pub(crate) fn shapes() -> impl Strategy<Value = Vec<usize>> {
    (1usize..5).prop_flat_map(|axes| prop::collection::vec(1..[60usize, 14, 9, 6][axes - 1], axes))
}

/// Any mode.
pub(crate) fn modes() -> impl Strategy<Value = Mode> {
    let expert = (1u32..3000, 0u32..3000, 1u32..65, prop_oneof![Just(-1074), Just(-1075), -60i32..10]);
    prop_oneof![
        (0.2f64..40.0).prop_map(Mode::Rate),
        (1u32..65).prop_map(Mode::Precision),
        (-40i32..20).prop_map(|exponent| Mode::Accuracy(2f64.powi(exponent))),
        Just(Mode::Reversible),
        // a block has room for its exponent at least, or the compressor writes beyond its stream
        expert.prop_map(|(least, more, planes, exponent)| Mode::Expert(
            least,
            (least + more).max(32),
            planes,
            exponent
        )),
    ]
}
