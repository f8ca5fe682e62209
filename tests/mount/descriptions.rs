//! The JSON files of mounts: every key that docs/mount-layout.md lists is there, with the right type, what they say agrees
//! with the files beside them, and with what other readers say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Fixture, Mount, fixtures, floats, json, names, numbers, test_data, volfs};

/// The version of the JSON.
const SCHEMA: u64 = 1;

/// What the value of a key must be.
type Check = fn(&Value) -> bool;

fn text(value: &Value) -> bool {
    value.is_string()
}

fn truth(value: &Value) -> bool {
    value.is_boolean()
}

fn whole(value: &Value) -> bool {
    value.is_u64()
}

fn number(value: &Value) -> bool {
    value.as_f64().is_some_and(f64::is_finite)
}

fn object(value: &Value) -> bool {
    value.is_object()
}

fn list(of: Check, value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(of))
}

fn texts(value: &Value) -> bool {
    list(text, value)
}

fn wholes(value: &Value) -> bool {
    list(whole, value) && !value[0].is_null()
}

fn objects(value: &Value) -> bool {
    list(object, value)
}

fn maybe(check: Check, value: &Value) -> bool {
    value.is_null() || check(value)
}

fn maybe_text(value: &Value) -> bool {
    maybe(text, value)
}

fn maybe_number(value: &Value) -> bool {
    maybe(number, value)
}

fn maybe_whole(value: &Value) -> bool {
    maybe(whole, value)
}

fn maybe_object(value: &Value) -> bool {
    maybe(object, value)
}

fn maybe_objects(value: &Value) -> bool {
    maybe(objects, value)
}

fn pair(value: &Value) -> bool {
    list(number, value) && value.as_array().is_some_and(|items| items.len() == 2)
}

fn maybe_pair(value: &Value) -> bool {
    maybe(pair, value)
}

