//! Formats JSON values for people.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::number::float;
use crate::logging::timestamp;

/// Significant digits of a float32.
const DIGITS: usize = 7;

/// Significant digits that keep a millimetre in a world coordinate.
const COORDINATE_DIGITS: usize = 11;

/// Entries of an object that fit on a line.
const MAX_INLINE: usize = 4;

/// Formats a number, text or boolean. Returns `None` for null, empty text, lists and objects.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.trim().is_empty()).then(|| text.clone()),
        Value::Number(_) => number(value),
        Value::Bool(truth) => Some(if *truth { "yes" } else { "no" }.to_owned()),
        _ => None,
    }
}

/// Formats a number: all digits of an integer, the significant digits of a float.
pub(crate) fn number(value: &Value) -> Option<String> {
    rounded(value, DIGITS)
}

/// Formats a world coordinate.
pub(crate) fn coordinate(value: &Value) -> Option<String> {
    rounded(value, COORDINATE_DIGITS)
}

/// Formats a list of two numbers as `first to last`.
pub(crate) fn range(value: &Value) -> Option<String> {
    let [least, greatest] = value.as_array()?.as_slice() else { return None };
    Some(format!("{} to {}", number(least)?, number(greatest)?))
}

/// Joins the entries of a list: `512 x 512 x 1024`. Returns `None` unless all are scalars.
pub(crate) fn joined(value: &Value, between: &str) -> Option<String> {
    let entries: Option<Vec<String>> = value.as_array()?.iter().map(scalar).collect();
    entries.filter(|entries| !entries.is_empty()).map(|entries| entries.join(between))
}

/// Formats any value, short enough for a line.
pub(crate) fn brief(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(items) if items.is_empty() => None,
        Value::Object(items) if items.is_empty() => None,
        Value::Array(items) => {
            Some(joined(value, ", ").unwrap_or_else(|| format!("{} entries (--json shows them)", items.len())))
        }
        Value::Object(items) if items.len() <= MAX_INLINE && items.values().all(|item| scalar(item).is_some()) => {
            let parts = items.iter().filter_map(|(key, item)| Some(format!("{key} {}", scalar(item)?)));
            Some(parts.collect::<Vec<_>>().join(", "))
        }
        Value::Object(items) => Some(format!("{} entries (--json shows them)", items.len())),
        _ => scalar(value),
    }
}

/// Formats a time, given in seconds since 1970 or as text.
pub(crate) fn time(value: &Value) -> Option<String> {
    match value.as_f64().map(Duration::try_from_secs_f64) {
        Some(Ok(since)) => Some(timestamp(UNIX_EPOCH.checked_add(since)?)),
        _ => scalar(value),
    }
}

fn rounded(value: &Value, digits: usize) -> Option<String> {
    if value.is_i64() || value.is_u64() {
        return Some(value.to_string());
    }
    value.as_f64().map(|number| float(number, digits))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_the_digits_that_count() {
        for (value, text) in [
            (json!(268_435_456), "268435456"),
            (json!(0.100_000_001_490_116_12), "0.1"),
            (json!(-32768.0), "-32768"),
            (json!(-0.0), "0"),
            (json!(1.5e-9), "1.5e-9"),
            (json!(3.402_823_466e38), "3.402823e38"),
            (json!(1_000_000.0), "1000000"),
        ] {
            assert_eq!(number(&value).as_deref(), Some(text));
        }
        assert_eq!(coordinate(&json!(6_200_123.456_789)).as_deref(), Some("6200123.4568"));
        assert_eq!(number(&json!(null)), None);
    }

    #[test]
    fn values_become_text() {
        assert_eq!(scalar(&json!("  ")), None);
        assert_eq!(time(&json!(951_782_400)).as_deref(), Some("2000-02-29T00:00:00.000Z"));
        assert_eq!(time(&json!("today")).as_deref(), Some("today"));
        assert_eq!(time(&json!(-1e300)).as_deref(), Some("-1e300"));
        assert_eq!(range(&json!([-1, 2.5])).as_deref(), Some("-1 to 2.5"));
        assert_eq!(range(&json!(null)), None);
        assert_eq!(joined(&json!([64, 64, 32]), " x ").as_deref(), Some("64 x 64 x 32"));
        assert_eq!(joined(&json!([]), " x "), None);
        assert_eq!(brief(&json!([1, "a"])).as_deref(), Some("1, a"));
        assert_eq!(brief(&json!([{}, {}])).as_deref(), Some("2 entries (--json shows them)"));
        assert_eq!(brief(&json!({"a": 1, "b": "c"})).as_deref(), Some("a 1, b c"));
        assert_eq!(brief(&json!({"a": [1]})).as_deref(), Some("1 entries (--json shows them)"));
        assert_eq!(brief(&json!({})), None);
        assert_eq!(brief(&json!(true)).as_deref(), Some("yes"));
    }
}
