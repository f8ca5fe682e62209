//! The JSON files of mounts: every key that docs/mount-layout.md lists is there, with the right type, what they say agrees
//! with the files beside them, and with what other readers say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Mount, floats, json, names, numbers, test_data, volfs};

/// The version of the JSON.
const SCHEMA: u64 = 1;

/// Returns whether a value is of a kind: one of those below, a list of some (`*`) or of one or more (`+`), or also null
/// (`?`).
fn is(kind: &str, value: &Value) -> bool {
    let list = |of: &str| value.as_array().is_some_and(|items| items.iter().all(|item| is(of, item)));
    match kind {
        "text" => value.is_string(),
        "truth" => value.is_boolean(),
        "whole" => value.is_u64(),
        "integer" => value.is_i64(),
        "number" => value.as_f64().is_some_and(f64::is_finite),
        "object" => value.is_object(),
        "pair" => list("number") && value.as_array().unwrap().len() == 2,
        "any" => true,
        _ if kind.starts_with('?') => value.is_null() || is(&kind[1..], value),
        _ if kind.ends_with('*') => list(&kind[..kind.len() - 1]),
        _ => list(kind.strip_suffix('+').unwrap()) && !value[0].is_null(),
    }
}

/// Checks that an object has keys, each with a value of a kind: `unit:?text`.
fn check(place: &str, object: &Value, keys: &str) {
    for (key, kind) in keys.split_whitespace().map(|key| key.split_once(':').unwrap()) {
        let value = object.get(key).unwrap_or_else(|| panic!("{place}: no {key} in {object}"));
        assert!(is(kind, value), "{place}: {key} is {value}");
    }
}

/// Checks at every depth that integers that a float64 cannot hold also stand as text.
fn check_large_integers(place: &str, value: &Value) {
    let is_large = |n: &Value| n.as_i64().map_or(n.as_u64(), |n| Some(n.unsigned_abs())).is_some_and(|n| n > 1 << 53);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                check_large_integers(place, value);
                if is_large(value) {
                    assert_eq!(map[&format!("{key}_text")], value.to_string(), "{place}: {key}");
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_large_integers(place, item)),
        _ => {}
    }
}

const LEVEL: &str = "schema:whole format:text dataset:text layer:text lod:whole dtype:text byte_order:text \
    order:text shape:whole+ strides:whole+ size:whole axes:object* brick_shape:whole+ brick_grid:whole+ \
    bricks:?object codec:?text value_range:?pair no_value:?number scale:?number offset:?number files:text* \
    access:object* warnings:text*";

const AXIS: &str = "name:text unit:?text first:number step:number count:whole";

const ACCESS: &str = "axis:text index:whole slice_bytes:whole bricks:whole stored_bytes:?whole \
    decoded_bytes:whole amplification:number";

