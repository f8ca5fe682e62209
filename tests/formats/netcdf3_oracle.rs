//! Compares every variable of tests/data/netcdf3 with what netCDF4 reads from it (scripts/make_netcdf3_fixtures.py),
//! through the public traits and the file system.

use std::fs;

use serde_json::{Value, json};

use super::file_system::FileSystem;
use crate::format::netcdf3::NetCdf3;
use crate::format::{Dataset, Layer};
use crate::source::Blocking;
use crate::test_support::memory_folder::open_file;
use crate::test_support::{crc, naive, test_data};
use crate::volume::{Brick, Dims};

fn file(name: &str) -> Vec<u8> {
    fs::read(test_data("netcdf3").join(name)).unwrap()
}

fn open(name: &str) -> Box<dyn Dataset> {
    open_file(&NetCdf3, file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn layer<'a>(dataset: &'a dyn Dataset, name: &str) -> &'a Layer {
    dataset.layers().iter().find(|layer| layer.name == name).unwrap_or_else(|| panic!("no layer {name}"))
}

#[test]
fn every_variable_reads_as_netcdf4_says() {
    let shown = FileSystem::over(&test_data("netcdf3"));
    let expected: Vec<Value> = serde_json::from_slice(&file("expected.json")).unwrap();
    assert_eq!(expected.len(), 76);
    for expected in expected {
        let (name, variable) = (expected["file"].as_str().unwrap(), expected["name"].as_str().unwrap());
        let dataset = open(name);
        let array = &*layer(&*dataset, variable).levels[0];
        assert_eq!(json!(array.info().shape().to_vec()), expected["shape"], "{expected}");
        assert_eq!(json!(array.info().dtype.name()), expected["dtype"], "{expected}");
        let samples = naive::read_all(array).unwrap_or_else(|e| panic!("{expected}: {e}"));
        assert_eq!(json!(crc(&samples)), expected["crc32"], "samples of {expected}");
        assert!(shown.read(&format!("{name}/{variable}/lod0.raw")) == samples, "{expected}");
        let grid = &array.info().grid;
        for at in (0..grid.total()).map(|number| grid.count().index_of(number)) {
            let decoded = match array.brick(&at, Blocking::Yes).unwrap() {
                Brick::Coded(coded) => Some(coded.layout.held.shape),
                Brick::Plain(_) => None,
                Brick::Constant(_) => continue,
            };
            assert_eq!(array.decoded_shape(&at), decoded, "brick {at:?} of {expected}");
        }
    }
}

#[test]
fn headers_describe_axes_and_values() {
    let dataset = open("classic.nc");
    let info = layer(&*dataset, "records_f4").levels[0].info();
    let axes: Vec<_> = info.axes.iter().map(|axis| (&*axis.name, axis.first, axis.step)).collect();
    assert_eq!(axes, [("time", 0.0, 1.0), ("lat", 60.0, -2.5), ("lon", 0.0, 1.0)]);
    assert_eq!(info.axes[1].unit.as_deref(), Some("degrees_north"));
    let info = layer(&*dataset, "rain").levels[0].info();
    let scaling = info.scaling.unwrap();
    assert_eq!((scaling.scale, scaling.offset, info.no_value), (0.5, 10.0, Some(-1.0)));
    assert_eq!(info.value_range, Some((10.0, 30.0)));
    let attributes = json!({"title": "rain", "list": [1, -2, 3], "tenth": 0.1});
    assert_eq!(dataset.info().native, *json!({"attributes": attributes, "records": 5}).as_object().unwrap());
    let names: Vec<_> = dataset.layers().iter().map(|layer| &*layer.name).collect();
    assert_eq!((names[0], names.last()), ("whole_i1", Some(&"time")), "positions come last");
    let hidden: Vec<_> = dataset.hidden().iter().map(|layer| (&*layer.name, &*layer.reason)).collect();
    assert_eq!(hidden, [("text", "it is text")]);
}

#[test]
fn a_file_that_ends_early_has_the_samples_before() {
    let bytes = file("offsets.nc");
    let whole = open("offsets.nc");
    let of_all = naive::read_all(&*layer(&*whole, "wide").levels[0]).unwrap();
    // within the last record
    let cut = open_file(&NetCdf3, bytes[..bytes.len() - 70000].to_vec()).unwrap();
    let array = &*layer(&*cut, "wide").levels[0];
    assert_eq!(array.info().brick_shape, Dims::from([1, 20000]));
    let error = array.brick(&Dims::from([4, 0]), Blocking::Yes).unwrap_err().to_string();
    assert!(error.contains("are not in the file"), "{error}");
    assert!(array.brick(&Dims::from([3, 0]), Blocking::Yes).is_ok());
    assert_eq!(of_all[4 * 80000..4 * 80000 + 4], 80000i32.to_le_bytes());
    for length in 0..1024 {
        let error = open_file(&NetCdf3, bytes[..length].to_vec()).err().unwrap().to_string();
        assert!(error.contains("truncated"), "{length}: {error}");
    }
    // a writer that streams does not know how many records there will be
    let mut streamed = bytes;
    streamed[4..8].fill(0xff);
    let streamed = open_file(&NetCdf3, streamed).unwrap();
    assert_eq!(naive::read_all(&*layer(&*streamed, "wide").levels[0]).unwrap(), of_all);
}

#[test]
fn headers_that_make_no_sense_are_refused() {
    let bytes = file("classic.nc");
    let at = |text: &[u8]| bytes.windows(text.len()).position(|window| window == text).unwrap();
    for (place, value, reason) in [
        (8, 9u32, "the tag 9 in place of 10"),
        (at(b"list") + 4, 12, "the unknown type 12"),
        (12, 1 << 20, "it has 1048576 dimensions"),
        (at(b"whole_i1") + 12, 77, "variable whole_i1 has no dimension 77"),
        (4, 0x7fff_ffff, ""),
    ] {
        let mut bad = bytes.clone();
        bad[place..place + 4].copy_from_slice(&value.to_be_bytes());
        match open_file(&NetCdf3, bad) {
            Err(error) => assert!(!reason.is_empty() && error.to_string().contains(reason), "{error}"),
            // records that are not in the file
            Ok(dataset) => {
                assert_eq!(reason, "");
                let array = &*layer(&*dataset, "one_f8").levels[0];
                assert!(naive::read_all(array).is_err());
            }
        }
    }
}
