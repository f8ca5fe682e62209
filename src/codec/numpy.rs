//! Samples of NumPy's types: their names, and casts as NumPy makes them on x86.
//!
//! A cast from floating point to an integer has no defined result for NaN and for what does not fit; it is the one of
//! the processor's instruction here, as it is in NumPy on most machines (except to uint32: there it depends on the place
//! in the array).

use serde_json::Value;

use super::Configuration;

/// A type of samples, with its byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub kind: Kind,
    /// Bytes of a number. Complex samples are two numbers.
    pub size: usize,
    pub is_big_endian: bool,
    pub is_complex: bool,
    /// Whether the numbers are times: they have a unit, which casts would change.
    pub is_time: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
}

impl Type {
    /// Reads the type that a configuration names `key`, or `otherwise`.
    pub(super) fn of(configuration: &Configuration, key: &str, otherwise: Option<Self>) -> Result<Self, String> {
        match configuration.get(key) {
            Some(Value::String(name)) => Self::parse(name).ok_or_else(|| format!("the type {name:?} is not supported")),
            None | Some(Value::Null) => otherwise.ok_or_else(|| format!("it has no {key:?}")),
            Some(other) => Err(format!("the type {other} is not supported")),
        }
    }

    /// Reads a name as `<i4` or `int32`.
    fn parse(name: &str) -> Option<Self> {
        let (order, code) = match name.chars().next()? {
            order @ ('<' | '>' | '|' | '=') => (order, name.get(1..)?),
            _ => ('=', name),
        };
        let time = ["M8", "m8"].iter().any(|code_of_time| {
            code.strip_prefix(code_of_time).is_some_and(|unit| unit.is_empty() || unit.starts_with('['))
        });
        let (kind, size, is_complex) = match code {
            "b1" | "?" | "bool" => (Kind::Bool, 1, false),
            "i1" | "int8" => (Kind::Signed, 1, false),
            "i2" | "int16" => (Kind::Signed, 2, false),
            "i4" | "int32" => (Kind::Signed, 4, false),
            "i8" | "int64" => (Kind::Signed, 8, false),
            "u1" | "uint8" => (Kind::Unsigned, 1, false),
            "u2" | "uint16" => (Kind::Unsigned, 2, false),
            "u4" | "uint32" => (Kind::Unsigned, 4, false),
            "u8" | "uint64" => (Kind::Unsigned, 8, false),
            "f2" | "float16" => (Kind::Float, 2, false),
            "f4" | "float32" => (Kind::Float, 4, false),
            "f8" | "float64" => (Kind::Float, 8, false),
            "c8" | "complex64" => (Kind::Float, 4, true),
            "c16" | "complex128" => (Kind::Float, 8, true),
            _ if time => (Kind::Signed, 8, false),
            _ => return None,
        };
        Some(Self { kind, size, is_big_endian: order == '>', is_complex, is_time: time })
    }

    /// Returns the bytes of a sample.
    pub(super) fn bytes(self) -> usize {
        if self.is_complex { 2 * self.size } else { self.size }
    }
}

/// The most numbers that are cast at a time. It is even: parts of complex samples stay together.
pub(super) const PART: usize = 512;

/// Numbers, the first ones of an array, that every type of their kind has.
pub(super) enum Numbers {
    Signed([i64; PART]),
    /// Also bool.
    Unsigned([u64; PART]),
    Float([f64; PART]),
}

/// Decodes numbers of one type. `stored` has at most [`PART`] of them, and no part of one.
pub(super) fn read(stored: &[u8], from: Type) -> Numbers {
    /// Widens each number of type `$from` to `$to`.
    macro_rules! widened {
        ($from:ty, $to:ty, $kind:ident, $widen:expr) => {{
            let mut numbers: [$to; PART] = [<$to>::default(); PART];
            let widen: fn($from) -> $to = $widen;
            let samples = numbers.iter_mut().zip(stored.as_chunks().0);
            if from.is_big_endian {
                samples.for_each(|(number, bytes)| *number = widen(<$from>::from_be_bytes(*bytes)));
            } else {
                samples.for_each(|(number, bytes)| *number = widen(<$from>::from_le_bytes(*bytes)));
            }
            Numbers::$kind(numbers)
        }};
    }
    match (from.kind, from.size) {
        (Kind::Bool, _) => widened!(u8, u64, Unsigned, |n| u64::from(n != 0)),
        (Kind::Signed, 1) => widened!(i8, i64, Signed, i64::from),
        (Kind::Signed, 2) => widened!(i16, i64, Signed, i64::from),
        (Kind::Signed, 4) => widened!(i32, i64, Signed, i64::from),
        (Kind::Signed, _) => widened!(i64, i64, Signed, |n| n),
        (Kind::Unsigned, 1) => widened!(u8, u64, Unsigned, u64::from),
        (Kind::Unsigned, 2) => widened!(u16, u64, Unsigned, u64::from),
        (Kind::Unsigned, 4) => widened!(u32, u64, Unsigned, u64::from),
        (Kind::Unsigned, _) => widened!(u64, u64, Unsigned, |n| n),
        (Kind::Float, 2) => widened!(u16, f64, Float, from_half),
        (Kind::Float, 4) => widened!(f32, f64, Float, f64::from),
        (Kind::Float, _) => widened!(f64, f64, Float, |n| n),
    }
}

