//! Compares every VDS dataset of tests/data with what the reference library reads from it
//! (scripts/make_vds_fixtures.py), through the public traits and the naive model of the data path.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::file_system::FileSystem;
use crate::format::vds::Vds;
use crate::format::{Array, Dataset, Format, FormatError};
use crate::source::{Blocking, FolderProbe, LocalTree, Tree};
use crate::test_support::vds_dataset::{data, expected, find, open, open_path, open_tagged};
use crate::test_support::{Npy, by_dataset, copy_all, crc, floats, naive, numbers};
use crate::volume::Brick;

/// Opens every dataset, and returns it with what is expected of its layers.
fn datasets() -> Vec<(Box<dyn Dataset>, Vec<Value>)> {
    let by_name = by_dataset(expected()["layers"].as_array().unwrap());
    assert!(by_name.len() > 30);
    by_name.into_iter().map(|(name, entries)| (open_tagged(&name), entries)).collect()
}

fn described(folder: &Path) -> Option<bool> {
    Vds.described_folder(&FolderProbe::new(LocalTree::below(folder).look(folder).unwrap().unwrap()))
}

#[test]
fn every_dataset_is_recognised_by_its_content() {
    let names: BTreeSet<_> = fs::read_dir(data()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in names.iter().filter(|path| !path.ends_with("expected.json")) {
        assert!(
            path.is_dir() && described(path) == Some(true) || Vds.is_file(&fs::read(path).unwrap()),
            "{}",
            path.display()
        );
    }
    assert!(described(&data()).is_none());
}

#[test]
fn every_layer_reads_as_the_reference_library_says() {
    let (shown, mut with_values) = (FileSystem::over(&data()), 0);
    for (dataset, layers) in datasets() {
        let levels: usize = dataset.layers().iter().map(|layer| layer.levels.len()).sum();
        assert_eq!(levels, layers.len(), "{}", layers[0]["dataset"]);
        assert!(dataset.hidden().is_empty(), "{}: {}", layers[0]["dataset"], dataset.hidden()[0].reason);
        for expected in layers {
            let array = find(&*dataset, expected["stored"].as_str().unwrap());
            check_census(&*array, &expected);
            let samples = naive::read_all(&*array).unwrap_or_else(|e| panic!("{expected}: {e}"));
            assert_eq!(json!(crc(&samples)), expected["crc32"], "samples of {expected}");
            naive::check_lookups(&*array);
            with_values += u64::from(check_files(&shown, &expected, samples));
        }
    }
    assert!(with_values > 4, "{with_values}");
}

fn check_census(array: &dyn Array, expected: &Value) {
    // without pages, counting would have to look up each chunk
    let without_pages = ["no-pages", "tagged", "wavelet-no-pages"].contains(&text(expected, "dataset"));
    let census = array.census().unwrap();
    assert_eq!(census.is_none(), without_pages, "{expected}");
    if let Some(bricks) = census.map(|census| census.counts) {
        assert_eq!(bricks.total, array.info().grid.total());
        assert_eq!(bricks.total, bricks.stored + bricks.constant + bricks.missing, "{expected}");
    }
}

fn text<'a>(layer: &'a Value, key: &str) -> &'a str {
    layer[key].as_str().unwrap()
}

