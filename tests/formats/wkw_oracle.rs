//! Compares every WKW dataset of tests/data with what the reference library reads from it
//! (scripts/make_wkw_fixtures.py), through the public traits and the naive model of the data path.

use std::sync::Arc;

use serde_json::{Value, json};

use super::file_system::FileSystem;
use crate::catalog::Recogniser;
use crate::format::wkw::Wkw;
use crate::format::{Array, Dataset, Format, FormatError, OpenWith, registry};
use crate::source::{Blocking, IndexCache, LocalTree};
use crate::test_support::{Npy, by_dataset, crc, json, naive, set, test_data, wkw_expected};
use crate::volume::Brick;

fn open(name: &str) -> Box<dyn Dataset> {
    let path = test_data("wkw").join(name);
    assert!(
        Recogniser::new(registry()).format_of(&path).unwrap().is_some_and(|f| f.name() == "wkw"),
        "{name} is not recognised as a dataset"
    );
    Wkw.open_folder(LocalTree::folder(&path, &path), &OpenWith::new(IndexCache::new(1 << 20))).unwrap()
}

/// Opens every dataset that has entries in `list`, and returns it with them.
fn datasets(list: &str) -> Vec<(Box<dyn Dataset>, Vec<Value>)> {
    let by_name = by_dataset(&wkw_expected(list));
    assert!(!by_name.is_empty());
    by_name.into_iter().map(|(name, entries)| (open(&name), entries)).collect()
}

fn level(dataset: &dyn Dataset, layer: &str, lod: usize) -> Arc<dyn Array> {
    let found = dataset.layers().iter().find(|found| found.name == layer).unwrap_or_else(|| panic!("no layer {layer}"));
    Arc::clone(&found.levels[lod])
}

#[test]
fn every_array_reads_as_the_reference_library_says() {
    let shown = FileSystem::over(&test_data("wkw"));
    assert_eq!(set(shown.names("")), set([".volfs", "annotation", "bare", "damaged", "old", "pyramid", "types"]));
    for (dataset, arrays) in datasets("arrays") {
        let levels: usize = dataset.layers().iter().map(|layer| layer.levels.len()).sum();
        assert_eq!(levels, arrays.len(), "{}", arrays[0]["dataset"]);
        for expected in arrays {
            let text = |key: &str| expected[key].as_str().unwrap();
            let array = level(&*dataset, text("layer"), expected["lod"].as_u64().unwrap() as usize);
            let samples = naive::read_all(&*array).unwrap_or_else(|e| panic!("{expected}: {e}"));
            assert_eq!(json!(crc(&samples)), expected["crc32"], "samples of {expected}");
            naive::check_lookups(&*array);
            let read = |suffix: &str| {
                shown.read(&format!("{}/{}/lod{}{suffix}", text("dataset"), text("layer"), expected["lod"]))
            };
            assert!(read(".raw") == samples, "{expected}");
            let npy = Npy::parse(&read(".npy"));
            assert!(
                npy.samples == samples && json!(npy.shape) == expected["shape"] && !npy.fortran_order,
                "{expected}"
            );
            check_description(&serde_json::from_slice(&read(".json")).unwrap(), &expected);
        }
    }
}

