//! `lodN.json` and `dataset.json`: metadata for programs.
//!
//! Numbers that are not finite are null. Integers that a float64 cannot hold exactly are repeated as text, under the
//! same key with the suffix `_text`.

use std::iter;

use serde_json::{Map, Value, json};

use super::entry::{Entry, File, Kind, files_of_level};
use super::slice_cost;
use super::{LayerRef, View};
use crate::catalog::OpenDataset;
use crate::format::FormatError;
use crate::volume::{Affine, Axis, Corner, Geometry, NativeJson, Statistics};

/// The `schema` of every JSON object that volfs writes. It grows when a key changes its meaning or goes; new keys may
/// come at any time.
pub(crate) const SCHEMA: u64 = 1;

pub(crate) const JSON: View = View::new(None, |layer| {
    let file = |lod| {
        let content = File::new(move |layer| Ok(text(&level(layer, lod)?).into()));
        // counting the bricks reads the index tables
        let kind = Kind::File(File { may_block: true, ..content });
        Entry::new(format!("lod{lod}.json"), kind)
    };
    (0..layer.levels().len()).map(file).collect()
});

pub(crate) fn level(layer: LayerRef<'_>, lod: usize) -> Result<Value, FormatError> {
    let mut value = facts(layer, lod)?;
    value["files"] = files_of_level(layer, lod).into();
    value["access"] = slice_cost::slice_costs(&*layer.levels()[lod])?;
    with_text(&mut value);
    Ok(value)
}

/// Returns what `lodN.json` says of the samples, without the files and the access of slices.
pub(crate) fn facts(layer: LayerRef<'_>, lod: usize) -> Result<Value, FormatError> {
    let census = layer.levels()[lod].census()?;
    let census = census.as_ref();
    let info = layer.info(lod);
    let size = info.dtype.size() as u64;
    let bricks = census.map(|c| {
        let c = c.counts;
        json!({"total": c.total, "stored": c.stored, "constant": c.constant, "missing": c.missing})
    });
    let mut native = info.native.clone();
    native.extend(census.iter().flat_map(|c| c.native.clone()));
    let mut value = json!({
        "schema": SCHEMA,
        "format": layer.open.format,
        "dataset": layer.open.name,
        "layer": layer.name(),
        "lod": info.lod,
        "dtype": info.dtype.name(),
        "byte_order": "little",
        "order": "C",
        "shape": info.shape().to_vec(),
        "strides": info.shape().strides(size).to_vec(),
        "size": info.bytes(),
        "axes": info.axes.iter().map(axis).collect::<Vec<_>>(),
        "brick_shape": info.brick_shape.to_vec(),
        "brick_grid": info.grid.count().to_vec(),
        "bricks": bricks,
        "codec": census.map(|c| c.codec).or(info.codec),
        "value_range": info.value_range.map(|(lo, hi)| json!([lo, hi])),
        "no_value": info.no_value,
        "scale": info.scaling.map(|s| s.scale),
        "offset": info.scaling.map(|s| s.offset),
        // filled in by `level`
        "files": null,
        "access": null,
        "warnings": info.warnings,
    });
    value[layer.open.format] = native.into();
    with_text(&mut value);
    Ok(value)
}

/// Returns the `layers` of dataset.json: those that are shown, then those that cannot be. `views` are those that
/// folders of layers show.
pub(crate) fn layers(open: &OpenDataset, views: &[View]) -> Vec<Value> {
    let shown = open.dataset.layers().iter().enumerate().filter_map(|(number, layer)| {
        let finest = layer.levels.first()?.info();
        let hidden = views.iter().filter_map(|view| (view.hidden)(LayerRef { open, layer: number, views }));
        let entry = json!({
            "name": layer.name,
            "dtype": finest.dtype.name(),
            "shape": finest.shape().to_vec(),
            "axes": finest.axes.iter().map(|axis| &axis.name).collect::<Vec<_>>(),
            "lods": layer.levels.len(),
            "hidden_files": hidden.map(|(name, reason)| json!({"name": name, "reason": reason})).collect::<Vec<_>>(),
        });
        Some(with(entry, &layer.native))
    });
    let hidden = open.dataset.hidden().iter().map(|layer| {
        let entry = json!({
            "name": layer.name,
            "dtype": layer.dtype.map(|d| d.name()),
            "shape": layer.shape.map(|s| s.to_vec()),
            "lods": 0,
            "reason": layer.reason,
        });
        with(entry, &layer.native)
    });
    shown.chain(hidden).collect()
}

/// Returns the content of `dataset.json`. `views` are those that folders of layers show.
pub(crate) fn dataset(open: &OpenDataset, views: &[View]) -> Result<Value, FormatError> {
    let (info, (seconds, nanoseconds)) = (open.dataset.info(), open.version.mtime);
    let mut value = json!({
        "schema": SCHEMA,
        "format": open.format,
        "name": open.name,
        "version": info.version,
        "layers": layers(open, views),
        "geometry": info.geometry.as_ref().map(geometry),
        "statistics": info.statistics.as_ref().map(statistics),
        "histogram": info.histogram.as_ref().map(|h| json!({"min": h.min, "max": h.max, "count": h.count, "bins": h.bins})),
        "metadata": open.dataset.metadata()?,
        "source": {"path": open.path, "size": open.size, "mtime": seconds as f64 + nanoseconds as f64 / 1e9},
        "warnings": info.warnings,
    });
    value[open.format] = info.native.clone().into();
    with_text(&mut value);
    Ok(value)
}