fn check_level(path: &Path) {
    let (level, place) = (json(path), path.to_string_lossy());
    check(&place, &level, LEVEL);
    check_large_integers(&place, &level);
    assert_eq!(level["schema"], SCHEMA, "{place}");
    assert_eq!((&level["byte_order"], &level["order"]), (&"little".into(), &"C".into()), "{place}");
    let (shape, grid) = (numbers(&level["shape"]), numbers(&level["brick_grid"]));
    let folder = path.parent().unwrap();
    let lod = format!("lod{}", level["lod"]);
    assert_eq!(path.file_name().unwrap(), &*format!("{lod}.json"));
    assert_eq!(level["size"], fs::metadata(folder.join(format!("{lod}.raw"))).unwrap().len(), "{place}");
    let sample = level["size"].as_u64().unwrap() / shape.iter().product::<u64>();
    let strides: Vec<u64> = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product::<u64>() * sample).collect();
    assert_eq!(numbers(&level["strides"]), strides, "{place}");
    assert_eq!(numbers(&level["brick_shape"]).len(), shape.len(), "{place}");
    let (axes, access) = (level["axes"].as_array().unwrap(), level["access"].as_array().unwrap());
    assert_eq!((axes.len(), access.len(), grid.len()), (shape.len(), shape.len(), shape.len()), "{place}");
    for (number, (axis, access)) in axes.iter().zip(access).enumerate() {
        check(&place, axis, AXIS);
        check(&place, access, ACCESS);
        assert_eq!(axis["count"], shape[number], "{place}");
        assert_eq!(access["axis"], axis["name"], "{place}");
        assert_eq!(access["index"], shape[number] / 2, "{place}");
        assert_eq!(access["slice_bytes"], strides[0] * shape[0] / shape[number], "{place}");
        assert_eq!(access["bricks"], grid.iter().product::<u64>() / grid[number], "{place}");
    }
    let total: u64 = grid.iter().product();
    if !level["bricks"].is_null() {
        check(&place, &level["bricks"], "stored:whole constant:whole missing:whole");
        assert_eq!(level["bricks"]["total"], total, "{place}");
    }
    let own = match level["format"].as_str().unwrap() {
        "wkw" => "mag:whole+",
        "zgy" => "compressed:whole damaged:whole",
        _ => "channel:text",
    };
    assert!(level["format"] != "wkw" || numbers(&level["wkw"]["mag"]).len() == 3, "{place}");
    check(&place, &level[level["format"].as_str().unwrap()], own);
    let beginning = format!("{lod}.");
    let beside: BTreeSet<_> = names(folder).into_iter().filter(|name| name.starts_with(&beginning)).collect();
    let all: BTreeSet<_> = level["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(all.iter().all(|name| folder.join(name).exists()), "{place}: {all:?}");
    let named: BTreeSet<_> = all.into_iter().filter(|name| name.starts_with(&beginning)).collect();
    assert!(named.iter().map(|name| name.trim_end_matches('/')).eq(&beside), "{place}: {named:?}, {beside:?}");
}

const DATASET: &str = "schema:whole format:text name:text version:text layers:object* geometry:?object \
    statistics:?object histogram:?object metadata:?object* source:object warnings:text*";

/// Checks dataset.json, and returns the names of its layers.
fn check_dataset(path: &Path) -> usize {
    let (dataset, place) = (json(path), path.to_string_lossy());
    check(&place, &dataset, DATASET);
    check_large_integers(&place, &dataset);
    assert_eq!(dataset["schema"], SCHEMA, "{place}");
    let own = match dataset["format"].as_str().unwrap() {
        "zgy" => "version:whole dataid:text verid:text previd:text codingrange:pair",
        "vds" => "layout:object axes:object* channels:object*",
        _ => "",
    };
    check(&place, &dataset[dataset["format"].as_str().unwrap()], own);
    let layers = dataset["layers"].as_array().unwrap();
    for layer in layers {
        check(&place, layer, "name:text dtype:?text lods:whole");
        check(&place, layer, if layer.get("reason").is_some() { "shape:?whole+" } else { "shape:whole+ axes:text*" });
    }
    check(&place, &dataset["source"], "path:text size:?whole mtime:number");
    if dataset["statistics"].is_object() {
        let figures = "count:?integer sum:?number sum_of_squares:?number min:?number max:?number";
        check(&place, &dataset["statistics"], figures);
    }
    if dataset["histogram"].is_object() {
        check(&place, &dataset["histogram"], "min:?number max:?number bins:integer*");
    }
    for entry in dataset["metadata"].as_array().into_iter().flatten() {
        check(&place, entry, "category:text name:text type:text value:any");
        if entry["type"] == "BLOB" {
            check(&place, entry, "length:whole");
        }
    }
    if dataset["geometry"].is_object() {
        check_geometry(&place, &dataset["geometry"]);
    }
    layers.iter().filter(|layer| layer.get("reason").is_none()).count()
}