/// Checks that an object has all keys.
fn check(place: &str, object: &Value, keys: &[(&str, Check)]) {
    for (key, is_right) in keys {
        let value = object.get(key).unwrap_or_else(|| panic!("{place}: no {key} in {object}"));
        assert!(is_right(value), "{place}: {key} is {value}");
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

const LEVEL: [(&str, Check); 24] = [
    ("schema", whole),
    ("format", text),
    ("dataset", text),
    ("layer", text),
    ("lod", whole),
    ("dtype", text),
    ("byte_order", text),
    ("order", text),
    ("shape", wholes),
    ("strides", wholes),
    ("size", whole),
    ("axes", objects),
    ("brick_shape", wholes),
    ("brick_grid", wholes),
    ("bricks", maybe_object),
    ("codec", maybe_text),
    ("value_range", maybe_pair),
    ("no_value", maybe_number),
    ("scale", maybe_number),
    ("offset", maybe_number),
    ("files", texts),
    ("access", objects),
    ("warnings", texts),
    // its own name is also the format's
    ("format", |format| ["zgy", "vds", "wkw"].iter().any(|name| format == name)),
];

const AXIS: [(&str, Check); 5] =
    [("name", text), ("unit", maybe_text), ("first", number), ("step", number), ("count", whole)];

const ACCESS: [(&str, Check); 7] = [
    ("axis", text),
    ("index", whole),
    ("slice_bytes", whole),
    ("bricks", whole),
    ("stored_bytes", maybe_whole),
    ("decoded_bytes", whole),
    ("amplification", number),
];

fn check_level(path: &Path) {
    let (level, place) = (json(path), path.to_string_lossy());
    check(&place, &level, &LEVEL);
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
        check(&place, axis, &AXIS);
        check(&place, access, &ACCESS);
        assert_eq!(axis["count"], shape[number], "{place}");
        assert_eq!(access["axis"], axis["name"], "{place}");
        assert_eq!(access["index"], shape[number] / 2, "{place}");
        assert_eq!(access["slice_bytes"], strides[0] * shape[0] / shape[number], "{place}");
        assert_eq!(access["bricks"], grid.iter().product::<u64>() / grid[number], "{place}");
    }
    let total: u64 = grid.iter().product();
    if !level["bricks"].is_null() {
        check(&place, &level["bricks"], &[("stored", whole), ("constant", whole), ("missing", whole)]);
        assert_eq!(level["bricks"]["total"], total, "{place}");
    }
    let own: &[(&str, Check)] = match level["format"].as_str().unwrap() {
        "wkw" => &[("mag", |mag| wholes(mag) && numbers(mag).len() == 3)],
        "zgy" => &[("compressed", whole), ("damaged", whole)],
        _ => &[("channel", text)],
    };
    check(&place, &level[level["format"].as_str().unwrap()], own);
    let beginning = format!("{lod}.");
    let beside: BTreeSet<_> = names(folder).into_iter().filter(|name| name.starts_with(&beginning)).collect();
    let all: BTreeSet<_> = level["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(all.iter().all(|name| folder.join(name).exists()), "{place}: {all:?}");
    let named: BTreeSet<_> = all.into_iter().filter(|name| name.starts_with(&beginning)).collect();
    assert!(named.iter().map(|name| name.trim_end_matches('/')).eq(&beside), "{place}: {named:?}, {beside:?}");
}

const DATASET: [(&str, Check); 11] = [
    ("schema", whole),
    ("format", text),
    ("name", text),
    ("version", text),
    ("layers", objects),
    ("geometry", maybe_object),
    ("statistics", maybe_object),
    ("histogram", maybe_object),
    ("metadata", maybe_objects),
    ("source", object),
    ("warnings", texts),
];

/// Checks dataset.json, and returns the names of its layers.
fn check_dataset(path: &Path) -> usize {
    let (dataset, place) = (json(path), path.to_string_lossy());
    check(&place, &dataset, &DATASET);
    check_large_integers(&place, &dataset);
    assert_eq!(dataset["schema"], SCHEMA, "{place}");
    let own: &[(&str, Check)] = match dataset["format"].as_str().unwrap() {
        "zgy" => &[("version", whole), ("dataid", text), ("verid", text), ("previd", text), ("codingrange", pair)],
        "vds" => &[("layout", object), ("axes", objects), ("channels", objects)],
        _ => &[],
    };
    check(&place, &dataset[dataset["format"].as_str().unwrap()], own);
    let layers = dataset["layers"].as_array().unwrap();
    for layer in layers {
        check(&place, layer, &[("name", text), ("dtype", maybe_text), ("lods", whole)]);
        let shape: Check = if layer.get("reason").is_some() { |shape| maybe(wholes, shape) } else { wholes };
        check(&place, layer, &[("shape", shape)]);
    }
    check(&place, &dataset["source"], &[("path", text), ("size", maybe_whole), ("mtime", number)]);
    if dataset["statistics"].is_object() {
        let figures: [(&str, Check); 5] = [
            ("count", |count| maybe(Value::is_i64, count)),
            ("sum", maybe_number),
            ("sum_of_squares", maybe_number),
            ("min", maybe_number),
            ("max", maybe_number),
        ];
        check(&place, &dataset["statistics"], &figures);
    }
    if dataset["histogram"].is_object() {
        let bins: Check = |bins| list(Value::is_i64, bins);
        check(&place, &dataset["histogram"], &[("min", maybe_number), ("max", maybe_number), ("bins", bins)]);
    }
    for entry in dataset["metadata"].as_array().into_iter().flatten() {
        check(&place, entry, &[("category", text), ("name", text), ("type", text), ("value", |_| true)]);
        if entry["type"] == "BLOB" {
            check(&place, entry, &[("length", whole)]);
        }
    }
    if dataset["geometry"].is_object() {
        check_geometry(&place, &dataset["geometry"]);
    }
    layers.iter().filter(|layer| layer.get("reason").is_none()).count()
}

fn check_geometry(place: &str, geometry: &Value) {
    check(
        place,
        geometry,
        &[("corners", objects), ("affine", maybe_object), ("units", object), ("coordinate_system", maybe_text)],
    );
    for direction in ["horizontal", "vertical"] {
        let unit = &geometry["units"][direction];
        check(place, unit, &[("name", maybe_text), ("factor", number), ("kind", text)]);
    }
    let corners = geometry["corners"].as_array().unwrap();
    assert_eq!(corners.len(), 4, "{place}");
    for corner in corners {
        check(place, corner, &[("index", wholes), ("annotation", pair), ("world", maybe_pair)]);
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
    let keys: [(&str, Check); 10] = [
        ("datasets", objects),
        ("other_datasets", object),
        ("schema", whole),
        ("version", text),
        ("pid", whole),
        ("source", text),
        ("options", object),
        ("uptime", number),
        ("counters", object),
        ("now", object),
    ];
    check("status.json", status, &keys);
    assert_eq!(status["schema"], SCHEMA);
    let options: [(&str, Check); 10] = [
        ("mountpoint", text),
        ("foreground", truth),
        ("cache_size", whole),
        ("threads", whole),
        ("direct_io", truth),
        ("allow_other", truth),
        ("follow_links", truth),
        ("log_file", maybe_text),
        ("quality", maybe_whole),
        ("views", maybe_text),
    ];
    check("options", &status["options"], &options);
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
        "cache_bytes",
    ];
    check("counters", &status["counters"], &counters.map(|name| (name, whole as Check)));
    let of_dataset: Vec<(&str, Check)> =
        counters.into_iter().filter(|name| *name != "cache_bytes").map(|name| (name, whole as Check)).collect();
    for dataset in status["datasets"].as_array().unwrap() {
        check("datasets", dataset, &of_dataset);
        check("datasets", dataset, &[("path", text), ("since", number)]);
    }
    check("other_datasets", &status["other_datasets"], &of_dataset);
    check("other_datasets", &status["other_datasets"], &[("count", whole)]);
    let now = ["open_files", "jobs", "bricks_in_flight", "decoders", "decoder_bytes"];
    check("now", &status["now"], &now.map(|name| (name, whole as Check)));
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
