//! The files in the folder of a layer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use volfs::view::file_names::{NAME_MAX, file_name};

use crate::support::{Mount, fixtures, folders_beside_layers, json, names, set, source_with, test_data, views_of};

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
    let plain =
        ["raw", "json", "npy", "nhdr", "mhd", "hdr", "zarr.json", "by-crossline.npy", "by-sample.npy", "slices"];
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

/// Returns the paths of all files below a folder.
fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            found.insert(name);
        }
    }
    found
}

/// Checks that each layer's folder has exactly the files that the registry of views names.
fn check_dataset(source: &Path, shown: &Path) {
    let layers: BTreeMap<_, _> =
        views_of(source).into_iter().map(|(name, views)| (file_name(&name, NAME_MAX), views)).collect();
    let mut expected = folders_beside_layers(source);
    expected.extend(layers.keys().cloned().chain(["dataset.json".to_owned()]));
    assert_eq!(names(shown), expected, "{}", shown.display());
    for (layer, views) in layers {
        assert!(!views.is_empty());
        assert_eq!(files_below(&shown.join(&layer)), views, "{} {layer}", shown.display());
    }
}

#[test]
fn every_layer_folder_has_the_files_of_the_registry() {
    let zgy = fixtures().into_iter().map(|fixture| fixture.name).collect();
    let vds = set(["two.vds", "tiles.vds", "four.vds", "metadata.vds", "no-value.vds", "pages"]);
    let wkw = set(["annotation", "bare", "damaged", "old", "pyramid", "types"]);
    for (format, datasets) in [("zgy", zgy), ("vds", vds), ("wkw", wkw)] {
        let Some(mount) = Mount::of(test_data(format)) else { return };
        for dataset in datasets {
            check_dataset(&test_data(format).join(&dataset), &mount.path(&dataset));
        }
    }
}
