//! Inode numbers.
//!
//! They are computed, not stored: the upper 24 bits are the number of a folder or dataset of the source (a changed
//! dataset has a new one), the lower 40 bits the index of a file in it. So looked-up names cost no memory.

use std::collections::HashSet;

use crate::catalog::{NodeId, OpenDataset};
use crate::format::FormatError;
use crate::source::Blocking;
use crate::view::{Entry, LayerRef, NAME_MAX, View, file_name, unique};

const INDEX_BITS: u32 = 40;

/// An inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ino(pub u64);

impl Ino {
    /// The root of the mount; the kernel wants it to be 1.
    pub(crate) const ROOT: Self = Self(1);
    /// `.volfs`, the folder about the state of the mount.
    pub(crate) const DOT_VOLFS: Self = Self(2);
    /// `.volfs/status.json`.
    pub(crate) const STATUS: Self = Self(3);
    /// `.volfs/log`.
    pub(crate) const LOG: Self = Self(4);
    /// `.volfs/status.json` as users other than the owner of the mount see it.
    pub(crate) const PUBLIC_STATUS: Self = Self(5);

    /// Returns the number of file `index` of a folder or dataset. Index 0 is the folder itself.
    pub(crate) fn new(node: NodeId, index: u64) -> Self {
        Self(u64::from(node) << INDEX_BITS | (index + 1) & ((1 << INDEX_BITS) - 1))
    }
    /// Returns the folder or dataset.
    pub(crate) fn node(self) -> NodeId {
        (self.0 >> INDEX_BITS) as NodeId
    }

    /// Returns the index of the file in its folder or dataset; for a number that was never assigned, one beyond all
    /// files.
    pub(crate) fn index(self) -> u64 {
        (self.0 & ((1 << INDEX_BITS) - 1)).wrapping_sub(1)
    }
}

/// The description of the dataset.
pub(crate) const DATASET_JSON: &str = "dataset.json";
/// The file with the reason why the dataset does not open.
pub(crate) const ERROR_TXT: &str = "error.txt";

/// A file or folder of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// The dataset's folder.
    Dataset,
    /// `dataset.json`.
    Description,
    /// `error.txt`.
    Error,
    /// The folder of a layer.
    Layer(usize),
    /// A node of a view.
    View {
        /// The layer.
        layer: usize,
        /// The index of the view among those of the tree.
        view: usize,
        /// The view's number for the node.
        node: u64,
    },
}

const DESCRIPTION: u64 = 1;
/// The index of `error.txt`.
pub(crate) const ERROR: u64 = 2;
const FIRST_LAYER: u64 = 3;

/// The indices of a dataset's files: a few for the dataset itself, then for each layer its folder and the nodes of its
/// views.
pub(crate) struct Tree {
    views: &'static [&'static dyn View],
    layers: Vec<LayerIndices>,
}

/// The indices of one layer.
struct LayerIndices {
    name: String,
    /// The folders of views beside the layer's folder: the view and the name.
    beside: Vec<(usize, String)>,
    /// The layer's folder.
    first: u64,
    /// The first index of each view, and one past the last index of the layer.
    views: Vec<u64>,
}

/// Returns the name of the folder of each layer.
pub(crate) fn layer_folders(open: &OpenDataset) -> Vec<String> {
    layer_names(open, &mut taken_names())
}

/// Returns the names in a dataset's folder that no layer can have.
fn taken_names() -> HashSet<String> {
    HashSet::from([DATASET_JSON.to_owned(), ERROR_TXT.to_owned()])
}

fn layer_names(open: &OpenDataset, taken: &mut HashSet<String>) -> Vec<String> {
    let layers = open.dataset.layers().iter();
    layers.map(|layer| unique(file_name(&layer.name, NAME_MAX), NAME_MAX, taken)).collect()
}

