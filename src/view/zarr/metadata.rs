//! The texts of `zarr.json`: Zarr v3 (core specification, version 3.0), and the consolidated metadata that zarr-python
//! and xarray read in place of one file for each array.

use serde_json::{Map, Value, json};

use super::arrays::{POSITIONS, chunk_grid, dimension_names, fill_value};
use super::fill::number;
use super::labels::label_name;
use super::nodes::{IMAGE, LABELS};
use super::ome;
use crate::format::Array;
use crate::view::virtual_file::LayerRef;
use crate::volume::{ArrayInfo, Dims, Dtype};

/// Returns the metadata of a layer, and of its label if it has one.
pub(crate) fn root(layer: LayerRef<'_>) -> Value {
    let mut below = image(layer);
    if let Some(name) = label_name(layer) {
        below.insert(LABELS.to_owned(), group(ome::labels(&name), None));
        below.insert(format!("{LABELS}/{name}"), group(ome::label(layer), None));
        below.extend(image(layer).into_iter().map(|(path, node)| (format!("{LABELS}/{name}/{path}"), node)));
    }
    group(ome::image(layer), Some(below))
}

/// Returns the metadata of the folder of labels.
pub(crate) fn labels(layer: LayerRef<'_>) -> Value {
    group(label_name(layer).map(|name| ome::labels(&name)).unwrap_or_default(), None)
}

/// Returns the metadata of the label.
pub(crate) fn label(layer: LayerRef<'_>) -> Value {
    group(ome::label(layer), Some(image(layer)))
}

/// Returns the metadata of all groups and arrays of an image by their paths.
fn image(layer: LayerRef<'_>) -> Map<String, Value> {
    let mut below = Map::new();
    for lod in 0..layer.levels().len() {
        below.insert(format!("lod{lod}"), group(Map::new(), None));
        below.extend(arrays(layer, lod).map(|(name, array)| (format!("lod{lod}/{name}"), array)));
    }
    below
}

/// Returns the metadata of a level.
pub(crate) fn level(layer: LayerRef<'_>, lod: usize) -> Value {
    group(Map::new(), Some(arrays(layer, lod).collect()))
}

/// Returns the metadata of an array of a level: 0 for the samples, 1 + N for the positions along axis N.
pub(crate) fn array(layer: LayerRef<'_>, lod: usize, array: usize) -> Value {
    match array.checked_sub(1) {
        None => samples(layer, lod),
        Some(axis) => positions(layer.info(lod), axis),
    }
}

/// Returns the names of the arrays of a level, in the order of their numbers.
pub(crate) fn array_names(info: &ArrayInfo) -> Vec<String> {
    std::iter::once(IMAGE.to_owned()).chain(dimension_names(info)).collect()
}

fn arrays(layer: LayerRef<'_>, lod: usize) -> impl Iterator<Item = (String, Value)> + '_ {
    array_names(layer.info(lod)).into_iter().enumerate().map(move |(n, name)| (name, array(layer, lod, n)))
}

fn group(attributes: Map<String, Value>, below: Option<Map<String, Value>>) -> Value {
    let mut group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    if let Some(below) = below {
        group["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": below});
    }
    group
}

fn samples(layer: LayerRef<'_>, lod: usize) -> Value {
    let array: &dyn Array = &*layer.levels()[lod];
    let info = array.info();
    let (grid, names) = (chunk_grid(info), dimension_names(info));
    let axes = grid.axes();
    let mut codecs = Vec::new();
    if !axes.is_sorted() {
        // the axis of the Zarr array at each position of the stored chunk
        let order: Vec<_> = (0..axes.len()).map(|own| axes.iter().position(|axis| *axis == own)).collect();
        codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
    }
    codecs.push(bytes(info.dtype));
    let mut attributes = Map::new();
    attributes.insert("long_name".into(), layer.name().into());
    // not under the names that make readers change the samples
    if let Some(scaling) = info.scaling.filter(|scaling| scaling.says_something()) {
        attributes.insert("volfs_scale".into(), scaling.scale.into());
        attributes.insert("volfs_offset".into(), scaling.offset.into());
    }
    if let Some(no_value) = info.no_value {
        attributes.insert("volfs_no_value".into(), no_value.into());
    }
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(&grid.in_zarr_order(&info.shape())),
        "data_type": info.dtype.name(),
        "chunk_grid": chunks(&grid.in_zarr_order(&grid.chunk())),
        "chunk_key_encoding": chunk_keys(),
        "fill_value": number(info.dtype, &fill_value(array)),
        "codecs": codecs,
        "dimension_names": axes.iter().filter_map(|axis| names.get(*axis)).collect::<Vec<_>>(),
        "attributes": attributes,
    })
}

fn positions(info: &ArrayInfo, axis: usize) -> Value {
    let count = info.shape()[axis];
    let unit = info.axes.get(axis).and_then(|axis| axis.unit.as_deref());
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [count],
        "data_type": "float64",
        "chunk_grid": chunks(&[count.min(POSITIONS)].into()),
        "chunk_key_encoding": chunk_keys(),
        "fill_value": 0.0,
        "codecs": [bytes(Dtype::Float64)],
        "dimension_names": [dimension_names(info).get(axis)],
        "attributes": unit.map_or_else(|| json!({}), |unit| json!({"units": unit})),
    })
}

fn chunks(shape: &Dims) -> Value {
    json!({"name": "regular", "configuration": {"chunk_shape": list(shape)}})
}

fn chunk_keys() -> Value {
    json!({"name": "default", "configuration": {"separator": "/"}})
}

fn bytes(dtype: Dtype) -> Value {
    match dtype.size() {
        1 => json!({"name": "bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
    }
}

fn list(dims: &Dims) -> Value {
    dims.to_vec().into()
}
