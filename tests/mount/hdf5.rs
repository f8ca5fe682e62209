//! HDF5 and netCDF-4 files: their layers, and samples against those of h5py.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::support::{Mount, SOON, comes_true, crc, json, names, test_data};

#[test]
fn samples_of_every_file_are_those_of_h5py() {
    let Some(mount) = Mount::of(test_data("hdf5")) else { return };
    let expected: Vec<Value> =
        serde_json::from_slice(&fs::read(test_data("hdf5").join("expected.json")).unwrap()).unwrap();
    let mut compared = 0;
    for expected in expected {
        let text = |key: &str| expected[key].as_str().unwrap().to_owned();
        let layer = mount.path(format!("{}/{}", text("file"), text("path").replace('%', "%25").replace('/', "%2F")));
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

#[test]
fn virtual_datasets_are_read_from_files_below_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        fs::create_dir_all(folder.path().join(to).parent().unwrap()).unwrap();
        fs::copy(test_data("hdf5").join(from), folder.path().join(to)).unwrap();
    };
    copy("virtual-latest.h5", "survey/all.h5");
    (0..3).for_each(|n| copy(&format!("parts/c{n}.h5"), &format!("survey/parts/c{n}.h5")));
    let all = folder.path().join("survey/all.h5");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(folder.path().join("survey/parts/c1.h5"), elsewhere.path().join("c1.h5")).unwrap();
    symlink(elsewhere.path().join("c1.h5"), folder.path().join("survey/parts/c1.h5")).unwrap();
    // one file as the source: its folder counts
    for source in [folder.path(), &all] {
        let Some(mount) = Mount::of(source) else { return };
        let dataset = mount.path(if source == all { "all.h5" } else { "survey/all.h5" });
        let why = json(dataset.join("dataset.json")).to_string();
        assert!(why.contains("a link leads out of the source"), "{why}");
        assert_eq!(fs::read(dataset.join("own/lod0.raw")).unwrap().len(), 24, "other layers go on");
        assert!(!dataset.join("stacked").exists());
    }
    let Some(mount) = Mount::of(folder.path()) else { return };
    fs::remove_file(folder.path().join("survey/parts/c1.h5")).unwrap();
    let read = || fs::read(mount.path("survey/all.h5/stacked/lod0.raw")).unwrap_or_default();
    let is_filled = |samples: &[u8]| samples.len() == 3 * 6400 && samples[6400..12800].iter().all(|byte| *byte == 0xff);
    assert!(comes_true(SOON, || is_filled(&read())), "a part that is missing has the fill value");
    copy("parts/c1.h5", "survey/parts/c1.h5");
    let is_there = |samples: &[u8]| samples.len() == 3 * 6400 && !is_filled(samples);
    assert!(comes_true(SOON, || is_there(&read())), "a part that comes later is noticed");
    // no sample of it is in the kernel's memory
    let turned = names(mount.path("survey/all.h5/stacked")).into_iter().find(|name| name.starts_with("lod0.by-"));
    let mut open = File::open(mount.path("survey/all.h5/stacked").join(turned.unwrap())).unwrap();
    copy("parts/c1.h5", "survey/of_others.h5");
    copy("parts/c1.h5", "survey/parts/of_others.h5");
    assert!(comes_true(SOON, || names(mount.path("survey")).contains("of_others.h5")));
    assert!(is_there(&read()));
    assert!(open.read_to_end(&mut Vec::new()).is_ok(), "files of others are no change");
}
