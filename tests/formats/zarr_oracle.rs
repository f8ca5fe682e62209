//! Compares every array of tests/data/zarr, Zarr and N5, with what its own library reads from it
//! (scripts/make_zarr_fixtures.py), through the public traits, the naive model of the data path, and the file system.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::file_system::FileSystem;
use crate::catalog::Recogniser;
use crate::format::n5::N5;
use crate::format::zarr::Zarr;
use crate::format::{Dataset, Format, FormatError, OpenWith, registry};
use crate::source::{IndexCache, LocalTree};
use crate::test_support::memory_folder::open_files;
use crate::test_support::{Npy, by_dataset, crc, naive, test_data};

fn open(name: &str) -> Result<Box<dyn Dataset>, FormatError> {
    let path = test_data("zarr").join(name);
    let format =
        Recogniser::new(registry()).format_of(&path).unwrap().unwrap_or_else(|| panic!("{name} is no dataset"));
    format.open_folder(LocalTree::folder(&path, &path), &OpenWith::new(IndexCache::new(1 << 20)))
}

fn expected() -> Vec<Value> {
    serde_json::from_slice(&fs::read(test_data("zarr").join("expected.json")).unwrap()).unwrap()
}

#[test]
fn every_array_reads_as_its_own_library_says() {
    let shown = FileSystem::over(&test_data("zarr"));
    let mut parts = 0;
    for (name, arrays) in by_dataset(&expected()) {
        let dataset = open(&name).unwrap();
        let levels: usize = dataset.layers().iter().map(|layer| layer.levels.len()).sum();
        assert_eq!(levels, arrays.len(), "{name}");
        for expected in arrays {
            let (layer, lod) = (expected["layer"].as_str().unwrap(), expected["lod"].as_u64().unwrap() as usize);
            let found = dataset.layers().iter().find(|found| found.name == layer);
            let array = &found.unwrap_or_else(|| panic!("no layer {layer} in {name}")).levels[lod];
            assert_eq!(json!(array.info().shape().to_vec()), expected["shape"], "{expected}");
            assert_eq!(json!(array.info().dtype.name()), expected["dtype"], "{expected}");
            let samples = naive::read_all(&**array).unwrap_or_else(|e| panic!("{expected}: {e}"));
            assert_eq!(json!(crc(&samples)), expected["crc32"], "samples of {expected}");
            naive::check_lookups(&**array);
            parts += naive::check_parts(&**array, &samples);
            let file = |suffix: &str| format!("{name}/{}/lod{lod}{suffix}", layer.replace('/', "%2F"));
            assert!(shown.read(&file(".raw")) == samples, "{expected}");
            let npy = Npy::parse(&shown.read(&file(".npy")));
            assert!(npy.samples == samples && json!(npy.shape) == expected["shape"], "{expected}");
            let described: Value = serde_json::from_slice(&shown.read(&file(".json"))).unwrap();
            let format = described["format"].as_str().unwrap();
            if format != "wkw" {
                assert_eq!(described[format]["path"], expected["path"], "{described}");
            }
        }
    }
    assert!(parts > 0, "no chunk has parts");
}

#[test]
fn arrays_that_are_not_read_have_their_reasons() {
    let dataset = open("v3.zarr").unwrap();
    let reason =
        |name: &str| dataset.hidden().iter().find(|layer| layer.name == name).map(|layer| layer.reason.clone());
    for (name, text) in [
        ("extended", "extension \"new\""),
        ("transformed", "storage_transformers"),
        ("irregular", "chunk grid is \"rectilinear\""),
        ("text", "\"string\""),
    ] {
        assert!(reason(name).is_some_and(|reason| reason.contains(text)), "{name}");
    }
    assert_eq!(open("v2.zarr").unwrap().hidden().iter().map(|layer| &*layer.name).collect::<Vec<_>>(), ["strings"]);
    assert_eq!(open("volume.n5").unwrap().hidden().iter().map(|layer| &*layer.name).collect::<Vec<_>>(), ["strings"]);
}

