//! JSON values, and checksums in the notation of the test data.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Reads a JSON file.
pub fn json(path: impl AsRef<Path>) -> Value {
    let path = path.as_ref();
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the elements of an array of whole numbers.
pub fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().unwrap_or_else(|| panic!("not a list: {value}"));
    list.iter().map(|n| n.as_u64().unwrap_or_else(|| panic!("not whole numbers: {value}"))).collect()
}

/// Returns the elements of an array of numbers.
pub fn floats(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("not a list: {value}"));
    list.iter().map(|n| n.as_f64().unwrap_or_else(|| panic!("not numbers: {value}"))).collect()
}

/// Returns the CRC-32 of bytes as eight hexadecimal digits.
pub fn crc(bytes: &[u8]) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    format!("{:08x}", crc.sum())
}

/// Groups the entries of a list by their key `dataset`.
pub fn by_dataset(entries: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for entry in entries {
        groups.entry(entry["dataset"].as_str().unwrap().to_owned()).or_default().push(entry.clone());
    }
    groups
}
