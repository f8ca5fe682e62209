//! The texts of `zarr.json`: Zarr v3 (core specification, version 3.0), and the consolidated metadata that zarr-python
//! and xarray read in place of one file for each array.

use serde_json::{Map, Value, json};

use super::arrays::{POSITIONS, array_names, chunk_grid, dimension_names, fill_value, is_image, label_name};
use super::chunk::number;
use crate::view::LayerRef;
use crate::view::headers::first_and_step;
use crate::view::picture::{label_palette, number_of_label};
use crate::volume::{ArrayInfo, Axis, Dims, Dtype, Unit};

/// Returns the metadata of a layer as an image. What is below is not consolidated: zarr-python would find nothing else.
pub(crate) fn image(layer: LayerRef<'_>) -> Value {
    group(ome_image(layer), None)
}

pub(crate) fn labels(layer: LayerRef<'_>) -> Value {
    group(label_name(layer).map_or_else(|| json!({}), |name| ome_labels(&name)), None)
}

pub(crate) fn label(layer: LayerRef<'_>) -> Value {
    group(ome_label(layer), None)
}

/// Returns the metadata of the group of all levels, with that of everything below.
pub(crate) fn tree(layer: LayerRef<'_>) -> Value {
    let mut below = Map::new();
    for lod in 0..layer.levels().len() {
        below.insert(format!("lod{lod}"), group(json!({}), None));
        below.extend(arrays(layer, lod).map(|(name, array)| (format!("lod{lod}/{name}"), array)));
    }
    group(json!({}), Some(below))
}

pub(crate) fn level(layer: LayerRef<'_>, lod: usize) -> Value {
    group(json!({}), Some(arrays(layer, lod).collect()))
}

/// Returns the metadata of an array of a level: 0 for the samples, 1 + N for the positions along axis N.
pub(crate) fn array(layer: LayerRef<'_>, lod: usize, array: usize) -> Value {
    match array.checked_sub(1) {
        None => samples(layer, lod),
        Some(axis) => positions(layer.info(lod), axis),
    }
}

fn arrays(layer: LayerRef<'_>, lod: usize) -> impl Iterator<Item = (String, Value)> + '_ {
    array_names(layer.info(lod)).into_iter().enumerate().map(move |(n, name)| (name, array(layer, lod, n)))
}

fn group(attributes: Value, below: Option<Map<String, Value>>) -> Value {
    let mut group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    if let Some(below) = below {
        group["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": below});
    }
    group
}

pub(crate) fn samples(layer: LayerRef<'_>, lod: usize) -> Value {
    let array = &*layer.levels()[lod];
    let info = array.info();
    let (grid, names) = (chunk_grid(layer, lod), dimension_names(info));
    let mut value = array_of(&grid.in_zarr_order(&info.shape()), &grid.in_zarr_order(&grid.chunk), info.dtype);
    value["fill_value"] = number(info.dtype, &fill_value(array)).into();
    value["dimension_names"] = grid.axes().iter().filter_map(|axis| names.get(*axis).cloned()).collect();
    let attributes = &mut value["attributes"];
    attributes["long_name"] = layer.name().into();
    // not under the names that make readers change the samples
    if let Some(scaling) = info.scaling.filter(|scaling| scaling.says_something()) {
        attributes["volfs_scale"] = scaling.scale.into();
        attributes["volfs_offset"] = scaling.offset.into();
    }
    if let Some(no_value) = info.no_value {
        attributes["volfs_no_value"] = no_value.into();
    }
    value
}

fn positions(info: &ArrayInfo, axis: usize) -> Value {
    let count = info.shape()[axis];
    let mut value = array_of(&[count].into(), &[count.min(POSITIONS)].into(), Dtype::Float64);
    value["dimension_names"] = json!([dimension_names(info).get(axis)]);
    if let Some(unit) = info.axes.get(axis).and_then(|axis| axis.unit.as_deref()) {
        value["attributes"]["units"] = unit.into();
    }
    value
}

/// Returns the metadata of an array of zeros, without names of its dimensions.
fn array_of(shape: &Dims, chunk: &Dims, dtype: Dtype) -> Value {
    let bytes = match dtype.size() {
        1 => json!({"name": "bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
    };
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape.to_vec(),
        "data_type": dtype.name(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk.to_vec()}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [bytes],
        "dimension_names": null,
        "attributes": {},
    })
}

/// The colours of the channels of a picture.
const RED_GREEN_BLUE: [(&str, &str); 3] = [("red", "FF0000"), ("green", "00FF00"), ("blue", "0000FF")];

/// Returns the attributes of the folder of labels.
fn ome_labels(name: &str) -> Value {
    json!({"ome": {"version": "0.5", "labels": [name]}})
}

/// Returns the attributes of a layer that is a label.
fn ome_label(layer: LayerRef<'_>) -> Value {
    let mut attributes = ome_image(layer);
    if let Some(ome) = attributes.get_mut("ome") {
        ome["image-label"] = json!({"source": {"image": "../../"}});
        if let Some(colours) = label_colours(layer.info(0)) {
            ome["image-label"]["colors"] = colours;
        }
    }
    attributes
}

/// The colours of labels are listed if no id is greater.
const MOST_COLOURS: u64 = 4095;

