//! Reads the JSON files of a hierarchy: `zarr.json` of version 3, `.zarray`, `.zgroup` and `.zattrs` of version 2.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::chain;
use super::data_type::DataType;
use crate::format::bytes::whole;
use crate::format::chunked::{
    ArrayMetadata, Chain, ChunkKeys, Hidden, Node, Parsed, Values, join, names_in, read, short,
};
use crate::format::{FormatError, native};
use crate::source::Folder;
use crate::volume::{Axis, Dims, MAX_AXES, NativeJson};

/// The description of version 3.
pub(super) const V3: &str = "zarr.json";
pub(super) const V2_ARRAY: &str = ".zarray";
pub(super) const V2_GROUP: &str = ".zgroup";
const V2_ATTRIBUTES: &str = ".zattrs";
const V2_CONSOLIDATED: &str = ".zmetadata";
/// The key in the description of a group under which those of all that is below it are repeated.
const CONSOLIDATED: &str = "consolidated_metadata";

/// Reads the description of a node; `None` if there is none at the path. Of both versions over the same chunks the
/// newer one counts, as in zarr-python.
pub(super) fn node(folder: &dyn Folder, path: &str) -> Result<Option<Node>, FormatError> {
    if let Some((found, text)) = read(folder, &join(path, V3), Some(CONSOLIDATED))? {
        return Ok(Some(Node { text, ..node_of_version_3(path, found) }));
    }
    if let Some((found, text)) = read(folder, &join(path, V2_ARRAY), None)? {
        let array = found.map_err(Hidden::damaged).and_then(|metadata| array_of_version_2(path, &metadata));
        return Ok(Some(node_of_version_2(folder, path, (Some(array), text))?));
    }
    if folder.len(&join(path, V2_GROUP))?.is_some() {
        return Ok(Some(node_of_version_2(folder, path, (None, 0))?));
    }
    Ok(None)
}

fn node_of_version_2(
    folder: &dyn Folder,
    path: &str,
    (mut array, text): (Option<Result<ArrayMetadata, Hidden>>, u64),
) -> Result<Node, FormatError> {
    let (attributes, warning, more) = match read(folder, &join(path, V2_ATTRIBUTES), None)? {
        None => (NativeJson::new(), None, 0),
        Some((Ok(attributes), text)) => (attributes, None, text),
        Some((Err(why), text)) => (NativeJson::new(), Some(why), text),
    };
    if let Some(Ok(array)) = &mut array {
        // as xarray writes it
        array.axes = axes(attributes.get("_ARRAY_DIMENSIONS"), &array.keys, &array.shape, &attributes);
        array.values = Values::of(&masked(&attributes, array), array.dtype);
    }
    Ok(Node { path: path.to_owned(), attributes, array, warning, text: text + more })
}

/// Returns the attributes with the fill value of an array as that of its samples without a value: so xarray writes
/// version 2. Programs write 0 without being asked.
fn masked<'a>(attributes: &'a NativeJson, array: &ArrayMetadata) -> Cow<'a, NativeJson> {
    let is_told = ["_FillValue", "missing_value"].iter().any(|key| attributes.contains_key(*key));
    let fill = array.native.get("fill_value").filter(|fill| fill.as_f64().is_some_and(|fill| fill != 0.0));
    match fill.filter(|_| !is_told && attributes.contains_key("_ARRAY_DIMENSIONS")) {
        None => Cow::Borrowed(attributes),
        Some(fill) => {
            let keys = ["scale_factor", "add_offset", "_Unsigned"];
            let mut all: NativeJson =
                keys.iter().filter_map(|key| Some(((*key).to_owned(), attributes.get(*key)?.clone()))).collect();
            all.insert("_FillValue".into(), fill.clone());
            Cow::Owned(all)
        }
    }
}

fn node_of_version_3(path: &str, found: Parsed) -> Node {
    let (attributes, array) = match found {
        Err(why) => (NativeJson::new(), Some(Err(Hidden::damaged(why)))),
        Ok(mut metadata) => {
            let attributes = metadata.remove("attributes").map(native).unwrap_or_default();
            let is_group = metadata.get("node_type").and_then(Value::as_str) == Some("group");
            let array = (!is_group).then(|| array_of_version_3(path, &metadata, &attributes));
            (attributes, array)
        }
    };
    Node { path: path.to_owned(), attributes, array, warning: None, text: 0 }
}

/// Returns the paths in the consolidated metadata of a group, which are not looked at where a folder lists its names.
pub(super) fn consolidated_paths(folder: &dyn Folder, group: &str) -> Result<Vec<String>, FormatError> {
    let mut paths = names_in(folder, &join(group, V3), &[CONSOLIDATED, "metadata"])?;
    let path = |name: String| {
        let (path, file) = name.rsplit_once('/')?;
        [V2_ARRAY, V2_GROUP].contains(&file).then(|| path.to_owned())
    };
    let of_version_2 = names_in(folder, &join(group, V2_CONSOLIDATED), &["metadata"])?;
    paths.extend(of_version_2.into_iter().filter_map(path));
    Ok(paths)
}

