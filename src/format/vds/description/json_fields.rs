//! Typed access to the values of a JSON object by key. Errors name the whole path of the key.

use serde_json::{Map, Value};

/// An object in a JSON document.
pub(crate) struct JsonFields<'a> {
    /// The path of the object, with a dot: `axisDescriptors[1].`
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> JsonFields<'a> {
    /// Creates the fields of the root object.
    pub(crate) fn of(map: &'a Map<String, Value>) -> Self {
        Self { path: String::new(), map }
    }

    /// Reads the object at a key.
    pub(crate) fn object(&self, key: &str) -> Result<JsonFields<'a>, String> {
        let map = self.needed(key)?.as_object().ok_or_else(|| self.fault(key, "an object"))?;
        Ok(JsonFields { path: format!("{}{key}.", self.path), map })
    }

    /// Reads the objects of the list at a key.
    pub(crate) fn objects(&self, key: &str) -> Result<Vec<JsonFields<'a>>, String> {
        let list = self.needed(key)?.as_array().ok_or_else(|| self.fault(key, "a list"))?;
        let objects = list.iter().enumerate().map(|(n, value)| {
            let path = format!("{}{key}[{n}]", self.path);
            let map = value.as_object().ok_or_else(|| format!("{path} is {}: it must be an object", kind(value)))?;
            Ok(JsonFields { path: path + ".", map })
        });
        objects.collect()
    }

    /// Reads the value of a key; `None` also for null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn needed(&self, key: &str) -> Result<&'a Value, String> {
        self.get(key).ok_or_else(|| format!("{} is missing", self.key(key)))
    }

    /// Returns the whole path of a key.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    /// Returns an error that says what the value of a key must be.
    pub(crate) fn fault(&self, key: &str, must: &str) -> String {
        format!("{} is {}: it must be {must}", self.key(key), self.get(key).map_or("missing".into(), kind))
    }

    /// Reads a whole number that is not negative.
    pub(crate) fn count(&self, key: &str) -> Result<u64, String> {
        let number = whole(self.needed(key)?).ok_or_else(|| self.fault(key, "a whole number"))?;
        u64::try_from(number).map_err(|_| self.fault(key, "at least 0"))
    }

    /// Reads a string; empty if the key is missing.
    pub(crate) fn text(&self, key: &str) -> Result<String, String> {
        let Some(value) = self.get(key) else { return Ok(String::new()) };
        value.as_str().map(str::to_owned).ok_or_else(|| self.fault(key, "a text"))
    }

    /// Reads a boolean; false if the key is missing.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, String> {
        let Some(value) = self.get(key) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.fault(key, "true or false"))
    }

    /// Reads a number; NaN for null.
    pub(crate) fn float(&self, key: &str, missing: f32) -> Result<f32, String> {
        let Some(value) = self.map.get(key) else { return Ok(missing) };
        float(value).map(|number| number as f32).ok_or_else(|| self.fault(key, "a number"))
    }

    /// Reads the value of an enumeration without the prefix that all its values have.
    pub(crate) fn enum_name(&self, key: &str, prefix: &str) -> Result<&'a str, String> {
        let text = self.needed(key)?.as_str();
        text.and_then(|text| text.strip_prefix(prefix)).ok_or_else(|| self.fault(key, &format!("one of {prefix}...")))
    }

    /// Reads the number at the end of a value of an enumeration.
    pub(crate) fn enum_number(&self, key: &str, prefix: &str) -> Result<u64, String> {
        let digits = self.enum_name(key, prefix)?;
        let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let number = if plain { digits.parse().ok() } else { None };
        number.ok_or_else(|| self.fault(key, &format!("one of {prefix}...")))
    }
}

/// Converts a number; null is NaN.
pub(crate) fn float(value: &Value) -> Option<f64> {
    if value.is_null() { Some(f64::NAN) } else { value.as_f64() }
}

/// Converts a whole number, which may be written with a decimal point.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    let exact = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
    value.as_i64().or_else(|| value.as_f64().filter(exact).map(|number| number as i64))
}

/// Describes a value in an error message: short ones in full.
fn kind(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".into(),
        Value::Array(_) => "a list".into(),
        Value::String(text) if text.len() > 100 => "a long text".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_name_the_key() {
        let Value::Object(map) = json!({
            "a": {"b": [{"n": -1, "t": 5, "f": "yes", "w": "Size_x", "x": 1.5}, 7], "c": [{}]}
        }) else {
            return;
        };
        let a = JsonFields::of(&map).object("a").unwrap();
        let faults =
            [JsonFields::of(&map).object("z").err(), a.objects("b").err(), a.object("c").err(), a.objects("d").err()];
        let expected = [
            "z is missing",
            "a.b[1] is 7: it must be an object",
            "a.c is a list: it must be an object",
            "a.d is missing",
        ];
        assert_eq!(faults, expected.map(|text| Some(text.into())));
        let Some(Value::Object(first)) = map["a"]["b"].get(0) else { return };
        let first = JsonFields { path: "a.b[0].".into(), map: first };
        assert_eq!(first.count("n").unwrap_err(), "a.b[0].n is -1: it must be at least 0");
        assert_eq!(first.count("x").unwrap_err(), "a.b[0].x is 1.5: it must be a whole number");
        assert_eq!(first.text("t").unwrap_err(), "a.b[0].t is 5: it must be a text");
        assert_eq!(first.flag("f").unwrap_err(), "a.b[0].f is \"yes\": it must be true or false");
        assert_eq!(first.enum_number("w", "Size_").unwrap_err(), "a.b[0].w is \"Size_x\": it must be one of Size_...");
        assert_eq!(first.enum_name("w", "Other_").unwrap_err(), "a.b[0].w is \"Size_x\": it must be one of Other_...");
    }

    #[test]
    fn numbers_may_be_written_with_a_point() {
        assert_eq!(
            [json!(5.0), json!(-3), json!(0.5), json!("5"), json!(1e300)].map(|v| whole(&v)),
            [Some(5), Some(-3), None, None, None]
        );
        assert!(float(&Value::Null).is_some_and(f64::is_nan));
    }
}
