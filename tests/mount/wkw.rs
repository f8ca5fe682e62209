//! WKW datasets: their files and descriptions, damage, and changes while they are mounted.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::wkw_expected;
use crate::support::{
    Mount, SOON, comes_true, copy_all, crc, is_eio, json, names, numbers, read_at, replace, set, source_of, test_data,
};

/// Makes a temporary source with copies of some datasets. An additional file keeps the source from being a dataset
/// itself: a folder that holds only folders of mags would be one.
fn source_with(names: &[&str]) -> TempDir {
    let source = source_of("wkw", names);
    fs::write(source.path().join("other.zgy"), b"").unwrap();
    source
}

#[test]
fn datasets_are_described() {
    let Some(mount) = Mount::of(test_data("wkw")) else { return };
    let dataset = json(mount.path("pyramid/dataset.json"));
    let layer = |name: &str| {
        let layers = dataset["layers"].as_array().unwrap().iter();
        layers.clone().find(|layer| layer["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(dataset["geometry"], Value::Null);
    assert_eq!(dataset["wkw"]["unknown"], json!([1, {"a": null}]));
    assert_eq!(dataset["wkw"]["dataLayers"][1]["largestSegmentId_text"], "9007199254740997");
    assert_eq!(
        (layer("color")["lods"].clone(), layer("color")["missing"][0]["mag"].clone()),
        (json!(3), json!([8, 8, 4]))
    );
    for hidden in wkw_expected("hidden").iter().filter(|hidden| hidden["dataset"] == "pyramid") {
        let name = hidden["layer"].as_str().unwrap();
        assert!(layer(name)["reason"].as_str().unwrap().contains(hidden["reason"].as_str().unwrap()));
        assert!(!mount.path("pyramid").join(name).exists());
    }
    let segmentation = json(mount.path("pyramid/segmentation/lod0.json"));
    assert_eq!(segmentation["wkw"]["largestSegmentId"], json!(9_007_199_254_740_997_u64));
    assert_eq!(segmentation["wkw"]["largestSegmentId_text"], "9007199254740997");
    let bare = json(mount.path("bare/color/lod0.json"));
    assert_eq!((&bare["wkw"]["voxel_size"], &bare["wkw"]["category"]), (&Value::Null, &json!("color")));
}

#[test]
fn headers_for_other_programs_have_voxel_sizes_and_channels() {
    let Some(mount) = Mount::of(test_data("wkw")) else { return };
    let nrrd = fs::read_to_string(mount.path("pyramid/color/lod1.nhdr")).unwrap();
    assert!(
        nrrd.contains("sizes: 21 17 21\n") && nrrd.contains("space directions: (22.48,0,0) (0,22.48,0) (0,0,28)\n")
    );
    // the first voxel is two and a half voxels of mag 2 from the first of the dataset, less half a voxel of mag 1
    assert!(nrrd.contains("space origin: (50.58,73.06,84)\n"), "{nrrd}");
    let rgb = fs::read_to_string(mount.path("pyramid/rgb/lod0.nhdr")).unwrap();
    assert!(rgb.contains("sizes: 3 13 9 5\n") && rgb.contains("kinds: RGB-color domain domain domain\n"), "{rgb}");
    assert!(rgb.contains("space directions: none (11.24,0,0)"));
    let flow = fs::read_to_string(mount.path("pyramid/flow/lod0.mhd")).unwrap();
    assert!(flow.contains("DimSize = 7 6 5\nElementNumberOfChannels = 2\n"), "{flow}");
}

/// The reads bypass the page cache, in which the kernel would merge reads of neighbouring rows.
#[test]
fn only_damaged_blocks_cannot_be_read() {
    let Some(mount) = Mount::with(test_data("wkw/damaged"), &["--direct-io"]) else { return };
    for (name, blocks) in json(test_data("wkw/expected.json"))["damaged"].as_object().unwrap() {
        let file = File::open(mount.path("damaged").join(name).join("lod0.raw")).unwrap();
        for (number, wanted) in blocks.as_array().unwrap().iter().enumerate() {
            let corner = [number / 4, number / 2 % 2, number % 2].map(|n| 8 * n as u64);
            let row = |n: u64| 256 * (corner[0] + n / 8) + 16 * (corner[1] + n % 8) + corner[2];
            let rows: Vec<_> = (0..64).map(|n| read_at(&file, row(n), 8)).collect();
            if let Some(wanted) = wanted.as_str() {
                let block: Vec<u8> = rows.into_iter().flat_map(Result::unwrap).collect();
                assert_eq!(crc(&block), wanted, "{name}: block {number}");
            } else {
                assert!(rows.iter().all(|row| row.as_ref().is_err_and(is_eio)), "{name}: block {number}");
            }
        }
    }
    let log = mount.log();
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!((lines("layer magic,"), lines("layer garbage,"), lines("layer table falls,")), (1, 1, 2), "{log}");
}

/// Returns the path of the first cube of the finest mag of the annotation.
fn first_cube(source: &TempDir) -> PathBuf {
    source.path().join("annotation/1/z0/y2/x1.wkw")
}

#[test]
fn a_replaced_cube_shows_its_new_content() {
    let source = source_with(&["annotation"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let raw = mount.path("annotation/data/lod0.raw");
    let (before, file) = (fs::read(&raw).unwrap(), File::open(&raw).unwrap());
    let old_inode = file.metadata().unwrap().ino();
    let cube = first_cube(&source);
    let other = fs::read(cube.with_file_name("x2.wkw")).unwrap();
    replace(&cube, other);
    let now = || fs::read(&raw).unwrap_or_default();
    assert!(comes_true(SOON, || now().len() == before.len() && now() != before), "the new content is not shown");
    // both halves are the same now
    let (row, after) = (32 * 4, now());
    assert!(after.chunks(row).all(|row| row[..64] == row[64..]));
    assert_ne!(fs::metadata(&raw).unwrap().ino(), old_inode);
    if let Err(error) = read_at(&file, 0, 64) {
        assert!(is_eio(&error), "{error}");
    }
    let mut parts = (0..before.len() as u64 / 64).map(|n| read_at(&file, 64 * n, 64).ok());
    let from = |n: usize| before[64 * n..64 * n + 64].to_vec();
    assert!((0..).zip(&mut parts).all(|(n, part)| part.is_none_or(|part| part == from(n))), "old and new are mixed");
}

#[test]
fn a_cube_that_is_added_is_noticed() {
    let source = source_with(&["annotation"]);
    let cube = first_cube(&source);
    let whole = source.path().join("cube");
    fs::rename(&cube, &whole).unwrap();
    describe(&source.path().join("annotation"));
    let Some(mount) = Mount::of(source.path()) else { return };
    let raw = mount.path("annotation/data/lod0.raw");
    let before = fs::read(&raw).unwrap();
    assert!(before.chunks(128).all(|row| row[..64] == [0; 64]), "a missing cube reads as zeros");
    fs::rename(&whole, &cube).unwrap();
    let wanted = wkw_expected("arrays").into_iter().find(|array| array["dataset"] == "annotation").unwrap();
    assert!(comes_true(SOON, || json!(crc(&fs::read(&raw).unwrap_or_default())) == wanted["crc32"]));
}

/// Gives the annotation a description, so that its bounding box does not depend on which cubes exist.
fn describe(annotation: &Path) {
    let layer = json!({"name": "data", "dataFormat": "wkw", "mags": [{"mag": 1, "path": "1"}],
        "boundingBox": {"topLeft": [16, 32, 0], "width": 32, "height": 16, "depth": 16}});
    let text = json!({"scale": [1, 1, 1], "dataLayers": [layer]}).to_string();
    fs::write(annotation.join("datasource-properties.json"), text).unwrap();
}

#[test]
fn a_new_description_is_a_new_dataset() {
    let source = source_with(&["annotation"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let described = || {
        let text = fs::read(mount.path("annotation/dataset.json")).unwrap_or_default();
        serde_json::from_slice::<Value>(&text).unwrap_or_default()
    };
    assert_eq!(described()["layers"][0]["lods"], 2);
    describe(&source.path().join("annotation"));
    assert!(comes_true(SOON, || described()["layers"][0]["lods"] == 1));
    fs::remove_file(source.path().join("annotation/datasource-properties.json")).unwrap();
    assert!(comes_true(SOON, || described()["layers"][0]["lods"] == 2));
}

#[test]
fn links_out_of_the_source_are_followed_only_on_request() {
    let (source, outside) = (tempfile::tempdir().unwrap(), source_with(&["pyramid"]));
    let dataset = source.path().join("linked");
    fs::create_dir(&dataset).unwrap();
    symlink(outside.path().join("pyramid/color"), dataset.join("color")).unwrap();
    let mut described = json(test_data("wkw/pyramid/datasource-properties.json"));
    let color = &mut described["dataLayers"][0];
    color["mags"] = json!([{"mag": 1}, {"mag": [2, 2, 1], "path": outside.path().join("pyramid/color/2-2-1")}]);
    let described = json!({"scale": [1, 1, 1], "dataLayers": [color]});
    fs::write(dataset.join("datasource-properties.json"), described.to_string()).unwrap();
    for (arguments, lods) in [(&[][..], 0), (&["--follow-links"], 2)] {
        let Some(mount) = Mount::with(source.path(), arguments) else { return };
        let layer = json(mount.path("linked/dataset.json"))["layers"][0].clone();
        assert_eq!(layer["lods"], lods, "{layer}");
        assert_eq!(layer["reason"].is_string(), lods == 0, "{layer}");
        assert_eq!(mount.path("linked/color/lod1.raw").exists(), lods > 0);
    }
}

#[test]
fn folders_are_recognised_by_their_contents() {
    let source = source_with(&["bare"]);
    copy_all(&test_data("wkw/bare"), &source.path().join("more/bare"));
    copy_all(&test_data("wkw/annotation"), &source.path().join("more/annotation"));
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.path("more")), set(["annotation", "bare"]), "one of them is a folder of layers");
    let layers =
        ["color", "segmentation"].iter().flat_map(|layer| ["", ".ome.zarr", ".zarr"].map(|of| format!("{layer}{of}")));
    let bare = layers.chain(["dataset.json".to_owned()]).collect();
    assert_eq!(names(mount.path("more/bare")), bare);
    assert_eq!(names(mount.path("more/annotation")), set(["data", "data.ome.zarr", "data.zarr", "dataset.json"]));
    drop(mount);
    // one dataset is shown as if its folder held nothing else
    let Some(mount) = Mount::of(source.path().join("bare")) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "bare"]));
    let shape = numbers(&json(mount.path("bare/color/lod0.json"))["shape"]);
    assert_eq!(shape, [8, 16, 24]);
}

#[test]
fn circular_links_are_not_followed_for_ever() {
    let source = source_with(&["bare"]);
    symlink(".", source.path().join("bare/loop")).unwrap();
    symlink("..", source.path().join("bare/color/up")).unwrap();
    symlink("x0.wkw", source.path().join("bare/color/1/z2/y0/x0.wkw")).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    assert!(names(mount.path("bare")).is_superset(&set(["color", "dataset.json", "segmentation"])));
    assert!(!names(mount.path("bare")).contains("loop"));
    let raw = mount.path("bare/color/lod0.raw");
    assert!(is_eio(&fs::read(raw).unwrap_err()), "a cube that links to itself is not a missing cube");
}
