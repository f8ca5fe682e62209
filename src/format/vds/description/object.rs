//! Parser of `VDSObject`, the older description: nested objects with fields, as text. Its values become JSON, so that
//! the readers of `VolumeDataLayout` read them, too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::json::{Fields, metadata_entry};
use super::{
    AxisDescriptor, Channel, Description, LayoutDescriptor, MAX_DIMENSIONS, MetadataEntry, SampleFormat, element_type,
};
use crate::format::bytes::{check_values, decimal};

/// Chunks of two dimensions are longer by this factor, which the object does not contain.
const MULTIPLIER_2D: u64 = 4;
/// The code of the per-trace channel mapping.
const PER_TRACE: u64 = 1_976_800_267_773_298_824;
/// The list of the channels after the first.
const CHANNELS: &str = "VolumeDataChannelDescriptor";

pub(crate) fn parse(text: &[u8]) -> Result<Description, String> {
    check_values(text, b";{")?;
    let object = parse_text(text)?;
    let fields = Fields::new(&object.fields);
    let count = fields.enum_number("Dimensions", "HUEDIMENSION_")?;
    if count > MAX_DIMENSIONS as u64 {
        return Err(fields.fault("Dimensions", "at most 6"));
    }
    let axes = (0..count).map(|dimension| axis(&fields, dimension)).collect::<Result<_, _>>()?;
    let mut channels = vec![channel(&fields, true)?];
    if fields.get(CHANNELS).is_some_and(Value::is_array) {
        for fields in fields.objects(CHANNELS)? {
            channels.push(channel(&fields, false)?);
        }
    }
    let mut warnings = Vec::new();
    let lists = ["MetadataList", "VDSMetadataList"];
    let children = object.children.iter().filter(|child| lists.contains(&child.list.as_str()));
    let metadata = children.enumerate().map(|(number, child)| entry(number, child, &mut warnings)).collect();
    let description = Description { layout: layout(&fields)?, axes, channels, metadata, warnings };
    description.checked().map_err(|fault| with_key_of_object(&fault))
}

/// Names the value that a fault is about as `VDSObject` does, in place of its key in `VolumeDataLayout`.
fn with_key_of_object(fault: &str) -> String {
    let (key, rest) = fault.split_once(' ').unwrap_or((fault, ""));
    let numbered = |list: &str| {
        let (number, key) = key.strip_prefix(list)?.strip_prefix('[')?.split_once("].")?;
        Some((number.parse::<usize>().ok()?, key))
    };
    let key = match (key, numbered("axisDescriptors"), numbered("channelDescriptors")) {
        (_, Some((axis, "numSamples")), _) => format!("Dimension{axis}Size"),
        (_, Some((axis, key)), _) => format!("Dimension{axis}{}", capitalised(key)),
        (_, _, Some((0, "components"))) => "VoxelComponents".to_owned(),
        (_, _, Some((0, key))) => capitalised(key),
        (_, _, Some((channel, key))) => format!("{CHANNELS}[{}].{}", channel - 1, capitalised(key)),
        ("axisDescriptors", ..) => "Dimensions".to_owned(),
        ("channelDescriptors", ..) => CHANNELS.to_owned(),
        ("layoutDescriptor.brickSize", ..) => "FullVCSize".to_owned(),
        ("layoutDescriptor.lodLevels", ..) => "LODLevels".to_owned(),
        (key, ..) => capitalised(key.rsplit('.').next().unwrap_or(key)),
    };
    format!("{key} {rest}")
}