impl Tree {
    /// Creates the tree of a dataset. Each layer has the files of all `views`.
    pub(crate) fn new(open: &OpenDataset, views: &'static [&'static dyn View]) -> Self {
        let (mut next, mut taken) = (FIRST_LAYER, taken_names());
        let names = layer_names(open, &mut taken);
        let layers = names.into_iter().enumerate().map(|(layer, name)| {
            let first = next;
            next += 1;
            let (mut starts, mut beside) = (vec![next], Vec::new());
            for (number, view) in views.iter().enumerate() {
                let nodes = view.nodes(LayerRef { open, layer, views });
                if let (Some(suffix), 1..) = (view.beside_layer(), nodes) {
                    let most = NAME_MAX - suffix.len();
                    // the name of the layer's folder, if it leaves room for the suffix
                    let short = || file_name(&open.dataset.layers()[layer].name, most);
                    let folder = if name.len() <= most { name.clone() } else { short() } + suffix;
                    beside.push((number, unique(folder, NAME_MAX, &mut taken)));
                }
                next = next.saturating_add(nodes);
                starts.push(next);
            }
            LayerIndices { name, beside, first, views: starts }
        });
        Self { views, layers: layers.collect() }
    }

    /// Returns a layer of the dataset, with the views that its folder shows.
    pub(crate) fn layer<'a>(&self, open: &'a OpenDataset, layer: usize) -> LayerRef<'a> {
        LayerRef { open, layer, views: self.views }
    }

    /// Returns all views of the tree.
    pub(crate) fn views(&self) -> &'static [&'static dyn View] {
        self.views
    }

    /// Returns the view of an [`Item::View`].
    pub(crate) fn view(&self, view: usize) -> &'static dyn View {
        self.views[view]
    }

    /// Returns the file or folder with an index.
    pub(crate) fn item(&self, index: u64) -> Option<Item> {
        match index {
            0 => return Some(Item::Dataset),
            DESCRIPTION => return Some(Item::Description),
            ERROR => return Some(Item::Error),
            _ => {}
        }
        let layer = self.layers.partition_point(|indices| indices.first <= index).checked_sub(1)?;
        let indices = self.layers.get(layer)?;
        if index == indices.first {
            return Some(Item::Layer(layer));
        }
        let view = indices.views.partition_point(|first| *first <= index).checked_sub(1)?;
        (view < self.views.len()).then(|| Item::View { layer, view, node: index - indices.views[view] })
    }

    /// Returns the index of a file or folder.
    pub(crate) fn index(&self, item: Item) -> u64 {
        match item {
            Item::Dataset => 0,
            Item::Description => DESCRIPTION,
            Item::Error => ERROR,
            Item::Layer(layer) => self.layers.get(layer).map_or(u64::MAX, |indices| indices.first),
            Item::View { layer, view, node } => self
                .layers
                .get(layer)
                .and_then(|indices| indices.views.get(view))
                .map_or(u64::MAX, |first| first + node),
        }
    }

    /// Whether an item is a folder.
    pub(crate) fn is_folder(&self, open: &OpenDataset, item: Item) -> bool {
        match item {
            Item::Dataset | Item::Layer(_) => true,
            Item::Description | Item::Error => false,
            Item::View { layer, view, node } => self.view(view).is_folder(self.layer(open, layer), node),
        }
    }

    /// Returns the folder that contains an item.
    pub(crate) fn parent(&self, open: &OpenDataset, item: Item) -> Item {
        match item {
            Item::View { layer, view, node } => match self.view(view).parent(self.layer(open, layer), node) {
                Some(node) => Item::View { layer, view, node },
                None if self.view(view).beside_layer().is_some() => Item::Dataset,
                None => Item::Layer(layer),
            },
            _ => Item::Dataset,
        }
    }

    /// Returns the views with entries in the folder of a layer.
    fn in_layer_folder(&self) -> impl Iterator<Item = (usize, &'static dyn View)> + '_ {
        self.views.iter().copied().enumerate().filter(|(_, view)| view.beside_layer().is_none())
    }

    /// Returns whether the entries of a folder [are streamed](View::is_streamed).
    pub(crate) fn is_streamed(&self, open: &OpenDataset, folder: Item) -> bool {
        match folder {
            Item::View { layer, view, node } => self.view(view).is_streamed(self.layer(open, layer), node),
            _ => false,
        }
    }

    /// Passes the entries of a folder that [is streamed](View::is_streamed) to `add`, from position `from` on and until
    /// it returns false: the item, its name, whether it is a folder, and the position of the next entry.
    pub(crate) fn stream(
        &self,
        open: &OpenDataset,
        folder: Item,
        from: u64,
        add: &mut dyn FnMut(Item, String, bool, u64) -> bool,
    ) {
        let Item::View { layer, view, node } = folder else { return };
        self.view(view).stream(self.layer(open, layer), node, from, &mut |entry, next| {
            add(Item::View { layer, view, node: entry.node }, entry.name, entry.folder, next)
        });
    }

    /// Finds `name` in a folder.
    pub(crate) fn find(
        &self,
        open: &OpenDataset,
        folder: Item,
        name: &str,
        blocking: Blocking,
    ) -> Result<Option<Item>, FormatError> {
        let Item::View { layer, view, node } = folder else { return Ok(self.find_in_memory(open, folder, name)) };
        let found = self.view(view).find_in_source(self.layer(open, layer), Some(node), name, blocking)?;
        Ok(found.map(|entry| Item::View { layer, view, node: entry.node }))
    }

    /// Finds `name` in the folder of the dataset or of a layer.
    fn find_in_memory(&self, open: &OpenDataset, folder: Item, name: &str) -> Option<Item> {
        match folder {
            Item::Dataset if name == DATASET_JSON => Some(Item::Description),
            Item::Dataset => self.layers.iter().enumerate().find_map(|(layer, indices)| {
                let is_beside = |(_, folder): &&(usize, String)| folder == name;
                let beside = || indices.beside.iter().find(is_beside);
                let is_layer = (indices.name == name).then_some(Item::Layer(layer));
                is_layer.or_else(|| beside().map(|(view, _)| Item::View { layer, view: *view, node: 0 }))
            }),
            Item::Layer(layer) => self.in_layer_folder().find_map(|(view, about)| {
                let entry = about.find(self.layer(open, layer), None, name)?;
                Some(Item::View { layer, view, node: entry.node })
            }),
            Item::View { .. } | Item::Description | Item::Error => None,
        }
    }

    /// Passes everything in a folder to `add`, in order: the item, its name, and whether it is a folder.
    pub(crate) fn list(&self, open: &OpenDataset, folder: Item, add: &mut dyn FnMut(Item, String, bool)) {
        let from_view = |layer, view: usize, node, add: &mut dyn FnMut(Item, String, bool)| {
            self.view(view).list(self.layer(open, layer), node, &mut |Entry { node, name, folder }| {
                add(Item::View { layer, view, node }, name, folder);
            });
        };
        match folder {
            Item::Dataset => {
                add(Item::Description, DATASET_JSON.to_owned(), false);
                for (layer, indices) in self.layers.iter().enumerate() {
                    add(Item::Layer(layer), indices.name.clone(), true);
                    for (view, name) in &indices.beside {
                        add(Item::View { layer, view: *view, node: 0 }, name.clone(), true);
                    }
                }
            }
            Item::Layer(layer) => self.in_layer_folder().for_each(|(view, _)| from_view(layer, view, None, add)),
            Item::View { layer, view, node } => from_view(layer, view, Some(node), add),
            Item::Description | Item::Error => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn numbers_are_split_into_node_and_index() {
        assert_eq!(Ino::new(0, 0), Ino::ROOT);
        let ino = Ino::new(70_000, 123_456_789_012);
        assert_eq!((ino.node(), ino.index()), (70_000, 123_456_789_012));
        assert_eq!(Ino(0).index(), u64::MAX);
    }

    #[test]
    fn the_files_of_dot_volfs_belong_to_the_root() {
        let of_root = [Ino::ROOT, Ino::DOT_VOLFS, Ino::STATUS, Ino::LOG, Ino::PUBLIC_STATUS];
        assert_eq!(of_root, [0, 1, 2, 3, 4].map(|index| Ino::new(catalog::ROOT, index)));
    }
}