#[test]
fn images_are_layers_with_the_positions_of_their_levels() {
    for name in ["image-0.4.zarr", "image-0.5.zarr"] {
        let dataset = open(name).unwrap();
        let names: Vec<_> = dataset.layers().iter().map(|layer| (&*layer.name, layer.levels.len())).collect();
        assert_eq!(names, [("data", 3), ("labels/cells", 3)]);
        let info = dataset.layers()[0].levels[2].info();
        let axes: Vec<_> = info.axes.iter().map(|axis| (&*axis.name, axis.first, axis.step, axis.spatial)).collect();
        assert_eq!(axes, [("c", 0.0, 1.0, false), ("y", 0.75, 2.0, true), ("x", 0.75, 2.0, true)]);
        assert_eq!(info.value_range, Some((1.0, 60.0)));
    }
    let n5 = open("volume.n5").unwrap();
    let image = n5.layers().iter().find(|layer| layer.name == "image").unwrap();
    let axes: Vec<_> =
        image.levels[1].info().axes.iter().map(|axis| (axis.first, axis.step, axis.unit.as_deref())).collect();
    assert_eq!(axes, [(20.0, 80.0, Some("nm")), (2.0, 8.0, Some("nm")), (2.0, 8.0, Some("nm"))]);
}

fn files(described: &[(&str, Value)]) -> BTreeMap<String, Vec<u8>> {
    described.iter().map(|(path, value)| ((*path).to_owned(), value.to_string().into_bytes())).collect()
}

#[test]
fn levels_of_n5_have_the_steps_of_their_group_or_their_own() {
    let array = |size: u64, more: Value| {
        let mut array = json!({"dimensions": [8, 8, size], "blockSize": [4, 4, 4], "dataType": "uint8",
            "compression": {"type": "raw"}});
        array.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        array
    };
    let group = json!({"n5": "2.5.0", "scales": [[1, 1, 1], [2, 4, 1], [4, 8, 2]], "resolution": [4, 5, 40]});
    let dataset = open_files(
        &N5,
        files(&[
            ("attributes.json", group),
            ("s0/attributes.json", array(8, json!({}))),
            ("s1/attributes.json", array(8, json!({}))),
            ("s2/attributes.json", array(4, json!({"downsamplingFactors": [3, 1, 1]}))),
        ]),
    );
    let dataset = dataset.unwrap();
    let axes = |lod: usize| -> Vec<_> {
        dataset.layers()[0].levels[lod].info().axes.iter().map(|axis| (axis.first, axis.step)).collect()
    };
    assert_eq!(axes(0), [(0.0, 40.0), (0.0, 5.0), (0.0, 4.0)]);
    assert_eq!(axes(1), [(0.0, 40.0), (7.5, 20.0), (2.0, 8.0)]);
    assert_eq!(axes(2), [(0.0, 40.0), (0.0, 5.0), (4.0, 12.0)]);
}

#[test]
fn levels_that_are_missing_are_named_and_no_others() {
    let array = json!({"zarr_format": 2, "shape": [4, 4], "chunks": [4, 4], "dtype": "|u1", "compressor": null,
        "fill_value": 0, "filters": null, "order": "C"});
    let image = |levels: &[&str]| {
        let listed: Vec<_> = levels.iter().map(|level| json!({"path": level})).collect();
        json!({"multiscales": [{"version": "0.4", "axes": [{"name": "y"}, {"name": "x"}], "datasets": listed}]})
    };
    for (levels, missing) in
        [(&["0"][..], Value::Null), (&["0", "1"], json!([{"path": "1", "reason": "there is no such array"}]))]
    {
        let files =
            files(&[(".zgroup", json!({"zarr_format": 2})), (".zattrs", image(levels)), ("0/.zarray", array.clone())]);
        let dataset = open_files(&Zarr, files).unwrap();
        let layer = &dataset.layers()[0];
        assert_eq!(layer.levels.len(), 1);
        assert_eq!(layer.native.get("missing").unwrap_or(&Value::Null), &missing);
        assert_eq!(dataset.info().warnings.len(), levels.len() - 1, "{:?}", dataset.info().warnings);
    }
}