fn capitalised(key: &str) -> String {
    let mut letters = key.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn layout(fields: &Fields<'_>) -> Result<LayoutDescriptor, String> {
    let is_forced = flag(fields, "ForceFullResolutionDimension");
    Ok(LayoutDescriptor {
        brick: fields.enum_number("FullVCSize", "HUEVCSIZE_")?,
        negative_margin: fields.count("NegativeMargin")?,
        positive_margin: fields.count("PositiveMargin")?,
        multiplier_2d: MULTIPLIER_2D,
        lods: lods(fields)?,
        lods_2d: flag(fields, "Create2DLODs"),
        full_resolution: is_forced.then(|| fields.count("FullResolutionDimension")).transpose()?,
    })
}

/// Reads the coarsest LOD, `LODLevel2`; without a number only LOD 0 exists.
fn lods(fields: &Fields<'_>) -> Result<u64, String> {
    let number = match fields.get("LODLevels") {
        None => Some(0),
        Some(Value::String(text)) if text == "LODLevel" => Some(0),
        Some(Value::String(text)) => text.strip_prefix("LODLevel").and_then(decimal),
        Some(number) => number.as_u64(),
    };
    number.ok_or_else(|| fields.fault("LODLevels", "one of LODLevel..."))
}

fn axis(fields: &Fields<'_>, dimension: u64) -> Result<AxisDescriptor, String> {
    let key = |what: &str| format!("Dimension{dimension}{what}");
    let [min, max] = pair(fields, &key("Coordinate"))?;
    Ok(AxisDescriptor {
        name: fields.text(&key("Name"))?,
        unit: fields.text(&key("Unit"))?,
        samples: fields.count(&key("Size"))?,
        min,
        max,
    })
}

/// Reads a channel. The properties of the primary one are fields of the whole object, some with other keys.
fn channel(fields: &Fields<'_>, is_primary: bool) -> Result<Channel, String> {
    let key = |of_primary: &'static str, key: &'static str| if is_primary { of_primary } else { key };
    let (name, unit) = (fields.text(key("ValueName", "Name"))?, fields.text(key("ValueUnit", "Unit"))?);
    let is_per_trace = !is_primary && fields.get("ChannelMapping").and_then(Value::as_u64) == Some(PER_TRACE);
    let values = || fields.get("MappedValues").map_or(Ok(1), |_| fields.count("MappedValues"));
    let per_trace = is_per_trace.then(values).transpose()?;
    let discrete = flag(fields, key("DiscreteData", "Discrete"));

    let (format_key, components_key) = (key("VoxelFormat", "Format"), key("VoxelComponents", "Components"));
    let format = fields.enum_name(format_key, "HUEVOXELFORMAT_")?;
    let format = SampleFormat::from_name(if format == "1BIT" { "1Bit" } else { format });
    let format = format.ok_or_else(|| fields.fault(format_key, "a known one"))?;
    let components = fields.get(components_key);
    let components = components.map_or(Ok(1), |_| fields.enum_number(components_key, "HUEVOXELCOMPONENTS_"))?;
    let value_range @ [least, most] = pair(fields, "ValueRange")?;
    let no_value = flag(fields, "UseNoValue").then(|| fields.float("NoValue", f32::NAN)).transpose()?;
    // the greatest code means NoValue
    let steps = |steps: u16| f32::from(if no_value.is_some() { steps - 1 } else { steps });
    let (usual_scale, usual_offset) = match format {
        SampleFormat::U8 => ((most - least) / steps(0xff), least),
        SampleFormat::U16 => ((most - least) / steps(0xffff), least),
        _ => (1.0, 0.0),
    };
    Ok(Channel {
        name,
        unit,
        format,
        components,
        value_range,
        per_trace,
        discrete,
        renderable: is_primary || flag(fields, "Renderable"),
        lossy_allowed: if is_primary { !discrete } else { flag(fields, "AllowLossyCompression") },
        no_value,
        integer_scale: fields.float("IntegerScale", usual_scale)?,
        integer_offset: fields.float("IntegerOffset", usual_offset)?,
    })
}

/// Reads a boolean: false if the key is missing, and true for all but FALSE.
fn flag(fields: &Fields<'_>, key: &str) -> bool {
    fields.get(key).is_some_and(|value| value.as_str() != Some("FALSE"))
}

/// Reads the pair `{Min; Max}`; missing numbers are NaN.
fn pair(fields: &Fields<'_>, key: &str) -> Result<[f32; 2], String> {
    if fields.get(key).is_none() {
        return Ok([f32::NAN; 2]);
    }
    let ends = fields.object(key)?;
    Ok([ends.float("Min", f32::NAN)?, ends.float("Max", f32::NAN)?])
}

/// Reads a metadata entry. An invalid one becomes a warning, since the data can be read without it.
fn entry(number: usize, object: &Object, warnings: &mut Vec<String>) -> MetadataEntry {
    let fields = Fields::new(&object.fields);
    let [category, name, kind] = ["Category", "Name", "Type"].map(|key| fields.text(key).unwrap_or_default());
    let found = object.fields.get("Value");
    let value = match (found, element_type(&kind)) {
        // null would be NaN
        (None, _) => json!({}),
        (Some(Value::Object(vector)), (_, length @ 2..)) => {
            ["X", "Y", "Z", "T"][..length].iter().filter_map(|axis| vector.get(*axis).cloned()).collect()
        }
        (Some(blob), ("BLOB", _)) => blob.get(BLOB).cloned().unwrap_or_default(),
        (Some(value), _) => value.clone(),
    };
    let shown = || with_texts(found.cloned().unwrap_or_default());
    metadata_entry(&format!("metadata {number}"), [category, name, kind], &value, shown, warnings)
}

/// Returns a value of an unknown type with texts in place of its numbers.
fn with_texts(value: Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::Array(list) => list.into_iter().map(with_texts).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, with_texts(value))).collect(),
        other => other,
    }
}

