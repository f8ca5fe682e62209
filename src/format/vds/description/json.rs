//! Parser of `VolumeDataLayout`, the description as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{
    AxisDescriptor, Channel, Description, LayoutDescriptor, MetadataEntry, MetadataValue, SampleFormat, element_type,
    warn,
};
use crate::format::bytes::{decimal, json_text, whole};

pub(crate) fn parse(text: &[u8]) -> Result<Description, String> {
    let text = String::from_utf8_lossy(json_text(text)?);
    let mut warnings = Vec::new();
    if matches!(text, std::borrow::Cow::Owned(_)) {
        warnings.push("the layout has bytes that are no UTF-8: they are shown as \u{fffd}".into());
    }
    let json: Map<String, Value> = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let document = Fields::new(&json);
    let layout = layout(&document.object("layoutDescriptor")?)?;
    let axes = document.objects("axisDescriptors")?.iter().map(axis).collect::<Result<_, _>>()?;
    let mut channels = Vec::new();
    for fields in document.objects("channelDescriptors")? {
        channels.push(channel(&fields, &mut warnings)?);
    }
    let metadata = metadata(&document, &mut warnings)?;
    Description { layout, axes, channels, metadata, warnings }.checked()
}

fn layout(fields: &Fields<'_>) -> Result<LayoutDescriptor, String> {
    let lods = match fields.enum_name("lodLevels", "LODLevels_")? {
        "None" => 0,
        _ => fields.enum_number("lodLevels", "LODLevels_")?,
    };
    let is_forced = fields.flag("forceFullResolutionDimension")?;
    Ok(LayoutDescriptor {
        brick: fields.enum_number("brickSize", "BrickSize_")?,
        negative_margin: fields.count("negativeMargin")?,
        positive_margin: fields.count("positiveMargin")?,
        multiplier_2d: fields.count("brickSize2DMultiplier")?,
        lods,
        lods_2d: fields.flag("create2DLODs")?,
        full_resolution: is_forced.then(|| fields.count("fullResolutionDimension")).transpose()?,
    })
}

fn axis(fields: &Fields<'_>) -> Result<AxisDescriptor, String> {
    Ok(AxisDescriptor {
        name: fields.text("name")?,
        unit: fields.text("unit")?,
        samples: fields.count("numSamples")?,
        min: fields.float("coordinateMin", f32::NAN)?,
        max: fields.float("coordinateMax", f32::NAN)?,
    })
}

fn channel(fields: &Fields<'_>, warnings: &mut Vec<String>) -> Result<Channel, String> {
    let format = SampleFormat::from_name(fields.enum_name("format", "Format_")?);
    let per_trace = match fields.get("channelMapping").map(Value::as_str) {
        None | Some(Some("Direct")) => None,
        Some(Some("PerTrace")) => Some(fields.count("mappedValues")?),
        Some(_) => return Err(fields.fault("channelMapping", "Direct or PerTrace")),
    };
    let no_value = if fields.flag("useNoValue")? { Some(fields.float("noValue", f32::NAN)?) } else { None };
    if no_value.is_some() && fields.get("noValue").is_none() {
        warn(warnings, || format!("{} is not there: NaN is taken for it", fields.key("noValue")));
    }
    Ok(Channel {
        name: fields.text("name")?,
        unit: fields.text("unit")?,
        format: format.ok_or_else(|| fields.fault("format", "a known one"))?,
        components: fields.enum_number("components", "Components_")?,
        value_range: range(fields)?,
        per_trace,
        discrete: fields.flag("discrete")?,
        renderable: fields.flag("renderable")?,
        lossy_allowed: fields.flag("allowLossyCompression")?,
        no_value,
        integer_scale: fields.float("integerScale", 1.0)?,
        integer_offset: fields.float("integerOffset", 0.0)?,
    })
}