#[test]
fn images_may_share_an_array() {
    let array = |size: u64| {
        json!({"zarr_format": 2, "shape": [size, size], "chunks": [4, 4], "dtype": "|u1", "compressor": null,
            "fill_value": 0, "filters": null, "order": "C"})
    };
    let image = |levels: [&str; 2]| {
        let listed = levels.map(|level| json!({"path": level}));
        json!({"version": "0.4", "axes": [{"name": "y"}, {"name": "x"}], "datasets": listed})
    };
    let images = json!({"multiscales": [image(["0", "mean"]), image(["0", "max"]), image(["0", "no"])]});
    let described = [(".zgroup", json!({"zarr_format": 2})), (".zattrs", images)];
    let arrays = [("0/.zarray", array(8)), ("mean/.zarray", array(4)), ("max/.zarray", array(4))];
    let dataset = open_files(&Zarr, files(&[&described[..], &arrays].concat())).unwrap();
    let sizes: Vec<Vec<u64>> = dataset
        .layers()
        .iter()
        .map(|layer| layer.levels.iter().map(|level| level.info().shape()[0]).collect())
        .collect();
    assert_eq!(sizes, [vec![8, 4], vec![8, 4], vec![8]]);
}

#[test]
fn attributes_are_in_the_json_of_the_dataset() {
    let shown = FileSystem::over(&test_data("zarr"));
    let described: Value = serde_json::from_slice(&shown.read("v2.zarr/dataset.json")).unwrap();
    let layer = described["layers"].as_array().unwrap().iter().find(|layer| layer["name"] == "scaled").unwrap();
    assert_eq!(layer["attributes"]["scale_factor"], json!(0.5));
    let level: Value = serde_json::from_slice(&shown.read("v2.zarr/scaled/lod0.json")).unwrap();
    assert_eq!((&level["scale"], &level["offset"], &level["no_value"]), (&json!(0.5), &json!(-3.0), &json!(-7.0)));
    assert_eq!(level["axes"][1]["name"], "x");
}

#[test]
fn layers_of_webknossos_in_other_formats_appear_as_its_own_do() {
    let dataset = open("webknossos").unwrap();
    let names: Vec<_> = dataset.layers().iter().map(|layer| (&*layer.name, layer.levels.len())).collect();
    assert_eq!(
        names,
        [("color", 2), ("rgb", 2), ("segmentation", 2), ("n5", 1), ("precomputed", 2), ("precomputed rgb", 2)]
    );
    // the box begins in the array, or before it
    let offset = |layer: usize, lod: usize| dataset.layers()[layer].levels[lod].info().native["offset"].clone();
    assert_eq!([offset(4, 0), offset(4, 1)], [json!([3, 2, 1]), json!([1, 1, 1])]);
    assert_eq!([offset(5, 0), offset(5, 1)], [json!([6, 4, 1]), json!([3, 2, 1])]);
    let info = dataset.layers()[1].levels[1].info();
    let axes: Vec<_> = info.axes.iter().map(|axis| (&*axis.name, axis.step, axis.count)).collect();
    assert_eq!(axes, [("z", 28.0, 15), ("y", 22.0, 13), ("x", 22.0, 16), ("channel", 1.0, 3)]);
    assert_eq!((info.mag, info.brick_shape.to_vec()), (Some([2, 2, 1]), vec![8, 8, 8, 3]));
    assert_eq!(info.native["zarr3"]["path"], json!(""));
}

