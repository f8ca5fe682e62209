//! Compares every array of tests/data/hdf5, HDF5 and netCDF-4, with what h5py reads from it
//! (scripts/make_hdf5_fixtures.py), through the public traits, the naive model of the data path, and the file system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use super::file_system::FileSystem;
use crate::format::hdf5::Hdf5;
use crate::format::{Dataset, Format, FormatError, Layer, OpenWith};
use crate::source::Blocking;
use crate::test_support::memory_folder::{MemoryFolder, files_beside, open_file};
use crate::test_support::{Npy, crc, naive, test_data};
use crate::volume::Brick;

fn open(name: &str) -> Box<dyn Dataset> {
    let path = test_data("hdf5").join(name);
    let bytes = fs::read(&path).unwrap();
    let with = OpenWith { beside: Some(files_beside(path)), ..OpenWith::for_one(None) };
    let source = Arc::new(MemoryFolder::of_one_file(bytes));
    Hdf5.open(source, &with).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn layer<'a>(dataset: &'a dyn Dataset, name: &str) -> &'a Layer {
    dataset.layers().iter().find(|layer| layer.name == name).unwrap_or_else(|| panic!("no layer {name}"))
}

/// The layer and the level of each array by its path.
fn arrays(dataset: &dyn Dataset) -> BTreeMap<String, (&Layer, usize)> {
    let mut found = BTreeMap::new();
    for layer in dataset.layers() {
        for (lod, level) in layer.levels.iter().enumerate() {
            let path = level.info().native["path"].as_str().unwrap();
            found.insert(path.trim_start_matches('/').to_owned(), (layer, lod));
        }
    }
    found
}

#[test]
fn every_array_reads_as_h5py_says() {
    let shown = FileSystem::over(&test_data("hdf5"));
    let expected: Vec<Value> =
        serde_json::from_slice(&fs::read(test_data("hdf5").join("expected.json")).unwrap()).unwrap();
    let mut by_file: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for entry in &expected {
        by_file.entry(entry["file"].as_str().unwrap()).or_default().push(entry);
    }
    for (name, entries) in by_file {
        let dataset = open(name);
        let arrays = arrays(&*dataset);
        for expected in entries {
            let hidden = || dataset.hidden().iter().map(|layer| (&*layer.name, &*layer.reason)).collect::<Vec<_>>();
            let found = arrays.get(expected["path"].as_str().unwrap());
            let (layer, lod) = found.unwrap_or_else(|| panic!("no {expected}: {:?}", hidden()));
            let array = &*layer.levels[*lod];
            assert_eq!(json!(array.info().shape().to_vec()), expected["shape"], "{expected}");
            assert_eq!(json!(array.info().dtype.name()), expected["dtype"], "{expected}");
            let samples = naive::read_all(array).unwrap_or_else(|e| panic!("{expected}: {e}"));
            assert_eq!(json!(crc(&samples)), expected["crc32"], "samples of {expected}");
            naive::check_lookups(array);
            let mut stored = 0;
            array
                .visit_stored(&mut |set| {
                    stored += set.len();
                    true
                })
                .unwrap();
            assert!(stored <= array.info().grid.total(), "{expected}");
            let file = |suffix: &str| {
                format!("{name}/{}/lod{lod}{suffix}", layer.name.replace('%', "%25").replace('/', "%2F"))
            };
            assert!(shown.read(&file(".raw")) == samples, "{expected}");
            let npy = Npy::parse(&shown.read(&file(".npy")));
            assert!(npy.samples == samples && json!(npy.shape) == expected["shape"], "{expected}");
        }
    }
}

#[test]
fn arrays_that_are_not_read_have_their_reasons() {
    let hidden = |name: &str| -> Vec<(String, String)> {
        open(name).hidden().iter().map(|layer| (layer.name.clone(), layer.reason.clone())).collect()
    };
    let types = hidden("types.h5");
    for (name, text) in [
        ("texts", "texts, which are not shown"),
        ("structures", "structures of several values"),
        ("references", "references"),
        ("opaque", "opaque bytes"),
        ("lists", "lists of variable length"),
        ("nothing", "it has no samples"),
    ] {
        assert!(types.iter().any(|(found, reason)| found == name && reason.contains(text)), "{name}: {types:?}");
    }
    assert_eq!(types.len(), 7, "{types:?}");
    assert_eq!(
        hidden("filters.h5"),
        [("zfp".into(), "its samples have the filter 32013 (zfp), which is not supported".into())]
    );
    assert_eq!(hidden("layouts-latest.h5"), [], "an array may have no samples");
}

