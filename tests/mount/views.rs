//! The files in the folder of a layer.

use std::collections::BTreeSet;

use crate::support::{Mount, json, names, set, source_with};

/// States the names literally, so that the registry of views loses none of them.
#[test]
fn a_dataset_is_a_folder_with_its_views() {
    let source = source_with(&["v3_int16.zgy", "v3_float32.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "v3_float32.zgy", "v3_int16.zgy"]));
    assert_eq!(names(mount.path(".volfs")), set(["log", "status.json"]));
    assert_eq!(names(mount.path("v3_int16.zgy")), set(["data", "data.ome.zarr", "dataset.json"]));
    let views = |lods: usize, suffixes: &[&str]| -> BTreeSet<String> {
        (0..lods).flat_map(|lod| suffixes.iter().map(move |s| format!("lod{lod}.{s}"))).collect()
    };
    let plain = ["raw", "json", "npy", "nhdr", "mhd", "hdr", "by-crossline.npy", "by-sample.npy", "slices"];
    let of_layer = set(["lod0.sgy", "preview.png", "tiff"]);
    assert_eq!(names(mount.path("v3_float32.zgy/data")), &views(4, &plain) | &of_layer);
    let scaled = [&plain[..], &["float32.npy"]].concat();
    assert_eq!(names(mount.path("v3_int16.zgy/data")), &views(3, &scaled) | &of_layer);
    assert_eq!(names(mount.path("v3_int16.zgy/data/lod2.slices")), set(["inline", "crossline", "sample"]));
}

#[test]
fn a_mount_shows_the_views_that_are_chosen() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::with(source.path(), &["--views", "tiff,mhd"]) else { return };
    let shown = |lod: usize| ["raw", "json", "mhd"].map(|suffix| format!("lod{lod}.{suffix}"));
    let expected = (0..3).flat_map(shown).chain(["tiff".to_owned()]).collect();
    assert_eq!(names(mount.path("v3_int16.zgy/data")), expected);
    assert_eq!(mount.status()["options"]["views"], "raw,mhd,tiff");
    let about = json(mount.data("v3_int16.zgy", "lod1.json"));
    let files = ["lod1.raw", "lod1.json", "lod1.mhd", "tiff/lod1.tif"];
    assert_eq!(about["files"], serde_json::json!(files));
    assert!(!mount.data("v3_int16.zgy", "lod0.npy").exists());
}
