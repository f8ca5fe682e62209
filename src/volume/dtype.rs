//! The types of samples, and the numbers that samples are.

use std::fmt;

/// The type of one sample. Samples are little-endian wherever they are bytes. The order is that of the tables below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say all
pub enum Dtype {
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Float32,
    Float64,
    Float16,
    /// Two float32: the real part, then the imaginary one.
    Complex64,
    /// Two float64.
    Complex128,
}

impl Dtype {
    /// The most bytes of a sample.
    pub(crate) const MAX_SIZE: usize = 16;

    /// The bytes of a sample.
    #[must_use]
    pub const fn size(self) -> usize {
        [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 2, 8, Self::MAX_SIZE][self as usize]
    }

    /// NumPy's name: `int8`, `float32`, ...
    #[must_use]
    pub const fn name(self) -> &'static str {
        [
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "float32",
            "float64",
            "float16",
            "complex64",
            "complex128",
        ][self as usize]
    }

    pub(crate) const fn is_integer(self) -> bool {
        (self as usize) < Self::Float32 as usize
    }

    pub(crate) const fn is_complex(self) -> bool {
        matches!(self, Self::Complex64 | Self::Complex128)
    }

    /// Whether samples may be codes of float32 values.
    pub(crate) const fn may_be_codes(self) -> bool {
        self.is_integer() || matches!(self, Self::Float16)
    }

    /// Gives `then` the function that makes numbers of samples of this type. 64-bit integers are rounded, and the number
    /// of a complex sample is its magnitude.
    pub(crate) fn with_numbers<T: OfNumbers>(self, then: T) -> T::Output {
        match self {
            Self::Int8 => then.of(|b: [u8; 1]| i8::from_le_bytes(b).into()),
            Self::UInt8 => then.of(|b: [u8; 1]| b[0].into()),
            Self::Int16 => then.of(|b| i16::from_le_bytes(b).into()),
            Self::UInt16 => then.of(|b| u16::from_le_bytes(b).into()),
            Self::Int32 => then.of(|b| i32::from_le_bytes(b).into()),
            Self::UInt32 => then.of(|b| u32::from_le_bytes(b).into()),
            Self::Int64 => then.of(|b| i64::from_le_bytes(b) as f64),
            Self::UInt64 => then.of(|b| u64::from_le_bytes(b) as f64),
            Self::Float32 => then.of(|b| f32::from_le_bytes(b).into()),
            Self::Float64 => then.of(f64::from_le_bytes),
            Self::Float16 => then.of(|b| half(b).into()),
            Self::Complex64 => then.of(|b| magnitude(parts_of_complex64(b))),
            Self::Complex128 => then.of(|b| magnitude(parts_of_complex128(b))),
        }
    }

    /// Returns the number that a sample is; 0 for other than one whole sample.
    pub(crate) fn number(self, sample: &[u8]) -> f64 {
        struct One<'a>(&'a [u8]);
        impl OfNumbers for One<'_> {
            type Output = f64;
            fn of<const N: usize>(self, number: impl Fn([u8; N]) -> f64) -> f64 {
                self.0.try_into().map_or(0.0, number)
            }
        }
        self.with_numbers(One(sample))
    }
}

/// What is done with samples as numbers, whatever their type.
pub(crate) trait OfNumbers {
    type Output;

    /// Does it with samples of `N` bytes, of which `number` makes numbers.
    fn of<const N: usize>(self, number: impl Fn([u8; N]) -> f64) -> Self::Output;
}

