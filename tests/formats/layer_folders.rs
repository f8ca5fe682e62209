//! The files of a layer's folder are those that the registry of views names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::file_system::FileSystem;
use crate::catalog::{OpenDataset, open_dataset};
use crate::test_support::{fixtures, set, test_data};
use crate::view::{LayerRef, View, registry};
use crate::view::{NAME_MAX, file_name};

/// Returns the files of the views in the folder of one layer; those in a view's own folders as `FOLDER/FILE`.
fn names_of(open: &OpenDataset, layer: usize) -> BTreeSet<String> {
    let layer = LayerRef { open, layer, views: registry() };
    let mut names = BTreeSet::new();
    for view in registry().iter().filter(|view| view.beside_layer().is_none()) {
        let mut folders = vec![(None, String::new())];
        while let Some((folder, path)) = folders.pop() {
            view.list(layer, folder, &mut |entry| {
                let path = format!("{path}{}", entry.name);
                if entry.folder {
                    folders.push((Some(entry.node), format!("{path}/")));
                } else {
                    assert!(names.insert(path.clone()), "two views have {path}");
                }
            });
        }
    }
    names
}

fn opened(dataset: &Path) -> OpenDataset {
    open_dataset(crate::format::registry(), dataset, None)
        .unwrap_or_else(|error| panic!("{}: {error}", dataset.display()))
}

/// Returns the names of the folders of views beside those of the layers of a dataset.
fn folders_beside_layers(dataset: &Path) -> BTreeSet<String> {
    let open = opened(dataset);
    let layers = (0..open.dataset.layers().len()).map(|layer| LayerRef { open: &open, layer, views: registry() });
    let folder = |layer: LayerRef<'_>, view: &&dyn View| {
        let suffix = view.beside_layer().filter(|_| view.nodes(layer) > 0)?;
        Some(file_name(layer.name(), NAME_MAX - suffix.len()) + suffix)
    };
    layers.flat_map(|layer| registry().iter().filter_map(move |view| folder(layer, view))).collect()
}

/// Returns the files of each layer of a dataset, by the layer's name.
fn views_of(dataset: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let open = opened(dataset);
    let layers = open.dataset.layers().iter().enumerate();
    layers.map(|(number, layer)| (layer.name.clone(), names_of(&open, number))).collect()
}

/// Checks that each layer's folder has exactly the files that the registry of views names.
fn check_dataset(source: &Path, shown: &FileSystem, dataset: &str) {
    let layers: BTreeMap<_, _> =
        views_of(source).into_iter().map(|(name, views)| (file_name(&name, NAME_MAX), views)).collect();
    let mut expected = folders_beside_layers(source);
    expected.extend(layers.keys().cloned().chain(["dataset.json".to_owned()]));
    assert_eq!(set(shown.names(dataset)), expected, "{dataset}");
    for (layer, views) in layers {
        assert!(!views.is_empty());
        assert_eq!(set(shown.files_below(&format!("{dataset}/{layer}"))), views, "{dataset} {layer}");
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
