//! dataset.json and lodN.json of ZGY datasets.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Fixture, Mount, fixtures, floats, json, numbers, test_data};

/// Compares lodN.json with the expected values of the test data.
fn check_description(mount: &Mount, fixture: &Fixture, lod: usize) {
    let place = format!("{} LOD {lod}", fixture.name);
    let found = json(mount.data(&fixture.name, &format!("lod{lod}.json")));
    let level = &fixture.levels()[lod];
    let shape = numbers(&level["shape"]);
    let bytes = fixture.sample_bytes();
    for key in [
        "format",
        "dataset",
        "layer",
        "lod",
        "dtype",
        "byte_order",
        "order",
        "shape",
        "strides",
        "size",
        "axes",
        "brick_shape",
        "brick_grid",
        "bricks",
        "codec",
        "value_range",
        "no_value",
        "scale",
        "offset",
        "warnings",
        "zgy",
    ] {
        assert!(found.get(key).is_some(), "{place}: no {key}");
    }
    assert_eq!(found["format"], "zgy", "{place}");
    assert_eq!(found["dataset"], *fixture.name, "{place}");
    assert_eq!(found["layer"], "data", "{place}");
    assert_eq!(found["lod"], lod, "{place}");
    assert_eq!(found["dtype"], fixture.dtype(), "{place}");
    assert_eq!((&found["byte_order"], &found["order"]), (&json!("little"), &json!("C")), "{place}");
    assert_eq!(numbers(&found["shape"]), shape, "{place}");
    assert_eq!(numbers(&found["strides"]), [shape[1] * shape[2] * bytes, shape[2] * bytes, bytes], "{place}");
    assert_eq!(found["size"], shape.iter().product::<u64>() * bytes, "{place}");
    assert_eq!(found["brick_shape"], fixture.expected["bricksize"], "{place}");
    assert_eq!(found["brick_grid"], level["bricks"], "{place}");
    if let Some(kinds) = level.get("brick_kinds") {
        let count = |kind: &str| kinds[kind].as_u64().unwrap_or(0);
        let expected = [
            ("total", numbers(&level["bricks"]).iter().product::<u64>()),
            ("stored", count("stored") + count("compressed")),
            ("constant", count("constant")),
            ("missing", count("missing")),
        ];
        for (key, number) in expected {
            assert_eq!(found["bricks"][key], number, "{place}: bricks.{key}");
        }
        match (count("stored"), count("compressed")) {
            (0, 0) => {}
            (_, 0) => assert_eq!(found["codec"], "raw", "{place}"),
            (0, _) => assert_eq!(found["codec"], "zfp", "{place}"),
            _ => assert_eq!(found["codec"], "mixed", "{place}"),
        }
    }
    match fixture.expected.get("storage_to_float") {
        Some(scaling) => {
            assert_eq!(found["scale"], scaling["slope"], "{place}");
            assert_eq!(found["offset"], scaling["intercept"], "{place}");
        }
        None => assert_eq!((&found["scale"], &found["offset"]), (&Value::Null, &Value::Null), "{place}"),
    }
    assert!(found["warnings"].is_array(), "{place}");
    check_axes(fixture, lod, &shape, &found["axes"]);
}

fn check_axes(fixture: &Fixture, lod: usize, shape: &[u64], axes: &Value) {
    let Some(annotation) = fixture.expected.get("annot") else { return };
    let vertical = &fixture.expected["vertical"];
    let (start, step) = (floats(&annotation["start"]), floats(&annotation["inc"]));
    let first = [start[0], start[1], vertical["start"].as_f64().unwrap()];
    let steps = [step[0], step[1], vertical["inc"].as_f64().unwrap()];
    for (axis, name) in ["inline", "crossline", "sample"].into_iter().enumerate() {
        let found = &axes[axis];
        let place = format!("{} LOD {lod} {name}", fixture.name);
        assert_eq!(found["name"], name, "{place}");
        assert_eq!(found["count"], shape[axis], "{place}");
        assert_eq!(found["first"].as_f64(), Some(first[axis]), "{place}");
        assert_eq!(found["step"].as_f64(), Some(steps[axis] * f64::from(1 << lod)), "{place}");
        assert!(found.get("unit").is_some(), "{place}");
    }
}

#[test]
fn every_level_is_described() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        for lod in 0..fixture.levels().len() {
            check_description(&mount, &fixture, lod);
        }
    }
}

