//! Typed access to the items of a `VDSObject` by key. Errors name the key.

use super::object_text::{Item, Items};

/// The items of an object.
pub(crate) struct ObjectFields<'a> {
    /// The path of the object in errors, with a dot.
    pub path: String,
    pub items: &'a Items<'a>,
}

impl ObjectFields<'_> {
    /// Returns an error that says what the value of a key must be.
    pub(crate) fn fault(&self, key: &str, must: &str) -> String {
        let is = match self.items.get(key) {
            None => return format!("{}{key} is missing", self.path),
            Some(Item::Number(number)) if number.len() <= 100 => (*number).to_owned(),
            Some(Item::Text(text)) if text.len() <= 100 => format!("\"{text}\""),
            Some(_) => "something else".into(),
        };
        format!("{}{key} is {is}: it must be {must}", self.path)
    }

    /// Reads a string; empty if the key is missing.
    pub(crate) fn text(&self, key: &str) -> Result<String, String> {
        match self.items.get(key) {
            None => Ok(String::new()),
            Some(Item::Text(text)) => Ok(text.clone()),
            Some(_) => Err(self.fault(key, "a text")),
        }
    }

    /// Reads a boolean: false if the key is missing, and true for all but FALSE.
    pub(crate) fn flag(&self, key: &str) -> bool {
        match self.items.get(key) {
            None => false,
            Some(Item::Text(text)) => text != "FALSE",
            Some(_) => true,
        }
    }

    /// Reads a whole number.
    pub(crate) fn count(&self, key: &str) -> Result<u64, String> {
        let number = match self.items.get(key) {
            Some(Item::Number(number)) => plain(number),
            _ => None,
        };
        number.ok_or_else(|| self.fault(key, "a whole number of at least 0"))
    }

    /// Reads a number; `None` if the key is missing.
    pub(crate) fn float(&self, key: &str) -> Result<Option<f32>, String> {
        match self.items.get(key) {
            None => Ok(None),
            Some(Item::Number(number)) => single(number).map(Some).ok_or_else(|| self.fault(key, "a number")),
            Some(_) => Err(self.fault(key, "a number")),
        }
    }

    /// Reads the pair `{Min; Max}`; missing ones are NaN.
    pub(crate) fn pair(&self, key: &str) -> Result<[f32; 2], String> {
        match self.items.get(key) {
            None => Ok([f32::NAN; 2]),
            Some(Item::One(items)) => {
                let ends = ObjectFields { path: format!("{}{key}.", self.path), items };
                Ok([ends.float("Min")?.unwrap_or(f32::NAN), ends.float("Max")?.unwrap_or(f32::NAN)])
            }
            Some(_) => Err(self.fault(key, "a Min and a Max")),
        }
    }

    /// Reads the value of an enumeration without the prefix that all its values have.
    pub(crate) fn enum_name(&self, key: &str, prefix: &str) -> Result<&str, String> {
        let name = match self.items.get(key) {
            Some(Item::Text(text)) => text.strip_prefix(prefix),
            _ => None,
        };
        name.ok_or_else(|| self.fault(key, &format!("one of {prefix}...")))
    }

    /// Reads the number at the end of a value of an enumeration.
    pub(crate) fn enum_number(&self, key: &str, prefix: &str) -> Result<u64, String> {
        let digits = Some(self.enum_name(key, prefix)?).filter(|digits| !digits.is_empty());
        digits.and_then(plain).ok_or_else(|| self.fault(key, &format!("one of {prefix}...")))
    }
}

/// Parses a number; those that are not finite are spelled as C libraries write them.
pub(crate) fn double(number: &str) -> Option<f64> {
    number.parse().ok().or_else(|| match number.trim_start_matches(['+', '-']) {
        infinite if infinite.starts_with("1.#INF") => {
            Some(if number.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY })
        }
        nan if nan.starts_with("1.#") || nan.to_ascii_lowercase().starts_with("nan") => Some(f64::NAN),
        _ => None,
    })
}

pub(crate) fn single(number: &str) -> Option<f32> {
    number.parse().ok().or_else(|| double(number).map(|number| number as f32))
}

/// Parses a number of digits only.
pub(crate) fn plain(number: &str) -> Option<u64> {
    number.bytes().all(|digit| digit.is_ascii_digit()).then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite() {
        let spelled = ["nan", "-nan(ind)", "1.#QNAN", "-1.#IND", "inf", "-1.#INF", "1.#INF00", "x"].map(double);
        assert!(spelled[..4].iter().all(|number| number.is_some_and(f64::is_nan)));
        let infinity = f64::INFINITY;
        assert_eq!(spelled[4..], [Some(infinity), Some(-infinity), Some(infinity), None]);
    }
}