fn check_geometry(place: &str, geometry: &Value) {
    check(place, geometry, "corners:object* affine:?object units:object coordinate_system:?text");
    for direction in ["horizontal", "vertical"] {
        let unit = &geometry["units"][direction];
        check(place, unit, "name:?text factor:number kind:text");
    }
    let corners = geometry["corners"].as_array().unwrap();
    assert_eq!(corners.len(), 4, "{place}");
    for corner in corners {
        check(place, corner, "index:whole+ annotation:pair world:?pair");
        for (from, map) in [("annotation", "annotation_to_world"), ("index", "index_to_world")] {
            let map = &geometry["affine"][map];
            if map.is_null() {
                continue;
            }
            let (from, world) = (floats(&corner[from]), floats(&corner["world"]));
            for (row, expected) in map.as_array().unwrap().iter().map(floats).zip(world) {
                let found = row[0] * from[0] + row[1] * from[1] + row[2];
                assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{place}: {found} for {corner}");
            }
        }
    }
    assert!(geometry["affine"].is_null() || corners.iter().all(|corner| corner["world"].is_array()), "{place}");
}

/// Checks all descriptions below a folder, and returns how many levels and datasets there are.
fn check_below(folder: &Path) -> (usize, usize) {
    let (mut levels, mut datasets) = (0, 0);
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            let below = check_below(&path);
            (levels, datasets) = (levels + below.0, datasets + below.1);
        } else if name == "dataset.json" {
            let layers = check_dataset(&path);
            let beside = fs::read_dir(folder).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
            assert!(beside >= layers, "{}", path.display());
            let corners = json(&path)["geometry"]["corners"].as_array().cloned().unwrap_or_default();
            let has_places = !corners.is_empty() && corners.iter().all(|corner| corner["world"].is_array());
            assert_eq!(folder.join("outline.geojson").exists(), has_places, "{}", path.display());
            datasets += 1;
        } else if name.strip_prefix("lod").and_then(|rest| rest.strip_suffix(".json")).is_some_and(|n| n.len() == 1) {
            check_level(&path);
            levels += 1;
        }
    }
    (levels, datasets)
}

#[test]
fn every_description_has_the_keys_of_the_documentation() {
    for (source, levels, datasets) in [("demo", 13, 4), ("zgy", 90, 40), ("vds", 100, 30), ("wkw", 20, 5)] {
        let Some(mount) = Mount::of(test_data(source)) else { return };
        let found = check_below(mount.point());
        assert!(found.0 >= levels && found.1 >= datasets, "{source}: {found:?}");
        check_status(&mount.status());
    }
}

fn check_status(status: &Value) {
    let keys = "datasets:object* other_datasets:object schema:whole version:text pid:whole source:text \
        options:object uptime:number counters:object now:object";
    check("status.json", status, keys);
    assert_eq!(status["schema"], SCHEMA);
    let options = "mountpoint:text foreground:truth cache_size:whole threads:whole direct_io:truth \
        allow_other:truth follow_links:truth log_file:?text quality:?whole views:?text";
    check("options", &status["options"], options);
    let counters = [
        "reads",
        "bytes_read",
        "bricks_decoded",
        "bytes_decoded",
        "cache_hits",
        "cache_misses",
        "source_bytes",
        "prefetched",
        "errors",
    ];
    let wholes = |names: &[&str]| names.iter().map(|name| format!("{name}:whole ")).collect::<String>();
    check("counters", &status["counters"], &(wholes(&counters) + "cache_bytes:whole"));
    let of_dataset = wholes(&counters);
    for dataset in status["datasets"].as_array().unwrap() {
        check("datasets", dataset, &of_dataset);
        check("datasets", dataset, "path:text since:number");
    }
    check("other_datasets", &status["other_datasets"], &of_dataset);
    check("other_datasets", &status["other_datasets"], "count:whole");
    let now = ["open_files", "jobs", "bricks_in_flight", "decoders", "decoder_bytes"];
    check("now", &status["now"], &wholes(&now));
}

