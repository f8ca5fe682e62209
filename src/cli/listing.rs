//! The lines of `volfs ls`. They are made from the JSON of the levels, so that a format that comes later is listed without a
//! change here.

use std::path::Path;

use serde_json::{Value, json};

use super::printable;
use super::value::{float, list, plain};
use crate::catalog::OpenDataset;
use crate::format::FormatError;
use crate::view::{self, LayerRef};

/// Digits of a voxel's size.
const DIGITS: usize = 6;

/// Columns that a path has before it pushes the others aside.
const WIDEST: usize = 48;

/// One line: a layer, or what cannot be shown and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where its dataset is, below SOURCE, as it is printed.
    path: String,
    /// What `--json` says of it.
    object: Value,
}

impl Row {
    /// Something that cannot be shown as a whole.
    #[must_use]
    pub fn failed(below: &Path, format: Option<&str>, reason: &str) -> Self {
        let mut row = Self::new(below, format, &Value::Null);
        row.object["error"] = reason.into();
        row
    }

    /// Every layer of a dataset, also those that cannot be shown.
    ///
    /// # Errors
    /// Those of the format, if the bricks of a level cannot be counted.
    pub fn layers(below: &Path, open: &OpenDataset) -> Result<Vec<Self>, FormatError> {
        let mut rows = Vec::new();
        for (layer, described) in open.dataset.layers().iter().enumerate() {
            let place = LayerRef { open, layer };
            let finest = view::json::level(place, 0)?;
            let mut row = Self::new(below, Some(open.format), &finest);
            row.object["lods"] = described.levels.len().into();
            if !finest[open.format]["mag"].is_null() {
                let coarser: Result<Vec<Value>, _> =
                    (1..described.levels.len()).map(|lod| view::json::level(place, lod)).collect();
                let mags =
                    std::iter::once(&finest).chain(&coarser?).map(|level| level[open.format]["mag"].clone()).collect();
                row.add_voxels(&finest, mags);
            }
            rows.push(row);
        }
        let mut hidden = view::json::layers(open);
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
        let path = printable::path(below);
        let object = json!({
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

    /// Adds the resolutions of the levels, and the size of a voxel of the finest: the steps of the axes that have a unit.
    /// Both are in the order x, y, z, which is the reverse of the array's.
    fn add_voxels(&mut self, finest: &Value, mags: Vec<Value>) {
        let axes = || finest["axes"].as_array().into_iter().flatten().rev().filter(|axis| axis["unit"].is_string());
        let steps: Vec<Value> = axes().map(|axis| axis["step"].clone()).collect();
        let unit = axes().next().map_or(Value::Null, |axis| axis["unit"].clone());
        self.object["mag"] = mags.into();
        self.object["voxel_size"] = if steps.is_empty() { Value::Null } else { json!({"step": steps, "unit": unit}) };
    }

    /// The object for programs.
    #[must_use]
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The columns that it has; the last may be of any length.
    fn cells(&self) -> Vec<String> {
        let object = &self.object;
        let text = |key: &str| plain(&object[key]).unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![self.path.clone()];
        let reason = plain(&object["error"]).map(|reason| format!("not shown: {reason}"));
        if object["layer"].is_null() {
            cells.extend(reason);
        } else {
            cells.extend([text("layer"), list(&object["shape"], "x").unwrap_or_else(|| "-".to_owned()), text("dtype")]);
            match reason {
                Some(reason) => cells.push(reason),
                None => cells.extend([text("codec"), levels(&object["lods"])]),
            }
        }
        cells.extend(voxels(object));
        cells.iter().map(|cell| printable::text(cell).into_owned()).collect()
    }
}

fn levels(lods: &Value) -> String {
    match lods.as_u64() {
        Some(1) => "1 LOD".to_owned(),
        Some(n) => format!("{n} LODs"),
        None => "-".to_owned(),
    }
}

/// `mag 1,2,4-4-2  voxel 11.24x11.24x28 nm`, as far as it is known.
fn voxels(object: &Value) -> Vec<String> {
    let mag = |mag: &Value| {
        let parts: Vec<u64> = mag.as_array()?.iter().filter_map(Value::as_u64).collect();
        let same = parts.iter().all(|n| Some(n) == parts.first());
        if same { parts.first().map(u64::to_string) } else { list(mag, "-") }
    };
    let mags: Vec<String> = object["mag"].as_array().into_iter().flatten().filter_map(mag).collect();
    let steps = object["voxel_size"]["step"].as_array().into_iter().flatten();
    let steps: Vec<String> = steps.filter_map(Value::as_f64).map(|step| float(step, DIGITS)).collect();
    let mut cells = Vec::new();
    if !mags.is_empty() {
        cells.push(format!("mag {}", mags.join(",")));
    }
    if !steps.is_empty() {
        let unit = plain(&object["voxel_size"]["unit"]).unwrap_or_default();
        cells.push(format!("voxel {} {unit}", steps.join("x")));
    }
    cells
}

/// Rows in columns. Widths never shrink, so that what was found later stands below what was found before.
#[derive(Debug, Default)]
pub struct Columns(Vec<usize>);

impl Columns {
    /// The lines of some rows, each with its line end.
    #[must_use]
    pub fn lines(&mut self, rows: &[Row]) -> String {
        let rows: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        for row in &rows {
            // the last cell of a row needs no width
            for (n, cell) in row.iter().enumerate().take(row.len().saturating_sub(1)) {
                if self.0.len() <= n {
                    self.0.push(0);
                }
                self.0[n] = self.0[n].max(cell.chars().count().min(WIDEST));
            }
        }
        let mut lines = String::new();
        for row in &rows {
            let mut line = String::new();
            for (n, cell) in row.iter().enumerate() {
                let gap = self.0.get(n).map_or(0, |width| width.saturating_sub(cell.chars().count()));
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', gap + 2));
            }
            lines.push_str(line.trim_end());
            lines.push('\n');
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(path: &str, layer: &str, shape: &[u64], lods: u64) -> Row {
        let level = json!({"layer": layer, "shape": shape, "dtype": "float32", "codec": "zfp", "size": 8});
        let mut row = Row::new(Path::new(path), Some("zgy"), &level);
        row.object["lods"] = lods.into();
        row
    }

    #[test]
    fn columns_are_aligned_and_never_shrink() {
        let mut columns = Columns::default();
        let rows = [
            layer("a/north.zgy", "data", &[512, 512, 1024], 5),
            Row::failed(Path::new("b\x1b.zgy"), None, "it is\nempty"),
            layer("c", "data", &[1], 1),
        ];
        assert_eq!(
            columns.lines(&rows),
            "a/north.zgy  data  512x512x1024  float32  zfp  5 LODs\n\
             b\\u{1b}.zgy  not shown: it is\\nempty\n\
             c            data  1             float32  zfp  1 LOD\n"
        );
        assert_eq!(columns.lines(&rows[2..]), "c            data  1             float32  zfp  1 LOD\n");
        let long = "d".repeat(60);
        assert_eq!(
            columns.lines(&[layer(&long, "x", &[1], 1)]),
            format!("{long}  x     1             float32  zfp  1 LOD\n")
        );
        assert_eq!(columns.lines(&rows[2..]).find("data"), Some(WIDEST + 2));
    }

    #[test]
    fn voxels_are_listed_where_there_are_any() {
        let axis = |name: &str, unit: Option<&str>, step: f64| json!({"name": name, "unit": unit, "step": step});
        let nm = Some("nanometer");
        let finest = json!({"axes": [axis("z", nm, 28.0), axis("y", nm, 11.24), axis("x", nm, 11.24), axis("channel", None, 1.0)]});
        let mut row = layer("em", "color", &[5, 6, 7, 3], 3);
        row.add_voxels(&finest, vec![json!([1, 1, 1]), json!([2, 2, 1]), json!([4, 4, 2])]);
        assert!(
            Columns::default()
                .lines(&[row.clone()])
                .ends_with("3 LODs  mag 1,2-2-1,4-4-2  voxel 11.24x11.24x28 nanometer\n")
        );
        assert_eq!(row.object()["voxel_size"], json!({"step": [11.24, 11.24, 28.0], "unit": "nanometer"}));
        assert_eq!(row.object()["mag"][1], json!([2, 2, 1]));
    }

    #[test]
    fn a_layer_that_is_hidden_says_why() {
        let mut row = layer("em", "color", &[5, 6], 0);
        row.object["error"] = "its voxels are of type x".into();
        assert_eq!(Columns::default().lines(&[row]), "em  color  5x6  float32  not shown: its voxels are of type x\n");
    }
}
