//! Parser of `VDSObject`, the older description.

use serde_json::Value;

use super::check::{Keys, warn};
use super::metadata_type::element_type;
use super::model::{
    AxisDescriptor, Channel, Description, LayoutDescriptor, MAX_DIMENSIONS, MetadataEntry, MetadataValue, SampleFormat,
};
use super::object_fields::{ObjectFields, double, plain, single};
use super::object_text::{self, Item, Items, Object};
use crate::format::bytes::check_values;

/// Chunks of two dimensions are longer by this factor, which the object does not contain.
const MULTIPLIER_2D: u64 = 4;
/// The code of the per-trace channel mapping.
const PER_TRACE: &str = "1976800267773298824";

/// Parses the text.
pub(crate) fn parse(text: &[u8]) -> Result<Description, String> {
    check_values(text, b";{")?;
    let object = object_text::parse(text)?;
    let fields = ObjectFields { path: String::new(), items: &object.items };
    let count = fields.enum_number("Dimensions", "HUEDIMENSION_")?;
    let count = usize::try_from(count).ok().filter(|count| *count <= MAX_DIMENSIONS);
    let count = count.ok_or_else(|| fields.fault("Dimensions", "at most 6"))?;
    let axes = (0..count).map(|dimension| axis(&fields, dimension)).collect::<Result<_, _>>()?;
    let mut channels = vec![primary(&fields)?];
    if let Some(Item::Many(list)) = object.items.get("VolumeDataChannelDescriptor") {
        for (number, items) in list.iter().enumerate() {
            channels.push(channel(&ObjectFields { path: format!("VolumeDataChannelDescriptor[{number}]."), items })?);
        }
    }
    let mut warnings = Vec::new();
    let lists = ["MetadataList", "VDSMetadataList"];
    let children = object.children.iter().filter(|child| lists.contains(&child.list.as_str()));
    let metadata = children.enumerate().map(|(number, child)| entry(number, child, &mut warnings)).collect();
    Description { layout: layout(&fields)?, axes, channels, metadata, warnings }.checked(Keys::Object)
}

fn layout(fields: &ObjectFields<'_>) -> Result<LayoutDescriptor, String> {
    let forced = fields.flag("ForceFullResolutionDimension");
    let dimension = || {
        let dimension = fields.count("FullResolutionDimension")?;
        Ok::<_, String>(usize::try_from(dimension).unwrap_or(usize::MAX))
    };
    Ok(LayoutDescriptor {
        brick: fields.enum_number("FullVCSize", "HUEVCSIZE_")?,
        negative_margin: fields.count("NegativeMargin")?,
        positive_margin: fields.count("PositiveMargin")?,
        multiplier_2d: MULTIPLIER_2D,
        lods: lods(fields)?,
        lods_2d: fields.flag("Create2DLODs"),
        full_resolution: forced.then(dimension).transpose()?,
    })
}