#[test]
fn coordinate_arrays_that_are_regular_are_the_positions_of_axes() {
    let dataset = open("v2.zarr").unwrap();
    let cube = dataset.layers().iter().find(|layer| layer.name == "survey/cube").unwrap();
    let axes: Vec<_> = cube.levels[0]
        .info()
        .axes
        .iter()
        .map(|axis| (&*axis.name, axis.first, axis.step, axis.unit.as_deref()))
        .collect();
    assert_eq!(axes, [("lines", 110.0, 2.0, None), ("odd", 0.0, 1.0, None), ("depth", 100.0, 2.5, Some("m"))]);
}

#[test]
fn coordinates_are_found_whatever_their_names_and_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
    let array = |name: &str, dtype: &str, fill: &str, more: &str, samples: &[u8]| {
        let place = folder.path().join(name);
        fs::create_dir(&place).unwrap();
        let text = format!(
            r#"{{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "{dtype}", "compressor": null,
            "fill_value": {fill}, "filters": null, "order": "C"}}"#
        );
        fs::write(place.join(".zarray"), text).unwrap();
        fs::write(place.join(".zattrs"), format!(r#"{{"_ARRAY_DIMENSIONS": ["lat"]{more}}}"#)).unwrap();
        fs::write(place.join("0"), samples).unwrap();
    };
    array("lat", "|i1", "null", r#", "scale_factor": 0.5"#, &[20, 24, 28]);
    array("temperature", "<i2", "-7", r#", "scale_factor": 2"#, &[1, 0, 249, 255, 3, 0]);
    array("zeros", "<i2", "0", "", &[0; 6]);
    let tree = LocalTree::folder(folder.path(), folder.path());
    let dataset = Zarr.open_folder(tree, &OpenWith::new(IndexCache::new(1 << 20))).unwrap();
    let named = |name: &str| dataset.layers().iter().find(|layer| layer.name == name).unwrap().levels[0].info().clone();
    for name in ["lat", "temperature", "zeros"] {
        assert_eq!(
            named(name).axes.iter().map(|axis| (axis.first, axis.step)).collect::<Vec<_>>(),
            [(10.0, 2.0)],
            "{name}"
        );
    }
    // as xarray writes what is missing in version 2; a 0 is written by programs that mean nothing by it
    assert_eq!(["temperature", "zeros", "lat"].map(|name| named(name).no_value), [Some(-7.0), None, None]);
}

#[test]
fn images_without_end_take_no_memory_for_each() {
    let image = json!({"version": "0.4", "datasets": [{"path": "0"}], "name": "x".repeat(100)});
    let images = json!({"multiscales": vec![image; 5000]});
    let array = json!({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": null,
        "fill_value": 0, "filters": null, "order": "C"});
    let described = [(".zgroup", json!({"zarr_format": 2})), (".zattrs", images), ("0/.zarray", array)];
    let dataset = open_files(&Zarr, files(&described)).unwrap();
    let with_attributes = dataset.layers().iter().filter(|layer| layer.native["attributes"] != json!({})).count();
    assert!(with_attributes == 1 && dataset.layers().len() <= 256, "{}", dataset.layers().len());
}

#[test]
fn arrays_without_samples_are_arrays() {
    let folder = tempfile::tempdir().unwrap();
    for (name, shape, chunks) in
        [("mid", "[3, 0, 5]", "[2, 2, 2]"), ("one", "[0]", "[2]"), ("lies", "[0, 9223372036854775807, 9]", "[1, 1, 1]")]
    {
        let place = folder.path().join(name);
        fs::create_dir(&place).unwrap();
        let text = format!(
            r#"{{"zarr_format": 2, "shape": {shape}, "chunks": {chunks}, "dtype": "<f4", "compressor": null,
                "fill_value": 1, "filters": null, "order": "C"}}"#
        );
        fs::write(place.join(".zarray"), text).unwrap();
    }
    let shown = FileSystem::over(folder.path());
    let described: Value = serde_json::from_slice(&shown.read("mid/data/lod0.json")).unwrap();
    assert_eq!((&described["shape"], &described["size"]), (&json!([3, 0, 5]), &json!(0)));
    for file in described["files"].as_array().unwrap() {
        let bytes = shown.read(&format!("mid/data/{}", file.as_str().unwrap()));
        assert_eq!(bytes.is_empty(), file == "lod0.raw", "{file}");
    }
    assert_eq!(Npy::parse(&shown.read("mid/data/lod0.by-axis2.npy")).shape, [5, 3, 0]);
    assert_eq!(Npy::parse(&shown.read("one/data/lod0.npy")).shape, [0]);
    assert!(String::from_utf8(shown.read("lies/error.txt")).unwrap().contains("2^63"));
}