/// Casts the first numbers to those of one type, which fill `out`.
pub(super) fn write(numbers: &Numbers, to: Type, out: &mut [u8]) {
    /// Casts each number to type `$to`.
    macro_rules! cast {
        ($to:ty, $signed:expr, $unsigned:expr, $float:expr) => {
            match numbers {
                Numbers::Signed(numbers) => cast!(each numbers, $to, $signed),
                Numbers::Unsigned(numbers) => cast!(each numbers, $to, $unsigned),
                Numbers::Float(numbers) => cast!(each numbers, $to, $float),
            }
        };
        (each $numbers:ident, $to:ty, $cast:expr) => {{
            let samples = out.as_chunks_mut().0.iter_mut().zip($numbers);
            if to.is_big_endian {
                samples.for_each(|(bytes, number)| *bytes = <$to>::to_be_bytes($cast(*number)));
            } else {
                samples.for_each(|(bytes, number)| *bytes = <$to>::to_le_bytes($cast(*number)));
            }
        }};
    }
    match (to.kind, to.size) {
        (Kind::Bool, _) => cast!(u8, |n: i64| u8::from(n != 0), |n: u64| u8::from(n != 0), |n: f64| u8::from(n != 0.0)),
        (Kind::Signed | Kind::Unsigned, 1) => cast!(u8, |n: i64| n as u8, |n: u64| n as u8, |n: f64| to_i32(n) as u8),
        (Kind::Signed | Kind::Unsigned, 2) => {
            cast!(u16, |n: i64| n as u16, |n: u64| n as u16, |n: f64| to_i32(n) as u16)
        }
        (Kind::Signed, 4) => cast!(u32, |n: i64| n as u32, |n: u64| n as u32, |n: f64| to_i32(n) as u32),
        (Kind::Unsigned, 4) => cast!(u32, |n: i64| n as u32, |n: u64| n as u32, |n: f64| to_i64(n) as u32),
        (Kind::Signed, _) => cast!(u64, |n: i64| n as u64, |n: u64| n, |n: f64| to_i64(n) as u64),
        (Kind::Unsigned, _) => cast!(u64, |n: i64| n as u64, |n: u64| n, to_u64),
        (Kind::Float, 2) => {
            cast!(u16, |n: i64| to_half((n as f32).into()), |n: u64| to_half((n as f32).into()), to_half)
        }
        (Kind::Float, 4) => cast!(f32, |n: i64| n as f32, |n: u64| n as f32, |n: f64| n as f32),
        (Kind::Float, _) => cast!(f64, |n: i64| n as f64, |n: u64| n as f64, |n: f64| n),
    }
}

/// 2^63, from which on numbers fit into no signed integer.
const TOP: f64 = 9_223_372_036_854_775_808.0;

fn to_i64(n: f64) -> i64 {
    if (-TOP..TOP).contains(&n) { n as i64 } else { i64::MIN }
}

fn to_i32(n: f64) -> i32 {
    let whole = n.trunc();
    if (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&whole) { whole as i32 } else { i32::MIN }
}

fn to_u64(n: f64) -> u64 {
    if n >= TOP { to_i64(n - TOP) as u64 ^ 1 << 63 } else { to_i64(n) as u64 }
}

/// Bits of the fraction of a float16 and of a float64.
const HALF_FRACTION: u32 = 10;
const FRACTION: u32 = 52;
/// What is added to the exponents of both.
const HALF_BIAS: i32 = 15;
const BIAS: i32 = 1023;
/// The exponent, as it is stored, of infinity and NaN.
const HALF_SPECIAL: u16 = 31;