fn with(mut object: Value, more: &NativeJson) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.extend(more.clone());
    }
    object
}

fn axis(axis: &Axis) -> Value {
    json!({"name": axis.name, "unit": axis.unit, "first": axis.first, "step": axis.step, "count": axis.count})
}

fn geometry(geometry: &Geometry) -> Value {
    let corner = |c: &Corner| json!({"index": c.index, "annotation": c.annotation, "world": c.world});
    let unit = |name: &Option<String>, factor: f64, kind: &str| json!({"name": name, "factor": factor, "kind": kind});
    let rows = |map: Option<Affine>| map.map(|map| map.rows());
    let maps = [geometry.annotation_to_world, geometry.index_to_world].map(rows);
    let affine =
        maps.iter().any(Option::is_some).then(|| json!({"annotation_to_world": maps[0], "index_to_world": maps[1]}));
    json!({
        "corners": geometry.corners.each_ref().map(corner),
        "affine": affine,
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

/// Adds the texts of integers that a float64 cannot hold exactly, at every depth; for a list that has any, the list of
/// the texts of all its entries. A key that is there already stays.
fn with_text(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(with_text),
        Value::Object(map) => {
            let mut texts = Map::new();
            for (key, value) in map.iter_mut() {
                with_text(value);
                let text: Value = match value {
                    number if is_beyond(number) => number.to_string().into(),
                    Value::Array(items) if items.iter().any(is_beyond) => items.iter().map(Value::to_string).collect(),
                    _ => continue,
                };
                texts.insert(format!("{key}_text"), text);
            }
            for (key, text) in texts {
                map.entry(key).or_insert(text);
            }
        }
        _ => {}
    }
}

/// Whether a value is an integer that a float64 cannot hold exactly.
fn is_beyond(value: &Value) -> bool {
    let magnitude = value.as_u64().or_else(|| value.as_i64().map(i64::unsigned_abs));
    magnitude.is_some_and(|n| n > 1 << 53)
}

/// Longer lists of scalars are broken into lines of about this many characters.
const LINE: usize = 100;

/// Returns the text of a value for people, with a newline: indented, but with lists of scalars on one line.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out.push('\n');
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    let new_line = |out: &mut String, depth| out.extend(iter::once("\n").chain(iter::repeat_n("  ", depth)));
    let is_block = |value: &Value| value.is_array() || value.is_object();
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (n, (key, value)) in map.iter().enumerate() {
                out.push(if n == 0 { '{' } else { ',' });
                new_line(out, depth + 1);
                out.push_str(&format!("{}: ", Value::from(key.as_str())));
                write(value, depth + 1, out);
            }
            new_line(out, depth);
            out.push('}');
        }
        Value::Array(items) if items.iter().any(is_block) => {
            for (n, item) in items.iter().enumerate() {
                out.push(if n == 0 { '[' } else { ',' });
                new_line(out, depth + 1);
                write(item, depth + 1, out);
            }
            new_line(out, depth);
            out.push(']');
        }
        Value::Array(items) => {
            let mut width = 2 * depth;
            out.push('[');
            for (n, text) in items.iter().map(Value::to_string).enumerate() {
                if n > 0 && width + text.len() > LINE {
                    out.push(',');
                    new_line(out, depth + 1);
                    width = 2 * depth;
                } else if n > 0 {
                    out.push_str(", ");
                }
                width += text.len() + 2;
                out.push_str(&text);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
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
        let mut value = json!({"bins": [1, -9_007_199_254_740_993i64], "ids": [5], "x": 1e300, "x_text": 7});
        with_text(&mut value);
        let expected = json!({"bins": [1, -9_007_199_254_740_993i64], "ids": [5], "x": 1e300, "x_text": 7,
                   "bins_text": ["1", "-9007199254740993"]});
        assert_eq!(value, expected);
        let mut value = json!({"id": u64::MAX, "id_text": "as it was"});
        with_text(&mut value);
        assert_eq!(value["id_text"], "as it was");
    }

    #[test]
    fn numbers_that_are_not_finite_are_null() {
        let got = statistics(&Statistics { sum: Some(f64::NAN), min: f64::INFINITY, ..Statistics::default() });
        assert!(got["sum"].is_null() && got["min"].is_null() && got["count"].is_null());
        assert_eq!(got["max"], 0.0);
    }

    #[test]
    fn lists_of_numbers_stay_on_one_line() {
        let value = json!({"shape": [1, 2], "axes": [{"name": "a\"b", "unit": null}], "own": {}, "none": []});
        let expected = "{\n  \"shape\": [1, 2],\n  \"axes\": [\n    {\n      \"name\": \"a\\\"b\",\n      \
            \"unit\": null\n    }\n  ],\n  \
            \"own\": {},\n  \"none\": []\n}\n";
        assert_eq!(text(&value), expected);
    }

    #[test]
    fn written_values_read_back() {
        let value =
            json!({"bins": (0..256).map(|n| n * 1000).collect::<Vec<_>>(), "x": [[1.5], [-2e300]], "s": "\u{1b}é"});
        let written = text(&value);
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        assert!(written.lines().all(|line| line.len() <= LINE + 10));
    }
}
