//! Stored samples as those of the file that they were imported from.

use crate::format::SegySample;

/// Integers up to this one are the same as float32; greater ones may have been rounded.
const EXACT: f32 = 16_777_216.0;

/// Writes the samples of the file that were stored as these. Returns false if one of them cannot be told: its value
/// does not occur in the type, or stands for several values of it.
pub(crate) fn convert(sample: SegySample, little: bool, stored: &[u8], out: &mut [u8]) -> bool {
    match sample {
        SegySample::Ibm => each(stored, out, |v| ibm(u32::from_le_bytes(v)).map(u32::to_be_bytes)),
        SegySample::Float => always(stored, out, |v: [u8; 4]| if little { v } else { swapped(v) }),
        SegySample::Int32 => each(stored, out, |v| {
            let whole = integer(f32::from_le_bytes(v))?;
            Some(if little { whole.to_le_bytes() } else { whole.to_be_bytes() })
        }),
        SegySample::UInt32 => each(stored, out, |v| {
            let whole = u32::try_from(integer(f32::from_le_bytes(v))?).ok()?;
            Some(if little { whole.to_le_bytes() } else { whole.to_be_bytes() })
        }),
        // two's complement and excess 32768 differ in the first bit
        SegySample::Int16 => always(stored, out, |[low, high]: [u8; 2]| {
            let high = high ^ 0x80;
            if little { [low, high] } else { [high, low] }
        }),
        SegySample::UInt16 => always(stored, out, |v: [u8; 2]| if little { v } else { swapped(v) }),
        SegySample::Int8 => always(stored, out, |[v]: [u8; 1]| [v ^ 0x80]),
        SegySample::UInt8 => always(stored, out, |v: [u8; 1]| v),
    }
}

fn swapped<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}

fn always<const N: usize>(stored: &[u8], out: &mut [u8], of: impl Fn([u8; N]) -> [u8; N]) -> bool {
    let ((from, _), (to, _)) = (stored.as_chunks::<N>(), out.as_chunks_mut::<N>());
    from.iter().zip(to).for_each(|(from, to)| *to = of(*from));
    true
}

fn each(stored: &[u8], out: &mut [u8], of: impl Fn([u8; 4]) -> Option<[u8; 4]>) -> bool {
    let ((from, _), (to, _)) = (stored.as_chunks::<4>(), out.as_chunks_mut::<4>());
    let mut all = true;
    for (from, to) in from.iter().zip(to) {
        match of(*from) {
            Some(sample) => *to = sample,
            None => all = false,
        }
    }
    all
}

/// Returns the integer that was rounded to a value; `None` if there may have been several.
fn integer(value: f32) -> Option<i32> {
    (value.abs() < EXACT && value.fract() == 0.0 && value.to_bits() != (-0.0f32).to_bits()).then_some(value as i32)
}