/// Writes a survey of 3 inlines and 2 crosslines as MDIO does, with the dimensions at the top (version 0) or as coordinates
/// beside the samples (version 1), and returns the lines of its SEG-Y file: inline, crossline, interval and delay.
fn survey_of_mdio(version: u32) -> Vec<[i32; 4]> {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, bytes: Vec<u8>| {
        let path = folder.path().join("survey.mdio").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let text = |value: Value| value.to_string().into_bytes();
    let array = |shape: Value, dtype: &str| {
        text(json!({"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "compressor": null,
            "fill_value": null, "filters": null, "order": "C"}))
    };
    let samples: Vec<u8> = (0..24u8).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    let dimensions = [("inline", vec![110, 112, 114]), ("crossline", vec![7, 8]), ("sample", vec![8, 12, 16, 20])];
    let place = if version == 0 { "data/chunked_012" } else { "amplitude" };
    put(".zgroup", text(json!({"zarr_format": 2})));
    put(&format!("{place}/.zarray"), array(json!([3, 2, 4]), "<f4"));
    put(&format!("{place}/0.0.0"), samples);
    if version == 0 {
        put("data/.zgroup", text(json!({"zarr_format": 2})));
        let described = dimensions.map(|(name, coords)| json!({"name": name, "coords": coords}));
        put(".zattrs", text(json!({"api_version": "0.8", "dimension": described})));
    } else {
        put("amplitude/.zattrs", text(json!({"_ARRAY_DIMENSIONS": ["inline", "crossline", "time"]})));
        for (name, coords) in dimensions {
            let (name, attributes) = match name {
                "sample" => ("time", json!({"_ARRAY_DIMENSIONS": ["time"], "unitsV1": {"time": "ms"}})),
                name => (name, json!({"_ARRAY_DIMENSIONS": [name]})),
            };
            put(&format!("{name}/.zarray"), array(json!([coords.len()]), "<i4"));
            put(&format!("{name}/.zattrs"), text(attributes));
            put(&format!("{name}/0"), coords.iter().flat_map(|n: &i32| n.to_le_bytes()).collect());
        }
    }
    let layer = place.replace('/', "%2F");
    let segy = FileSystem::over(folder.path()).read(&format!("survey.mdio/{layer}/lod0.sgy"));
    let long = |at: usize| i32::from_be_bytes(segy[at..][..4].try_into().unwrap());
    let short = |at: usize| i16::from_be_bytes(segy[at..][..2].try_into().unwrap()).into();
    let traces = (0..6).map(|n| 3600 + n * (240 + 16));
    let lines = traces.map(|at| [long(at + 188), long(at + 192), short(at + 116), short(at + 108)]);
    lines.collect()
}

#[test]
fn surveys_of_mdio_are_surveys() {
    let lines: Vec<_> = [110, 112, 114].into_iter().flat_map(|inline| [7, 8].map(|x| [inline, x, 4000, 8])).collect();
    assert_eq!(survey_of_mdio(0), lines);
    assert_eq!(survey_of_mdio(1), lines);
}