/// Returns the number that the bits of a float16 are.
pub(super) fn from_half(half: u16) -> f64 {
    let (exponent, fraction) = (half >> HALF_FRACTION & HALF_SPECIAL, half & ((1 << HALF_FRACTION) - 1));
    let size = match exponent {
        // the fraction counts steps of the least number
        0 => f64::from(fraction) * 2f64.powi(1 - HALF_BIAS - HALF_FRACTION as i32),
        HALF_SPECIAL => f64::from_bits(0x7ff << FRACTION | u64::from(fraction) << (FRACTION - HALF_FRACTION)),
        _ => {
            let exponent = i32::from(exponent) - HALF_BIAS + BIAS;
            f64::from_bits((exponent as u64) << FRACTION | u64::from(fraction) << (FRACTION - HALF_FRACTION))
        }
    };
    if half >> 15 == 1 { -size } else { size }
}

/// Returns the bits of the nearest float16; of two equally near ones the even one.
pub(super) fn to_half(n: f64) -> u16 {
    let bits = n.to_bits();
    let sign = (bits >> 63 << 15) as u16;
    let (exponent, fraction) = ((bits >> FRACTION & 0x7ff) as i32, bits & ((1 << FRACTION) - 1));
    if exponent == 0x7ff {
        // NaN stays NaN, with the high bits of its fraction
        let high = (fraction >> (FRACTION - HALF_FRACTION)) as u16;
        return sign | HALF_SPECIAL << HALF_FRACTION | if fraction == 0 { 0 } else { high.max(1) };
    }
    let exponent = exponent - BIAS + HALF_BIAS;
    if exponent >= i32::from(HALF_SPECIAL) {
        return sign | HALF_SPECIAL << HALF_FRACTION;
    }
    // the bits of the fraction that do not fit; more of them below the least exponent
    let (exponent, shift) = if exponent > 0 { (exponent, 0) } else { (0, 1 - exponent) };
    let shift = (FRACTION - HALF_FRACTION) as i32 + shift;
    if shift > FRACTION as i32 + 1 {
        return sign;
    }
    let whole = if exponent > 0 { fraction } else { fraction | 1 << FRACTION };
    let (kept, rest, middle) = (whole >> shift, whole & ((1 << shift) - 1), 1 << (shift - 1));
    let up = rest > middle || rest == middle && kept & 1 == 1;
    // a carry goes into the exponent, and from the greatest number to infinity
    sign | (((exponent as u16) << HALF_FRACTION) + kept as u16 + u16::from(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float16_has_the_numbers_of_the_standard() {
        for (half, number) in [
            (0, 0.0),
            (1, 2f64.powi(-24)),
            (0x3ff, 1023.0 * 2f64.powi(-24)),
            (0x400, 2f64.powi(-14)),
            (0x3c00, 1.0),
            (0x3c01, 1.0 + 2f64.powi(-10)),
            (0x7bff, 65504.0),
            (0x7c00, f64::INFINITY),
            (0xc000, -2.0),
        ] {
            assert_eq!(from_half(half), number);
        }
        for half in (0..=u16::MAX).filter(|half| !from_half(*half).is_nan()) {
            assert_eq!(to_half(from_half(half)), half);
            // halfway to the next one: the even of the two
            let next = half + 1;
            if from_half(half).is_finite() && half != 0x7fff && half != 0xffff {
                let end = if next & 0x7fff == 0x7c00 { 65536f64.copysign(from_half(half)) } else { from_half(next) };
                let middle = (from_half(half) + end) / 2.0;
                assert_eq!(to_half(middle), if half & 1 == 0 { half } else { next }, "{half}");
                assert_eq!(to_half(middle + (end - middle) / 1e6), next);
                assert_eq!(to_half(middle - (end - middle) / 1e6), half);
            }
        }
        assert_eq!([1e300, -1e300, 1e-300, -1e-300, 2f64.powi(-25)].map(to_half), [0x7c00, 0xfc00, 0, 0x8000, 0]);
        assert!(from_half(to_half(f64::NAN)).is_nan() && from_half(0x7c01).is_nan());
    }

    #[test]
    fn types_have_their_names() {
        let plain = Type { kind: Kind::Signed, size: 4, is_big_endian: false, is_complex: false, is_time: false };
        for name in ["<i4", "i4", "=i4", "int32"] {
            assert_eq!(Type::parse(name), Some(plain));
        }
        assert_eq!(Type::parse(">i4"), Some(Type { is_big_endian: true, ..plain }));
        assert_eq!(Type::parse("<M8[ns]"), Some(Type { size: 8, is_time: true, ..plain }));
        assert_eq!(Type::parse("<c16").map(Type::bytes), Some(16));
        for name in ["", "<", "O", "|S3", "<f16", "M80", "é4", "<U1"] {
            assert_eq!(Type::parse(name), None, "{name}");
        }
    }
}
