//! The files of a layer's folder are those that the registry of views names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::file_system::FileSystem;
use crate::catalog::{OpenDataset, open_dataset};
use crate::test_support::{fixtures, set, test_data};
use crate::view::{Item, Tree, registry};

/// Returns the files below the folders in the folder of a dataset, by the names of these folders.
fn files_of(open: &OpenDataset) -> BTreeMap<String, BTreeSet<String>> {
    let tree = Tree::new(open, registry());
    let list = |folder| {
        let mut items = Vec::new();
        tree.list(open, folder, 0, &mut |item, _| {
            items.push(item);
            true
        });
        items
    };
    let mut files = BTreeMap::new();
    for top in list(Item::DATASET).into_iter().filter(|item| tree.is_folder(*item)) {
        let (mut names, mut folders) = (BTreeSet::new(), vec![(top, String::new())]);
        while let Some((folder, path)) = folders.pop() {
            for item in list(folder) {
                let path = format!("{path}{}", tree.name(item));
                if tree.is_folder(item) {
                    folders.push((item, path + "/"));
                } else {
                    assert!(names.insert(path.clone()), "two views have {path}");
                }
            }
        }
        files.insert(tree.name(top), names);
    }
    files
}

fn opened(dataset: &Path) -> OpenDataset {
    open_dataset(crate::format::registry(), dataset, None)
        .unwrap_or_else(|error| panic!("{}: {error}", dataset.display()))
}

/// Checks that the folders of a dataset have exactly the files that the registry of views names.
fn check_dataset(source: &Path, shown: &FileSystem, dataset: &str) {
    let folders = files_of(&opened(source));
    let mut expected: BTreeSet<String> = folders.keys().cloned().collect();
    expected.insert("dataset.json".to_owned());
    // surveys alone have it
    expected.extend(shown.names(dataset).into_iter().filter(|name| name == "outline.geojson"));
    assert_eq!(set(shown.names(dataset)), expected, "{dataset}");
    for (folder, files) in folders {
        assert!(!files.is_empty());
        assert_eq!(set(shown.files_below(&format!("{dataset}/{folder}"))), files, "{dataset} {folder}");
    }
}

#[test]
fn every_layer_folder_has_the_files_of_the_registry() {
    let zgy = fixtures().into_iter().map(|fixture| fixture.name).collect();
    let vds = set(["two.vds", "tiles.vds", "four.vds", "metadata.vds", "no-value.vds", "pages"]);
    let wkw = set(["annotation", "bare", "damaged", "old", "pyramid", "types"]);
    for (format, datasets) in [("zgy", zgy), ("vds", vds), ("wkw", wkw)] {
        let shown = FileSystem::over(&test_data(format));
        for dataset in datasets {
            check_dataset(&test_data(format).join(&dataset), &shown, &dataset);
        }
    }
}