/// Converts a number to JSON; a word that is not a number becomes a text. Numbers that are not finite have the spelling
/// of C libraries.
fn number(text: &str) -> Value {
    let negative = || text.parse().ok().filter(|number: &i64| *number < 0);
    let whole = text.parse::<u64>().ok().map(Value::from).or_else(|| negative().map(Value::from));
    whole.unwrap_or_else(|| match double(text) {
        None => text.into(),
        // JSON has no infinity: its readers take the greatest number for it
        Some(number) if number.is_infinite() => f64::MAX.copysign(number).into(),
        Some(number) => number.into(),
    })
}

fn double(number: &str) -> Option<f64> {
    number.parse().ok().or_else(|| match number.trim_start_matches(['+', '-']) {
        infinite if infinite.starts_with("1.#INF") => {
            Some(if number.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY })
        }
        nan if nan.starts_with("1.#") || nan.to_ascii_lowercase().starts_with("nan") => Some(f64::NAN),
        _ => None,
    })
}

/// The deepest nesting of objects and values.
const DEEPEST: usize = 64;
/// A BLOB becomes a JSON object with this key, and base64 as its value.
const BLOB: &str = "base64";

#[derive(Debug, Default, PartialEq)]
struct Object {
    /// The name of its parent's list that contains it.
    list: String,
    /// The values by key; of two with the same key the last one counts.
    fields: Map<String, Value>,
    children: Vec<Object>,
}