#[test]
fn every_dataset_is_described() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        let name = &fixture.name;
        let found = json(mount.path(name).join("dataset.json"));
        for key in ["format", "name", "version", "layers", "geometry", "statistics", "histogram", "metadata", "source"]
        {
            assert!(found.get(key).is_some(), "{name}: no {key}");
        }
        assert_eq!(found["format"], "zgy", "{name}");
        assert_eq!(found["name"], **name);
        assert_eq!(found["layers"].as_array().unwrap().len(), 1, "{name}");
        assert_eq!(found["layers"][0]["name"], "data", "{name}");
        assert_eq!(found["layers"][0]["dtype"], fixture.dtype(), "{name}");
        assert_eq!(numbers(&found["layers"][0]["shape"]), fixture.shape(), "{name}");
        assert!(found["warnings"].is_array(), "{name}");
        assert_eq!(found["metadata"], Value::Null, "{name}");
        assert_eq!(found["source"]["path"], **name);
        let original = fs::metadata(test_data("zgy").join(name)).unwrap();
        assert_eq!(found["source"]["size"], original.len(), "{name}");
        assert!(found["source"].get("mtime").is_some(), "{name}");
        assert_eq!(found["zgy"]["version"], fixture.expected["version"], "{name}");
        if let Some(ids) = fixture.expected.get("uuid") {
            for id in ["dataid", "verid", "previd"] {
                assert_eq!(found["zgy"][id], ids[id], "{name}: {id}");
            }
        }
        check_figures(&fixture, &found);
        check_corners(&fixture, &found["geometry"]["corners"]);
        check_affine(&fixture, &found["geometry"]["affine"]);
    }
}

/// Returns a number of the test data as the JSON of a mount must have it: null if it is not finite.
fn shown(expected: &Value) -> Value {
    expected.as_f64().map_or(Value::Null, |n| json!(n))
}

fn check_figures(fixture: &Fixture, found: &Value) {
    let name = &fixture.name;
    let same = |found: &Value, expected: &Value, what: &str| {
        assert_eq!(found.as_f64(), shown(expected).as_f64(), "{name}: {what}");
    };
    if let Some(expected) = fixture.expected.get("statistics").filter(|s| !s.is_null()) {
        let found = &found["statistics"];
        for (key, theirs) in
            [("count", "cnt"), ("sum", "sum"), ("sum_of_squares", "ssq"), ("min", "min"), ("max", "max")]
        {
            same(&found[key], &expected[theirs], key);
        }
    }
    if let Some(expected) = fixture.expected.get("histogram") {
        let found = &found["histogram"];
        same(&found["count"], &expected["cnt"], "histogram.count");
        same(&found["min"], &expected["min"], "histogram.min");
        same(&found["max"], &expected["max"], "histogram.max");
        assert_eq!(found["bins"], expected["bins"], "{name}: bins");
    }
}

fn check_corners(fixture: &Fixture, found: &Value) {
    let Some(expected) = fixture.expected.get("corners") else { return };
    let name = &fixture.name;
    for corner in 0..4 {
        assert_eq!(found[corner]["index"], expected["index"][corner], "{name}: corner {corner}");
        assert_eq!(floats(&found[corner]["annotation"]), floats(&expected["annot"][corner]), "{name}: corner {corner}");
        if expected["world"].is_null() {
            assert_eq!(found[corner]["world"], Value::Null, "{name}: corner {corner}");
            continue;
        }
        for (a, b) in floats(&found[corner]["world"]).iter().zip(floats(&expected["world"][corner])) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{name}: corner {corner}: {a} and {b}");
        }
    }
}

/// Checks that the maps to world coordinates take the corners of the test data to their places.
fn check_affine(fixture: &Fixture, found: &Value) {
    let Some(expected) = fixture.expected.get("corners") else { return };
    for (from, map) in [("index", "index_to_world"), ("annot", "annotation_to_world")] {
        let place = format!("{}: {map}", fixture.name);
        if expected["world"].is_null() || expected["world"][0].is_null() {
            assert_eq!(found[map], Value::Null, "{place}");
            continue;
        }
        for corner in 0..4 {
            let (point, world) = (floats(&expected[from][corner]), floats(&expected["world"][corner]));
            let place = format!("{place}, corner {corner}");
            let rows = found[map].as_array().unwrap_or_else(|| panic!("{place}"));
            for (row, expected) in rows.iter().map(floats).zip(world) {
                let found = row[0] * point[0] + row[1] * point[1] + row[2];
                assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{place}: {found}, not {expected}");
            }
        }
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
