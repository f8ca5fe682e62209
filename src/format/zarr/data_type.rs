//! The types of samples in all versions of Zarr, how they are shown, and their fill values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::format::bytes::whole;
use crate::volume::{Dtype, Element, half_bits};

/// What a sample is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    UInt,
    Float,
    /// The upper half of a float32.
    Bfloat16,
    Complex,
    /// A date or a duration: a number of units.
    Time,
}

/// The type of the samples as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataType {
    kind: Kind,
    /// Bytes of a stored sample.
    pub size: usize,
    pub big_endian: bool,
    /// The unit of dates and durations: `ns`, `25s`.
    pub unit: Option<String>,
}

impl DataType {
    /// Parses a type of version 2: `<i4`, `|b1`, `>M8[ns]`. The error is the reason why it is not shown.
    pub(super) fn of_version_2(value: &Value) -> Result<Self, String> {
        let Some(text) = value.as_str() else {
            return Err("its samples are structures, which are not shown".into());
        };
        let known = || {
            let mut letters = text.chars();
            let (order, kind) = (letters.next()?, letters.next()?);
            let (size, unit) = letters.as_str().split_once('[').unwrap_or((letters.as_str(), ""));
            let kind = match kind {
                'b' => Kind::Bool,
                'i' => Kind::Int,
                'u' => Kind::UInt,
                'f' => Kind::Float,
                'c' => Kind::Complex,
                'M' | 'm' => Kind::Time,
                _ => return None,
            };
            let unit = unit.strip_suffix(']').filter(|_| kind == Kind::Time).map(str::to_owned);
            let data_type = Self { kind, size: size.parse().ok()?, big_endian: order == '>', unit };
            data_type.dtype().map(|_| data_type)
        };
        known().ok_or_else(|| format!("its samples are of type {text}, which is not shown"))
    }

    /// Parses a type of version 3, without the byte order, which is a matter of the codecs there.
    pub(super) fn of_version_3(value: &Value) -> Result<Self, String> {
        let refuse = || format!("its samples are of type {value}, which is not shown");
        let name = value.as_str().or_else(|| value.get("name")?.as_str()).ok_or_else(refuse)?;
        let number = |prefix: &str| name.strip_prefix(prefix)?.parse::<usize>().ok().filter(|bits| bits % 8 == 0);
        let mut unit = None;
        let (kind, bits) = match name {
            "bool" => (Kind::Bool, 8),
            "bfloat16" => (Kind::Bfloat16, 16),
            "numpy.datetime64" | "numpy.timedelta64" => {
                let configuration = value.get("configuration");
                let text = configuration.and_then(|c| c.get("unit")).and_then(Value::as_str).unwrap_or("generic");
                let factor = configuration.and_then(|c| c.get("scale_factor")).and_then(Value::as_u64).unwrap_or(1);
                unit = Some(if factor == 1 { text.to_owned() } else { format!("{factor}{text}") });
                (Kind::Time, 64)
            }
            _ => [("int", Kind::Int), ("uint", Kind::UInt), ("float", Kind::Float), ("complex", Kind::Complex)]
                .into_iter()
                .find_map(|(prefix, kind)| Some((kind, number(prefix)?)))
                .ok_or_else(refuse)?,
        };
        let data_type = Self { kind, size: bits / 8, big_endian: false, unit };
        if data_type.dtype().is_some() { Ok(data_type) } else { Err(refuse()) }
    }

    /// Returns the type under which the samples are shown; `None` if there is none.
    pub(super) fn dtype(&self) -> Option<Dtype> {
        Some(match (self.kind, self.size) {
            (Kind::Bool, 1) | (Kind::UInt, 1) => Dtype::UInt8,
            (Kind::Int, 1) => Dtype::Int8,
            (Kind::Int, 2) => Dtype::Int16,
            (Kind::UInt, 2) => Dtype::UInt16,
            (Kind::Int, 4) => Dtype::Int32,
            (Kind::UInt, 4) => Dtype::UInt32,
            (Kind::Int | Kind::Time, 8) => Dtype::Int64,
            (Kind::UInt, 8) => Dtype::UInt64,
            (Kind::Float, 4) | (Kind::Bfloat16, 2) => Dtype::Float32,
            (Kind::Float, 8) => Dtype::Float64,
            (Kind::Float, 2) => Dtype::Float16,
            (Kind::Complex, 8) => Dtype::Complex64,
            (Kind::Complex, 16) => Dtype::Complex128,
            _ => return None,
        })
    }

