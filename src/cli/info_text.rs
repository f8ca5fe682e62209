//! The page of `volfs info`. It is made from the JSON, so that a format that comes later is shown without a change here; what
//! is not known has no line.

use serde_json::Value;

use super::chart;
use super::page::Page;
use super::printable::shortened;
use super::size::Size;
use super::value::{brief, coordinate, float, list, number, plain, range, time};

/// Characters of a value from the format's own keys.
const LONGEST: usize = 90;

/// Metadata entries that are shown; some formats keep thousands.
const MOST_ENTRIES: usize = 40;

/// Writes all sections of a dataset.
pub fn write(page: &mut Page, dataset: &Value) {
    overview(page, dataset);
    warnings(page, dataset);
    geometry(page, &dataset["geometry"]);
    distribution(page, dataset);
    layers(page, dataset);
    own(page, dataset);
    metadata(page, &dataset["metadata"]);
}

fn overview(page: &mut Page, dataset: &Value) {
    page.heading(&plain(&dataset["name"]).unwrap_or_else(|| "(no name)".to_owned()));
    let version = plain(&dataset["version"]).map_or_else(String::new, |version| format!(" version {version}"));
    page.row("format", plain(&dataset["format"]).map(|format| format!("{}{version}", format.to_uppercase())));
    let source = &dataset["source"];
    page.row("source", source["size"].as_u64().map(size));
    page.row("modified", time(&source["mtime"]));
    let arrays: u64 = levels(dataset).filter_map(|level| level["size"].as_u64()).fold(0, u64::saturating_add);
    let finest: u64 = levels(dataset)
        .filter(|level| level["lod"].as_u64() == Some(0))
        .filter_map(|level| level["size"].as_u64())
        .fold(0, u64::saturating_add);
    if arrays > 0 {
        page.row("as arrays", Some(format!("{} at full detail, {} in all levels", Size::of(finest), Size::of(arrays))));
        let ratio = source["size"].as_u64().filter(|&bytes| bytes > 0).map(|bytes| arrays as f64 / bytes as f64);
        page.row("compression", ratio.map(|ratio| format!("{} : 1 (all levels against the source)", float(ratio, 3))));
    }
}

fn warnings(page: &mut Page, dataset: &Value) {
    let of_dataset = strings(&dataset["warnings"]).map(str::to_owned);
    let of_levels = levels(dataset).flat_map(|level| {
        let place = format!("{} lod{}: ", plain(&level["layer"]).unwrap_or_default(), level["lod"]);
        strings(&level["warnings"]).map(move |text| format!("{place}{text}")).collect::<Vec<_>>()
    });
    let all: Vec<String> = of_dataset.chain(of_levels).collect();
    if !all.is_empty() {
        page.heading("Warnings");
        all.iter().for_each(|text| page.warning(text));
    }
}

fn geometry(page: &mut Page, geometry: &Value) {
    let Some(object) = geometry.as_object() else { return };
    page.heading("Geometry");
    for (direction, unit) in object.get("units").and_then(Value::as_object).into_iter().flatten() {
        page.row(direction, unit_text(unit));
    }
    for (key, value) in object.iter().filter(|(key, _)| !matches!(key.as_str(), "corners" | "units")) {
        own_row(page, key, value);
    }
    let pair = |value: &Value, text: fn(&Value) -> Option<String>| {
        let of = |i: usize| text(&value[i]).unwrap_or_default();
        [of(0), of(1)]
    };
    let rows: Vec<Vec<String>> = items(&geometry["corners"])
        .map(|corner| {
            let index = list(&corner["index"], ", ").unwrap_or_default();
            let [inline, crossline] = pair(&corner["annotation"], number);
            let [x, y] = pair(&corner["world"], coordinate);
            vec![index, inline, crossline, x, y]
        })
        .collect();
    if !rows.is_empty() {
        page.table(&["corner", "inline", "crossline", "x", "y"], &rows);
    }
}

