//! `volfs info`: prints all that is known of one dataset. The sections are made from the JSON that every format has; a value
//! that is unknown has no line.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::deadline;
use super::error::CliError;
use super::file_system::StoreArgs;
use super::layout::{self, TextLayout};
use super::output;
use super::source::{DatasetAt, cannot_open};
use super::text::{Size, brief, float, items, joined, number, range, rounded, scalar, time, truncated};
use crate::catalog::OpenDataset;
use crate::format::{FormatError, Layer};
use crate::view::{LayerRef, json, layer_folders, registry};

#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLE)]
pub(super) struct InfoArgs {
    /// The volume: a file, or the folder that is the volume; any path inside a mount that shows it, or a URL
    path: PathBuf,

    /// Print JSON for programs
    ///
    /// The object that a mount has as dataset.json, and under `levels`, for each layer, the objects of lod0.json,
    /// lod1.json and so on.
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    store: StoreArgs,
}

const INFO_EXAMPLE: &str = "\
Example:
  volfs info ~/surveys/north.zgy
  volfs info --json ~/surveys/north.zgy | jq .levels.data[0].shape";

/// The largest width of a value, in columns of the terminal.
const MAX_VALUE_WIDTH: usize = 90;

/// Significant digits that keep a millimetre in a world coordinate.
const COORDINATE_DIGITS: usize = 11;

/// The most metadata entries that are shown; a dataset may have thousands.
const MAX_ENTRIES: usize = 40;

pub(super) fn run(args: &InfoArgs) -> Result<(), CliError> {
    deadline::run(deadline::LIMIT, &args.path, || {
        let DatasetAt { path, open, .. } = DatasetAt::open(&args.path, &args.store.store_option, None)?;
        let dataset = describe(&open).map_err(|error| cannot_open(&path, &error.into()))?;
        output::object_or_text(
            args.json,
            || dataset.clone(),
            |layout| write(layout, &with_mags(dataset.clone(), &open)),
        )
    })
}

/// Returns dataset.json, with the lodN.json of each layer under `levels`.
fn describe(open: &OpenDataset) -> Result<Value, FormatError> {
    let mut dataset = json::dataset(open, registry())?;
    let of_layer = |(layer, described): (usize, &Layer)| -> Result<(String, Value), FormatError> {
        let layer_ref = LayerRef { open, layer, views: registry() };
        let levels: Result<Value, _> = (0..described.levels.len()).map(|lod| json::level(layer_ref, lod)).collect();
        Ok((key_of_levels(open, layer, &described.name), levels?))
    };
    dataset["levels"] = open.dataset.layers().iter().enumerate().map(of_layer).collect::<Result<_, _>>()?;
    Ok(dataset)
}

/// Returns the key of a layer's levels: its name, or that of its folder if others have the same name.
fn key_of_levels(open: &OpenDataset, layer: usize, name: &str) -> String {
    let is_alone = open.dataset.layers().iter().filter(|other| other.name == name).count() == 1;
    let folder = || layer_folders(open).into_iter().nth(layer);
    if is_alone { None } else { folder() }.unwrap_or_else(|| name.to_owned())
}

/// Adds the downsampling along x, y, z of each level, which not every format has in its JSON.
fn with_mags(mut dataset: Value, open: &OpenDataset) -> Value {
    for (number, layer) in open.dataset.layers().iter().enumerate() {
        let key = key_of_levels(open, number, &layer.name);
        for (lod, level) in layer.levels.iter().enumerate() {
            if let Some(described) = dataset["levels"][&key].get_mut(lod) {
                described["mag"] = level.info().mag.map(|mag| mag.to_vec()).into();
            }
        }
    }
    dataset
}

/// Writes all sections of a dataset. `dataset` is the object that `volfs info --json` prints, with the mags of its levels.
fn write(layout: &mut TextLayout, dataset: &Value) {
    overview(layout, dataset);
    warnings(layout, dataset);
    geometry(layout, &dataset["geometry"]);
    distribution(layout, dataset);
    layers(layout, dataset);
    native(layout, dataset);
    metadata(layout, &dataset["metadata"]);
}