/// Returns the value of a float16. A NaN keeps the bits that tell it from others.
pub(crate) fn half(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bytes));
    let (sign, exponent, fraction) = ((bits & 0x8000) << 16, bits >> 10 & 0x1f, bits & 0x3ff);
    let magnitude = match exponent {
        // the least is 2^-24
        0 => (fraction as f32 / (1 << 24) as f32).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        // the zero of exponents is 15 here, and 127 in a float32
        _ => (exponent + 127 - 15) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// Returns the bits of the nearest float16, the even one of two.
pub(crate) fn half_bits(number: f64) -> u16 {
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = number.abs();
    if number.is_nan() {
        return sign | 0x7e00;
    }
    // 65520 is half-way between the greatest float16 and the next power of two
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // numbers below 2^-14 have the steps of 2^-24 that the least exponent has
    let exponent = if magnitude < 2f64.powi(-14) { -14 } else { (magnitude.to_bits() >> 52) as i32 - 1023 };
    let steps = (magnitude * 2f64.powi(10 - exponent)).round_ties_even() as u16;
    // a mantissa that is rounded up to 2048 steps carries into the exponent
    sign | ((exponent + 14) as u16 * 1024 + steps)
}

/// Returns the real and the imaginary part of a complex64.
pub(crate) fn parts_of_complex64([a, b, c, d, imaginary @ ..]: [u8; 8]) -> [f32; 2] {
    [[a, b, c, d], imaginary].map(f32::from_le_bytes)
}

/// Returns the real and the imaginary part of a complex128.
pub(crate) fn parts_of_complex128([a, b, c, d, e, f, g, h, imaginary @ ..]: [u8; 16]) -> [f64; 2] {
    [[a, b, c, d, e, f, g, h], imaginary].map(f64::from_le_bytes)
}

fn magnitude<T: Into<f64>>([re, im]: [T; 2]) -> f64 {
    re.into().hypot(im.into())
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::DTYPES;

    #[test]
    fn names_say_kind_and_bits() {
        for dtype in DTYPES {
            let (kind, bits) = dtype.name().split_at(dtype.name().find(|c: char| c.is_ascii_digit()).unwrap());
            assert_eq!(bits.parse(), Ok(8 * dtype.size()), "{dtype}");
            assert_eq!((dtype.is_integer(), dtype.is_complex()), (kind.ends_with("int"), kind == "complex"), "{dtype}");
            assert!(dtype.size() <= Dtype::MAX_SIZE);
        }
    }

    #[test]
    fn samples_are_numbers() {
        for dtype in DTYPES.into_iter().filter(|dtype| dtype.is_integer()) {
            let one: Vec<u8> = (0..dtype.size()).map(|n| u8::from(n == 0)).collect();
            let most = 2f64.powi(8 * dtype.size() as i32) - 1.0;
            let all = if dtype.name().starts_with('u') { most } else { -1.0 };
            assert_eq!((dtype.number(&one), dtype.number(&vec![0xff; dtype.size()])), (1.0, all), "{dtype}");
            assert_eq!(dtype.number(&[0xff; 17]), 0.0, "no sample");
        }
        assert_eq!(Dtype::Float32.number(&(-1.5f32).to_le_bytes()), -1.5);
        assert_eq!(Dtype::Float64.number(&1e300f64.to_le_bytes()), 1e300);
        let parts: Vec<u8> = [3e38f32, f32::NEG_INFINITY].into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(Dtype::Complex64.number(&parts), f64::INFINITY);
        let parts: Vec<u8> = [-3.0f32, 4.0].into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(Dtype::Complex64.number(&parts), 5.0);
        let parts: Vec<u8> = [3e200f64, -4e200].into_iter().flat_map(f64::to_le_bytes).collect();
        assert!((Dtype::Complex128.number(&parts) / 5e200 - 1.0).abs() < 1e-15, "no part overflows");
    }

    #[test]
    fn float16_are_as_the_standard_says() {
        let of = |bits: u16| half(bits.to_le_bytes());
        let values = [0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x03ff, 0x3555, 0x8000].map(of);
        let tiny = 2f32.powi(-24);
        assert_eq!(values, [1.0, -2.0, 65504.0, 2f32.powi(-14), tiny, 1023.0 * tiny, 0.333_251_95, 0.0]);
        assert!(values[7].is_sign_negative());
        assert_eq!([of(0x7c00), of(0xfc00)], [f32::INFINITY, f32::NEG_INFINITY]);
        assert_eq!(of(0xfe01).to_bits(), 0xffc0_2000);
        // positive ones are in order of their bits
        assert!((0..0x7c00).all(|bits| of(bits) < of(bits + 1)));
    }

    #[test]
    fn float16_is_rounded_to_the_nearest() {
        for (number, bits) in [
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (6e-8, 0x0001),
            (2f64.powi(-25), 0),
            (2f64.powi(-14), 0x0400),
            (0.1, 0x2e66),
            (1.0 + 2f64.powi(-11), 0x3c00),
            (2048.0 - 0.5, 0x6800),
            (f64::INFINITY, 0x7c00),
            (-0.0, 0x8000),
        ] {
            assert_eq!(half_bits(number), bits, "{number}");
        }
    }
}
