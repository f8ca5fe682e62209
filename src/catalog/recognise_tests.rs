use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::catalog::{Catalog, ROOT};
use crate::format::vds::Vds;
use crate::format::wkw::Wkw;
use crate::format::zgy::Zgy;
use crate::format::{OpenWith, registry};
use crate::source::{IndexCache, LocalTree};

/// A format for tests that is not in the registry.
struct Brk;

impl Format for Brk {
    fn name(&self) -> &'static str {
        "brk"
    }

    fn extension(&self) -> Option<&'static str> {
        Some("brk")
    }

    fn is_file(&self, head: &[u8]) -> bool {
        head.starts_with(b"BRK!")
    }

    fn described_folder(&self, folder: &FolderProbe) -> Option<bool> {
        folder.is_file("bricks.txt").then_some(true)
    }
}

fn with_brk() -> Registry {
    static FORMATS: [&dyn Format; 4] = [&Zgy, &Wkw, &Vds, &Brk];
    Registry::new(&FORMATS)
}

/// Creates a mag with a header.
fn mag(root: &Path, path: &str) {
    fs::create_dir_all(root.join(path)).unwrap();
    fs::write(root.join(path).join("header.wkw"), b"WKW\x01\x13\x02\x01\x01\0\0\0\0\0\0\0\0").unwrap();
}

fn describe(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let layer = json!({"name": "a", "dataFormat": "wkw", "mags": []});
    let text = json!({"scale": [1, 1, 1], "dataLayers": [layer]}).to_string();
    fs::write(folder.join("datasource-properties.json"), text).unwrap();
}

fn format_of(formats: Registry, path: &Path) -> Option<&'static str> {
    Recogniser::new(formats).format_of(path).unwrap().map(Format::name)
}

/// Returns the names and kinds that a catalog shows at its top.
fn shown(formats: Registry, source: &Path) -> Vec<(String, NodeKind)> {
    let with = OpenWith::new(IndexCache::new(1 << 20));
    let tree = LocalTree::below(source, false, Arc::default());
    let catalog = Catalog::new(formats, tree, with, Arc::default()).unwrap();
    let nodes = catalog.list(&catalog.node(ROOT).unwrap()).unwrap();
    nodes.iter().map(|node| (node.name.to_str().unwrap().to_owned(), node.kind)).collect()
}

#[test]
fn a_file_of_any_other_format_beside_layers_is_shown_and_they_are_datasets_of_their_own() {
    let files: [(&str, &[u8]); 9] = [
        ("north.brk", b"BRK! and more"),
        ("promised.BRK", b""),
        ("by content", b"BRK!"),
        ("north.ZGY", b""),
        ("south.VDS", b""),
        ("north", b"VBS\0\x03\0\0\0"),
        ("old.bin", b"VCS\0"),
        ("south", b"HueDataStore\0\0\0\0"),
        ("Åsgård 3D.zgy", b""),
    ];
    for (name, content) in files {
        let root = tempfile::tempdir().unwrap();
        mag(root.path(), "in/color/1");
        let folder = root.path().join("in");
        assert_eq!(format_of(with_brk(), &folder), Some("wkw"));
        fs::write(folder.join(name), content).unwrap();
        assert_eq!(format_of(with_brk(), &folder), None, "{name}");
        assert_eq!(shown(with_brk(), root.path()), [("in".to_owned(), NodeKind::Folder)], "{name}");
        let mut both = [("color".to_owned(), NodeKind::Dataset), (name.to_owned(), NodeKind::Dataset)];
        both.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(shown(with_brk(), &folder), both, "{name}");
    }
}

#[test]
fn files_of_no_format_beside_layers_are_part_of_the_dataset() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "color/1");
    fs::write(root.path().join("notes.txt"), b"by hand").unwrap();
    fs::write(root.path().join("north.brk"), b"BRK!").unwrap();
    symlink("nowhere", root.path().join("dangling")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(root.path().join("pipe")).status();
    assert!(made.is_ok());
    assert_eq!(format_of(registry(), root.path()), Some("wkw"), "without the format of the file");
    assert_eq!(format_of(with_brk(), root.path()), None);
    fs::rename(root.path().join("north.brk"), root.path().join("color/north")).unwrap();
    assert_eq!(format_of(with_brk(), root.path()), Some("wkw"));
    symlink("color/north", root.path().join("link")).unwrap();
    assert_eq!(format_of(with_brk(), root.path()), None, "a link is followed");
}

#[test]
fn folders_of_mags_and_of_layers_are_datasets() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for path in ["annotation/1", "annotation/2-2-1", "bare/color/1", "bare/seg/4-4-1", "odd/one/01", "odd/two/1-1"] {
        mag(root.path(), path);
    }
    fs::create_dir_all(at("bare/logs")).unwrap();
    fs::create_dir_all(at("empty/1")).unwrap();
    let is_dataset = |name: &str| format_of(registry(), &at(name)) == Some("wkw");
    assert!(is_dataset("annotation") && is_dataset("bare"));
    // a layer is a folder of mags, too; a mag, and a folder above a dataset, are not datasets
    assert!(is_dataset("bare/color"));
    for name in ["bare/color/1", "odd", "odd/one", "empty", ""] {
        assert!(!is_dataset(name), "{name}");
    }
}

#[test]
fn a_folder_with_other_datasets_is_not_one_itself() {
    let others: [fn(&Path); 7] = [
        |root| describe(&root.join("other")),
        |root| mag(root, "other/color/1"),
        |root| fs::write(root.join("north.ZGY"), b"").unwrap(),
        |root| fs::write(root.join("south.vds"), b"").unwrap(),
        |root| (0..300).for_each(|n| fs::create_dir(root.join(n.to_string() + "x")).unwrap()),
        |root| {
            fs::create_dir(root.join("bricks")).unwrap();
            fs::write(root.join("bricks/bricks.txt"), b"").unwrap();
        },
        |root| {
            fs::create_dir(root.join("cloud")).unwrap();
            fs::write(root.join("cloud/VolumeDataLayout"), b"").unwrap();
            fs::write(root.join("cloud/LayerStatus"), b"").unwrap();
        },
    ];
    for (n, add) in others.into_iter().enumerate() {
        let root = tempfile::tempdir().unwrap();
        mag(root.path(), "color/1");
        add(root.path());
        assert_eq!(format_of(with_brk(), root.path()), None, "{n}");
    }
}

#[test]
fn a_description_outweighs_the_folders() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "color/1");
    mag(root.path(), "other/color/1");
    assert_eq!(format_of(registry(), root.path()), None);
    describe(root.path());
    assert_eq!(format_of(registry(), root.path()), Some("wkw"));
    let zarr = json!({"dataLayers": [{"name": "a", "dataFormat": "zarr"}]}).to_string();
    fs::write(root.path().join("datasource-properties.json"), zarr).unwrap();
    fs::remove_dir_all(root.path().join("other")).unwrap();
    assert_eq!(format_of(registry(), root.path()), None, "a description of other data");
    fs::write(root.path().join("bricks.txt"), b"").unwrap();
    assert_eq!(format_of(with_brk(), root.path()), Some("brk"));
}