/// `length in m`, and what one of it is in SI units where that is not 1.
fn unit_text(unit: &Value) -> Option<String> {
    let kind = plain(&unit["kind"]).filter(|kind| kind != "unknown");
    let name = plain(&unit["name"]);
    let factor = unit["factor"].as_f64().filter(|factor| *factor != 1.0);
    let of = match (kind, name) {
        (Some(kind), Some(name)) => format!("{kind} in {name}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => factor.map(|_| "no name".to_owned())?,
    };
    Some(factor.map_or(of.clone(), |factor| format!("{of} (1 is {} in SI units)", float(factor, 7))))
}

fn distribution(page: &mut Page, dataset: &Value) {
    let statistics = &dataset["statistics"];
    if statistics.is_object() {
        page.heading("Statistics");
        page.row("samples", number(&statistics["count"]));
        page.row(
            "range",
            number(&statistics["min"]).zip(number(&statistics["max"])).map(|(a, b)| format!("{a} to {b}")),
        );
        let figure = |key: &str| statistics[key].as_f64();
        if let (Some(n), Some(sum)) = (figure("count").filter(|n| *n > 0.0), figure("sum")) {
            let mean = sum / n;
            page.row("mean", Some(float(mean, 7)));
            let spread = figure("sum_of_squares").map(|squares| (squares / n - mean * mean).max(0.0).sqrt());
            page.row("deviation", spread.filter(|s| s.is_finite()).map(|spread| float(spread, 7)));
        }
    }
    let histogram = &dataset["histogram"];
    let bins: Vec<f64> = items(&histogram["bins"]).map(|n| n.as_f64().unwrap_or(0.0)).collect();
    let Some(chart) = chart::columns(&bins) else { return };
    page.heading("Histogram");
    page.block(&chart.lines);
    if let (Some(least), Some(greatest)) = (number(&histogram["min"]), number(&histogram["max"])) {
        let gap = chart.width.saturating_sub(least.len() + greatest.len()).max(2);
        page.block(&format!("{least}{:gap$}{greatest}", ""));
    }
    let samples = number(&histogram["count"]).map_or_else(String::new, |n| format!("{n} samples, "));
    page.block(&format!("{samples}{} % of them in the highest column", float(chart.highest * 100.0, 3)));
}

fn layers(page: &mut Page, dataset: &Value) {
    for (name, of_layer) in dataset["levels"].as_object().into_iter().flatten() {
        let Some(finest) = of_layer.get(0) else { continue };
        page.heading(&format!("Layer {name}"));
        page.row("values", range(&finest["value_range"]));
        page.row("no value", plain(&finest["no_value"]));
        let scaling = number(&finest["scale"]).zip(number(&finest["offset"]));
        page.row("scaling", scaling.map(|(scale, offset)| format!("value = stored * {scale} + {offset}")));
        axes(page, finest);
        let rows: Vec<Vec<String>> = items(of_layer).map(level_row).collect();
        page.table(&["LOD", "shape", "dtype", "bytes", "codec", "brick", "mag", "bricks"], &rows);
    }
    for layer in items(&dataset["layers"]).filter(|layer| layer["reason"].is_string()) {
        page.heading(&format!("Layer {}: not shown", plain(&layer["name"]).unwrap_or_default()));
        page.row("why", plain(&layer["reason"]));
    }
}

fn axes(page: &mut Page, level: &Value) {
    let rows: Vec<Vec<String>> = items(&level["axes"])
        .map(|axis| {
            let (first, step, count) = (axis["first"].as_f64(), axis["step"].as_f64(), axis["count"].as_f64());
            let last = first.zip(step).zip(count).map(|((first, step), count)| float(first + step * (count - 1.0), 9));
            vec![
                plain(&axis["name"]).unwrap_or_else(|| "(no name)".to_owned()),
                number(&axis["count"]).unwrap_or_default(),
                first.map(|first| float(first, 9)).unwrap_or_default(),
                last.unwrap_or_default(),
                number(&axis["step"]).unwrap_or_default(),
                plain(&axis["unit"]).unwrap_or_default(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        page.table(&["axis", "count", "first", "last", "step", "unit"], &rows);
    }
}

fn level_row(level: &Value) -> Vec<String> {
    let counts = &level["bricks"];
    let parts = ["stored", "constant", "missing"].iter().filter_map(|kind| {
        let n = counts[kind].as_u64().filter(|n| *n > 0)?;
        Some(format!("{n} {kind}"))
    });
    let parts: Vec<String> = parts.collect();
    let total = number(&counts["total"]).or_else(|| {
        let mut grid = items(&level["brick_grid"]).map(Value::as_u64);
        grid.try_fold(1_u64, |product, n| product.checked_mul(n?)).map(|product| product.to_string())
    });
    let total = total.unwrap_or_default();
    let own = plain(&level["format"]).unwrap_or_default();
    vec![
        number(&level["lod"]).unwrap_or_default(),
        list(&level["shape"], " x ").unwrap_or_default(),
        plain(&level["dtype"]).unwrap_or_default(),
        number(&level["size"]).unwrap_or_default(),
        plain(&level["codec"]).unwrap_or_default(),
        list(&level["brick_shape"], " x ").unwrap_or_default(),
        list(&level[own.as_str()]["mag"], "-").unwrap_or_default(),
        if parts.is_empty() { total } else { format!("{total} ({})", parts.join(", ")) },
    ]
}

/// The format's own keys: identifiers and the like.
fn own(page: &mut Page, dataset: &Value) {
    let Some(format) = plain(&dataset["format"]) else { return };
    let Some(object) = dataset[format.as_str()].as_object().filter(|object| !object.is_empty()) else { return };
    page.heading(&format!("{} header", format.to_uppercase()));
    object.iter().for_each(|(key, value)| own_row(page, key, value));
}

fn own_row(page: &mut Page, key: &str, value: &Value) {
    page.row(&key.replace('_', " "), brief(value).map(|text| shortened(&text, LONGEST)));
}

fn metadata(page: &mut Page, metadata: &Value) {
    let rows: Vec<Vec<String>> = items(metadata)
        .map(|entry| {
            let text = |key: &str| plain(&entry[key]).unwrap_or_default();
            let blob = text("type").eq_ignore_ascii_case("blob");
            let value =
                if blob { "(bytes; --json shows them)".to_owned() } else { brief(&entry["value"]).unwrap_or_default() };
            vec![text("category"), text("name"), text("type"), shortened(&value, LONGEST / 2)]
        })
        .collect();
    if !rows.is_empty() {
        page.heading("Metadata");
        let shown = rows.len().min(MOST_ENTRIES);
        page.table(&["category", "name", "type", "value"], &rows[..shown]);
        if shown < rows.len() {
            page.block(&format!("{} more (--json shows them)", rows.len() - shown));
        }
    }
}

fn levels(dataset: &Value) -> impl Iterator<Item = &Value> {
    dataset["levels"].as_object().into_iter().flatten().flat_map(|(_, of_layer)| items(of_layer))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
}

fn size(bytes: u64) -> String {
    if bytes < 1024 { Size::of(bytes).to_string() } else { format!("{} ({bytes} bytes)", Size::of(bytes)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(dataset: &Value) -> String {
        let mut page = Page::new(false);
        write(&mut page, dataset);
        page.text().to_owned()
    }

    #[test]
    fn a_dataset_is_told_in_full() {
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
            "format": "zgy", "name": "a.zgy", "version": "3", "layers": [{"name": "data"}, {"name": "odd", "reason": "why"}],
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
    fn nothing_known_is_no_trouble() {
        assert_eq!(text(&json!({})), "(no name)\n");
        assert_eq!(text(&json!(null)), "(no name)\n");
        let odd = json!({"name": 7, "format": "x", "x": {"list": [[1]]}, "geometry": {}, "levels": {"l": [{}]}, "metadata": [{}]});
        assert!(text(&odd).contains("1 entries"));
    }
}