fn overview(layout: &mut TextLayout, dataset: &Value) {
    layout.heading(&scalar(&dataset["name"]).unwrap_or_else(|| "(no name)".to_owned()));
    let version = scalar(&dataset["version"]).map_or_else(String::new, |version| {
        // a cloud layout has a name, but no number
        let gap = if version.starts_with(|c: char| c.is_ascii_digit()) { " version" } else { "," };
        format!("{gap} {version}")
    });
    layout.row("format", scalar(&dataset["format"]).map(|format| format!("{}{version}", format.to_uppercase())));
    let source = &dataset["source"];
    let whole = |bytes: u64| if bytes < 1024 { String::new() } else { format!(" ({bytes} bytes)") };
    layout.row("source", source["size"].as_u64().map(|bytes| format!("{}{}", Size(bytes), whole(bytes))));
    layout.row("modified", time(&source["mtime"]));
    let sum = |sizes: &mut dyn Iterator<Item = &Value>| sizes.filter_map(Value::as_u64).fold(0, u64::saturating_add);
    let finest = sum(&mut levels(dataset).filter(|level| level["lod"] == 0).map(|level| &level["size"]));
    let arrays = sum(&mut levels(dataset).map(|level| &level["size"]));
    if arrays > 0 {
        layout.row("as arrays", Some(format!("{} at full detail, {} in all levels", Size(finest), Size(arrays))));
        let ratio =
            source["size"].as_u64().filter(|bytes| *bytes > 0).map(|bytes| float(arrays as f64 / bytes as f64, 3));
        layout.row("compression", ratio.map(|ratio| format!("{ratio} : 1 (all levels against the source)")));
    }
}

fn warnings(layout: &mut TextLayout, dataset: &Value) {
    let of_dataset = strings(&dataset["warnings"]).map(str::to_owned);
    let of_levels = levels(dataset).flat_map(|level| {
        let place = format!("{} lod{}: ", scalar(&level["layer"]).unwrap_or_default(), level["lod"]);
        strings(&level["warnings"]).map(move |text| format!("{place}{text}")).collect::<Vec<_>>()
    });
    let all: Vec<String> = of_dataset.chain(of_levels).collect();
    if !all.is_empty() {
        layout.heading("Warnings");
        all.iter().for_each(|text| layout.warning(text));
    }
}

fn geometry(layout: &mut TextLayout, geometry: &Value) {
    let Some(object) = geometry.as_object() else { return };
    layout.heading("Geometry");
    for (direction, unit) in object.get("units").and_then(Value::as_object).into_iter().flatten() {
        layout.row(direction, unit_text(unit));
    }
    for (key, value) in object.iter().filter(|(key, _)| !matches!(key.as_str(), "corners" | "affine" | "units")) {
        native_row(layout, key, value);
    }
    let rows = items(&geometry["corners"]).map(|corner| {
        let (annotation, world) = (&corner["annotation"], &corner["world"]);
        let cells = [
            joined(&corner["index"], ", "),
            number(&annotation[0]),
            number(&annotation[1]),
            rounded(&world[0], COORDINATE_DIGITS),
            rounded(&world[1], COORDINATE_DIGITS),
        ];
        cells.map(Option::unwrap_or_default).to_vec()
    });
    layout.table(&["corner", "inline", "crossline", "x", "y"], rows);
}

