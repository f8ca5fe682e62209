//! The metadata of OME-NGFF 0.5: what an image's axes are, and where the samples of its levels are in space.

use serde_json::{Map, Value, json};

use super::arrays::{chunk_grid, dimension_names, is_image};
use super::nodes::IMAGE;
use super::units::ome_unit;
use crate::view::axis_positions::first_and_step;
use crate::view::virtual_file::LayerRef;
use crate::volume::{ArrayInfo, Dtype};

/// The colours of the channels of a picture.
const RED_GREEN_BLUE: [(&str, &str); 3] = [("red", "FF0000"), ("green", "00FF00"), ("blue", "0000FF")];

/// Returns the attributes of the folder of labels.
pub(crate) fn labels(name: &str) -> Map<String, Value> {
    Map::from_iter([("ome".to_owned(), json!({"version": "0.5", "labels": [name]}))])
}

/// Returns the attributes of a layer that is a label.
pub(crate) fn label(layer: LayerRef<'_>) -> Map<String, Value> {
    let mut attributes = image(layer);
    if let Some(ome) = attributes.get_mut("ome") {
        ome["image-label"] = json!({"source": {"image": "../../"}});
    }
    attributes
}

/// Returns the attributes of a layer's group: none if it is not an image.
pub(crate) fn image(layer: LayerRef<'_>) -> Map<String, Value> {
    let info = layer.info(0);
    let mut attributes = Map::new();
    if layer.levels().iter().all(|level| is_image(level.info())) {
        let levels = 0..layer.levels().len();
        let mut ome = json!({
            "version": "0.5",
            "multiscales": [{
                "name": layer.name(),
                "axes": axes(info),
                "datasets": levels.map(|lod| dataset(lod, layer.info(lod))).collect::<Vec<_>>(),
            }],
        });
        if is_picture(info) {
            ome["omero"] = json!({"channels": RED_GREEN_BLUE.map(channel)});
        }
        attributes.insert("ome".into(), ome);
    }
    attributes
}

/// Returns the axes in the order of the Zarr array's.
fn axes(info: &ArrayInfo) -> Vec<Value> {
    let names = dimension_names(info);
    let describe = |axis: usize| {
        let kind = if info.axes[axis].spatial { "space" } else { "channel" };
        let mut described = json!({"name": names[axis], "type": kind});
        if let Some(unit) = info.axes[axis].unit.as_deref().and_then(ome_unit) {
            described["unit"] = unit.into();
        }
        described
    };
    chunk_grid(info).axes().into_iter().map(describe).collect()
}

/// Returns the path of a level, and the positions of its samples: those of their centres. Viewers want scales that are
/// positive: where annotations descend, positions are their negatives.
fn dataset(lod: usize, info: &ArrayInfo) -> Value {
    let positions = chunk_grid(info).axes().into_iter().map(|axis| match &info.axes[axis] {
        axis if axis.spatial => match first_and_step(Some(axis)) {
            // and 0 is not to become -0
            (first, step) if step < 0.0 => (0.0 - first, -step),
            ascending => ascending,
        },
        _ => (0.0, 1.0),
    });
    let (translation, scale): (Vec<f64>, Vec<f64>) = positions.unzip();
    json!({
        "path": format!("lod{lod}/{IMAGE}"),
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