/// Reads the coarsest LOD, `LODLevel2`; without a number only LOD 0 exists.
fn lods(fields: &ObjectFields<'_>) -> Result<u32, String> {
    let number = match fields.items.get("LODLevels") {
        None => return Ok(0),
        Some(Item::Number(number)) => Some(*number),
        Some(Item::Text(text)) => text.strip_prefix("LODLevel"),
        Some(_) => None,
    };
    let number = number.and_then(|number| if number.is_empty() { Some(0) } else { plain(number) });
    let number = number.ok_or_else(|| fields.fault("LODLevels", "one of LODLevel..."))?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn axis(fields: &ObjectFields<'_>, dimension: usize) -> Result<AxisDescriptor, String> {
    let key = |what: &str| format!("Dimension{dimension}{what}");
    let [min, max] = fields.pair(&key("Coordinate"))?;
    Ok(AxisDescriptor {
        name: fields.text(&key("Name"))?,
        unit: fields.text(&key("Unit"))?,
        samples: fields.count(&key("Size"))?,
        min,
        max,
    })
}

/// Reads the primary channel, whose properties are those of the object.
fn primary(fields: &ObjectFields<'_>) -> Result<Channel, String> {
    let discrete = fields.flag("DiscreteData");
    let channel = Channel {
        name: fields.text("ValueName")?,
        unit: fields.text("ValueUnit")?,
        format: format(fields, "VoxelFormat")?,
        components: components(fields, "VoxelComponents")?,
        discrete,
        renderable: true,
        lossy_allowed: !discrete,
        ..Channel::default()
    };
    with_values(channel, fields)
}

/// Reads one of the other channels.
fn channel(fields: &ObjectFields<'_>) -> Result<Channel, String> {
    let mapping = fields.items.get("ChannelMapping");
    let per_trace = matches!(mapping, Some(Item::Number(PER_TRACE)));
    let values = || if fields.items.contains_key("MappedValues") { fields.count("MappedValues") } else { Ok(1) };
    let channel = Channel {
        name: fields.text("Name")?,
        unit: fields.text("Unit")?,
        format: format(fields, "Format")?,
        components: components(fields, "Components")?,
        per_trace: per_trace.then(values).transpose()?,
        discrete: fields.flag("Discrete"),
        renderable: fields.flag("Renderable"),
        lossy_allowed: fields.flag("AllowLossyCompression"),
        ..Channel::default()
    };
    with_values(channel, fields)
}

fn format(fields: &ObjectFields<'_>, key: &str) -> Result<SampleFormat, String> {
    let format = fields.enum_name(key, "HUEVOXELFORMAT_")?;
    let name = if format == "1BIT" { "1Bit" } else { format };
    SampleFormat::of_name(name).ok_or_else(|| fields.fault(key, "a known one"))
}

fn components(fields: &ObjectFields<'_>, key: &str) -> Result<u64, String> {
    if fields.items.contains_key(key) { fields.enum_number(key, "HUEVOXELCOMPONENTS_") } else { Ok(1) }
}

/// Adds the properties of values, which all channels have under the same keys.
fn with_values(channel: Channel, fields: &ObjectFields<'_>) -> Result<Channel, String> {
    let value_range = fields.pair("ValueRange")?;
    let no_value = fields.flag("UseNoValue").then(|| fields.float("NoValue").map(|value| value.unwrap_or(f32::NAN)));
    let no_value = no_value.transpose()?;
    let (scale, offset) = (fields.float("IntegerScale")?, fields.float("IntegerOffset")?);
    let [least, most] = value_range;
    // the greatest code stands for NoValue
    let steps = |steps: u16| f32::from(if no_value.is_some() { steps - 1 } else { steps });
    let (usual_scale, usual_offset) = match channel.format {
        SampleFormat::U8 => ((most - least) / steps(0xff), least),
        SampleFormat::U16 => ((most - least) / steps(0xffff), least),
        _ => (1.0, 0.0),
    };
    Ok(Channel {
        value_range,
        no_value,
        integer_scale: scale.unwrap_or(usual_scale),
        integer_offset: offset.unwrap_or(usual_offset),
        ..channel
    })
}

/// Reads a metadata entry. An invalid one becomes a warning, since the data can be read without it.
fn entry(number: usize, object: &Object<'_>, warnings: &mut Vec<String>) -> MetadataEntry {
    let fields = ObjectFields { path: String::new(), items: &object.items };
    let text = |key: &str| fields.text(key).unwrap_or_default();
    let (category, name, kind) = (text("Category"), text("Name"), text("Type"));
    let value = object.items.get("Value");
    let value = metadata_value(&kind, value).unwrap_or_else(|| {
        if matches!(element_type(&kind).0, "Int" | "Float" | "Double" | "String" | "BLOB") {
            warn(warnings, || {
                format!(
                    "metadata {number} \"{category}\" \"{name}\" is no {kind}: its value is missing or of another type"
                )
            });
        }
        MetadataValue::Other(kind, value.map(as_json).unwrap_or_default())
    });
    MetadataEntry { category, name, value }
}

/// Reads the value of a metadata entry; `None` if its type is unknown or does not fit.
fn metadata_value(kind: &str, value: Option<&Item<'_>>) -> Option<MetadataValue> {
    let (scalar, length) = element_type(kind);
    match (scalar, length, value?) {
        ("String", 1, Item::Text(text)) => Some(MetadataValue::Text(text.clone())),
        ("BLOB", 1, Item::Blob(blob)) => Some(MetadataValue::Blob(blob.clone())),
        ("Int", _, value) => Some(MetadataValue::Int(vector(length, value, |number| number.parse().ok())?)),
        ("Float", _, value) => Some(MetadataValue::Float(vector(length, value, single)?)),
        ("Double", _, value) => Some(MetadataValue::Double(vector(length, value, double)?)),
        _ => None,
    }
}

fn vector<T>(length: usize, value: &Item<'_>, element: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let number = |item: &Item<'_>| match item {
        Item::Number(number) => element(number),
        _ => None,
    };
    match value {
        Item::One(items) if length > 1 => {
            ["X", "Y", "Z", "T"][..length].iter().map(|axis| number(items.get(axis)?)).collect()
        }
        value if length == 1 => Some(vec![number(value)?]),
        _ => None,
    }
}

/// Returns a value of an unknown type, as JSON.
fn as_json(item: &Item<'_>) -> Value {
    match item {
        Item::Number(number) => Value::from(*number),
        Item::Text(text) => Value::from(text.as_str()),
        Item::Blob(blob) => Value::from(blob.as_slice()),
        Item::One(items) => as_object(items),
        Item::Many(list) => list.iter().map(as_object).collect(),
    }
}

fn as_object(items: &Items<'_>) -> Value {
    let mut sorted: Vec<_> = items.iter().map(|(key, item)| ((*key).to_owned(), as_json(item))).collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    sorted.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::FULL_OBJECT;
    use super::*;

    fn changed(from: &str, to: &str) -> Result<Description, String> {
        assert!(FULL_OBJECT.contains(from), "{from}");
        parse(FULL_OBJECT.replacen(from, to, 1).as_bytes())
    }

    #[test]
    fn every_property_is_parsed() {
        let found = parse(FULL_OBJECT.as_bytes()).unwrap();
        let layout = LayoutDescriptor {
            brick: 128,
            negative_margin: 4,
            positive_margin: 3,
            multiplier_2d: 4,
            lods: 2,
            lods_2d: true,
            full_resolution: None,
        };
        assert_eq!(found.layout, layout);
        let axis = |name: &str, unit: &str, samples, min, max| AxisDescriptor {
            name: name.into(),
            unit: unit.into(),
            samples,
            min,
            max,
        };
        let axes = [
            axis("Sample", "ms", 100, 2052.0, 2448.0),
            axis("Crossline", "", 50, 1.0, 50.0),
            axis("Inline", "", 20, 30.5, 11.5),
        ];
        assert_eq!(found.axes, axes);
        let amplitude = Channel {
            name: "Amplitude".into(),
            unit: "mV".into(),
            format: SampleFormat::U8,
            components: 1,
            value_range: [-1.5, 100.5],
            per_trace: None,
            discrete: false,
            renderable: true,
            lossy_allowed: true,
            no_value: None,
            integer_scale: 102.0 / 255.0,
            integer_offset: -1.5,
        };
        let trace = Channel {
            name: "Trace".into(),
            unit: String::new(),
            format: SampleFormat::Bit,
            value_range: [0.0, 1.0],
            per_trace: Some(1),
            lossy_allowed: false,
            integer_scale: 1.0,
            integer_offset: 0.0,
            ..amplitude.clone()
        };
        let other = Channel {
            format: SampleFormat::U16,
            components: 2,
            value_range: [1.0, 65_535.0],
            per_trace: None,
            renderable: false,
            no_value: Some(-9.25),
            integer_scale: 1.0,
            integer_offset: 7.0,
            ..trace.clone()
        };
        assert_eq!(found.channels, [amplitude, trace, other]);
        let Some(MetadataValue::Double(origin)) = found.entry("SurveyCoordinateSystem", "Origin") else {
            panic!("no origin")
        };
        assert!(origin.len() == 2 && origin[0] == 431_964.738_704_873_7 && origin[1].is_nan());
        assert_eq!(found.entry("", "SEGYTextHeader"), Some(&MetadataValue::Blob(vec![0, 1, 255])));
        assert_eq!(found.entry("c", "s"), Some(&MetadataValue::Text("täxt".into())));
        assert_eq!(found.entry("c", "i"), Some(&MetadataValue::Int(vec![-7])));
        let other = serde_json::json!({"a": "t", "b": "1", "c": [{}]});
        assert_eq!(found.entry("c", "o"), Some(&MetadataValue::Other("Matrix".into(), other)));
        assert_eq!((found.metadata.len(), found.warnings.len()), (5, 0));
    }

    #[test]
    fn faults_name_the_key() {
        for (from, to, fault) in [
            ("Dimension1Size=50;", "Dimension1Size=0;", "Dimension1Size is 0: there must be at least 1"),
            ("Dimension1Size=50;", "", "Dimension1Size is missing"),
            (
                "Dimension1Size=50;",
                "Dimension1Size=-5;",
                "Dimension1Size is -5: it must be a whole number of at least 0",
            ),
            ("HUEDIMENSION_3", "HUEDIMENSION_7", "Dimensions is \"HUEDIMENSION_7\": it must be at most 6"),
            ("HUEDIMENSION_3", "HUEDIMENSION_1", "axes"),
            ("HUEDIMENSION_3", "HUEDIMENSION_4", "Dimension3Size is 0: there must be at least 1"),
            ("HUEVCSIZE_128", "HUEVCSIZE_100", "FullVCSize is 100: it must be a power of two"),
            (
                "FORMAT_U16",
                "FORMAT_U17",
                "VolumeDataChannelDescriptor[1].Format is \"HUEVOXELFORMAT_U17\": it must be a known one",
            ),
            ("COMPONENTS_2", "COMPONENTS_3", "VolumeDataChannelDescriptor[1].Components is 3: it must be 1, 2 or 4"),
            ("LODLevel2", "LODLevel13", "LODLevels is 13: there must be at most 12"),
            ("LODLevel2", "Level2", "LODLevels is \"Level2\": it must be one of LODLevel..."),
            ("Min=-1.5", "Min=low", "ValueRange.Min is low: it must be a number"),
            ("PositiveMargin=3", "PositiveMargin=64", "PositiveMargin is 64: it must be less than half a brick of 128"),
        ] {
            let found = changed(from, to).map_or_else(|fault| fault, |_| "none".into());
            if fault == "axes" {
                assert_eq!(found, "Dimensions are 1 in number: there must be 2 to 6");
            } else {
                assert_eq!(found, fault);
            }
        }
    }

    #[test]
    fn optional_keys_may_be_missing() {
        for key in ["LODLevels=\"LODLevel2\";", "Create2DLODs=\"TRUE\";", "VoxelComponents=\"HUEVOXELCOMPONENTS_1\";"] {
            assert!(changed(key, "").is_ok(), "{key}");
        }
        for (text, lods) in [
            ("LODLevels=\"LODLevel0\"", 0),
            ("LODLevels=\"LODLevel\"", 0),
            ("LODLevels=0", 0),
            ("LODLevels=\"LODLevel12\"", 12),
        ] {
            assert_eq!(changed("LODLevels=\"LODLevel2\"", text).unwrap().layout.lods, lods);
        }
        assert_eq!(changed("HUEDIMENSION_3", "HUEDIMENSION_2").unwrap().axes.len(), 2);
        let full = changed(
            "ForceFullResolutionDimension=\"FALSE\";\nFullResolutionDimension=-1",
            "ForceFullResolutionDimension=\"yes\";FullResolutionDimension=1",
        );
        assert_eq!(full.unwrap().layout.full_resolution, Some(1));
    }

    #[test]
    fn missing_scales_follow_from_the_value_range() {
        let of = |from: &str, to: &str| {
            let channel = changed(from, to).unwrap().channels.remove(0);
            (channel.integer_scale, channel.integer_offset)
        };
        let with_no_value = "ValueUnit=\"mV\";\nValueRange:{Min=-1.5;Max=100.5;}\nUseNoValue=\"FALSE\"";
        assert_eq!(of(with_no_value, "ValueRange:{Min=1;Max=255;}UseNoValue=\"TRUE\""), (1.0, 1.0));
        assert_eq!(of("VoxelFormat=\"HUEVOXELFORMAT_U8\"", "VoxelFormat=\"HUEVOXELFORMAT_R32\""), (1.0, 0.0));
        assert_eq!(of("VoxelFormat=\"HUEVOXELFORMAT_U8\"", "VoxelFormat=\"HUEVOXELFORMAT_U16\"").0, 102.0 / 65_535.0);
        assert_eq!(of("NoValue=0;", "NoValue=0;IntegerScale=3;"), (3.0, -1.5));
    }

    #[test]
    fn invalid_metadata_is_kept_with_a_warning() {
        for (from, to) in [
            ("Value=-7;", ""),
            ("Value=-7;", "Value=3000000000;"),
            ("Value=\"täxt\"", "Value=5"),
            ("Value:{X=", "Value:{Z="),
            ("Value=N:3:00 01fF;", "Value=\"0001\";"),
        ] {
            let found = changed(from, to).unwrap();
            let odd = found.metadata.iter().filter(|entry| matches!(entry.value, MetadataValue::Other(..))).count();
            assert_eq!((odd, found.warnings.len()), (2, 1), "{to}");
        }
    }
}