fn range(fields: &Fields<'_>) -> Result<[f32; 2], String> {
    let Some(value) = fields.get("valueRange") else { return Ok([f32::NAN; 2]) };
    let ends = value.as_array().and_then(|list| match list.as_slice() {
        [least, most] => Some([float(least)? as f32, float(most)? as f32]),
        _ => None,
    });
    ends.ok_or_else(|| fields.fault("valueRange", "a list of two numbers"))
}

/// Parses the metadata. Invalid entries become warnings, since the data can be read without them.
fn metadata(document: &Fields<'_>, warnings: &mut Vec<String>) -> Result<Vec<MetadataEntry>, String> {
    let Some(list) = document.get("metadata") else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or_else(|| document.fault("metadata", "a list"))?;
    let mut entries = Vec::with_capacity(list.len());
    for (number, entry) in list.iter().enumerate() {
        let Some(value) = entry.get("value") else {
            warn(warnings, || format!("metadata[{number}] has no value: it is left out"));
            continue;
        };
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let texts = ["category", "name", "type"].map(text);
        entries.push(metadata_entry(&format!("metadata[{number}]"), texts, value, || value.clone(), warnings));
    }
    Ok(entries)
}

/// Makes the metadata entry `what` of its category, name and type. A value of an unknown type is kept as `shown`; so is
/// one that is not of its type, with a warning.
pub(super) fn metadata_entry(
    what: &str,
    [category, name, kind]: [String; 3],
    value: &Value,
    shown: impl FnOnce() -> Value,
    warnings: &mut Vec<String>,
) -> MetadataEntry {
    let found = metadata_value(&kind, value).unwrap_or_else(|fault| {
        warn(warnings, || format!("{what} \"{category}\" \"{name}\" is no {kind}: {fault}"));
        None
    });
    let value = found.unwrap_or_else(|| MetadataValue::Other(kind, shown()));
    MetadataEntry { category, name, value }
}

/// Parses the value of a metadata entry; `None` if the type is unknown.
fn metadata_value(kind: &str, value: &Value) -> Result<Option<MetadataValue>, String> {
    let int = |value: &Value| whole(value).and_then(|number| i32::try_from(number).ok());
    let odd = || "its value is of another type".to_owned();
    let (scalar, length) = element_type(kind);
    Ok(Some(match scalar {
        "String" if length == 1 => MetadataValue::Text(value.as_str().ok_or_else(odd)?.to_owned()),
        "BLOB" if length == 1 => {
            let blob = STANDARD.decode(value.as_str().ok_or_else(odd)?);
            MetadataValue::Blob(blob.map_err(|e| format!("its base64 is damaged: {e}"))?)
        }
        "Int" => MetadataValue::Int(vector(length, value, int).ok_or_else(odd)?),
        "Float" => MetadataValue::Float(vector(length, value, |v| float(v).map(|v| v as f32)).ok_or_else(odd)?),
        "Double" => MetadataValue::Double(vector(length, value, float).ok_or_else(odd)?),
        _ => return Ok(None),
    }))
}

fn vector<T>(length: usize, value: &Value, element: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    if length == 1 {
        return Some(vec![element(value)?]);
    }
    let list = value.as_array().filter(|list| list.len() == length)?;
    list.iter().map(element).collect()
}

