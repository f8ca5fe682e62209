//! `lodN.json` and `dataset.json`: metadata for programs.
//!
//! Numbers that are not finite are null. Integers that a float64 cannot hold exactly are repeated as text, under the
//! same key with the suffix `_text`.

use serde_json::{Map, Value, json};

use super::content::Content;
use super::json_text;
use super::layer_ref::LayerRef;
use super::level_file::LevelFile;
use crate::catalog::OpenDataset;
use crate::format::FormatError;
use crate::volume::{Axis, Corner, Dims, Geometry, Histogram, NativeJson, Statistics};

/// The view of one level.
pub struct Json;

impl LevelFile for Json {
    fn suffix(&self) -> &'static str {
        ".json"
    }

    /// Returns true, since counting the bricks reads the index tables.
    fn may_block(&self) -> bool {
        true
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        Ok(json_text::format(&level(layer, lod)?).into())
    }
}

/// Returns the content of `lodN.json`.
///
/// # Errors
/// Those of the format, if the bricks cannot be counted.
pub fn level(layer: LayerRef<'_>, lod: usize) -> Result<Value, FormatError> {
    let array = &layer.levels()[lod];
    let info = array.info();
    let census = array.census()?;
    let size = info.dtype.size() as u64;
    let bricks = census.as_ref().map(|c| {
        let c = c.counts;
        json!({"total": c.total, "stored": c.stored, "constant": c.constant, "missing": c.missing})
    });
    let mut native = info.native.clone();
    native.extend(census.iter().flat_map(|c| c.native.clone()));
    let mut value = json!({
        "format": layer.open.format,
        "dataset": layer.open.name,
        "layer": layer.name(),
        "lod": info.lod,
        "dtype": info.dtype.name(),
        "byte_order": "little",
        "order": "C",
        "shape": list(&info.shape()),
        "strides": list(&info.shape().strides(size)),
        "size": info.bytes(),
        "axes": info.axes.iter().map(axis).collect::<Vec<_>>(),
        "brick_shape": list(&info.brick_shape),
        "brick_grid": list(&info.grid.count()),
        "bricks": bricks,
        "codec": census.as_ref().map(|c| c.codec).or(info.codec),
        "value_range": info.value_range.map(|(lo, hi)| json!([lo, hi])),
        "no_value": info.no_value,
        "scale": info.scaling.map(|s| s.scale),
        "offset": info.scaling.map(|s| s.offset),
        "warnings": info.warnings,
    });
    value[layer.open.format] = native.into();
    with_text(&mut value);
    Ok(value)
}

/// Returns the `layers` of dataset.json: those that are shown, then those that cannot be.
#[must_use]
pub fn layers(open: &OpenDataset) -> Vec<Value> {
    let shown = open.dataset.layers().iter().filter_map(|layer| {
        let finest = layer.levels.first()?.info();
        let entry = json!({
            "name": layer.name,
            "dtype": finest.dtype.name(),
            "shape": list(&finest.shape()),
            "lods": layer.levels.len(),
        });
        Some(with(entry, &layer.native))
    });
    let hidden = open.dataset.hidden().iter().map(|layer| {
        let entry = json!({
            "name": layer.name,
            "dtype": layer.dtype.map(|d| d.name()),
            "shape": layer.shape.map(|s| list(&s)),
            "lods": 0,
            "reason": layer.reason,
        });
        with(entry, &layer.native)
    });
    shown.chain(hidden).collect()
}

/// Returns the content of `dataset.json`.
///
/// # Errors
/// Those of the format, if metadata cannot be read.
pub fn dataset(open: &OpenDataset) -> Result<Value, FormatError> {
    let info = open.dataset.info();
    let mut value = json!({
        "format": open.format,
        "name": open.name,
        "version": info.version,
        "layers": layers(open),
        "geometry": info.geometry.as_ref().map(geometry),
        "statistics": info.statistics.as_ref().map(statistics),
        "histogram": info.histogram.as_ref().map(histogram),
        "metadata": open.dataset.metadata()?,
        "source": source(open),
        "warnings": info.warnings,
    });
    value[open.format] = info.native.clone().into();
    with_text(&mut value);
    Ok(value)
}

/// Adds keys to an object.
fn with(mut object: Value, more: &NativeJson) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.extend(more.clone());
    }
    object
}

fn list(dims: &Dims) -> Value {
    dims.to_vec().into()
}

fn axis(axis: &Axis) -> Value {
    json!({"name": axis.name, "unit": axis.unit, "first": axis.first, "step": axis.step, "count": axis.count})
}

fn corner(corner: &Corner) -> Value {
    json!({"index": corner.index, "annotation": corner.annotation, "world": corner.world})
}

fn geometry(geometry: &Geometry) -> Value {
    let unit = |name: &Option<String>, factor: f64, kind: &str| json!({"name": name, "factor": factor, "kind": kind});
    json!({
        "corners": geometry.corners.iter().map(corner).collect::<Vec<_>>(),
        "units": {
            "horizontal": unit(&geometry.horizontal_unit, geometry.horizontal_factor, geometry.horizontal_kind),
            "vertical": unit(&geometry.vertical_unit, geometry.vertical_factor, geometry.vertical_kind),
        },
        "coordinate_system": geometry.coordinate_system,
    })
}

fn statistics(statistics: &Statistics) -> Value {
    json!({
        "count": statistics.count,
        "sum": statistics.sum,
        "sum_of_squares": statistics.sum_of_squares,
        "min": statistics.min,
        "max": statistics.max,
    })
}

fn histogram(histogram: &Histogram) -> Value {
    json!({"min": histogram.min, "max": histogram.max, "count": histogram.count, "bins": histogram.bins})
}

fn source(open: &OpenDataset) -> Value {
    let (seconds, nanoseconds) = open.stamp.mtime;
    json!({"path": open.path, "size": open.size, "mtime": seconds as f64 + nanoseconds as f64 / 1e9})
}

/// Adds the texts of integers that a float64 cannot hold exactly, at every depth.
fn with_text(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(with_text),
        Value::Object(map) => {
            let mut texts = Map::new();
            for (key, value) in map.iter_mut() {
                with_text(value);
                let number = match value {
                    Value::Number(n) if beyond(n.as_u64().unwrap_or(n.as_i64().unwrap_or(0).unsigned_abs())) => n,
                    _ => continue,
                };
                texts.insert(format!("{key}_text"), number.to_string().into());
            }
            map.extend(texts);
        }
        _ => {}
    }
}

fn beyond(magnitude: u64) -> bool {
    magnitude > 1 << 53
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_integers_are_repeated_as_text() {
        let mut value =
            json!({"a": [{"id": 18_446_744_073_709_551_615u64, "small": 5}], "b": -9_007_199_254_740_993i64});
        with_text(&mut value);
        assert_eq!(value["a"][0]["id_text"], "18446744073709551615");
        assert_eq!(value["b_text"], "-9007199254740993");
        assert!(value["a"][0].get("small_text").is_none());
    }

    #[test]
    fn numbers_that_are_not_finite_are_null() {
        let got = statistics(&Statistics { sum: Some(f64::NAN), min: f64::INFINITY, ..Statistics::default() });
        assert!(got["sum"].is_null() && got["min"].is_null() && got["count"].is_null());
        assert_eq!(got["max"], 0.0);
    }
}
