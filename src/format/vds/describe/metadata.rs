//! The metadata of a dataset, as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::description::{Description, MetadataEntry, MetadataValue};

/// Returns the list of all entries: category, name, type and value; BLOBs as base64 and with their length.
pub(crate) fn metadata(description: &Description) -> Value {
    description.metadata.iter().map(entry).collect()
}

fn entry(entry: &MetadataEntry) -> Value {
    let (kind, value) = match &entry.value {
        MetadataValue::Int(values) => (typed("Int", values.len()), one_or_all(values)),
        MetadataValue::Float(values) => (typed("Float", values.len()), one_or_all(values)),
        MetadataValue::Double(values) => (typed("Double", values.len()), one_or_all(values)),
        MetadataValue::Text(text) => ("String".into(), text.as_str().into()),
        MetadataValue::Blob(blob) => ("BLOB".into(), STANDARD.encode(blob).into()),
        MetadataValue::Other(kind, value) => (kind.clone(), value.clone()),
    };
    let mut entry_json = json!({"category": entry.category, "name": entry.name, "type": kind, "value": value});
    if let MetadataValue::Blob(blob) = &entry.value {
        entry_json["length"] = blob.len().into();
    }
    entry_json
}

/// Returns the name of a type of this many elements.
fn typed(scalar: &str, length: usize) -> String {
    if length == 1 { scalar.to_owned() } else { format!("{scalar}Vector{length}") }
}

fn one_or_all<T: Copy + Into<Value>>(values: &[T]) -> Value {
    match values {
        [one] => (*one).into(),
        all => all.iter().copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_every_type() {
        let entry = |value| MetadataEntry { category: "c".into(), name: "n".into(), value };
        let description = Description {
            metadata: vec![
                entry(MetadataValue::Int(vec![-3])),
                entry(MetadataValue::Int(vec![1, 2])),
                entry(MetadataValue::Float(vec![0.5, f32::NAN, f32::INFINITY])),
                entry(MetadataValue::Double(vec![0.1])),
                entry(MetadataValue::Text("t".into())),
                entry(MetadataValue::Blob(vec![0, 1, 2, 255])),
                entry(MetadataValue::Other("Matrix".into(), json!([[1]]))),
            ],
            ..Description::default()
        };
        let expected = [
            ("Int", json!(-3)),
            ("IntVector2", json!([1, 2])),
            ("FloatVector3", json!([0.5, null, null])),
            ("Double", json!(0.1)),
            ("String", json!("t")),
            ("BLOB", json!("AAEC/w==")),
            ("Matrix", json!([[1]])),
        ];
        let found = metadata(&description);
        for (number, (kind, value)) in expected.into_iter().enumerate() {
            let mut expected = json!({"category": "c", "name": "n", "type": kind, "value": value});
            if kind == "BLOB" {
                expected["length"] = json!(4);
            }
            assert_eq!(found[number], expected);
        }
        assert_eq!(metadata(&Description::default()), json!([]));
    }
}