fn check_description(described: &Value, expected: &Value) {
    for key in ["dataset", "layer", "lod", "dtype", "shape", "brick_shape", "codec"] {
        assert_eq!(described[key], expected[key], "{key} of {expected}");
    }
    assert_eq!((&described["format"], &described["bricks"]), (&json!("wkw"), &Value::Null));
    for key in ["mag", "offset"] {
        assert_eq!(described["wkw"][key], expected[key], "{key} of {expected}");
    }
    let axes = described["axes"].as_array().unwrap();
    let names: Vec<&str> = axes.iter().map(|axis| axis["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["z", "y", "x", "channel"][..axes.len()]);
    for (n, axis) in axes.iter().take(3).enumerate() {
        for key in ["first", "step"] {
            let (found, wanted) = (axis[key].as_f64().unwrap(), expected[key][n].as_f64().unwrap());
            assert!((found - wanted).abs() <= 1e-12 * wanted.abs(), "{key} of axis {n}: {found}, {expected}");
        }
        assert_eq!(axis["unit"], expected["unit"]);
    }
}

#[test]
fn hidden_layers_and_mags_have_a_reason() {
    for (dataset, entries) in datasets("hidden") {
        assert_eq!(dataset.hidden().len(), entries.len());
        for (entry, found) in entries.iter().zip(dataset.hidden()) {
            assert_eq!(json!(found.name), entry["layer"]);
            let reason = entry["reason"].as_str().unwrap();
            assert!(found.reason.contains(reason), "{}: {}", found.name, found.reason);
        }
    }
    for (dataset, entries) in datasets("missing") {
        for entry in entries {
            let layer = dataset.layers().iter().find(|layer| entry["layer"] == json!(layer.name)).unwrap();
            let found = &layer.native["missing"][0];
            assert_eq!(found["mag"], entry["mag"]);
            assert!(found["reason"].as_str().unwrap().contains(entry["reason"].as_str().unwrap()), "{found}");
        }
    }
}

#[test]
fn descriptions_are_passed_on_and_contradictions_are_warned_of() {
    let dataset = open("pyramid");
    let own = &dataset.info().native;
    assert_eq!(own["unknown"], json!([1, {"a": null}]));
    assert_eq!(own["dataLayers"][1]["largestSegmentId"], json!(9_007_199_254_740_997_u64));
    let segmentation = level(&*dataset, "segmentation", 2);
    assert_eq!(segmentation.info().native["largestSegmentId"], json!(9_007_199_254_740_997_u64));
    assert_eq!(segmentation.info().native["category"], "segmentation");
    assert_eq!(segmentation.info().native["voxel_size"], json!([44.96, 44.96, 56.0]));
    assert_eq!(level(&*dataset, "color", 0).info().warnings, [""; 0]);
    assert!(level(&*dataset, "wrong class", 0).info().warnings[0].contains("elementClass"));
    assert!(open("bare").info().native.is_empty() && open("bare").info().warnings.is_empty());
    let categories: Vec<_> = open("bare").layers().iter().map(|layer| layer.native["category"].clone()).collect();
    assert_eq!(categories, ["color", "segmentation"]);
}

#[test]
fn each_kind_of_cube_is_its_kind_of_brick() {
    let dataset = open("pyramid");
    let kind = |layer: &str, at: [u64; 3]| level(&*dataset, layer, 0).brick(&at.into(), Blocking::Yes).unwrap();
    assert!(matches!(kind("mixed", [0, 0, 0]), Brick::Plain(_)));
    assert!(matches!(kind("mixed", [0, 0, 2]), Brick::Coded(_)));
    assert!(matches!(kind("mixed", [3, 1, 3]), Brick::Coded(_)));
    assert!(matches!(kind("segmentation", [0, 0, 0]), Brick::Constant(_)), "a cube that is not there");
    // the box ends within a cube: the blocks beyond it, in the box of the other cubes, are zeros
    let counts = count_kinds(&*level(&*dataset, "segmentation", 0));
    assert!(counts.0 > 4 && counts.1 > 4, "{counts:?}");
}

/// Counts constant and other bricks.
fn count_kinds(array: &dyn Array) -> (u64, u64) {
    let mut counts = (0, 0);
    for number in 0..array.info().grid.total() {
        match array.brick(&array.info().grid.count().index_of(number), Blocking::Yes).unwrap() {
            Brick::Constant(_) => counts.0 += 1,
            _ => counts.1 += 1,
        }
    }
    counts
}

#[test]
fn only_damaged_blocks_fail() {
    let dataset = open("damaged");
    for (name, blocks) in json(test_data("wkw/expected.json"))["damaged"].as_object().unwrap() {
        let array = level(&*dataset, name, 0);
        assert_eq!(&array.info().grid.count()[..], [2, 2, 2], "{name}");
        let (samples, damaged) = naive::read_what_can_be(&*array);
        for (number, wanted) in blocks.as_array().unwrap().iter().enumerate() {
            let at = array.info().grid.count().index_of(number as u64);
            let error = damaged.iter().find(|(brick, _)| *brick == at).map(|(_, error)| error);
            let Some(wanted) = wanted.as_str() else {
                let error = error.unwrap_or_else(|| panic!("{name}: block {number} is read"));
                let blamed =
                    matches!(error, FormatError::Damaged(_) | FormatError::DamagedObject(_) | FormatError::Source(_));
                assert!(blamed && error.to_string().contains("x0.wkw"), "{name}: {error:?}");
                continue;
            };
            assert!(error.is_none(), "{name}: block {number}: {error:?}");
            let block: Vec<u8> = (0..512)
                .map(|n| {
                    let (z, y, x) = (n / 64 + 8 * at[0], n / 8 % 8 + 8 * at[1], n % 8 + 8 * at[2]);
                    samples[(256 * z + 16 * y + x) as usize]
                })
                .collect();
            assert_eq!(crc(&block), wanted, "{name}: block {number}");
        }
    }
}
