//! Reads `attributes.json`.

use serde_json::{Map, Value, json};

use super::block::Block;
use crate::codec::{Codec, Finish, Pipeline, codec};
use crate::format::bytes::{json_text, whole};
use crate::format::chunked::{ArrayMetadata, Chain, ChunkKeys, Hidden, Node, Values, join, read, short};
use crate::format::{FormatError, native};
use crate::source::Folder;
use crate::volume::{Axis, Dims, Dtype, Element, MAX_AXES, NativeJson};

pub(super) const FILE: &str = "attributes.json";
/// Bytes of a description that are read to find out whether it is one.
pub(super) const MAX_HEAD: u64 = 1 << 20;

/// Keys of the top of a container, and of the group of an image.
const SIGNS: [&str; 5] = ["n5", "multiscales", "scales", "downsamplingFactors", "resolution"];

/// Returns whether a file of the name of descriptions is one: of the top of a container, of an image, or of an array.
pub(super) fn is_description(text: &[u8]) -> bool {
    let parsed = json_text(text).ok().and_then(|text| serde_json::from_slice::<NativeJson>(text).ok());
    parsed.is_some_and(|keys| is_array(&keys) || SIGNS.iter().any(|key| keys.contains_key(*key)))
}

fn is_array(keys: &NativeJson) -> bool {
    keys.contains_key("dimensions") && keys.contains_key("blockSize")
}

/// Reads the description of a group or an array; `None` if there is none at the path.
pub(super) fn node(folder: &dyn Folder, path: &str) -> Result<Option<Node>, FormatError> {
    let Some((found, text)) = read(folder, &join(path, FILE), None)? else { return Ok(None) };
    let bare = |attributes, array| Node { path: path.to_owned(), attributes, array, text, ..Node::default() };
    Ok(Some(match found {
        Err(why) => bare(NativeJson::new(), Some(Err(Hidden::damaged(why)))),
        Ok(attributes) if is_array(&attributes) => {
            let array = array(path, &attributes);
            bare(attributes, Some(array))
        }
        Ok(attributes) => bare(attributes, None),
    }))
}

fn dtype(name: &str) -> Option<Dtype> {
    use Dtype::{Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let all = [UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64, Float32, Float64];
    all.into_iter().find(|dtype| dtype.name() == name)
}

/// Returns the numbers of a list, the last first; `None` unless they are whole numbers of at least `least`.
fn reversed(value: Option<&Value>, least: u64) -> Option<Dims> {
    let list = value?.as_array()?.iter().rev();
    let numbers: Option<Vec<u64>> = list.map(|n| u64::try_from(whole(n)?).ok().filter(|n| *n >= least)).collect();
    Dims::from_slice(&numbers?)
}

fn array(path: &str, attributes: &Map<String, Value>) -> Result<ArrayMetadata, Hidden> {
    let axes = attributes.get("dimensions").and_then(Value::as_array).map_or(0, Vec::len);
    if axes > MAX_AXES {
        return Err(Hidden::unsupported(format!("it has {axes} axes, and at most {MAX_AXES} are shown")));
    }
    let shape = reversed(attributes.get("dimensions"), 0);
    let shape = shape.ok_or_else(|| Hidden::damaged("its dimensions make no sense".into()))?;
    let refuse = |reason| Hidden { shape: Some(shape), ..Hidden::unsupported(reason) };
    let block = reversed(attributes.get("blockSize"), 1).filter(|block| block.len() == shape.len());
    let block = block.ok_or_else(|| Hidden::damaged("its blockSize makes no sense".into()))?;
    let name = attributes.get("dataType").and_then(Value::as_str).unwrap_or_default();
    let dtype = dtype(name).ok_or_else(|| refuse(format!("its samples are of type {name:?}, which is not shown")))?;
    Hidden::unless_readable(&shape, dtype)?;
    let payload = compression(attributes).map_err(refuse)?;
    let block_bytes = block.product().and_then(|n| n.checked_mul(dtype.size() as u64));
    let block_bytes = block_bytes.ok_or_else(|| refuse(format!("blocks of {block:?} are too large")))?;
    let finish = if dtype.size() > 1 { Finish::Swap(dtype.size()) } else { Finish::Nothing };
    let is_gzip = payload.as_ref().is_some_and(|codec| codec.name() == "gzip");
    let in_place_of_gzip = is_gzip.then(|| codec("zlib", &Map::new())).transpose().map_err(refuse)?;
    let codec = Block { payload, in_place_of_gzip, block, sample: dtype.size() };
    let pipeline = Pipeline::new(vec![Box::new(codec)], block_bytes, finish).map_err(refuse)?;
    let order = (0..shape.len()).collect();
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    Ok(ArrayMetadata {
        shape,
        dtype,
        fill: Element::zero(dtype.size()),
        chain: Chain { shards: Vec::new(), brick: block, order, pipeline },
        keys: ChunkKeys { prefix, has_c: false, separator: '/', is_reversed: true, is_scalar: false },
        axes: Position::of(attributes, shape.len()).axes(&shape),
        values: Values::default(),
        native: native(json!({
            "path": path,
            "dataType": name,
            "compression": attributes.get("compression").or(attributes.get("compressionType")),
            "downsamplingFactors": attributes.get("downsamplingFactors"),
        })),
    })
}

/// Returns the codec of the samples of a block; `None` if they are not compressed.
fn compression(attributes: &NativeJson) -> Result<Option<Box<dyn Codec>>, String> {
    let described = attributes.get("compression");
    // the first versions of the format had a name alone
    let name = described.and_then(|c| c.get("type")).or(described).or(attributes.get("compressionType"));
    let name = name.and_then(Value::as_str).unwrap_or("raw");
    let known = match name {
        "raw" => return Ok(None),
        // its framing is that of Java's LZ4
        "lz4" => "lz4-java",
        "bzip2" => "bz2",
        other => other,
    };
    let configuration = described.and_then(Value::as_object).cloned().unwrap_or_default();
    codec(known, &configuration).map(Some).map_err(|_| format!("its compression is {name:?}, which is not supported"))
}

/// The names, units and positions of axes, the slowest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Position {
    pub names: Vec<String>,
    pub units: Vec<Option<String>>,
    pub steps: Vec<f64>,
    pub firsts: Vec<f64>,
}