/// Checks the files of a level as a mount shows them; returns whether one of them has values.
fn check_files(shown: &FileSystem, layer: &Value, samples: Vec<u8>) -> bool {
    let folder = format!("{}/{}", text(layer, "dataset"), text(layer, "folder"));
    let names = shown.names(&folder);
    let name = |suffix: &str| format!("lod{}{suffix}", layer["lod"]);
    let read = |suffix: &str| shown.read(&format!("{folder}/{}", name(suffix)));
    let described: Value = serde_json::from_slice(&read(".json")).unwrap();
    for key in ["dataset", "layer", "lod", "dtype", "shape", "codec"] {
        assert_eq!(described[key], layer[key], "{key} of {layer}");
    }
    assert_eq!((&described["format"], &described["warnings"]), (&json!("vds"), &json!([])), "{layer}");
    let axes = described["axes"].as_array().unwrap();
    let of = |key: &str| axes.iter().map(|axis| axis[key].clone()).collect::<Vec<_>>();
    assert_eq!(json!(of("count")), layer["shape"], "{layer}");
    for key in ["first", "step"] {
        let pairs: Vec<_> = floats(&of(key).into()).into_iter().zip(floats(&layer[key])).collect();
        let alike = |(found, wanted): &(f64, f64)| (found - wanted).abs() <= 1e-9 * wanted.abs();
        assert!(pairs.iter().all(alike), "{key} of {layer}: {pairs:?}");
    }
    if axes.len() == 3 && axes.iter().all(|axis| axis["name"] != "value" && axis["name"] != "component") {
        headers(layer, &String::from_utf8(read(".nhdr")).unwrap(), &String::from_utf8(read(".mhd")).unwrap());
    }
    let scaled = [&described["scale"], &described["offset"]].map(Value::as_f64);
    // the bytes of a trace header are no numbers with a scale
    let says_new = scaled[0].is_some() && (scaled != [Some(1.0), Some(0.0)] || described["no_value"].is_number());
    assert_eq!(names.contains(&name(".float32.npy")), says_new, "{layer}");
    // the metadata of its chunks belongs into extended attributes, which a Git repository does not keep
    if layer["dataset"] != "tagged" {
        if let Some(wanted) = layer.get("float32").filter(|_| says_new) {
            let values = Npy::parse(&read(".float32.npy"));
            assert_eq!((json!(crc(&values.samples)), values.descr.as_str()), (wanted.clone(), "<f4"), "{layer}");
        }
        assert!(read(".raw") == samples, "{layer}");
        let npy = Npy::parse(&read(".npy"));
        assert!(npy.samples == samples && json!(npy.shape) == layer["shape"] && !npy.fortran_order, "{layer}");
    }
    says_new
}

/// Checks the headers for other programs: they have the axes in the order of the VDS itself.
fn headers(layer: &Value, nrrd: &str, meta: &str) {
    let mut sizes: Vec<_> = numbers(&layer["shape"]).iter().map(u64::to_string).collect();
    sizes.reverse();
    let raw = format!("lod{}.raw", layer["lod"]);
    let line =
        |text: &str, line: String| assert!(text.lines().any(|found| found == line), "{layer}: no {line:?} in\n{text}");
    line(nrrd, format!("sizes: {}", sizes.join(" ")));
    line(nrrd, format!("data file: {raw}"));
    line(meta, format!("DimSize = {}", sizes.join(" ")));
    line(meta, format!("ElementDataFile = {raw}"));
    let (kind, element) = match text(layer, "dtype") {
        "float32" => ("float", "MET_FLOAT"),
        "float64" => ("double", "MET_DOUBLE"),
        "uint8" => ("uint8", "MET_UCHAR"),
        "uint16" => ("uint16", "MET_USHORT"),
        "uint32" => ("uint32", "MET_UINT"),
        _ => ("uint64", "MET_ULONG_LONG"),
    };
    line(nrrd, format!("type: {kind}"));
    line(meta, format!("ElementType = {element}"));
}

#[test]
fn each_kind_of_chunk_is_its_kind_of_brick() {
    let dataset = open("no-value.vds");
    let kinds = |stored: &str| {
        let array = find(&*dataset, stored);
        let bricks = (0..array.info().grid.total()).map(|n| {
            match array.brick(&array.info().grid.count().index_of(n), Blocking::Yes).unwrap() {
                Brick::Constant(value) => Some(value.bytes().to_vec()),
                _ => None,
            }
        });
        bricks.collect::<Vec<_>>()
    };
    let bytes = |code: u8| Some(vec![code]);
    assert_eq!(kinds("Dimensions_012LOD0"), [bytes(255), bytes(100), bytes(255), None, None, None]);
    let word = |code: u16| Some(code.to_le_bytes().to_vec());
    assert_eq!(kinds("wordsDimensions_012LOD0"), [None, word(65535), word(1000), word(65535), None, None]);
    let float = |value: f32| Some(value.to_le_bytes().to_vec());
    let floats = kinds("floatsDimensions_012LOD0");
    assert_eq!(floats[2..5], [float(-999.25), float(0.25), float(-999.25)]);
    let counts = find(&*dataset, "Dimensions_012LOD0").census().unwrap().unwrap().counts;
    assert_eq!((counts.stored, counts.constant, counts.missing), (3, 2, 1));
    let plain = find(&*open("formats-none.vds"), "Dimensions_012LOD0");
    let brick = plain.brick(&[0, 0, 0].into(), Blocking::Yes).unwrap();
    assert!(matches!(brick, Brick::Plain(_)), "{brick:?}");
}

