//! HDF5 and netCDF-4 files: their layers, and samples against those of h5py.

use std::fs;

use serde_json::Value;

use crate::support::{Mount, crc, json, names, test_data};

#[test]
fn samples_of_every_file_are_those_of_h5py() {
    let Some(mount) = Mount::of(test_data("hdf5")) else { return };
    let expected: Vec<Value> =
        serde_json::from_slice(&fs::read(test_data("hdf5").join("expected.json")).unwrap()).unwrap();
    let mut compared = 0;
    for expected in expected {
        let text = |key: &str| expected[key].as_str().unwrap().to_owned();
        let layer = mount.path(format!("{}/{}", text("file"), text("path").replace('/', "%2F")));
        // levels of images are layers of other names
        if let Ok(samples) = fs::read(layer.join("lod0.raw")) {
            assert_eq!(crc(&samples), text("crc32"), "{expected}");
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared}");
    assert!(names(mount.path("viewer.h5")).contains("t00000%2Fs00"));
    let described = json(mount.path("rain.nc/rain/lod0.json"));
    assert_eq!((&described["axes"][1]["name"], &described["scale"]), (&"lat".into(), &0.5.into()));
}

#[test]
fn a_damaged_file_says_why() {
    let file = fs::read(test_data("hdf5").join("filters.h5")).unwrap();
    let mut damaged = file.clone();
    damaged[9] = 7;
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("short.h5", &file[..file.len() / 2]), ("text.h5", b"no file"), ("widths.h5", &damaged)] {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let Some(mount) = Mount::of(folder.path()) else { return };
    for (name, why) in [("short.h5", "truncated"), ("text.h5", "no superblock"), ("widths.h5", "superblock")] {
        let text = fs::read_to_string(mount.path(format!("{name}/error.txt"))).unwrap();
        assert!(text.contains(why), "{name}: {text}");
    }
}