/// An object in a JSON document.
pub(crate) struct Fields<'a> {
    /// The path of the object, with a dot: `axisDescriptors[1].`
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Creates the fields of the root object.
    pub(crate) fn new(map: &'a Map<String, Value>) -> Self {
        Self { path: String::new(), map }
    }

    pub(crate) fn object(&self, key: &str) -> Result<Fields<'a>, String> {
        let map = self.needed(key)?.as_object().ok_or_else(|| self.fault(key, "an object"))?;
        Ok(Fields { path: format!("{}{key}.", self.path), map })
    }

    /// Reads the objects of the list at a key.
    pub(crate) fn objects(&self, key: &str) -> Result<Vec<Fields<'a>>, String> {
        let list = self.needed(key)?.as_array().ok_or_else(|| self.fault(key, "a list"))?;
        let objects = list.iter().enumerate().map(|(n, value)| {
            let path = format!("{}{key}[{n}]", self.path);
            let map = value.as_object().ok_or_else(|| format!("{path} is {}: it must be an object", kind(value)))?;
            Ok(Fields { path: path + ".", map })
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

    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    /// Returns an error that says what the value of a key must be.
    pub(crate) fn fault(&self, key: &str, must: &str) -> String {
        format!("{} is {}: it must be {must}", self.key(key), self.get(key).map_or("missing".into(), kind))
    }

    /// Reads a whole number that is not negative.
    pub(crate) fn count(&self, key: &str) -> Result<u64, String> {
        let number = whole(self.needed(key)?).filter(|number| *number <= i64::MAX.into());
        let number = number.ok_or_else(|| self.fault(key, "a whole number"))?;
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
        decimal(self.enum_name(key, prefix)?).ok_or_else(|| self.fault(key, &format!("one of {prefix}...")))
    }
}

/// Converts a number; null is NaN, and the greatest number is infinite.
pub(crate) fn float(value: &Value) -> Option<f64> {
    let number = if value.is_null() { f64::NAN } else { value.as_f64()? };
    Some(if number.abs() == f64::MAX { 2.0 * number } else { number })
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

    use super::super::tests::full_layout;
    use super::*;

    fn of(json: &Value) -> Result<Description, String> {
        parse(json.to_string().as_bytes())
    }

    /// Parses the layout with a change at a JSON pointer.
    fn changed(pointer: &str, value: Value) -> Result<Description, String> {
        let mut json = full_layout();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match json.pointer_mut(parent).unwrap() {
            Value::Object(map) => {
                map.insert(key.to_owned(), value);
            }
            other => other[key.parse::<usize>().unwrap()] = value,
        }
        of(&json)
    }

    fn removed(parent: &str, key: &str) -> Result<Description, String> {
        let mut json = full_layout();
        json.pointer_mut(parent).and_then(Value::as_object_mut).and_then(|map| map.remove(key)).unwrap();
        of(&json)
    }

    #[test]
    fn every_property_is_parsed() {
        let found = of(&full_layout()).unwrap();
        let layout = LayoutDescriptor {
            brick: 64,
            negative_margin: 4,
            positive_margin: 3,
            multiplier_2d: 4,
            lods: 3,
            lods_2d: true,
            full_resolution: None,
        };
        assert_eq!(found.layout, layout);
        let inline =
            AxisDescriptor { name: "Inline".into(), unit: "unitless".into(), samples: 20, min: 30.5, max: 11.5 };
        assert_eq!(found.axes[2], inline);
        let amplitude = Channel {
            name: "Amplitude".into(),
            unit: "mV".into(),
            format: SampleFormat::U16,
            components: 1,
            value_range: [-0.079_382_98, 0.079_382_98],
            per_trace: None,
            discrete: false,
            renderable: true,
            lossy_allowed: true,
            no_value: Some(-999.25),
            integer_scale: 0.5,
            integer_offset: -2.5,
        };
        assert_eq!(found.channels[0], amplitude);
        let second = &found.channels[1];
        assert_eq!((second.name.as_str(), second.components, second.per_trace), ("Amplitude", 2, Some(240)));
        assert_eq!((second.no_value, second.integer_scale, second.integer_offset), (None, 1.0, 0.0));
        assert!(second.discrete && !second.renderable && !second.lossy_allowed);
        assert_eq!(found.entry("", "i"), Some(&MetadataValue::Int(vec![-7])));
        assert_eq!(found.entry("c", "iv"), Some(&MetadataValue::Int(vec![1, 2, 3])));
        assert_eq!(found.entry("c", "f"), Some(&MetadataValue::Float(vec![0.1])));
        let Some(MetadataValue::Double(pair)) = found.entry("c", "dv") else { panic!("no doubles") };
        assert!(pair[0] == 431_964.738_704_873_7 && pair[1].is_nan() && pair.len() == 2);
        assert_eq!(found.entry("c", "s"), Some(&MetadataValue::Text("täxt".into())));
        assert_eq!(found.entry("SEGY", "b"), Some(&MetadataValue::Blob(vec![0, 1, 2, 255])));
        assert_eq!(found.warnings, [""; 0]);
    }

    #[test]
    fn faults_name_the_key() {
        let faults = [
            ("/axisDescriptors/1/numSamples", json!(0), "axisDescriptors[1].numSamples is 0: there must be at least 1"),
            (
                "/axisDescriptors/0/numSamples",
                json!("9"),
                "axisDescriptors[0].numSamples is \"9\": it must be a whole number",
            ),
            ("/axisDescriptors/0", json!(9), "axisDescriptors[0] is 9: it must be an object"),
            (
                "/layoutDescriptor/brickSize",
                json!("BrickSize_48"),
                "layoutDescriptor.brickSize is 48: it must be a power of two",
            ),
            (
                "/layoutDescriptor/brickSize",
                json!("Large"),
                "layoutDescriptor.brickSize is \"Large\": it must be one of BrickSize_...",
            ),
            (
                "/layoutDescriptor/brickSize",
                json!("BrickSize_+64"),
                "layoutDescriptor.brickSize is \"BrickSize_+64\": it must be one of BrickSize_...",
            ),
            (
                "/layoutDescriptor/negativeMargin",
                json!(-1),
                "layoutDescriptor.negativeMargin is -1: it must be at least 0",
            ),
            (
                "/layoutDescriptor/lodLevels",
                json!("LODLevels_13"),
                "layoutDescriptor.lodLevels is 13: there must be at most 12",
            ),
            (
                "/layoutDescriptor/create2DLODs",
                json!("no"),
                "layoutDescriptor.create2DLODs is \"no\": it must be true or false",
            ),
            ("/layoutDescriptor", json!([]), "layoutDescriptor is a list: it must be an object"),
            ("/channelDescriptors", json!([]), "channelDescriptors is empty: there must be at least 1"),
            (
                "/channelDescriptors/1/mappedValues",
                json!(0),
                "channelDescriptors[1].mappedValues is 0: there must be at least 1",
            ),
            (
                "/channelDescriptors/1/mappedValues",
                json!(2_147_483_648_u64),
                "channelDescriptors[1].mappedValues is 2147483648: there must be at most 2147483647",
            ),
            (
                "/channelDescriptors/0/channelMapping",
                json!("Other"),
                "channelDescriptors[0].channelMapping is \"Other\": it must be Direct or PerTrace",
            ),
            (
                "/channelDescriptors/0/format",
                json!("Format_R16"),
                "channelDescriptors[0].format is \"Format_R16\": it must be a known one",
            ),
            (
                "/channelDescriptors/0/components",
                json!("Components_3"),
                "channelDescriptors[0].components is 3: it must be 1, 2 or 4",
            ),
            (
                "/channelDescriptors/0/valueRange",
                json!([1]),
                "channelDescriptors[0].valueRange is a list: it must be a list of two numbers",
            ),
            ("/metadata", json!({}), "metadata is an object: it must be a list"),
        ];
        for (pointer, value, fault) in faults {
            assert_eq!(changed(pointer, value), Err(fault.to_owned()), "{pointer}");
        }
        for (parent, key) in [
            ("", "axisDescriptors"),
            ("/layoutDescriptor", "positiveMargin"),
            ("/channelDescriptors/1", "mappedValues"),
        ] {
            assert!(removed(parent, key).is_err_and(|fault| fault.ends_with("is missing")), "{key}");
        }
        for text in ["", "{", "[]", "7", "{} {}"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn the_full_resolution_dimension_counts_only_if_forced() {
        let forced = |dimension: i64| {
            let mut json = full_layout();
            json["layoutDescriptor"]["forceFullResolutionDimension"] = json!(true);
            json["layoutDescriptor"]["fullResolutionDimension"] = json!(dimension);
            of(&json).map(|found| found.layout.full_resolution)
        };
        assert_eq!(forced(2), Ok(Some(2)));
        assert!(forced(3).is_err() && forced(-1).is_err());
        let found = changed("/layoutDescriptor/fullResolutionDimension", json!(9)).unwrap();
        assert_eq!(found.layout.full_resolution, None);
    }

    #[test]
    fn optional_keys_may_be_missing() {
        for (parent, key) in [
            ("", "metadata"),
            ("/layoutDescriptor", "create2DLODs"),
            ("/axisDescriptors/0", "name"),
            ("/axisDescriptors/0", "coordinateMin"),
            ("/channelDescriptors/0", "channelMapping"),
            ("/channelDescriptors/0", "valueRange"),
        ] {
            assert!(removed(parent, key).is_ok(), "{key}");
        }
        assert_eq!(changed("/layoutDescriptor/lodLevels", json!("LODLevels_None")).unwrap().layout.lods, 0);
        assert_eq!(changed("/axisDescriptors/0/numSamples", json!(12.0)).unwrap().axes[0].samples, 12);
        assert!(changed("/axisDescriptors/0/coordinateMax", json!(null)).unwrap().axes[0].max.is_nan());
        assert!(parse(format!("\u{feff}{}", full_layout()).as_bytes()).is_ok());
        let found = removed("/channelDescriptors/0", "noValue").unwrap();
        assert!(found.channels[0].no_value.is_some_and(f32::is_nan));
        assert_eq!(found.warnings, ["channelDescriptors[0].noValue is not there: NaN is taken for it"]);
    }

    #[test]
    fn invalid_metadata_is_kept_with_a_warning() {
        let of = |kind: &str, value: Value| {
            let found = changed("/metadata/1", json!({"category": "c", "name": "n", "type": kind, "value": value}));
            let mut found = found.unwrap();
            (found.metadata.remove(1).value, found.warnings.len())
        };
        for (kind, value, warnings) in [
            ("BLOB", json!("AAE*"), 1),
            ("BLOB", json!(5), 1),
            ("Int", json!(1.5), 1),
            ("Int", json!(3_000_000_000_u32), 1),
            ("IntVector2", json!([1, 2, 3]), 1),
            ("DoubleVector4", json!([1, 2, 3, "4"]), 1),
            ("String", json!(5), 1),
            ("StringVector2", json!(["a", "b"]), 0),
            ("Matrix", json!([[1.5]]), 0),
            ("", json!(null), 0),
        ] {
            assert_eq!(of(kind, value.clone()), (MetadataValue::Other(kind.into(), value), warnings), "{kind}");
        }
        let found = changed("/metadata/1", json!("?")).unwrap();
        assert_eq!((found.metadata.len(), found.warnings.len()), (5, 1));
    }

    #[test]
    fn bytes_that_are_not_utf8_give_a_warning() {
        let text = full_layout().to_string().replace("mV", "%");
        let text: Vec<u8> = text.bytes().map(|byte| if byte == b'%' { 0xb5 } else { byte }).collect();
        let found = parse(&text).unwrap();
        assert_eq!((found.channels[0].unit.as_str(), found.warnings.len()), ("\u{fffd}", 1));
    }

    #[test]
    fn faults_of_fields_name_the_key() {
        let Value::Object(map) = json!({
            "a": {"b": [{"n": -1, "t": 5, "f": "yes", "w": "Size_x", "x": 1.5}, 7], "c": [{}]}
        }) else {
            return;
        };
        let a = Fields::new(&map).object("a").unwrap();
        let faults =
            [Fields::new(&map).object("z").err(), a.objects("b").err(), a.object("c").err(), a.objects("d").err()];
        let expected = [
            "z is missing",
            "a.b[1] is 7: it must be an object",
            "a.c is a list: it must be an object",
            "a.d is missing",
        ];
        assert_eq!(faults, expected.map(|text| Some(text.into())));
        let Some(Value::Object(first)) = map["a"]["b"].get(0) else { return };
        let first = Fields { path: "a.b[0].".into(), map: first };
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