#[test]
fn no_value_is_reported_as_stored() {
    let dataset = open("no-value.vds");
    let no_value = |stored: &str| find(&*dataset, stored).info().no_value;
    assert_eq!(no_value("Dimensions_012LOD0"), Some(255.0));
    assert_eq!(no_value("wordsDimensions_012LOD1"), Some(65535.0));
    assert_eq!(no_value("floatsDimensions_012LOD0"), Some(-999.25));
    assert_eq!(find(&*open("scaled.vds"), "Dimensions_012LOD0").info().no_value, None);
}

#[test]
fn layers_are_those_of_channels_and_partitionings() {
    let names =
        |dataset: &str| -> Vec<String> { open(dataset).layers().iter().map(|layer| layer.name.clone()).collect() };
    let [tiles, trace, mask] = ["Amplitude", "Trace", "Mask"].map(|name| {
        let of = |group: &str| format!("{name}@Dimensions_{group}");
        [name.to_owned(), of("01"), of("02"), of("12")]
    });
    let found = names("tiles.vds");
    assert_eq!(found.len(), 16);
    assert_eq!((&found[..4], &found[4..8], &found[8..12]), (&tiles[..], &mask[..], &trace[..]));
    let dataset = open("tiles.vds");
    assert_eq!(dataset.layers()[1].native["dimensions"], "Dimensions_01");
    assert_eq!(names("six.vds"), ["Amplitude", "Amplitude@Dimensions_245"]);
    assert_eq!(names("four.vds")[..3], ["Amplitude", "Amplitude@Dimensions_013", "Amplitude@Dimensions_12"]);
}

/// Without the metadata that an object store keeps for each object, stored chunks can be read, but constants are lost.
#[test]
fn lost_object_metadata_fails_only_the_chunks_that_need_it() {
    let array = find(&*open("tagged"), "Dimensions_012LOD0");
    let (samples, damaged) = naive::read_what_can_be(&*array);
    assert_eq!(damaged.len(), 1, "{damaged:?}");
    let error = damaged[0].1.to_string();
    assert!(error.contains("chunk 0") && error.contains("has lost"), "{error}");
    let whole = naive::read_all(&*find(&*open_tagged("tagged"), "Dimensions_012LOD0")).unwrap();
    let region = array.info().grid.region(&damaged[0].0);
    let [_, y, x] = [0, 1, 2].map(|axis| array.info().shape()[axis]);
    for (n, (sample, wanted)) in (0..).zip(samples.iter().zip(&whole)) {
        let within = region.contains_index(&[n / (x * y), n / x % y, n % x]);
        assert_eq!(*sample, if within { 0 } else { *wanted }, "sample {n}");
        assert!(!within || *wanted == 9);
    }
}

/// Tests whether a region contains a sample.
trait ContainsIndex {
    fn contains_index(&self, index: &[u64]) -> bool;
}

impl ContainsIndex for crate::volume::Region {
    fn contains_index(&self, index: &[u64]) -> bool {
        (0..index.len()).all(|a| (self.start[a]..self.start[a] + self.shape[a]).contains(&index[a]))
    }
}

#[test]
fn a_chunk_that_is_a_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    copy_all(&data().join("pages"), folder.path());
    let chunk = folder.path().join("Dimensions_012LOD0/0");
    let array = find(&*open_path(folder.path()), "Dimensions_012LOD0");
    fs::remove_file(&chunk).unwrap();
    // not even root can read a chunk that is a folder
    fs::create_dir(&chunk).unwrap();
    fs::set_permissions(&chunk, fs::Permissions::from_mode(0o755)).unwrap();
    let error = naive::read_all(&*array).unwrap_err();
    assert!(matches!(error, FormatError::Source(_) | FormatError::Damaged(_)), "{error:?}");
    assert!(chunk.is_dir());
}