/// Describes the axes of an array by the names of its dimensions.
fn axes(names: Option<&Value>, keys: &ChunkKeys, shape: &Dims, attributes: &NativeJson) -> Vec<Axis> {
    let list = |value: Option<&Value>| -> Vec<Option<String>> {
        let list = value.and_then(Value::as_array).filter(|list| list.len() == shape.len() && !keys.is_scalar);
        list.into_iter().flatten().map(|entry| entry.as_str().map(short)).collect()
    };
    let (names, units) = (list(names), list(attributes.get("dimension_units")));
    let of = |list: &[Option<String>], axis: usize| list.get(axis).cloned().flatten();
    let axis = |axis| {
        let name = of(&names, axis).unwrap_or_else(|| format!("axis{axis}"));
        let spatial = !["c", "channel", "component"].contains(&name.to_lowercase().as_str());
        Axis { name, unit: of(&units, axis), first: 0.0, step: 1.0, count: shape[axis], spatial }
    };
    (0..shape.len()).map(axis).collect()
}

/// Returns the dimensions that surveys of MDIO 0 name at their top.
pub(super) fn dimensions(attributes: &NativeJson) -> Vec<(String, Vec<f64>)> {
    let dimension = |described: &Value| {
        let positions = described.get("coords")?.as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?;
        Some((described.get("name")?.as_str()?.to_owned(), positions))
    };
    let described = attributes.get("dimension").and_then(Value::as_array);
    described.and_then(|list| list.iter().map(dimension).collect()).unwrap_or_default()
}

/// Returns the shape of an array and its chunks; both have one axis of one sample if the array has no axes.
fn shapes(shape: Option<&Value>, chunks: Option<&Value>) -> Result<(Dims, Dims, bool), Hidden> {
    let list = shape.and_then(Value::as_array).ok_or_else(|| Hidden::damaged("it has no shape".into()))?;
    if list.is_empty() {
        return Ok((Dims::from([1]), Dims::from([1]), true));
    }
    let axes = list.len();
    if axes > MAX_AXES {
        return Err(Hidden::unsupported(format!("it has {axes} axes, and at most {MAX_AXES} are shown")));
    }
    let numbers: Option<Vec<u64>> = list.iter().map(|n| u64::try_from(whole(n)?).ok()).collect();
    let shape = numbers.and_then(|numbers| Dims::from_slice(&numbers));
    let shape = shape.ok_or_else(|| Hidden::damaged("its shape makes no sense".into()))?;
    let chunks = chain::shape(chunks, axes).ok_or_else(|| Hidden {
        shape: Some(shape),
        ..Hidden::damaged("the shape of its chunks makes no sense".into())
    })?;
    Ok((shape, chunks, false))
}

fn array_of_version_2(path: &str, metadata: &Map<String, Value>) -> Result<ArrayMetadata, Hidden> {
    if metadata.get("zarr_format").and_then(whole) != Some(2) {
        return Err(Hidden::damaged(format!("{V2_ARRAY} is not of version 2")));
    }
    let (shape, chunk, is_scalar) = shapes(metadata.get("shape"), metadata.get("chunks"))?;
    let refuse = |reason| Hidden { shape: Some(shape), ..Hidden::unsupported(reason) };
    let mut data_type = DataType::of_version_2(metadata.get("dtype").unwrap_or(&Value::Null)).map_err(refuse)?;
    let chain = chain::of_version_2(metadata, &mut data_type, chunk).map_err(refuse)?;
    let separator = match metadata.get("dimension_separator").and_then(Value::as_str) {
        Some("/") => '/',
        Some(".") | None => '.',
        Some(other) => return Err(refuse(format!("its dimension_separator is {other:?}, which is not known"))),
    };
    let keys = ChunkKeys { prefix: prefix(path), has_c: false, separator, is_reversed: false, is_scalar };
    array(path, metadata, (shape, chunk), &data_type, chain, keys)
}