#[test]
fn filters_and_axes_are_described() {
    let of = |file: &str, name: &str| layer(&*open(file), name).levels[0].info().clone();
    let names = |name: &str| -> Vec<Value> {
        let filters = of("filters.h5", name).native["filters"].clone();
        filters.as_array().unwrap().iter().map(|filter| json!([filter["id"], filter["name"]])).collect()
    };
    // by the name in the file, if it has one, or that of its codec
    assert_eq!(names("all"), [json!([2, "shuffle"]), json!([1, "zlib"]), json!([3, "fletcher32"])]);
    assert_eq!(names("lzf"), [json!([32000, "lzf"])]);
    assert_eq!(names("bitshuffle"), [json!([32008, "bitshuffle; see https://github.com/kiyo-masui/bitshuffle"])]);
    // samples that are arrays have axes of their own, which are none of space
    let spatial = |name: &str| of("types.h5", name).axes.iter().map(|axis| axis.spatial).collect::<Vec<_>>();
    assert_eq!((spatial("<i4"), spatial("arrays")), (vec![true, true], vec![true, false, false]));
}

#[test]
fn each_object_is_shown_once_and_links_may_lead_in_circles() {
    let others = ["/group/inner/array", "/soft"];
    for name in ["links-earliest.h5", "links-latest.h5"] {
        let dataset = open(name);
        assert_eq!(dataset.layers().len(), 31, "{name}");
        let found = layer(&*dataset, "hard");
        let info = found.levels[0].info();
        assert_eq!(info.native["aliases"], json!(others), "{name}");
        assert_eq!(found.native["attributes"]["attribute 29"], "text 29", "{name}");
        assert_eq!(dataset.info().native["user_block"], 1024);
        assert_eq!(dataset.info().native["groups"], json!({"/": {"title": "links"}}));
        assert_eq!(dataset.info().warnings, ["/outside leads to another file, which is not followed"], "{name}");
    }
}

#[test]
fn dimension_scales_are_the_positions_of_axes() {
    let dataset = open("rain.nc");
    let info = layer(&*dataset, "rain").levels[0].info();
    let axes: Vec<_> =
        info.axes.iter().map(|axis| (&*axis.name, axis.first, axis.step, axis.unit.as_deref())).collect();
    let days = Some("days since 2000-01-01");
    let expected =
        [("time", 0.0, 1.0, days), ("lat", 60.0, -2.5, Some("degrees_north")), ("lon", 5.0, 2.5, Some("degrees_east"))];
    assert_eq!(axes, expected);
    let scaling = info.scaling.unwrap();
    assert_eq!((scaling.scale, scaling.offset, info.no_value), (0.5, 10.0, Some(-32768.0)));
    assert_eq!(info.value_range, Some((10.0, 210.0)));
    let wind = layer(&*dataset, "sub/wind").levels[0].info();
    assert_eq!(
        wind.axes.iter().map(|axis| (&*axis.name, axis.step)).collect::<Vec<_>>(),
        [("level", 1.0), ("lon", 2.5)]
    );
    assert_eq!(dataset.info().native["groups"]["/"]["title"], "rain");
    assert_eq!(layer(&*dataset, "bare").levels[0].info().warnings.len(), 1);
    let names: Vec<_> = dataset.layers().iter().map(|layer| &*layer.name).collect();
    assert_eq!(names, ["rain", "plain", "sub/wind", "time", "bare", "lat", "lon", "sub/level"]);
}

#[test]
fn pyramids_are_layers_of_several_levels() {
    let dataset = open("image.ims");
    let image = layer(&*dataset, "DataSet/TimePoint 0/Channel 0");
    let of = |lod: usize| image.levels[lod].info();
    let axes: Vec<_> = of(1).axes.iter().map(|axis| (&*axis.name, axis.first, axis.step)).collect();
    assert_eq!(axes, [("z", 3.0, 1.0), ("y", 101.0, 2.0), ("x", -11.0, 2.0)]);
    assert_eq!((of(0).axes[0].unit.as_deref(), &of(0).native["image_size"]), (Some("um"), &json!([5.0, 12.0, 24.0])));
    let dataset = open("viewer.h5");
    let image = layer(&*dataset, "t00000/s00");
    assert_eq!(image.levels.len(), 3);
    let axes: Vec<_> = image.levels[2].info().axes.iter().map(|axis| (axis.first, axis.step)).collect();
    assert_eq!(axes, [(0.5, 2.0), (1.5, 4.0), (1.5, 4.0)]);
}

