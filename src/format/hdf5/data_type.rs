//! Types of elements, and how stored elements become samples that are shown.

use super::file::{Fields, uint, width_of};
use super::header::{Place, kind};
use crate::format::FormatError;
use crate::volume::{Dtype, Element, MAX_AXES, half_bits};

/// Types in types: arrays of arrays, members of members.
const MAX_NESTING: u32 = 16;

/// The type of an element as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DataType {
    /// Bytes of an element.
    pub size: usize,
    pub class: Class,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Class {
    Integer(Integer),
    Float(Float),
    Text,
    Opaque,
    Compound(Vec<(Vec<u8>, usize, DataType)>),
    Reference,
    Enumeration(Box<DataType>),
    Variable {
        is_text: bool,
        of: Box<DataType>,
    },
    Array(Vec<u64>, Box<DataType>),
    /// Two numbers of one type.
    Complex(Box<DataType>),
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Integer {
    big_endian: bool,
    signed: bool,
    /// The lowest of the bits that count, and how many do.
    offset: u32,
    bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Float {
    order: Order,
    sign: u32,
    /// The lowest bit and the number of bits.
    exponent: (u32, u32),
    mantissa: (u32, u32),
    bias: u64,
    /// Whether the highest bit of the mantissa is 1 and not stored.
    is_implied: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Little,
    Big,
    Vax,
}

impl DataType {
    pub(super) fn parse(at: &Place<'_>, fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        Self::nested(at, fields, 0)
    }

    fn nested(at: &Place<'_>, fields: &mut Fields<'_>, depth: u32) -> Result<Self, FormatError> {
        if depth > MAX_NESTING {
            return Err("its type has too many types in each other".into());
        }
        let first = fields.u8()?;
        let (version, class) = (first >> 4, first & 15);
        let bits = fields.uint(3)?;
        let size = fields.u32()? as usize;
        if !(1..=5).contains(&version) || size == 0 {
            return Err(format!("its type has version {version} and {size} bytes").into());
        }
        let class = match class {
            0 | 4 => {
                let (offset, precision) = (u32::from(fields.u16()?), u32::from(fields.u16()?));
                if precision == 0 || (offset + precision) as usize > size.saturating_mul(8) {
                    return Err(format!("its type has {precision} bits in {size} bytes").into());
                }
                let signed = class == 0 && bits & 8 != 0;
                Class::Integer(Integer { big_endian: bits & 1 == 1, signed, offset, bits: precision })
            }
            1 => Class::Float(Float::parse(fields, bits, size)?),
            2 => {
                fields.u16()?;
                Class::Time
            }
            3 => Class::Text,
            5 => {
                fields.take((bits & 0xff) as usize)?;
                Class::Opaque
            }
            6 => Class::Compound(Self::members(at, fields, (version, size, bits as usize & 0xffff), depth)?),
            7 => Class::Reference,
            8 => {
                let base = Self::nested(at, fields, depth + 1)?;
                for _ in 0..bits & 0xffff {
                    fields.text(if version < 3 { 8 } else { 1 })?;
                }
                fields.take(base.size.saturating_mul(bits as usize & 0xffff))?;
                Class::Enumeration(Box::new(base))
            }
            9 => {
                let of = Box::new(Self::nested(at, fields, depth + 1)?);
                Class::Variable { is_text: bits & 15 == 1, of }
            }
            10 => {
                let rank = usize::from(fields.u8()?);
                fields.take(if version < 3 { 3 } else { 0 })?;
                let mut shape = Vec::new();
                for _ in 0..rank {
                    shape.push(fields.u32()?.into());
                }
                fields.take(if version < 3 { 4 * rank } else { 0 })?;
                Class::Array(shape, Box::new(Self::nested(at, fields, depth + 1)?))
            }
            11 => Class::Complex(Box::new(Self::nested(at, fields, depth + 1)?)),
            other => return Err(format!("its type is of the unknown class {other}").into()),
        };
        Ok(Self { size, class })
    }

    fn members(
        at: &Place<'_>,
        fields: &mut Fields<'_>,
        (version, size, count): (u8, usize, usize),
        depth: u32,
    ) -> Result<Vec<(Vec<u8>, usize, Self)>, FormatError> {
        let mut members = Vec::new();
        for _ in 0..count {
            let name = fields.text(if version < 3 { 8 } else { 1 })?.to_vec();
            let offset = fields.uint(if version < 3 { 4 } else { width_of(size as u64) })? as usize;
            let mut shape = Vec::new();
            if version == 1 {
                let rank = usize::from(fields.u8()?).min(4);
                fields.take(11)?;
                for _ in 0..4 {
                    shape.push(fields.u32()?.into());
                }
                shape.truncate(rank);
            }
            let mut member = Self::nested(at, fields, depth + 1)?;
            if !shape.is_empty() {
                member = Self { size: member.size, class: Class::Array(shape, Box::new(member)) };
            }
            members.push((name, offset, member));
        }
        Ok(members)
    }

    /// Returns the type at the start of the bytes of a message, or the one that they lead to.
    pub(super) fn of_attribute(at: &Place<'_>, bytes: &[u8], is_shared: bool) -> Result<Self, FormatError> {
        if is_shared {
            let bytes = at.shared(kind::DATATYPE, bytes)?;
            return Self::parse(at, &mut at.file.fields("type", &bytes));
        }
        Self::parse(at, &mut at.file.fields("type", bytes))
    }

    /// Returns how the elements are shown, or the reason why they are not.
    pub(super) fn sample(&self) -> Result<Sample, String> {
        let one = |dtype, number, parts| {
            let stored = self.size;
            let mut sample = Sample { dtype, stored, inner: Vec::new(), number, parts, how: How::Converted };
            sample.how = sample.how();
            Ok(sample)
        };
        match &self.class {
            Class::Integer(integer) => {
                let dtype = integer.dtype(self.size).ok_or_else(|| format!("its samples are {}", self.name()))?;
                one(dtype, Number::Integer(*integer), 1)
            }
            Class::Float(float) => {
                let dtype = float.dtype(self.size).ok_or_else(|| format!("its samples are {}", self.name()))?;
                one(dtype, Number::Float(*float), 1)
            }
            Class::Enumeration(base) => base.sample(),
            Class::Complex(base) => self.complex(base),
            Class::Compound(members) => match &members[..] {
                [(re, 0, first), (im, offset, second)]
                    if first == second && *offset == first.size && is_pair(re, im) && self.size == 2 * first.size =>
                {
                    self.complex(first)
                }
                _ => Err("its samples are structures of several values, which are not shown".into()),
            },
            Class::Array(shape, base) => {
                let mut sample = base.sample()?;
                let mut inner = shape.clone();
                inner.extend(&sample.inner);
                let bytes = shape.iter().try_fold(base.size as u64, |all, n| all.checked_mul(*n));
                if bytes != Some(self.size as u64) || self.size == 0 {
                    return Err(format!("its samples are arrays of {shape:?} in {} bytes", self.size));
                }
                if inner.len() > MAX_AXES {
                    return Err(format!("its samples are arrays of {} axes", inner.len()));
                }
                sample.inner = inner;
                Ok(sample)
            }
            _ => Err(format!("its samples are {}, which are not shown", self.name())),
        }
    }

    fn complex(&self, part: &Self) -> Result<Sample, String> {
        let refuse = || "its samples are complex numbers of a type that is not shown".to_owned();
        let mut sample = part.sample()?;
        let dtype = match sample.dtype {
            Dtype::Float16 | Dtype::Float32 => Dtype::Complex64,
            Dtype::Float64 => Dtype::Complex128,
            _ => return Err(refuse()),
        };
        if sample.parts != 1 || !sample.inner.is_empty() || self.size != 2 * part.size {
            return Err(refuse());
        }
        // libraries differ in what these are
        if part.size > 8 {
            return Err("its samples are complex numbers of long doubles, which are not shown".into());
        }
        (sample.parts, sample.stored, sample.dtype) = (2, self.size, dtype);
        sample.how = sample.how();
        Ok(sample)
    }

    /// Describes the type for people.
    pub(super) fn name(&self) -> String {
        match &self.class {
            Class::Integer(integer) => {
                let kind = if integer.signed { "integers" } else { "unsigned integers" };
                format!("{kind} of {} bits in {} bytes", integer.bits, self.size)
            }
            Class::Float(_) => format!("floating-point numbers of {} bytes", self.size),
            Class::Text | Class::Variable { is_text: true, .. } => "texts".into(),
            Class::Opaque => "opaque bytes".into(),
            Class::Compound(_) => "structures of several values".into(),
            Class::Reference => "references".into(),
            Class::Enumeration(base) => format!("enumerated {}", base.name()),
            Class::Variable { .. } => "lists of variable length".into(),
            Class::Array(shape, base) => format!("arrays of {shape:?} {}", base.name()),
            Class::Complex(_) => "complex numbers".into(),
            Class::Time => "times".into(),
        }
    }
}

fn is_pair(re: &[u8], im: &[u8]) -> bool {
    let pairs: [[&[u8]; 2]; 4] = [[b"r", b"i"], [b"re", b"im"], [b"real", b"imag"], [b"real", b"imaginary"]];
    pairs.iter().any(|[a, b]| re.eq_ignore_ascii_case(a) && im.eq_ignore_ascii_case(b))
}

impl Integer {
    fn dtype(&self, size: usize) -> Option<Dtype> {
        let types = match size {
            1 => [Dtype::UInt8, Dtype::Int8],
            2 => [Dtype::UInt16, Dtype::Int16],
            4 => [Dtype::UInt32, Dtype::Int32],
            3 | 5..=8 => [Dtype::UInt64, Dtype::Int64],
            _ => return None,
        };
        Some(types[usize::from(self.signed)])
    }

    /// Returns the integer whose bits are `raw`.
    fn value(&self, raw: u128) -> u64 {
        let unused = 64 - self.bits.clamp(1, 64);
        let value = ((raw >> self.offset) as u64) << unused;
        if self.signed { (value.cast_signed() >> unused).cast_unsigned() } else { value >> unused }
    }
}

impl Float {
    fn parse(fields: &mut Fields<'_>, bits: u64, size: usize) -> Result<Self, FormatError> {
        let order = match (bits & 1, bits >> 6 & 1) {
            (0, 0) => Order::Little,
            (1, 0) => Order::Big,
            (1, 1) => Order::Vax,
            _ => return Err("its floating-point type has an unknown byte order".into()),
        };
        fields.u32()?;
        let mut number = || fields.u8().map(u32::from);
        let (exponent, mantissa) = ((number()?, number()?), (number()?, number()?));
        let bias = u64::from(fields.u32()?);
        let (sign, is_implied) = ((bits >> 8 & 0xff) as u32, bits >> 4 & 3 == 2);
        let total = size.saturating_mul(8) as u64;
        let ends = [sign + 1, exponent.0 + exponent.1, mantissa.0 + mantissa.1];
        if ends.iter().any(|end| u64::from(*end) > total) || exponent.1 == 0 || exponent.1 > 32 || mantissa.1 == 0 {
            return Err(format!("its floating-point type of {size} bytes makes no sense").into());
        }
        Ok(Self { order, sign, exponent, mantissa, bias, is_implied })
    }

    fn is(&self, sign: u32, exponent: u32, mantissa: u32, bias: u64) -> bool {
        let layout = (self.sign, self.exponent, self.mantissa, self.bias, self.is_implied);
        layout == (sign, (mantissa, exponent), (0, mantissa), bias, true)
    }

    fn is_half(&self) -> bool {
        self.is(15, 5, 10, 15)
    }

    fn is_bfloat16(&self) -> bool {
        self.is(15, 8, 7, 127)
    }

    fn is_single(&self) -> bool {
        self.is(31, 8, 23, 127)
    }

    fn is_double(&self) -> bool {
        self.is(63, 11, 52, 1023)
    }

    fn dtype(&self, size: usize) -> Option<Dtype> {
        // bytes, bits of the mantissa, and exponents of the greatest and of the least numbers
        let types = [(Dtype::Float16, 10, 16, -14), (Dtype::Float32, 23, 128, -126), (Dtype::Float64, 52, 1024, -1022)];
        let (greatest, bias) = ((1i64 << self.exponent.1) - 1, self.bias as i64);
        let fits = |(dtype, mantissa, most, least): &(Dtype, u32, i64, i64)| {
            let range = greatest - bias <= *most && 1 - bias >= *least;
            size <= dtype.size() && self.mantissa.1 <= *mantissa && range
        };
        let (dtype, ..) = types.into_iter().find(fits).unwrap_or((Dtype::Float64, 0, 0, 0));
        (size <= 16).then_some(dtype)
    }

    /// Returns the nearest float64 of the number whose bits are `raw`.
    fn value(&self, raw: u128) -> f64 {
        let part = |(low, bits): (u32, u32)| raw >> low & ((1u128 << bits.min(127)) - 1);
        let (exponent, mut mantissa) = (part(self.exponent) as u64, part(self.mantissa));
        let greatest = (1u64 << self.exponent.1) - 1;
        let sign = if raw >> self.sign & 1 == 1 { -1.0 } else { 1.0 };
        let bits = self.mantissa.1 as i32;
        // the highest bit of the mantissa is stored where it is not implied
        let fraction = if self.is_implied { mantissa } else { mantissa & !(1u128 << (bits - 1).clamp(0, 126)) };
        if exponent == greatest && self.order != Order::Vax {
            return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        let mut power = exponent as i64 - self.bias as i64;
        let mut point = i64::from(bits);
        if !self.is_implied {
            point -= 1;
            power += i64::from(exponent == 0);
        } else if exponent > 0 {
            mantissa |= 1 << bits.min(126);
        } else if self.order == Order::Vax {
            return 0.0;
        } else {
            power += 1;
        }
        sign * scaled(mantissa, power - point)
    }
}

/// Returns the nearest float64 of `number` times two to the power of `power`.
fn scaled(number: u128, power: i64) -> f64 {
    if number == 0 {
        return 0.0;
    }
    // what is left of the bits is rounded once, to as many as the float64 has
    let highest = i64::from(number.ilog2()) + power;
    if highest > 1024 {
        return f64::INFINITY;
    }
    let kept = if highest >= -1022 { 53 } else { highest + 1075 };
    if kept < 0 {
        return 0.0;
    }
    let dropped = i64::from(number.ilog2()) + 1 - kept;
    let (mut kept, mut power) = (number, power);
    if dropped > 0 {
        let (half, rest) = (1u128 << (dropped - 1), number & ((1u128 << dropped) - 1));
        kept = number >> dropped.min(127);
        if dropped > 127 {
            kept = 0;
        }
        kept += u128::from(rest > half || rest == half && kept & 1 == 1);
        power += dropped;
    }
    // two steps: neither factor is out of range
    let first = power.clamp(-1000, 1000);
    kept as f64 * 2f64.powi(first as i32) * 2f64.powi((power - first).clamp(-1100, 1100) as i32)
}

/// How stored elements become samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub dtype: Dtype,
    /// Bytes of a stored sample.
    pub stored: usize,
    /// The axes of an element that is an array.
    pub inner: Vec<u64>,
    pub how: How,
    number: Number,
    /// The numbers of a sample: two of a complex one.
    parts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(Integer),
    Float(Float),
}

/// What is done to a stored sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Nothing,
    /// The bytes of words of this size are reversed.
    Swapped(usize),
    /// It is the upper half of a float32.
    Widened {
        big_endian: bool,
    },
    /// It is made of its bits.
    Converted,
}

impl Sample {
    fn how(&self) -> How {
        let word = self.stored / self.parts;
        let is_whole = self.stored == self.dtype.size();
        let (is_usual, big_endian) = match &self.number {
            Number::Integer(integer) => {
                (is_whole && integer.offset == 0 && integer.bits as usize == 8 * word, integer.big_endian)
            }
            Number::Float(float) => {
                if float.order == Order::Vax {
                    return How::Converted;
                }
                let big_endian = float.order == Order::Big;
                if float.is_bfloat16() && word == 2 && self.parts == 1 {
                    return How::Widened { big_endian };
                }
                (is_whole && (float.is_half() || float.is_single() || float.is_double()), big_endian)
            }
        };
        match (is_usual, big_endian && word > 1) {
            (true, false) => How::Nothing,
            (true, true) => How::Swapped(word),
            (false, _) => How::Converted,
        }
    }

    /// Makes samples of stored ones, as many as there are of both.
    pub(super) fn convert(&self, stored: &[u8], out: &mut [u8]) {
        let (from, to) = (self.stored / self.parts, self.dtype.size() / self.parts);
        if from == 0 || to == 0 {
            return;
        }
        for (number, sample) in stored.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
            let raw = self.raw(number);
            match &self.number {
                Number::Integer(integer) => {
                    let value = integer.value(raw).to_le_bytes();
                    sample.copy_from_slice(value.get(..to).unwrap_or(&value));
                }
                Number::Float(float) if to == 2 => {
                    // an unusual one: those that are whole are swapped at most
                    let bits = if float.is_half() { raw as u16 } else { half_bits(float.value(raw)) };
                    sample.copy_from_slice(&bits.to_le_bytes());
                }
                Number::Float(float) if to == 4 => sample.copy_from_slice(&(float.value(raw) as f32).to_le_bytes()),
                Number::Float(float) => sample.copy_from_slice(&float.value(raw).to_le_bytes()),
            }
        }
    }

    /// Returns the bits of a stored number.
    fn raw(&self, number: &[u8]) -> u128 {
        let mut bytes = [0; 16];
        let number = number.get(..16).unwrap_or(number);
        bytes.iter_mut().zip(number).for_each(|(to, byte)| *to = *byte);
        let order = match &self.number {
            Number::Integer(integer) if integer.big_endian => Order::Big,
            Number::Integer(_) => Order::Little,
            Number::Float(float) => float.order,
        };
        match order {
            Order::Little => {}
            Order::Big => bytes[..number.len()].reverse(),
            Order::Vax => {
                // words of 16 bits, the highest first
                bytes[..number.len()].reverse();
                bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|word| word.reverse());
            }
        }
        u128::from_le_bytes(bytes)
    }

    /// Returns the sample of one stored element.
    pub(super) fn element(&self, stored: &[u8]) -> Element {
        let mut out = [0; Dtype::MAX_SIZE];
        let out = &mut out[..self.dtype.size()];
        self.convert(stored, out);
        Element::new(out)
    }

    /// Returns the bytes of an element: of all its samples if it is an array.
    pub(super) fn element_bytes(&self) -> usize {
        self.inner.iter().fold(self.stored, |bytes, n| bytes.saturating_mul(*n as usize))
    }
}