impl Position {
    /// Reads the dialects of the attributes of an array, or of the group of an image.
    pub(super) fn of(attributes: &NativeJson, axes: usize) -> Self {
        let list = |value: Option<&Value>| -> Option<Vec<Value>> {
            value?.as_array().filter(|list| list.len() == axes).map(|list| list.iter().rev().cloned().collect())
        };
        let numbers = |value: Option<&Value>| -> Option<Vec<f64>> {
            let numbers: Option<Vec<f64>> = list(value)?.iter().map(Value::as_f64).collect();
            numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()))
        };
        let texts = |value: Option<&Value>| -> Option<Vec<String>> {
            Some(list(value)?.iter().map(|text| short(text.as_str().unwrap_or_default())).collect())
        };
        let mut position = Self {
            names: texts(attributes.get("axes")).unwrap_or_else(|| usual_names(axes)),
            units: vec![None; axes],
            steps: vec![1.0; axes],
            firsts: vec![0.0; axes],
        };
        if let Some(transform) = attributes.get("transform") {
            // Cellmap: the order of axes is that of arrays in memory, unless it says something else
            let orders = ["order", "ordering"].map(|key| transform.get(key).and_then(Value::as_str));
            let key = |key: &str| {
                let mut value = transform.get(key).cloned()?;
                if !orders.contains(&Some("F")) {
                    value.as_array_mut()?.reverse();
                }
                Some(value)
            };
            position.names = texts(key("axes").as_ref()).unwrap_or(position.names);
            position.units = texts(key("units").as_ref()).map_or(position.units, some);
            position.steps = numbers(key("scale").as_ref()).unwrap_or(position.steps);
            position.firsts = numbers(key("translate").as_ref()).unwrap_or(position.firsts);
            return position;
        }
        let pixel = attributes.get("pixelResolution");
        let resolution = attributes.get("resolution");
        let steps = numbers(pixel.and_then(|pixel| pixel.get("dimensions")))
            .or_else(|| numbers(pixel))
            .or_else(|| numbers(resolution));
        position.steps = steps.unwrap_or(position.steps);
        if let Some(unit) = pixel.and_then(|pixel| pixel.get("unit")).and_then(Value::as_str) {
            position.units = vec![Some(short(unit)); axes];
        }
        position.units = texts(attributes.get("units")).map_or(position.units, some);
        position.firsts = numbers(attributes.get("offset")).unwrap_or(position.firsts);
        if let Some(factors) = numbers(attributes.get("downsamplingFactors")) {
            position.downsample(&factors);
        }
        position
    }

    /// Makes it that of a level whose samples are means of so many along each axis. Positions are those of centres.
    pub(super) fn downsample(&mut self, factors: &[f64]) {
        for (axis, factor) in factors.iter().enumerate().take(self.steps.len()) {
            self.firsts[axis] += (factor - 1.0) / 2.0 * self.steps[axis];
            self.steps[axis] *= factor;
        }
    }

    fn axes(&self, shape: &Dims) -> Vec<Axis> {
        let axis = |axis: usize| Axis {
            name: self.names.get(axis).cloned().unwrap_or_default(),
            unit: self.units.get(axis).cloned().flatten(),
            first: self.firsts.get(axis).copied().unwrap_or(0.0),
            step: self.steps.get(axis).copied().unwrap_or(1.0),
            count: shape[axis],
            spatial: self.names.get(axis).is_none_or(|name| is_spatial(name)),
        };
        (0..shape.len()).map(axis).collect()
    }
}