/// Returns the colours of all labels, which are those of pictures. Where they may be too many to be listed there are
/// none, since napari hides the labels whose colours are left out.
fn label_colours(info: &ArrayInfo) -> Option<Value> {
    let known = info.native.get("largestSegmentId").and_then(Value::as_u64);
    let greatest = if info.dtype == Dtype::UInt8 { Some(u8::MAX.into()) } else { known };
    let palette = label_palette();
    let colour = |id: u64| {
        let [red, green, blue] = palette[usize::from(number_of_label(id))];
        json!({"label-value": id, "rgba": [red, green, blue, if id > 0 { 255 } else { 0 }]})
    };
    greatest.filter(|id| *id <= MOST_COLOURS).map(|greatest| (0..=greatest).map(colour).collect())
}

/// Returns the attributes of a layer's group: none if it is not an image.
fn ome_image(layer: LayerRef<'_>) -> Value {
    if !layer.levels().iter().all(|level| is_image(level.info())) {
        return json!({});
    }
    let info = layer.info(0);
    let levels = 0..layer.levels().len();
    let mut ome = json!({
        "version": "0.5",
        "multiscales": [{
            "name": layer.name(),
            "axes": axes(layer),
            "datasets": levels.map(|lod| dataset(layer, lod)).collect::<Vec<_>>(),
            "type": "as stored",
            "metadata": {
                "description": "the levels that the dataset has; how they were made is not known",
                "method": "none",
                "version": env!("CARGO_PKG_VERSION"),
            },
        }],
    });
    if is_picture(info) {
        ome["omero"] = json!({"channels": RED_GREEN_BLUE.map(channel)});
    }
    json!({"ome": ome})
}

/// Returns the axes in the order of the Zarr array's.
fn axes(layer: LayerRef<'_>) -> Vec<Value> {
    let info = layer.info(0);
    let names = dimension_names(info);
    let describe = |axis: usize| {
        let kind = if info.axes[axis].spatial { "space" } else { "channel" };
        let mut described = json!({"name": names[axis], "type": kind});
        if let Some(unit) = info.axes[axis].unit.as_deref().and_then(ome_unit) {
            described["unit"] = unit.into();
        }
        described
    };
    chunk_grid(layer, 0).axes().into_iter().map(describe).collect()
}

/// Returns the first position and the step of an axis. Viewers want scales that are positive: where annotations descend,
/// positions are their negatives.
fn ascending(axis: &Axis) -> (f64, f64) {
    match first_and_step(Some(axis)) {
        // and 0 is not to become -0
        (first, step) if step < 0.0 => (0.0 - first, -step),
        ascending => ascending,
    }
}

/// Returns the path of a level, and the positions of its samples: those of their centres.
fn dataset(layer: LayerRef<'_>, lod: usize) -> Value {
    let info = layer.info(lod);
    let positions = chunk_grid(layer, lod).axes().into_iter().map(|axis| match &info.axes[axis] {
        axis if axis.spatial => ascending(axis),
        _ => (0.0, 1.0),
    });
    let (translation, scale): (Vec<f64>, Vec<f64>) = positions.unzip();
    json!({
        "path": lod.to_string(),
        "coordinateTransformations": [
            {"type": "scale", "scale": scale},
            {"type": "translation", "translation": translation},
        ],
    })
}

fn channel((label, color): (&str, &str)) -> Value {
    let window = json!({"min": 0, "max": 255, "start": 0, "end": 255});
    json!({"label": label, "color": color, "active": true, "window": window})
}

/// Whether the channels are red, green and blue.
fn is_picture(info: &ArrayInfo) -> bool {
    info.dtype == Dtype::UInt8 && info.axes.len() == 4 && info.shape()[3] == 3
}

/// Returns the name that OME-NGFF (0.5, section "axes") has for a unit of length or time that is given by its name, its
/// abbreviation or its plural. `None` if it has none.
pub(crate) fn ome_unit(unit: &str) -> Option<String> {
    let name = Unit::named(unit)?.name;
    (!name.ends_with("hertz") && name != "survey foot").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::zeros;

    #[test]
    fn positions_have_the_name_and_the_unit_of_their_axis() {
        let mut info = zeros(&[4, 5, 9000], Dtype::UInt8).info().clone();
        info.axes[2] =
            Axis { name: "t".into(), unit: Some("ms".into()), first: 4.0, step: 2.0, ..info.axes[2].clone() };
        let found = positions(&info, 2);
        assert_eq!((&found["shape"], &found["data_type"]), (&json!([9000]), &json!("float64")));
        assert_eq!(found["chunk_grid"]["configuration"]["chunk_shape"], json!([9000.min(POSITIONS)]));
        assert_eq!((&found["dimension_names"], &found["attributes"]["units"]), (&json!(["t"]), &json!("ms")));
        assert_eq!(positions(&info, 0)["attributes"], json!({}), "an axis without a unit");
    }

    #[test]
    fn scales_are_positive_and_zero_has_no_sign() {
        let axis = zeros(&[4], Dtype::UInt8).info().axes[0].clone();
        let of = |first, step| ascending(&Axis { first, step, ..axis.clone() });
        assert_eq!((of(5.0, 2.0), of(60.0, -2.5)), ((5.0, 2.0), (-60.0, 2.5)));
        let (first, step) = of(0.0, -2.0);
        assert!(first == 0.0 && first.is_sign_positive() && step == 2.0, "{first} {step}");
    }

    #[test]
    fn units_are_those_of_the_specification() {
        for (unit, name) in [("ms", Some("millisecond")), ("feet", Some("foot")), ("kHz", None), ("ussft", None)] {
            assert_eq!(ome_unit(unit).as_deref(), name, "{unit}");
        }
    }
}
