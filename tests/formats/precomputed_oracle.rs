//! Compares every precomputed volume of tests/data with what tensorstore and cloud-volume read from it
//! (scripts/make_precomputed_fixtures.py), through the public traits and the naive model of the data path.

use serde_json::{Value, json};

use super::file_system::FileSystem;
use crate::catalog::Recogniser;
use crate::format::precomputed::Precomputed;
use crate::format::{Format, OpenWith, registry};
use crate::source::{Blocking, IndexCache, LocalTree};
use crate::test_support::{by_dataset, crc, floats, json, naive, set, test_data};
use crate::volume::Brick;

fn expected() -> Vec<Value> {
    json(test_data("precomputed/expected.json")).as_array().unwrap().clone()
}

#[test]
fn every_level_reads_as_other_readers_say() {
    let shown = FileSystem::over(&test_data("precomputed"));
    let by_name = by_dataset(&expected());
    let names: Vec<String> = by_name.keys().cloned().chain([".volfs".to_owned()]).collect();
    assert_eq!(set(shown.names("")), set(names));
    let mut parts = 0;
    for (name, levels) in by_name {
        let path = test_data("precomputed").join(&name);
        assert_eq!(
            Recogniser::new(registry()).format_of(&path).unwrap().map(Format::name),
            Some("precomputed"),
            "{name}"
        );
        let with = OpenWith::new(IndexCache::new(1 << 20));
        let dataset = Precomputed.open_folder(LocalTree::folder(&path, &path), &with).unwrap();
        let [layer] = dataset.layers() else { panic!("{name} has other layers") };
        assert_eq!(layer.levels.len(), levels.len(), "{name}");
        for expected in levels {
            let lod = expected["lod"].as_u64().unwrap() as usize;
            let array = &layer.levels[lod];
            let samples = naive::read_all(&**array).unwrap_or_else(|e| panic!("{expected}: {e}"));
            assert_eq!(json!(crc(&samples)), expected["crc32"], "samples of {expected}");
            naive::check_lookups(&**array);
            parts += naive::check_parts(&**array, &samples);
            assert!(shown.read(&format!("{name}/data/lod{lod}.raw")) == samples, "{expected}");
            let described = shown.read(&format!("{name}/data/lod{lod}.json"));
            check_description(&serde_json::from_slice(&described).unwrap(), &expected);
        }
    }
    assert!(parts > 0, "no chunk has parts");
}

fn check_description(described: &Value, expected: &Value) {
    for key in ["dataset", "layer", "lod", "dtype", "shape", "brick_shape", "codec"] {
        assert_eq!(described[key], expected[key], "{key} of {expected}");
    }
    assert_eq!(described["format"], json!("precomputed"));
    for key in ["key", "path"] {
        assert_eq!(described["precomputed"][key], expected["key"], "{expected}");
    }
    let axes = described["axes"].as_array().unwrap();
    let names: Vec<&str> = axes.iter().map(|axis| axis["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["channel", "z", "y", "x"][4 - axes.len()..]);
    for key in ["first", "step"] {
        let found: Vec<f64> = axes[axes.len() - 3..].iter().map(|axis| axis[key].as_f64().unwrap()).collect();
        assert_eq!(found, floats(&expected[key]), "{key} of {expected}");
    }
    assert!(axes[axes.len() - 3..].iter().all(|axis| axis["unit"] == "nanometer"));
}

#[test]
fn each_kind_of_chunk_is_its_kind_of_brick() {
    let kinds = |name: &str| {
        let path = test_data("precomputed").join(name);
        let with = OpenWith::new(IndexCache::new(1 << 20));
        let dataset = Precomputed.open_folder(LocalTree::folder(&path, &path), &with).unwrap();
        let array = &dataset.layers()[0].levels[0];
        let grid = &array.info().grid;
        let mut kinds = [0; 3];
        for number in 0..grid.total() {
            kinds[match array.brick(&grid.count().index_of(number), Blocking::Yes).unwrap() {
                Brick::Constant(_) => 0,
                Brick::Plain(_) => 1,
                Brick::Coded(_) => 2,
            }] += 1;
        }
        kinds
    };
    assert_eq!(kinds("raw"), [1, 17, 0], "a chunk was never written");
    assert_eq!(kinds("sharded")[1], 0);
    assert!(kinds("sharded")[0] > 0);
    assert_eq!(kinds("sharded-plain")[2], 0);
    assert_eq!(kinds("gzip"), [0, 0, 18]);
    assert_eq!(kinds("jpeg"), [0, 0, 12]);
}
