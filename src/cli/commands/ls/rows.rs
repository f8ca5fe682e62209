//! The rows of `volfs ls`. They are made from the JSON that every format has, so that a new format is listed without a
//! change here.

use std::path::Path;

use serde_json::{Value, json};

use crate::catalog::OpenDataset;
use crate::cli::text::escape;
use crate::cli::text::json_value::{joined, scalar};
use crate::cli::text::number::float;
use crate::format::FormatError;
use crate::view::{self, LayerRef};
use crate::volume::ArrayInfo;

/// Significant digits of a voxel's size.
const DIGITS: usize = 6;

/// One row: a layer, or a folder or dataset that cannot be shown, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The dataset's path below SOURCE, escaped for a terminal.
    path: String,
    /// The object that `--json` prints.
    object: Value,
}

impl Row {
    /// Makes the row of a folder or dataset that cannot be shown at all.
    pub(crate) fn failed(below: &Path, format: Option<&str>, reason: &str) -> Self {
        let mut row = Self::new(below, format, &Value::Null);
        row.object["error"] = reason.into();
        row
    }

    /// Makes a row for each layer of a dataset. The layers that cannot be shown come last.
    pub(crate) fn layers(below: &Path, open: &OpenDataset) -> Result<Vec<Self>, FormatError> {
        let mut rows = Vec::new();
        for (layer, described) in open.dataset.layers().iter().enumerate() {
            let finest = view::json::facts(LayerRef { open, layer, views: &[] }, 0)?;
            let mut row = Self::new(below, Some(open.format), &finest);
            row.object["lods"] = described.levels.len().into();
            let infos = || described.levels.iter().map(|level| level.info());
            if infos().next().is_some_and(|info| info.mag.is_some()) {
                row.add_voxels(&finest, infos());
            }
            rows.push(row);
        }
        let mut hidden = view::json::layers(open, &[]);
        hidden.retain(|layer| layer["reason"].is_string());
        rows.extend(hidden.iter().map(|layer| {
            let mut row = Self::new(below, Some(open.format), layer);
            row.object["layer"] = layer["name"].clone();
            row.object["lods"] = 0.into();
            row.object["error"] = layer["reason"].clone();
            row
        }));
        Ok(rows)
    }

    fn new(below: &Path, format: Option<&str>, level: &Value) -> Self {
        let path = escape::path(below);
        let object = json!({
            "schema": view::json::SCHEMA,
            "path": below.to_string_lossy(),
            "format": format,
            "layer": level["layer"],
            "shape": level["shape"],
            "dtype": level["dtype"],
            "codec": level["codec"],
            "lods": null,
            "size": level["size"],
            "error": null,
        });
        Self { path, object }
    }

    /// Adds the mag of each level, and the size of a voxel of the finest: the steps of the axes that have a unit. Both
    /// are in the order x, y, z, the reverse of the array's axes.
    fn add_voxels<'a>(&mut self, finest: &Value, levels: impl Iterator<Item = &'a ArrayInfo>) {
        let axes = || finest["axes"].as_array().into_iter().flatten().rev().filter(|axis| axis["unit"].is_string());
        let steps: Vec<Value> = axes().map(|axis| axis["step"].clone()).collect();
        let unit = axes().next().map_or(Value::Null, |axis| axis["unit"].clone());
        self.object["mag"] = levels.map(|info| json!(info.mag)).collect();
        self.object["voxel_size"] = if steps.is_empty() { Value::Null } else { json!({"step": steps, "unit": unit}) };
    }

    /// Returns the object that `--json` prints.
    pub(crate) fn object(&self) -> &Value {
        &self.object
    }

    /// Returns the cells of the table row. The last cell may be of any length.
    pub(crate) fn cells(&self) -> Vec<String> {
        let object = &self.object;
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let text = |key: &str| or_dash(scalar(&object[key]));
        let mut cells = vec![self.path.clone()];
        let reason = scalar(&object["error"]).map(|reason| format!("not shown: {reason}"));
        if object["layer"].is_null() {
            cells.extend(reason);
        } else {
            cells.extend([text("layer"), or_dash(joined(&object["shape"], "x")), text("dtype")]);
            match reason {
                Some(reason) => cells.push(reason),
                None => cells.extend([text("codec"), lods(&object["lods"])]),
            }
        }
        cells.extend(voxels(object));
        cells
    }
}

fn lods(count: &Value) -> String {
    match count.as_u64() {
        Some(1) => "1 LOD".to_owned(),
        Some(n) => format!("{n} LODs"),
        None => "-".to_owned(),
    }
}