#[test]
fn factors_of_levels_are_those_that_the_file_states() {
    let file = fs::read(test_data("hdf5").join("viewer.h5")).unwrap();
    let bytes_of = |factors: &[f64]| factors.iter().flat_map(|factor| factor.to_le_bytes()).collect::<Vec<u8>>();
    let stated = bytes_of(&[1.0, 1.0, 1.0, 2.0, 2.0, 1.0, 4.0, 4.0, 2.0]);
    let at = file.windows(stated.len()).position(|window| window == stated).unwrap();
    let steps = |factors: &[f64]| -> Vec<f64> {
        let mut file = file.clone();
        file[at..at + stated.len()].copy_from_slice(&bytes_of(factors));
        let dataset = open_file(&Hdf5, file).unwrap();
        let levels = &layer(&*dataset, "t00000/s00").levels;
        levels[1..]
            .iter()
            .flat_map(|level| level.info().axes.iter().map(|axis| axis.step).collect::<Vec<_>>())
            .collect()
    };
    assert_eq!(steps(&[1.0, 1.0, 1.0, 3.0, 2.5, 1.0, 5.0, 4.0, 2.0]), [1.0, 2.5, 3.0, 2.0, 4.0, 5.0]);
    for wrong in [f64::NAN, 0.0, f64::INFINITY] {
        let guess = [1.0, 2.0, 2.0, 2.0, 4.0, 4.0];
        assert_eq!(steps(&[1.0, 1.0, 1.0, 3.0, 2.5, 1.0, 5.0, 4.0, wrong]), guess, "{wrong}");
    }
}

#[test]
fn damage_of_one_chunk_is_that_of_one_brick() {
    let mut bytes = fs::read(test_data("hdf5").join("filters.h5")).unwrap();
    let dataset = open_file(&Hdf5, bytes.clone()).unwrap();
    let array = &*layer(&*dataset, "fletcher32").levels[0];
    let Ok(Brick::Coded(coded)) = array.brick(&[1, 0].into(), Blocking::Yes) else { panic!("it is coded") };
    bytes[coded.offset as usize] ^= 1;
    let dataset = open_file(&Hdf5, bytes.clone()).unwrap();
    let error = naive::read_all(&*layer(&*dataset, "fletcher32").levels[0]).unwrap_err();
    assert!(matches!(&error, FormatError::Damaged(why) if why.contains("the checksum fletcher32 differs")), "{error}");
    assert!(naive::read_all(&*layer(&*dataset, "deflate").levels[0]).is_ok());
    let error = open_file(&Hdf5, bytes[..bytes.len() - 1].to_vec()).err().unwrap();
    assert!(error.to_string().starts_with("the file is truncated"), "{error}");
}

#[test]
fn metadata_in_an_image_of_the_cache_are_refused_and_not_read_in_an_older_state() {
    let bytes = fs::read(test_data("hdf5").join("cache-image.h5")).unwrap();
    let error = open_file(&Hdf5, bytes).err().unwrap();
    assert!(matches!(&error, FormatError::Unsupported(why) if why.contains("image of HDF5's cache")), "{error}");
}

#[test]
fn virtual_datasets_say_what_is_missing_and_what_is_not_read() {
    let dataset = open("virtual-latest.h5");
    let of = |name: &str| layer(&*dataset, name).levels[0].info();
    assert_eq!(of("in turn").brick_shape.to_vec(), [1, 8, 8]);
    assert_eq!(of("stacked").brick_shape.to_vec(), [1, 4, 8, 8]);
    assert_eq!(of("stacked").native["sources"][2], "d in parts/c2.h5");
    let missing = of("one after the other, the last one missing");
    assert_eq!(missing.warnings, ["there is no d in parts/c3.h5: its samples have the fill value"]);
    // bricks between the mappings are not visited, and all others once
    for layer in dataset.layers() {
        let array = &*layer.levels[0];
        let (count, mut visited) = (array.info().grid.count(), BTreeSet::new());
        array
            .visit_stored(&mut |set| {
                (0..set.len()).for_each(|n| assert!(visited.insert(set.nth(n, &count).to_vec()), "{}", layer.name));
                true
            })
            .unwrap();
        for at in (0..array.info().grid.total()).map(|n| count.index_of(n)) {
            let is_constant = matches!(array.brick(&at, Blocking::Yes), Ok(Brick::Constant(_)));
            assert!(is_constant || visited.contains(&at.to_vec()), "{}: {at:?}", layer.name);
        }
        let has_gaps = (visited.len() as u64) < array.info().grid.total();
        assert!(
            has_gaps || !["across chunks", "numbered", "without sources"].contains(&&*layer.name),
            "{}",
            layer.name
        );
        assert!(!has_gaps || layer.name != "stacked");
    }
    // without a folder only those of the file itself are there
    let bytes = fs::read(test_data("hdf5").join("virtual-latest.h5")).unwrap();
    let alone = open_file(&Hdf5, bytes).unwrap();
    let shown: Vec<&str> = alone.layers().iter().map(|layer| &*layer.name).collect();
    assert!(shown.contains(&"numbered datasets") && !shown.contains(&"stacked"), "{shown:?}");
    let hidden: Vec<&str> = alone.hidden().iter().map(|layer| &*layer.reason).collect();
    assert_eq!(hidden.iter().filter(|why| why.contains("other files")).count(), 10, "{hidden:?}");
    let nested = dataset.hidden().iter().map(|layer| (&*layer.name, &*layer.reason)).collect::<Vec<_>>();
    let why = "its source stacked in this file: it is virtual itself, which is not supported";
    assert_eq!(nested, [("of a virtual one", why)]);
}