fn array_of_version_3(path: &str, metadata: &NativeJson, attributes: &NativeJson) -> Result<ArrayMetadata, Hidden> {
    let known = metadata.get("zarr_format").and_then(whole) == Some(3);
    if !known || metadata.get("node_type").and_then(Value::as_str) != Some("array") {
        return Err(Hidden::damaged(format!("{V3} is of neither an array nor a group of version 3")));
    }
    let grid = metadata.get("chunk_grid").unwrap_or(&Value::Null);
    let grid_name = grid.get("name").and_then(Value::as_str).unwrap_or_default();
    let regular = grid.get("configuration").and_then(|c| c.get("chunk_shape")).filter(|_| grid_name == "regular");
    let (shape, chunk, is_scalar) = match (regular, metadata.get("shape").and_then(Value::as_array)) {
        (None, Some(list)) if !list.is_empty() => {
            return Err(Hidden::unsupported(format!(
                "its chunk grid is {grid_name:?}, and only regular ones are read"
            )));
        }
        (regular, _) => shapes(metadata.get("shape"), regular)?,
    };
    let refuse = |reason| Hidden { shape: Some(shape), ..Hidden::unsupported(reason) };
    if metadata.get("storage_transformers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return Err(refuse("it has storage_transformers, which are not supported".into()));
    }
    // an extension that readers may ignore says so
    let extension = metadata.iter().find(|(key, value)| {
        !KNOWN_KEYS.contains(&key.as_str()) && value.get("must_understand").and_then(Value::as_bool) != Some(false)
    });
    if let Some((key, _)) = extension {
        return Err(refuse(format!("it has the extension {key:?}, which is not supported")));
    }
    let mut data_type = DataType::of_version_3(metadata.get("data_type").unwrap_or(&Value::Null)).map_err(refuse)?;
    let chain = chain::of_version_3(metadata.get("codecs"), &mut data_type, chunk).map_err(refuse)?;
    let encoding = metadata.get("chunk_key_encoding").unwrap_or(&Value::Null);
    let name = encoding.get("name").unwrap_or(encoding).as_str().unwrap_or("default");
    let separator = encoding.get("configuration").and_then(|c| c.get("separator")).and_then(Value::as_str);
    let (has_c, usual) = match name {
        "default" => (true, "/"),
        "v2" => (false, "."),
        other => return Err(refuse(format!("its chunk_key_encoding is {other:?}, which is not known"))),
    };
    let separator = match separator.unwrap_or(usual) {
        "/" => '/',
        "." => '.',
        other => return Err(refuse(format!("the separator of its chunk keys is {other:?}, which is not known"))),
    };
    let keys = ChunkKeys { prefix: prefix(path), has_c, separator, is_reversed: false, is_scalar };
    let mut array = array(path, metadata, (shape, chunk), &data_type, chain, keys)?;
    array.axes = axes(metadata.get("dimension_names"), &array.keys, &shape, attributes);
    array.values = Values::of(attributes, array.dtype);
    Ok(array)
}

fn array(
    path: &str,
    metadata: &Map<String, Value>,
    (shape, chunk): (Dims, Dims),
    data_type: &DataType,
    chain: Chain,
    keys: ChunkKeys,
) -> Result<ArrayMetadata, Hidden> {
    let value = metadata.get("fill_value").unwrap_or(&Value::Null);
    let wrong = || Hidden::damaged(format!("its fill_value {value} is none of its type"));
    let dtype = data_type.dtype().ok_or_else(wrong)?;
    Hidden::unless_readable(&shape, dtype)?;
    let native = native(json!({
        "path": path,
        "zarr_format": metadata.get("zarr_format"),
        "data_type": metadata.get("data_type").or(metadata.get("dtype")),
        "fill_value": value,
        "chunk_shape": chunk.to_vec(),
        "shards": chain.shards.iter().map(|level| level.count.to_vec()).collect::<Vec<_>>(),
        "unit": data_type.unit,
        "codecs": metadata.get("codecs"),
        "filters": metadata.get("filters"),
        "compressor": metadata.get("compressor"),
    }));
    Ok(ArrayMetadata {
        shape,
        dtype,
        fill: data_type.fill_value(value).ok_or_else(wrong)?,
        chain,
        axes: Vec::new(),
        values: Values::default(),
        keys,
        native,
    })
}

/// Keys of version 3 that are no extensions.
const KNOWN_KEYS: [&str; 12] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
    CONSOLIDATED,
];

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v3(change: &Value) -> Result<ArrayMetadata, Hidden> {
        let mut metadata = native(json!({
            "zarr_format": 3, "node_type": "array", "shape": [10, 20], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 5]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": ["bytes"],
        }));
        metadata.extend(native(change.clone()));
        array_of_version_3("", &metadata, &NativeJson::new())
    }

    #[test]
    fn extensions_that_must_be_understood_are_refused_by_name() {
        assert!(v3(&json!({"x": {"must_understand": false}})).is_ok());
        for (change, reason) in [
            (json!({"x": {"name": "y"}}), "it has the extension \"x\", which is not supported"),
            (json!({"storage_transformers": [{"name": "x"}]}), "it has storage_transformers, which are not supported"),
            (
                json!({"chunk_grid": {"name": "rectangular"}}),
                "its chunk grid is \"rectangular\", and only regular ones are read",
            ),
            (json!({"shape": [i64::MAX, i64::MAX]}), "it has more than 2^63 bytes"),
            (json!({"fill_value": 256}), "its fill_value 256 is none of its type"),
            (json!({"shape": [1, 1, 1, 1, 1, 1, 1, 1]}), "it has 8 axes, and at most 7 are shown"),
        ] {
            assert_eq!(v3(&change).err().map(|hidden| hidden.reason).as_deref(), Some(reason));
        }
        for change in
            [json!({"shape": -1}), json!({"shape": [-1, 2]}), json!({"node_type": "x"}), json!({"zarr_format": 2})]
        {
            assert!(v3(&change).is_err_and(|hidden| hidden.damaged), "{change}");
        }
    }
}