/// Returns the integer that bytes of an attribute are, for texts.
pub(super) fn integer_of(sample: &Sample, element: &Element) -> Option<i128> {
    let raw = uint(element.bytes().get(..8).unwrap_or(element.bytes()));
    let unused = 64 - 8 * sample.dtype.size().min(8) as u32;
    match sample.dtype {
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => {
            Some(((raw << unused).cast_signed() >> unused).into())
        }
        dtype if dtype.is_integer() => Some(raw.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: Float =
        Float { order: Order::Little, sign: 63, exponent: (52, 11), mantissa: (0, 52), bias: 1023, is_implied: true };

    fn sample(size: usize, class: Class) -> Sample {
        DataType { size, class }.sample().unwrap()
    }

    #[test]
    fn floats_are_made_of_their_bits() {
        for number in [0.0, -0.0, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-310, f64::INFINITY, 0.1] {
            assert_eq!(DOUBLE.value(number.to_bits().into()).to_bits(), number.to_bits(), "{number}");
        }
        assert!(DOUBLE.value(f64::NAN.to_bits().into()).is_nan());
        let extended =
            Float { sign: 79, exponent: (64, 15), mantissa: (0, 64), bias: 16383, is_implied: false, ..DOUBLE };
        let of = |exponent: u128, mantissa: u128| extended.value(exponent << 64 | mantissa);
        assert_eq!([of(16383, 1 << 63), of(16384, 3 << 62), of(0x7fff, 1 << 63)], [1.0, 3.0, f64::INFINITY]);
        // 1 and half of the last bit of a float64, and a little more than that
        assert_eq!(of(16383, 1 << 63 | 1 << 10), 1.0);
        assert_eq!(of(16383, 1 << 63 | 1 << 10 | 1), 1.0 + f64::EPSILON);
        let tiny = Float { sign: 7, exponent: (2, 5), mantissa: (0, 2), bias: 15, ..DOUBLE };
        assert_eq!([0x3c, 0xbe, 0x01, 0x7c].map(|raw| tiny.value(raw)), [1.0, -1.5, 2f64.powi(-16), f64::INFINITY]);
    }

    #[test]
    fn integers_are_some_bits_of_their_bytes() {
        let of = |size: usize, offset, bits, signed, big_endian| {
            sample(size, Class::Integer(Integer { big_endian, signed, offset, bits }))
        };
        let element = |sample: &Sample, bytes: &[u8]| integer_of(sample, &sample.element(bytes));
        assert_eq!(of(2, 0, 16, true, true).how, How::Swapped(2));
        assert_eq!(of(1, 0, 8, true, true).how, How::Nothing);
        let three = of(3, 0, 24, true, true);
        assert_eq!((three.dtype, element(&three, &[255, 255, 254])), (Dtype::Int64, Some(-2)));
        let some = of(4, 4, 17, true, false);
        assert_eq!(element(&some, &(0x1_ffff_u32 << 4 | 15).to_le_bytes()), Some(-1));
        assert_eq!(element(&of(4, 4, 17, false, false), &(0x1_ffff_u32 << 4).to_le_bytes()), Some(0x1_ffff));
        assert!(DataType { size: 9, class: Class::Text }.sample().is_err());
    }
}