/// Formats `mag 1,2,4-4-2` and `voxel 11.24x11.24x28 nm`, as far as they are known.
fn voxels(object: &Value) -> Vec<String> {
    let mag = |mag: &Value| {
        let factors: Vec<u64> = mag.as_array()?.iter().filter_map(Value::as_u64).collect();
        let same = factors.iter().all(|n| Some(n) == factors.first());
        if same { factors.first().map(u64::to_string) } else { joined(mag, "-") }
    };
    let mags: Vec<String> = object["mag"].as_array().into_iter().flatten().filter_map(mag).collect();
    let steps = object["voxel_size"]["step"].as_array().into_iter().flatten();
    let steps: Vec<String> = steps.filter_map(Value::as_f64).map(|step| float(step, DIGITS)).collect();
    let mut cells = Vec::new();
    if !mags.is_empty() {
        cells.push(format!("mag {}", mags.join(",")));
    }
    if !steps.is_empty() {
        let unit = scalar(&object["voxel_size"]["unit"]).unwrap_or_default();
        cells.push(format!("voxel {} {unit}", steps.join("x")));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::text::table::Table;
    use crate::volume::{BrickGrid, Dims, Dtype};

    const WIDEST: usize = 48;

    fn layer(path: &str, layer: &str, shape: &[u64], lods: u64) -> Row {
        let level = json!({"layer": layer, "shape": shape, "dtype": "float32", "codec": "zfp", "size": 8});
        let mut row = Row::new(Path::new(path), Some("zgy"), &level);
        row.object["lods"] = lods.into();
        row
    }

    fn lines(table: &mut Table, rows: &[Row]) -> Vec<String> {
        table.lines(rows.iter().map(Row::cells).collect())
    }

    #[test]
    fn columns_are_aligned_and_never_shrink() {
        let mut table = Table::new(WIDEST);
        let rows = [
            layer("a/north.zgy", "data", &[512, 512, 1024], 5),
            Row::failed(Path::new("b\x1b.zgy"), None, "it is\nempty"),
            layer("c", "data", &[1], 1),
        ];
        assert_eq!(
            lines(&mut table, &rows),
            [
                "a/north.zgy  data  512x512x1024  float32  zfp  5 LODs",
                "b\\u{1b}.zgy  not shown: it is\\nempty",
                "c            data  1             float32  zfp  1 LOD",
            ]
        );
        assert_eq!(lines(&mut table, &rows[2..]), ["c            data  1             float32  zfp  1 LOD"]);
        let long = "d".repeat(60);
        assert_eq!(
            lines(&mut table, &[layer(&long, "x", &[1], 1)]),
            [format!("{long}  x     1             float32  zfp  1 LOD")]
        );
        assert_eq!(lines(&mut table, &rows[2..])[0].find("data"), Some(WIDEST + 2));
    }

    #[test]
    fn names_of_wide_characters_are_aligned() {
        let rows = [layer("脳/皮質.zgy", "データ", &[1], 1), layer("north.zgy", "data", &[20], 2)];
        assert_eq!(
            lines(&mut Table::new(WIDEST), &rows),
            ["脳/皮質.zgy  データ  1   float32  zfp  1 LOD", "north.zgy    data    20  float32  zfp  2 LODs"]
        );
    }

    #[test]
    fn mags_and_voxel_sizes_are_listed() {
        let axis = |name: &str, unit: Option<&str>, step: f64| json!({"name": name, "unit": unit, "step": step});
        let nm = Some("nanometer");
        let (z, y, x) = (axis("z", nm, 28.0), axis("y", nm, 11.24), axis("x", nm, 11.24));
        let finest = json!({"axes": [z, y, x, axis("channel", None, 1.0)]});
        let shape = Dims::filled(3, 8);
        let info =
            |mag| ArrayInfo { mag: Some(mag), ..ArrayInfo::new(Dtype::Int8, BrickGrid::aligned(shape, shape), shape) };
        let mut row = layer("em", "color", &[5, 6, 7, 3], 3);
        row.add_voxels(&finest, [[1, 1, 1], [2, 2, 1], [4, 4, 2]].map(info).iter());
        assert!(
            lines(&mut Table::new(WIDEST), &[row.clone()])[0]
                .ends_with("3 LODs  mag 1,2-2-1,4-4-2  voxel 11.24x11.24x28 nanometer")
        );
        assert_eq!(row.object()["voxel_size"], json!({"step": [11.24, 11.24, 28.0], "unit": "nanometer"}));
        assert_eq!(row.object()["mag"][1], json!([2, 2, 1]));
    }

    #[test]
    fn a_hidden_layer_is_listed_with_the_reason() {
        let mut row = layer("em", "color", &[5, 6], 0);
        row.object["error"] = "its voxels are of type x".into();
        assert_eq!(
            lines(&mut Table::new(WIDEST), &[row]),
            ["em  color  5x6  float32  not shown: its voxels are of type x"]
        );
    }
}