/// Returns the normalised number of IBM with the value of a float32, from bits to bits: a sign, an exponent of 16 of 7
/// bits and excess 64, and a fraction of 24 bits. `None` if there is no such number.
fn ibm(bits: u32) -> Option<u32> {
    let (sign, magnitude) = (bits & 1 << 31, bits & !(1 << 31));
    let (exponent, fraction) = ((magnitude >> 23) as i32, magnitude & 0x7f_ffff);
    let (exponent, fraction) = match exponent {
        _ if magnitude == 0 => return Some(sign),
        255 => return None,
        // without the hidden bit: brought to the same form
        0 => {
            let shift = fraction.leading_zeros() as i32 - 8;
            (1 - shift, fraction << shift)
        }
        _ => (exponent, fraction | 0x80_0000),
    };
    // the value is fraction / 2^24 * 2^(exponent - 126), and becomes ... * 16^(of_16 - 64)
    let of_16 = (exponent + 133) >> 2;
    let shift = 4 * (of_16 - 64) - (exponent - 126);
    let is_exact = fraction.trailing_zeros() as i32 >= shift && (0..128).contains(&of_16);
    is_exact.then_some(sign | (of_16 as u32) << 24 | fraction >> shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The value of a number of IBM.
    fn value(number: u32) -> f64 {
        let fraction = f64::from(number & 0xff_ffff) / f64::from(1 << 24);
        let value = fraction * 16f64.powi((number >> 24 & 0x7f) as i32 - 64);
        if number >> 31 == 1 { -value } else { value }
    }

    #[test]
    fn numbers_of_ibm() {
        for (float, number) in [
            (1.0f32, 0x4110_0000u32),
            (-1.0, 0xc110_0000),
            (0.0, 0),
            (-0.0, 0x8000_0000),
            (-118.625, 0xc276_a000),
            (f32::from_bits(0x0020_0000), 0x2110_0000),
            (f32::MAX, 0x60ff_ffff),
        ] {
            assert_eq!(ibm(float.to_bits()), Some(number), "{float}");
        }
        // a number with more digits than fit, and none at all
        for float in [f32::from_bits(0x3f80_0001), f32::INFINITY, f32::NAN] {
            assert_eq!(ibm(float.to_bits()), None, "{float}");
        }
    }

    #[test]
    fn integers_beyond_the_exact_ones_cannot_be_told() {
        let told = |sample, value: f32| {
            let mut out = [0; 4];
            convert(sample, false, &value.to_le_bytes(), &mut out).then_some(u32::from_be_bytes(out))
        };
        assert_eq!(told(SegySample::Int32, -16_777_215.0), Some(-16_777_215i32 as u32));
        assert_eq!(told(SegySample::UInt32, 16_777_215.0), Some(16_777_215));
        for value in [16_777_216.0, -16_777_216.0, 0.5, f32::NAN, f32::INFINITY, -0.0] {
            assert_eq!(told(SegySample::Int32, value), None, "{value}");
        }
        assert_eq!(told(SegySample::UInt32, -1.0), None);
    }

    #[test]
    fn bytes_of_the_other_types() {
        let of = |sample, little, stored: &[u8]| {
            let mut out = vec![0; stored.len()];
            assert!(convert(sample, little, stored, &mut out));
            out
        };
        // 1 and -2, stored greater by 32768
        let int16 = [1, 0x80, 0xfe, 0x7f];
        assert_eq!(of(SegySample::Int16, false, &int16), [0, 1, 0xff, 0xfe]);
        assert_eq!(of(SegySample::Int16, true, &int16), [1, 0, 0xfe, 0xff]);
        assert_eq!(of(SegySample::UInt16, false, &int16), [0x80, 1, 0x7f, 0xfe]);
        assert_eq!(of(SegySample::UInt16, true, &int16), int16);
        assert_eq!(of(SegySample::Int8, false, &[0x81, 0x7e]), [1, 0xfe]);
        assert_eq!(of(SegySample::UInt8, true, &[0x81, 0x7e]), [0x81, 0x7e]);
        assert_eq!(of(SegySample::Float, false, &[1, 2, 3, 4]), [4, 3, 2, 1]);
        assert_eq!(of(SegySample::Float, true, &[1, 2, 3, 4]), [1, 2, 3, 4]);
    }

    proptest! {
        #[test]
        fn every_normalised_number_comes_back(
            sign in 0u32..2, exponent in 28u32..96, fraction in 0x10_0000u32..0x100_0000,
        ) {
            let number = sign << 31 | exponent << 24 | fraction;
            let float = value(number) as f32;
            prop_assume!(f64::from(float) == value(number) && float.is_finite());
            prop_assert_eq!(ibm(float.to_bits()), Some(number));
        }

        #[test]
        fn what_comes_out_has_the_value(bits in any::<u32>()) {
            if let Some(number) = ibm(bits) {
                prop_assert_eq!(value(number), f64::from(f32::from_bits(bits)));
            }
        }
    }
}
