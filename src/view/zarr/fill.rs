//! The value of samples that have no chunk, as JSON has it.

use serde_json::{Number, Value};

use crate::volume::{Dtype, Element};

/// Returns the JSON form of a sample (Zarr v3, section "fill value"); `None` for a NaN that is not the usual one.
pub(crate) fn number(dtype: Dtype, sample: &Element) -> Option<Value> {
    let mut bytes = [0; 8];
    bytes[..sample.bytes().len()].copy_from_slice(sample.bytes());
    let [b0, b1, b2, b3, ..] = bytes;
    Some(match dtype {
        Dtype::Int8 => i8::from_le_bytes([b0]).into(),
        Dtype::UInt8 => b0.into(),
        Dtype::Int16 => i16::from_le_bytes([b0, b1]).into(),
        Dtype::UInt16 => u16::from_le_bytes([b0, b1]).into(),
        Dtype::Int32 => i32::from_le_bytes([b0, b1, b2, b3]).into(),
        Dtype::UInt32 => u32::from_le_bytes([b0, b1, b2, b3]).into(),
        Dtype::Int64 => i64::from_le_bytes(bytes).into(),
        Dtype::UInt64 => u64::from_le_bytes(bytes).into(),
        Dtype::Float32 => {
            let value = f32::from_le_bytes([b0, b1, b2, b3]);
            return float(value.into(), value.to_bits() == f32::NAN.to_bits());
        }
        Dtype::Float64 => {
            let value = f64::from_le_bytes(bytes);
            return float(value, value.to_bits() == f64::NAN.to_bits());
        }
    })
}

fn float(value: f64, is_usual_nan: bool) -> Option<Value> {
    match value {
        _ if value.is_nan() => is_usual_nan.then(|| "NaN".into()),
        f64::INFINITY => Some("Infinity".into()),
        f64::NEG_INFINITY => Some("-Infinity".into()),
        _ => Number::from_f64(value).map(Value::Number),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_are_numbers_or_names() {
        let of = |dtype, bytes: &[u8]| number(dtype, &Element::new(bytes));
        assert_eq!(of(Dtype::Int8, &[0xff]), Some(json!(-1)));
        assert_eq!(of(Dtype::UInt16, &[0xff, 0xff]), Some(json!(65535)));
        assert_eq!(of(Dtype::UInt64, &[0xff; 8]), Some(json!(u64::MAX)));
        assert_eq!(of(Dtype::Float64, &[0; 8]).unwrap().to_string(), "0.0");
        let float = |value: f32| of(Dtype::Float32, &value.to_le_bytes());
        assert_eq!(float(-999.25), Some(json!(-999.25)));
        assert_eq!((float(f32::NAN), float(f32::INFINITY)), (Some(json!("NaN")), Some(json!("Infinity"))));
        assert_eq!(float(f32::from_bits(0x7fc0_0001)), None);
        // what is written reads back to the same float32
        for value in [1e30f32, f32::MIN_POSITIVE, -0.1, -0.0] {
            let read = float(value).unwrap().as_f64().unwrap() as f32;
            assert_eq!(read.to_bits(), value.to_bits());
        }
    }
}
