//! What attributes say of the values of samples, by the conventions of CF.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::volume::{Dtype, NativeJson, Scaling};

/// Returns how stored samples become values, by the conventions of CF.
pub(in crate::format) fn scaling(attributes: &NativeJson, dtype: Dtype) -> Option<Scaling> {
    if dtype.is_complex() {
        return None;
    }
    let number = |key: &str| attributes.get(key).and_then(Value::as_f64).filter(|number| number.is_finite());
    let no_value = ["_FillValue", "missing_value"].into_iter().find_map(|key| match attributes.get(key)? {
        // xarray stores floats of version 3 so
        Value::String(text) => STANDARD.decode(text).ok()?.try_into().ok().map(f64::from_le_bytes),
        value => value.as_f64(),
    });
    let no_value = no_value.filter(|number| !number.is_nan());
    let (scale, offset) = (number("scale_factor"), number("add_offset"));
    if scale.is_none() && offset.is_none() && no_value.is_none() || !dtype.is_integer() && scale.is_none() {
        return None;
    }
    let scaling =
        Scaling { no_value, is_code: false, ..Scaling::of_codes(scale.unwrap_or(1.0), offset.unwrap_or(0.0)) };
    scaling.says_something().then_some(scaling)
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
