//! What attributes say of the values of samples, by the conventions of CF.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::format::bytes::whole;
use crate::volume::{Dtype, NativeJson, Scaling, half, half_bits};

/// What samples mean.
#[derive(Clone, Copy, Default)]
pub(in crate::format) struct Values {
    /// How they become values.
    pub scaling: Option<Scaling>,
    /// The sample that means "no data".
    pub no_value: Option<f64>,
}

impl Values {
    /// Returns what attributes say by the conventions of CF.
    pub(in crate::format) fn of(attributes: &NativeJson, dtype: Dtype) -> Self {
        // the values of unsigned numbers that are stored as signed ones are not known
        let is_unsigned = attributes.get("_Unsigned").and_then(Value::as_str) == Some("true") && dtype.is_integer();
        if dtype.is_complex() || is_unsigned {
            return Self::default();
        }
        let number = |key: &str| attributes.get(key).and_then(Value::as_f64).filter(|number| number.is_finite());
        // of several the first
        let of = |key: &str| attributes.get(key).map(|value| value.get(0).unwrap_or(value));
        let no_value = ["_FillValue", "missing_value"].into_iter().find_map(|key| match of(key)? {
            // xarray stores floats of version 3 so
            Value::String(text) => STANDARD.decode(text).ok()?.try_into().ok().map(f64::from_le_bytes),
            value => exact(value),
        });
        let no_value = no_value.filter(|number| !number.is_nan()).map(|number| match dtype {
            // as a sample is
            Dtype::Float32 => (number as f32).into(),
            Dtype::Float16 => half(half_bits(number).to_le_bytes()).into(),
            _ => number,
        });
        let (scale, offset) = (number("scale_factor"), number("add_offset"));
        let is_scaled = scale.is_some() || offset.is_some();
        let (scale, offset) = (scale.unwrap_or(1.0), offset.unwrap_or(0.0));
        let scaling = Scaling { no_value, is_code: false, ..Scaling::of_codes(scale, offset) };
        let has_scaling = scaling.says_something() && (is_scaled || dtype.is_integer());
        Self { scaling: has_scaling.then_some(scaling), no_value }
    }
}

/// Returns a number that is a double; `None` for a large integer that is none.
fn exact(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| whole(value).is_none_or(|whole| *number as i128 == whole))
}

/// Returns the least and the greatest value, scaled, where attributes have those of stored samples.
pub(in crate::format) fn value_range(attributes: &NativeJson, scaling: Option<&Scaling>) -> Option<(f64, f64)> {
    let number = |value: Option<&Value>| value?.as_f64().filter(|number| number.is_finite());
    let range = attributes.get("valid_range").and_then(Value::as_array).map(|list| (list.first(), list.get(1)));
    let (least, most) = range.unwrap_or_else(|| (attributes.get("valid_min"), attributes.get("valid_max")));
    let value = |stored: f64| scaling.map_or(stored, |scaling| stored * scaling.scale + scaling.offset);
    let (a, b) = (value(number(least)?), value(number(most)?));
    Some((a.min(b), a.max(b))).filter(|(a, b)| a < b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fill_values_are_samples() {
        let of = |dtype, attributes: Value| Values::of(attributes.as_object().unwrap(), dtype);
        let found = of(Dtype::Float32, json!({"_FillValue": -999.9}));
        assert_eq!((found.no_value, found.scaling), (Some(f64::from(-999.9_f32)), None));
        let found = of(Dtype::Float32, json!({"missing_value": 1e20, "scale_factor": 0.5}));
        assert_eq!(found.scaling.and_then(|scaling| scaling.no_value), Some(f64::from(1e20_f32)));
        assert_eq!(of(Dtype::Float64, json!({"_FillValue": -999.9})).no_value, Some(-999.9));
        let found = of(Dtype::Int16, json!({"_FillValue": -1}));
        assert_eq!((found.no_value, found.scaling.map(|scaling| scaling.scale)), (Some(-1.0), Some(1.0)));
        // the nearest doubles are other samples
        for (dtype, value) in [(Dtype::Int64, json!(i64::MIN + 2)), (Dtype::UInt64, json!(u64::MAX - 1))] {
            assert_eq!(of(dtype, json!({"_FillValue": value})).no_value, None);
        }
        assert_eq!(of(Dtype::Int64, json!({"_FillValue": i64::MIN})).no_value, Some(i64::MIN as f64));
    }
}