    /// Whether a sample is shown as a float32 of which only the upper half is stored.
    pub(super) fn is_bfloat16(&self) -> bool {
        self.kind == Kind::Bfloat16
    }

    /// Returns the bytes whose order the byte order is about: half of a complex number.
    pub(super) fn word(&self) -> usize {
        if self.kind == Kind::Complex { self.size / 2 } else { self.size }
    }

    /// Returns a fill value as a shown sample; `None` if it is not one of this type. In version 2, null leaves the
    /// samples undefined: they are zeros here, as in every implementation.
    pub(super) fn fill_value(&self, value: &Value) -> Option<Element> {
        let dtype = self.dtype()?;
        if value.is_null() {
            return Some(Element::zero(dtype.size()));
        }
        match self.kind {
            Kind::Bool => value.as_bool().or_else(|| Some(whole(value)? != 0)).map(|bit| Element::new(&[bit.into()])),
            Kind::Int | Kind::UInt | Kind::Time => self.whole_number(value),
            Kind::Float | Kind::Bfloat16 => self.float(value),
            Kind::Complex => {
                let parts = Self { kind: Kind::Float, size: self.word(), ..self.clone() };
                let (re, im) = match value.as_array().map(Vec::as_slice) {
                    Some([re, im]) => (parts.float(re)?, parts.float(im)?),
                    Some(_) => return None,
                    None => (parts.float(value)?, Element::zero(self.word())),
                };
                Some(Element::new(&[re.bytes(), im.bytes()].concat()))
            }
        }
    }

    fn whole_number(&self, value: &Value) -> Option<Element> {
        let number = match value.as_str() {
            Some("NaT") if self.kind == Kind::Time => i64::MIN.into(),
            Some(text) => {
                return self.base64(text);
            }
            None => whole(value)?,
        };
        let bits = 8 * self.size as u32;
        let fits = match self.kind {
            Kind::UInt => (0..1i128 << bits).contains(&number),
            _ => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&number),
        };
        fits.then(|| Element::new(&number.to_le_bytes()[..self.size]))
    }

    fn float(&self, value: &Value) -> Option<Element> {
        let number = match value.as_str() {
            Some("NaN") => f64::NAN,
            Some("Infinity") => f64::INFINITY,
            Some("-Infinity") => f64::NEG_INFINITY,
            Some(text) => match text.strip_prefix("0x") {
                Some(digits) => return self.bits(digits),
                None => match self.base64(text) {
                    Some(element) => return Some(element),
                    None => text.parse().ok()?,
                },
            },
            None => value.as_f64()?,
        };
        Some(match (self.kind, self.size) {
            (Kind::Bfloat16, _) => Element::new(&(round_to_bfloat16(number as f32)).to_le_bytes()),
            (_, 2) => Element::new(&half_bits(number).to_le_bytes()),
            (_, 4) => Element::new(&(number as f32).to_le_bytes()),
            _ => Element::new(&number.to_le_bytes()),
        })
    }

    /// Returns the sample with these bits, in hexadecimal digits.
    fn bits(&self, digits: &str) -> Option<Element> {
        if digits.len() != 2 * self.size {
            return None;
        }
        let bits = u64::from_str_radix(digits, 16).ok()?;
        Some(match self.kind {
            Kind::Bfloat16 => Element::new(&((bits as u32) << 16).to_le_bytes()),
            _ => Element::new(&bits.to_le_bytes()[..self.size]),
        })
    }

    /// Returns the sample whose stored bytes a text has in base64.
    fn base64(&self, text: &str) -> Option<Element> {
        let mut bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() == self.size)?;
        if self.big_endian {
            bytes.reverse();
        }
        Some(match (self.kind, &bytes[..]) {
            (Kind::Bfloat16, [low, high]) => Element::new(&[0, 0, *low, *high]),
            _ => Element::new(&bytes),
        })
    }
}