/// Parses an object; text after it is ignored.
fn parse_text(text: &[u8]) -> Result<Object, String> {
    let mut reader = Reader { text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text), at: 0 };
    if reader.name() != Some("CreateObj") {
        return Err("it does not begin with CreateObj".into());
    }
    reader.object(0).map_err(|fault| format!("{fault} (at byte {} of the text)", reader.at))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns the next byte that is not white space, without reading it.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.get(self.at).copied()
    }

    /// Reads the next byte if it is `byte`, and returns whether it was.
    fn accept(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.accept(byte) { Ok(()) } else { Err(format!("a `{}` is missing", char::from(byte))) }
    }

    /// Reads the longest run of bytes for which `belongs` returns true.
    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> Option<&'a str> {
        self.peek()?;
        let rest = self.text.get(self.at..)?;
        let run = rest.get(..rest.iter().take_while(|byte| belongs(**byte)).count())?;
        self.at += run.len();
        std::str::from_utf8(run).ok().filter(|run| !run.is_empty())
    }

    fn name(&mut self) -> Option<&'a str> {
        self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// Reads a number, also one that is not finite as C libraries write it: `-1.#IND`, `-nan(ind)`.
    fn number(&mut self) -> Result<&'a str, String> {
        let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.#()".contains(&byte);
        self.run(belongs).ok_or_else(|| "a value is missing".to_owned())
    }

    /// Reads a string in quotes; a backslash quotes the byte behind it.
    fn string(&mut self) -> Result<String, String> {
        self.expect(b'"')?;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut found = Vec::new();
        let mut bytes = rest.iter().copied().enumerate();
        while let Some((offset, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.at += offset + 1;
                    return Ok(String::from_utf8_lossy(&found).into_owned());
                }
                b'\\' => found.extend(bytes.next().map(|(_, byte)| byte)),
                _ => found.push(byte),
            }
        }
        Err("a text has no end".into())
    }

    /// Reads the arguments of `CreateObj` and the body.
    fn object(&mut self, depth: usize) -> Result<Object, String> {
        self.expect(b'(')?;
        self.string()?;
        self.expect(b',')?;
        let list = self.string()?;
        self.expect(b',')?;
        self.run(|byte| byte.is_ascii_digit() || byte == b'-').ok_or_else(|| "an id is missing".to_owned())?;
        self.expect(b')')?;
        self.expect(b'{')?;
        Ok(Object { list, ..self.body(depth)? })
    }

    /// Reads fields and objects up to the closing `}`.
    fn body(&mut self, depth: usize) -> Result<Object, String> {
        if depth >= DEEPEST {
            return Err("objects or values are nested too deeply".into());
        }
        let mut object = Object::default();
        while !self.accept(b'}') {
            let Some(key) = self.name() else { return Err("a key or a `}` is missing".into()) };
            if key == "CreateObj" && self.peek() == Some(b'(') {
                object.children.push(self.object(depth + 1)?);
            } else {
                object.fields.insert(key.to_owned(), self.value(depth)?);
            }
        }
        Ok(object)
    }

    /// Reads the value after a key.
    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if self.accept(b':') {
            self.expect(b'{')?;
            return self.compound(depth + 1);
        }
        self.expect(b'=')?;
        let value = match self.peek() {
            Some(b'"') => self.string()?.into(),
            _ => match self.number()? {
                "N" if self.accept(b':') => json!({BLOB: STANDARD.encode(self.blob()?)}),
                text => number(text),
            },
        };
        self.expect(b';')?;
        Ok(value)
    }

    /// Reads a compound value, or a list of them, whose `{` has been read.
    fn compound(&mut self, depth: usize) -> Result<Value, String> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Ok(self.body(depth)?.fields.into());
        }
        let count = self.number()?;
        let mut list = Vec::new();
        while self.accept(b',') {
            self.expect(b'{')?;
            list.push(Value::from(self.body(depth + 1)?.fields));
        }
        self.expect(b'}')?;
        if count.parse() != Ok(list.len()) {
            return Err(format!("a list of {} is said to have {count}", list.len()));
        }
        Ok(list.into())
    }

    /// Reads a number of bytes, and the bytes in hexadecimal digits.
    fn blob(&mut self) -> Result<Vec<u8>, String> {
        let count: usize = self.number()?.parse().map_err(|_| "a count of bytes makes no sense".to_owned())?;
        self.expect(b':')?;
        let left = self.text.len() - self.at;
        if count > left / 2 {
            return Err(format!("{count} bytes are said to follow, but there is no room for them"));
        }
        let mut blob = Vec::with_capacity(count);
        for _ in 0..count {
            let [high, low] = [self.digit()?, self.digit()?];
            blob.push(high << 4 | low);
        }
        Ok(blob)
    }

    fn digit(&mut self) -> Result<u8, String> {
        let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
        let digit = digit.ok_or_else(|| "a hexadecimal digit is missing".to_owned())?;
        self.at += 1;
        Ok(digit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MetadataValue;
    use super::super::json::float;
    use super::super::tests::FULL_OBJECT;
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
            ("Dimension1Size=50;", "Dimension1Size=-5;", "Dimension1Size is -5: it must be at least 0"),
            ("Dimension1Size=50;", "Dimension1Size=x;", "Dimension1Size is \"x\": it must be a whole number"),
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
            ("Min=-1.5", "Min=low", "ValueRange.Min is \"low\": it must be a number"),
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

    #[test]
    fn numbers_that_are_not_finite() {
        let spelled = ["nan", "-nan(ind)", "1.#QNAN", "-1.#IND", "inf", "-1.#INF", "1.#INF00", "x"].map(double);
        assert!(spelled[..4].iter().all(|number| number.is_some_and(f64::is_nan)));
        let infinity = f64::INFINITY;
        assert_eq!(spelled[4..], [Some(infinity), Some(-infinity), Some(infinity), None]);
        let read = ["-1.#INF", "1.#INF", "-0", "0", "-7", "1e300"].map(|text| float(&number(text)).unwrap());
        assert_eq!(read, [-infinity, infinity, 0.0, 0.0, -7.0, 1e300]);
        assert!(read[2].is_sign_negative() && float(&number("nan")).is_some_and(f64::is_nan));
    }

    fn body(text: &str) -> Result<Object, String> {
        parse_text(text.as_bytes())
    }

    fn text_fault(text: &str) -> String {
        body(text).map_or_else(|fault| fault, |_| "none".into())
    }

    #[test]
    fn every_kind_of_item() {
        let text = r#" CreateObj ( "A", "", 18446744073709551615 ) {
            a=-1.5e3; b = "x\"\\y" ;c=N:3:00fFA0;d:{X=1;Y:{Z="z";}} e:{2,{k=1;},{}}
            g=N:0:; f={};"#;
        assert!(text_fault(text).starts_with("a value is missing"), "{}", text_fault(text));
        let text = text.replace("f={};", "h:{}CreateObj(\"B\",\"List\",2){a=1;a=2;CreateObj(\"C\",\"\",3){}}}rest \0");
        let found = body(&text).unwrap();
        let fields = json!({
            "a": -1500.0, "b": "x\"\\y", "c": {"base64": "AP+g"}, "d": {"X": 1, "Y": {"Z": "z"}}, "e": [{"k": 1}, {}],
            "g": {"base64": ""}, "h": {},
        });
        assert_eq!(Value::from(found.fields), fields);
        let [child] = found.children.as_slice() else { panic!("{} children", found.children.len()) };
        assert_eq!((child.list.as_str(), &child.fields["a"], child.fields.len()), ("List", &json!(2), 1));
        assert_eq!(child.children.len(), 1);
    }

    #[test]
    fn texts_need_not_be_utf8() {
        let mut text = b"CreateObj(\"A\",\"\",1){a=\"%\";}".to_vec();
        let percent = text.iter().position(|byte| *byte == b'%').unwrap();
        text[percent] = 0xb5;
        assert_eq!(parse_text(&text).unwrap().fields["a"], "\u{fffd}");
    }

    #[test]
    fn faults() {
        let of = |inside: &str| text_fault(&format!("CreateObj(\"A\",\"\",1){{{inside}}}"));
        for (inside, expected) in [
            ("", "none"),
            ("a=1", "a `;` is missing"),
            ("a;", "a `=` is missing"),
            ("=1;", "a key or a `}` is missing"),
            ("a=\"x;", "a text has no end"),
            ("a=\"x\\", "a text has no end"),
            ("a=N:2:00;", "a hexadecimal digit is missing"),
            ("a=N:99999999999999999999:00;", "a count of bytes makes no sense"),
            ("a=N:4000000000:00;", "4000000000 bytes are said to follow"),
            ("a:{3,{},{}}", "a list of 2 is said to have 3"),
            ("a:{1,{}", "a key or a `}` is missing"),
            ("CreateObj(\"\",\"\"){}", "a `,` is missing"),
        ] {
            assert!(of(inside).starts_with(expected), "{inside}: {}", of(inside));
        }
        assert!(text_fault("").starts_with("it does not begin"));
        assert!(text_fault("CreateObj").starts_with("a `(` is missing"));
    }

    #[test]
    fn depth_is_bounded() {
        for (open, close) in [("CreateObj(\"\",\"\",1){", "}"), ("a:{", "}"), ("a:{1,{", "}}")] {
            let nested = |depth: usize| {
                text_fault(&format!("CreateObj(\"\",\"\",1){{{}{}}}", open.repeat(depth), close.repeat(depth)))
            };
            assert_eq!(nested(20), "none", "{open}");
            assert!(nested(100_000).contains("nested too deeply"), "{open}: {}", nested(100_000));
        }
    }
}