/// Describes a unit, as in `length in ft (1 is 0.3048 in SI units)`.
fn unit_text(unit: &Value) -> Option<String> {
    let kind = scalar(&unit["kind"]).filter(|kind| kind != "unknown");
    let name = scalar(&unit["name"]);
    let factor = unit["factor"].as_f64().filter(|factor| *factor != 1.0);
    let of = match (kind, name) {
        (Some(kind), Some(name)) => format!("{kind} in {name}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => factor.map(|_| "no name".to_owned())?,
    };
    Some(factor.map_or(of.clone(), |factor| format!("{of} (1 is {} in SI units)", float(factor, 7))))
}

fn distribution(layout: &mut TextLayout, dataset: &Value) {
    let statistics = &dataset["statistics"];
    if statistics.is_object() {
        layout.heading("Statistics");
        layout.row("samples", number(&statistics["count"]));
        let range = number(&statistics["min"]).zip(number(&statistics["max"]));
        layout.row("range", range.map(|(least, greatest)| format!("{least} to {greatest}")));
        let figure = |key: &str| statistics[key].as_f64();
        if let (Some(n), Some(sum)) = (figure("count").filter(|n| *n > 0.0), figure("sum")) {
            let mean = sum / n;
            layout.row("mean", Some(float(mean, 7)));
            let spread = figure("sum_of_squares").map(|squares| (squares / n - mean * mean).max(0.0).sqrt());
            layout.row("deviation", spread.filter(|s| s.is_finite()).map(|spread| float(spread, 7)));
        }
    }
    let histogram = &dataset["histogram"];
    let bins: Vec<f64> = items(&histogram["bins"]).map(|n| n.as_f64().unwrap_or(0.0)).collect();
    let Some(chart) = layout::histogram(&bins) else { return };
    layout.heading("Histogram");
    layout.block(&chart.lines);
    if let (Some(least), Some(greatest)) = (number(&histogram["min"]), number(&histogram["max"])) {
        let gap = chart.width.saturating_sub(least.len() + greatest.len()).max(2);
        layout.block(&format!("{least}{:gap$}{greatest}", ""));
    }
    let samples = number(&histogram["count"]).map_or_else(String::new, |n| format!("{n} samples, "));
    layout.block(&format!("{samples}{} % of them in the highest column", float(chart.highest * 100.0, 3)));
}

fn layers(layout: &mut TextLayout, dataset: &Value) {
    for (name, of_layer) in dataset["levels"].as_object().into_iter().flatten() {
        let Some(finest) = of_layer.get(0) else { continue };
        layout.heading(&format!("Layer {name}"));
        layout.row("values", range(&finest["value_range"]));
        layout.row("no value", scalar(&finest["no_value"]));
        let scaling = number(&finest["scale"]).zip(number(&finest["offset"]));
        layout.row("scaling", scaling.map(|(scale, offset)| format!("value = stored * {scale} + {offset}")));
        let own = scalar(&finest["format"]).map(|format| &finest[format.as_str()]["stored_as"]);
        layout.row("stored as", own.and_then(scalar));
        axes(layout, finest);
        let titles = ["LOD", "shape", "dtype", "bytes", "codec", "brick", "mag", "bricks"];
        layout.table(&titles, items(of_layer).map(level_row));
    }
    for layer in items(&dataset["layers"]).filter(|layer| layer["reason"].is_string()) {
        layout.heading(&format!("Layer {}: not shown", scalar(&layer["name"]).unwrap_or_default()));
        layout.row("why", scalar(&layer["reason"]));
    }
}

fn axes(layout: &mut TextLayout, level: &Value) {
    let rows = items(&level["axes"]).map(|axis| {
        let (first, step, count) = (axis["first"].as_f64(), axis["step"].as_f64(), axis["count"].as_f64());
        let last = first.zip(step).zip(count).map(|((first, step), count)| first + step * (count - 1.0));
        let cells = [
            scalar(&axis["name"]).or_else(|| Some("(no name)".to_owned())),
            number(&axis["count"]),
            first.map(|first| float(first, 9)),
            last.map(|last| float(last, 9)),
            number(&axis["step"]),
            scalar(&axis["unit"]),
        ];
        cells.map(Option::unwrap_or_default).to_vec()
    });
    layout.table(&["axis", "count", "first", "last", "step", "unit"], rows);
}

fn level_row(level: &Value) -> Vec<String> {
    let counts = &level["bricks"];
    let some = |kind: &&str| counts[kind].as_u64().filter(|n| *n > 0).map(|n| format!("{n} {kind}"));
    let kinds: Vec<String> = ["stored", "constant", "missing"].iter().filter_map(some).collect();
    let total = number(&counts["total"]).or_else(|| {
        let mut grid = items(&level["brick_grid"]).map(Value::as_u64);
        grid.try_fold(1_u64, |product, n| product.checked_mul(n?)).map(|product| product.to_string())
    });
    let total = total.unwrap_or_default();
    let cells = [
        number(&level["lod"]),
        joined(&level["shape"], " x "),
        scalar(&level["dtype"]),
        number(&level["size"]),
        scalar(&level["codec"]),
        joined(&level["brick_shape"], " x "),
        joined(&level["mag"], "-"),
        Some(if kinds.is_empty() { total } else { format!("{total} ({})", kinds.join(", ")) }),
    ];
    cells.map(Option::unwrap_or_default).to_vec()
}

/// Writes the keys that only this format has, such as identifiers.
fn native(layout: &mut TextLayout, dataset: &Value) {
    let Some(format) = scalar(&dataset["format"]) else { return };
    let Some(object) = dataset[format.as_str()].as_object().filter(|object| !object.is_empty()) else { return };
    layout.heading(&format!("{} header", format.to_uppercase()));
    object.iter().for_each(|(key, value)| native_row(layout, key, value));
}

fn native_row(layout: &mut TextLayout, key: &str, value: &Value) {
    layout.row(&key.replace('_', " "), brief(value).map(|text| truncated(&text, MAX_VALUE_WIDTH)));
}

fn metadata(layout: &mut TextLayout, metadata: &Value) {
    let count = items(metadata).count();
    if count == 0 {
        return;
    }
    layout.heading("Metadata");
    let rows = items(metadata).take(MAX_ENTRIES).map(|entry| {
        let text = |key: &str| scalar(&entry[key]).unwrap_or_default();
        let value = match text("type") {
            blob if blob.eq_ignore_ascii_case("blob") => "(bytes; --json shows them)".to_owned(),
            _ => brief(&entry["value"]).unwrap_or_default(),
        };
        vec![text("category"), text("name"), text("type"), truncated(&value, MAX_VALUE_WIDTH / 2)]
    });
    layout.table(&["category", "name", "type", "value"], rows);
    if count > MAX_ENTRIES {
        layout.block(&format!("{} more (--json shows them)", count - MAX_ENTRIES));
    }
}

fn levels(dataset: &Value) -> impl Iterator<Item = &Value> {
    dataset["levels"].as_object().into_iter().flatten().flat_map(|(_, of_layer)| items(of_layer))
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(dataset: &Value) -> String {
        let mut layout = TextLayout::new(false);
        write(&mut layout, dataset);
        layout.text().to_owned()
    }

    #[test]
    fn every_known_value_has_a_line() {
        let level = |lod: u64, n: u64, size: u64| {
            json!({
                "format": "zgy", "dataset": "a.zgy", "layer": "data", "lod": lod, "dtype": "int16", "shape": [n, n, n],
                "size": size, "codec": "raw", "brick_shape": [64, 64, 64], "brick_grid": [2, 2, 2],
                "bricks": {"total": 8, "stored": 7, "constant": 1, "missing": 0}, "value_range": [-1.5, 1.5],
                "no_value": null, "scale": 0.5, "offset": 0.0, "warnings": [],
                "axes": [{"name": "inline", "unit": null, "first": 100.0, "step": 2.0, "count": n}],
            })
        };
        let dataset = json!({
            "format": "zgy", "name": "a.zgy", "version": "3",
            "layers": [{"name": "data"}, {"name": "odd", "reason": "why"}],
            "geometry": {"corners": [{"index": [0, 0], "annotation": [100.0, 7.0], "world": [500_000.125, null]}],
                         "units": {"horizontal": {"name": null, "factor": 1.0, "kind": "unknown"},
                                   "vertical": {"name": "ms", "factor": 0.001, "kind": "two-way time"}},
                         "coordinate_system": "ED50"},
            "statistics": {"count": 4, "sum": 8.0, "sum_of_squares": 24.0, "min": -1.0, "max": 5.0},
            "histogram": {"min": -1.0, "max": 5.0, "count": 4, "bins": [1, 3]},
            "metadata": null, "source": {"path": "a.zgy", "size": 1024, "mtime": 0},
            "zgy": {"dataid": "b0a085ab", "empty": null}, "warnings": ["the \x1b[31mheader lies"],
            "levels": {"data": [level(0, 128, 4096), level(1, 64, 1024)]},
        });
        let text = text(&dataset);
        for line in [
            "a.zgy\n",
            "  format           ZGY version 3\n",
            "  source           1.00 KiB (1024 bytes)\n",
            "  as arrays        4.00 KiB at full detail, 5.00 KiB in all levels\n",
            "  compression      5 : 1 (",
            "  the \\u{1b}[31mheader lies\n",
            "  0, 0       100          7  500000.125\n",
            "  vertical         two-way time in ms (1 is 0.001 in SI units)\n",
            "  coordinate system ED50\n",
            "Statistics\n  samples          4\n  range            -1 to 5\n",
            "  mean             2\n",
            "  deviation        1.414214\n",
            "4 samples, 75 % of them",
            "  scaling          value = stored * 0.5 + 0\n",
            "  inline    128    100   354     2\n",
            "    0  128 x 128 x 128  int16   4096  raw    64 x 64 x 64  8 (7 stored, 1 constant)\n",
            "    1  64 x 64 x 64     int16   1024  raw    64 x 64 x 64  8 (7 stored, 1 constant)\n",
            "Layer odd: not shown\n",
            "  dataid           b0a085ab\n",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
    }

    #[test]
    fn unknown_values_have_no_line() {
        assert_eq!(text(&json!({})), "(no name)\n");
        assert_eq!(text(&json!(null)), "(no name)\n");
        let odd = json!({
            "name": 7, "format": "x", "x": {"list": [[1]]}, "geometry": {}, "levels": {"l": [{}]}, "metadata": [{}],
        });
        assert!(text(&odd).contains("1 item (--json"));
        let many = json!({"metadata": vec![json!({"name": "x"}); MAX_ENTRIES + 3]});
        assert!(text(&many).contains("\n  3 more (--json shows them)\n"), "{}", text(&many));
    }

    #[test]
    fn mags_are_in_the_table_of_levels() {
        let level = |lod: u64, mag: [u64; 3]| json!({"format": "x", "lod": lod, "shape": [2, 2, 2], "bricks": {"total": 8}, "mag": mag});
        let dataset =
            json!({"name": "em", "format": "x", "levels": {"color": [level(0, [1, 1, 1]), level(1, [2, 2, 1])]}});
        let mut layout = TextLayout::new(false);
        write(&mut layout, &dataset);
        let table =
            "  LOD  shape      mag    bricks\n    0  2 x 2 x 2  1-1-1       8\n    1  2 x 2 x 2  2-2-1       8\n";
        assert!(layout.text().ends_with(table), "{}", layout.text());
    }
}