/// Returns the nearest number of which the lower half is zero, the even one of two.
fn round_to_bfloat16(number: f32) -> u32 {
    let bits = number.to_bits();
    if number.is_nan() {
        return (bits | 0x40_0000) & 0xffff_0000;
    }
    bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(data_type: &Value, value: &Value) -> Option<Vec<u8>> {
        let parsed = match data_type.as_str() {
            Some(text) if text.starts_with(['<', '>', '|']) => DataType::of_version_2(data_type),
            _ => DataType::of_version_3(data_type),
        };
        parsed.unwrap().fill_value(value).map(|element| element.bytes().to_vec())
    }

    #[test]
    fn types_of_both_versions() {
        let shown = |text: &str| DataType::of_version_2(&json!(text)).ok().and_then(|t| t.dtype());
        for (text, dtype) in [
            ("|b1", Dtype::UInt8),
            ("<u1", Dtype::UInt8),
            (">i2", Dtype::Int16),
            ("<u8", Dtype::UInt64),
            (">f8", Dtype::Float64),
            ("<M8[ns]", Dtype::Int64),
        ] {
            assert_eq!(shown(text), Some(dtype), "{text}");
        }
        for text in ["", "<", "<i", "<i3", "|S5", "<U4", "|V8", "|O", "<f16", "<i99999999999999999999", "é", "<é4"] {
            assert!(DataType::of_version_2(&json!(text)).is_err(), "{text}");
        }
        let shown = |value: Value| DataType::of_version_3(&value).ok().and_then(|t| t.dtype());
        assert_eq!(shown(json!("bfloat16")), Some(Dtype::Float32));
        assert_eq!(shown(json!({"name": "int8", "configuration": {}})), Some(Dtype::Int8));
        let time = json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 25}});
        assert_eq!(DataType::of_version_3(&time).unwrap().unit.as_deref(), Some("25s"));
        for name in ["string", "int4", "r16", "int3", "float8_e4m3", "uint", "float80", ""] {
            assert!(DataType::of_version_3(&json!(name)).is_err(), "{name}");
        }
        assert!(
            DataType::of_version_3(&json!([1])).is_err() && DataType::of_version_2(&json!([["a", "<i4"]])).is_err()
        );
    }

    #[test]
    fn fill_values_in_every_spelling() {
        assert_eq!(fill(&json!("uint16"), &json!(65535)), Some(vec![255, 255]));
        assert_eq!(fill(&json!("int8"), &json!(-128)), Some(vec![128]));
        assert_eq!(fill(&json!("int16"), &json!(7.0)), Some(vec![7, 0]));
        assert_eq!(fill(&json!("uint64"), &json!(u64::MAX)), Some(vec![255; 8]));
        for bad in [json!(-1), json!(256), json!(1.5), json!("x"), json!([1])] {
            assert_eq!(fill(&json!("uint8"), &bad), None, "{bad}");
        }
        assert_eq!(fill(&json!("|b1"), &json!(true)), Some(vec![1]));
        assert_eq!(fill(&json!("<M8[ns]"), &json!("NaT")), Some(i64::MIN.to_le_bytes().into()));
        assert_eq!(fill(&json!("float32"), &json!("0x7fc00001")), Some(0x7fc0_0001u32.to_le_bytes().into()));
        assert_eq!(fill(&json!("float32"), &json!("-Infinity")), Some(f32::NEG_INFINITY.to_le_bytes().into()));
        assert_eq!(fill(&json!("float64"), &json!(0.1)), Some(0.1f64.to_le_bytes().into()));
        assert_eq!(fill(&json!(">f8"), &json!("P/AAAAAAAAA=")), Some(1f64.to_le_bytes().into()));
        assert_eq!(fill(&json!("bfloat16"), &json!("0x3f80")), Some(1f32.to_le_bytes().into()));
        assert_eq!(fill(&json!("bfloat16"), &json!(1.00390625)), Some(1f32.to_le_bytes().into()), "ties to even");
        assert_eq!(fill(&json!("<f4"), &json!(null)), Some(vec![0; 4]));
        assert_eq!(fill(&json!("float32"), &json!("0x7fc0000")), None);
    }
}