#[test]
fn options_have_the_types_of_their_values() {
    let Some(mount) = Mount::with(test_data("demo"), &["--cache-size", "64MiB", "--threads", "2", "--quality", "1"])
    else {
        return;
    };
    let options = &mount.status()["options"];
    let expected = [("cache_size", 64 << 20), ("threads", 2), ("quality", 1)];
    for (name, value) in expected {
        assert_eq!(options[name], value, "{name}");
    }
    assert_eq!(options["foreground"], false);
    assert_eq!(options["log_file"].as_str().map(Path::new).and_then(Path::file_name), Some("log".as_ref()));
}

#[test]
fn all_json_of_the_commands_has_a_schema() {
    let demo = test_data("demo");
    let printed = |command: &str, path: PathBuf| -> Value {
        let output = volfs().args([command, "--json"]).arg(path).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let info = printed("info", demo.join("north.zgy"));
    assert_eq!((&info["schema"], &info["levels"]["data"][2]["schema"]), (&SCHEMA.into(), &SCHEMA.into()));
    assert_eq!(printed("verify", demo.join("north.zgy"))["schema"], SCHEMA);
    let rows = printed("ls", demo.clone());
    assert!(rows.as_array().unwrap().iter().all(|row| row["schema"] == SCHEMA), "{rows}");
    if let Some(mount) = Mount::of(demo) {
        check_status(&printed("stats", mount.point().to_owned()));
    }
}

#[test]
fn a_vds_says_what_it_is_and_that_milliseconds_are_time() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    for (name, version) in
        [("south.vds", "1.0 (one file, description as JSON)"), ("cloud-survey", "cloud layout (a folder of objects)")]
    {
        let dataset = json(mount.path(name).join("dataset.json"));
        assert_eq!(dataset["version"], version);
        assert_eq!(dataset["geometry"]["units"]["vertical"], json!({"name": "ms", "factor": 0.001, "kind": "time"}));
        let level = json(mount.path(name).join("Amplitude/lod0.json"));
        let units: Vec<_> = (0..3).map(|axis| &level["axes"][axis]["unit"]).collect();
        assert_eq!(units, [&Value::Null, &Value::Null, &json!("ms")], "{name}");
    }
}

/// The places are those that OpenVDS computes (`IJKCoordinateTransformer`).
#[test]
fn a_vds_has_the_world_coordinates_of_the_reference_library() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let affine = &json(mount.path("south.vds/dataset.json"))["geometry"]["affine"];
    let map = |map: &str, [a, b]: [f64; 2]| -> Vec<f64> {
        let rows = affine[map].as_array().unwrap();
        rows.iter().map(floats).map(|row| row[0] * a + row[1] * b + row[2]).collect()
    };
    assert_eq!(map("annotation_to_world", [210.0, 110.0]), [430_283.0, 6_350_902.75]);
    assert_eq!(map("annotation_to_world", [462.0, 347.0]), [428_135.75, 6_354_700.75]);
    assert_eq!(map("index_to_world", [0.0, 0.0]), [430_283.0, 6_350_902.75]);
    assert_eq!(map("index_to_world", [63.0, 79.0]), [428_135.75, 6_354_700.75]);
    // between the corners, and far from all of them
    assert_eq!(map("index_to_world", [5.0, 11.0]), [429_938.75, 6_351_246.75]);
    assert_eq!(map("annotation_to_world", [5.0, 11.0]), [430_880.75, 6_348_094.5]);
}

#[test]
fn units_are_shown() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let level = json(mount.data("north.zgy", "lod0.json"));
    assert_eq!(level["axes"][2]["unit"], "ms");
    assert_eq!(level["axes"][0]["first"].as_f64(), Some(1000.0));
    assert_eq!(level["axes"][0]["step"].as_f64(), Some(2.0));
    assert_eq!(level["axes"][2]["step"].as_f64(), Some(4.0));
}