/// Whether an axis of this name is one of space.
pub(super) fn is_spatial(name: &str) -> bool {
    !["c", "channel"].contains(&name)
}

fn some(texts: Vec<String>) -> Vec<Option<String>> {
    texts.into_iter().map(|text| Some(text).filter(|text| !text.is_empty())).collect()
}

/// Returns the names of axes that nothing names: z, y, x, and numbers for more of them.
fn usual_names(axes: usize) -> Vec<String> {
    let of_space = ["x", "y", "z"];
    (0..axes).rev().map(|n| of_space.get(n).map_or_else(|| format!("axis{n}"), |name| (*name).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_of_other_programs_are_none() {
        assert!(is_description(br#"{"n5": "2.5.1"}"#) && is_description(br#"{"dimensions": [1], "blockSize": [1]}"#));
        for other in ["", "[]", "{}", r#"{"dimensions": [1]}"#, "n5"] {
            assert!(!is_description(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn axes_are_reversed() {
        let of = |value: Value| Position::of(&native(value), 3);
        let plain = of(json!({}));
        assert_eq!((plain.names, plain.steps), (vec!["z".into(), "y".into(), "x".into()], vec![1.0; 3]));
        let viewer =
            of(json!({"pixelResolution": {"unit": "um", "dimensions": [1, 2, 3]}, "downsamplingFactors": [4, 2, 1]}));
        assert_eq!((viewer.steps, viewer.firsts), (vec![3.0, 4.0, 4.0], vec![0.0, 1.0, 1.5]));
        assert_eq!(viewer.units, vec![Some("um".to_owned()); 3]);
        let transform = json!({"axes": ["z", "y", "x"], "ordering": "C", "scale": [5, 4, 4], "translate": [1, 0, 0], "units": ["nm", "nm", "nm"]});
        let cellmap = of(json!({"transform": transform, "pixelResolution": [9, 9, 9]}));
        assert_eq!((&*cellmap.names[0], cellmap.steps[0], cellmap.firsts[0]), ("z", 5.0, 1.0));
        for (order, first) in [(json!(null), "z"), (json!("C"), "z"), (json!("F"), "x")] {
            let found = of(json!({"transform": {"axes": ["z", "y", "x"], "order": order}}));
            assert_eq!(found.names[0], first, "{order}");
        }
        assert_eq!(["z", "c", "channel", "t"].map(is_spatial), [true, false, false, true]);
    }

    #[test]
    fn arrays_that_cannot_be_read_have_a_reason() {
        let of = |change: Value| {
            let mut attributes = native(
                json!({"dimensions": [10, 20], "blockSize": [5, 5], "dataType": "uint16", "compression": {"type": "raw"}}),
            );
            attributes.extend(native(change));
            array("a", &attributes)
        };
        let found = of(json!({})).ok().unwrap();
        assert_eq!((found.shape, found.keys.is_reversed), (Dims::from([20, 10]), true));
        assert!(of(json!({"compression": "raw"})).is_ok());
        for (change, reason) in [
            (json!({"dataType": "string"}), "its samples are of type \"string\", which is not shown"),
            (json!({"compression": {"type": "x"}}), "its compression is \"x\", which is not supported"),
            (json!({"blockSize": [0, 1]}), "its blockSize makes no sense"),
            (json!({"blockSize": [1]}), "its blockSize makes no sense"),
            (json!({"dimensions": [i64::MAX, i64::MAX]}), "it has more than 2^63 bytes"),
            (json!({"dimensions": [1, 1, 1, 1, 1, 1, 1, 1, 1]}), "it has 9 axes, and at most 7 are shown"),
        ] {
            assert_eq!(of(change).err().map(|hidden| hidden.reason).as_deref(), Some(reason));
        }
    }
}
