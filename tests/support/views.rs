//! The files of a layer's folder, as the registry of views names them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use volfs::catalog::{OpenDataset, open_dataset};
use volfs::view::file_names::{NAME_MAX, file_name};
use volfs::view::{LayerRef, View, registry};

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
    open_dataset(volfs::format::registry(), dataset, None)
        .unwrap_or_else(|error| panic!("{}: {error}", dataset.display()))
}

/// Returns the names of the folders of views beside those of the layers of a dataset.
pub fn folders_beside_layers(dataset: &Path) -> BTreeSet<String> {
    let open = opened(dataset);
    let layers = (0..open.dataset.layers().len()).map(|layer| LayerRef { open: &open, layer, views: registry() });
    let folder = |layer: LayerRef<'_>, view: &&dyn View| {
        let suffix = view.beside_layer().filter(|_| view.nodes(layer) > 0)?;
        Some(file_name(layer.name(), NAME_MAX - suffix.len()) + suffix)
    };
    layers.flat_map(|layer| registry().iter().filter_map(move |view| folder(layer, view))).collect()
}

/// Returns the files of each layer of a dataset, by the layer's name.
pub fn views_of(dataset: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let open = opened(dataset);
    let layers = open.dataset.layers().iter().enumerate();
    layers.map(|(number, layer)| (layer.name.clone(), names_of(&open, number))).collect()
}
