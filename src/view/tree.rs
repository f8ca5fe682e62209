//! The files and folders of a dataset, as its views declare them: their numbers, names and places.
//!
//! They are numbered in the order in which they are declared, each folder before what is in it; inode numbers are
//! computed from these numbers.

use std::collections::HashSet;
use std::iter;

use super::entry::{Dir, Entry, File, Grid, can_be_numbered};
use super::json;
use super::names::{NAME_MAX, file_name, unique};
use super::segments::{Content, ShownArray};
use super::{LayerRef, View};
use crate::catalog::OpenDataset;
use crate::format::FormatError;
use crate::memory::claim;
use crate::source::{Blocking, SourceError};

/// The most bytes that a description takes while it is written.
const DESCRIPTION_BYTES: usize = 48 << 20;

/// The description of the dataset.
const DATASET_JSON: &str = "dataset.json";
/// The file with the reason why the dataset does not open.
pub(crate) const ERROR_TXT: &str = "error.txt";

/// A file or folder of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its place in [`Tree::nodes`].
    node: usize,
    /// In a grid: how many numbers its path has, and the number of these numbers in C order.
    depth: usize,
    number: u64,
}

impl Item {
    /// The dataset's folder.
    pub(crate) const DATASET: Self = Self::at(0);
    /// `dataset.json`.
    pub(crate) const DESCRIPTION: Self = Self::at(1);
    /// `error.txt`, of a dataset that does not open.
    pub(crate) const ERROR: Self = Self::at(2);
    /// Its number.
    pub(crate) const ERROR_NUMBER: u64 = 2;

    const fn at(node: usize) -> Self {
        Self { node, depth: 0, number: 0 }
    }
}

/// All files and folders of a dataset.
pub(crate) struct Tree {
    views: &'static [&'static dyn View],
    /// In the order of their numbers. The entries of a folder follow it.
    nodes: Vec<Node>,
}

/// A file, a folder, or a grid.
struct Node {
    /// Its number, or the first of a grid.
    first: u64,
    name: String,
    /// The folder that it is in.
    parent: usize,
    /// One past the last node in it.
    end: usize,
    layer: Option<usize>,
    kind: Kind,
}

enum Kind {
    Dir,
    /// `dataset.json`
    Description,
    /// `error.txt`
    Error,
    File(File),
    Grid(Grid),
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
        let mut tree = Self { views, nodes: Vec::new() };
        tree.add(String::new(), 0, None, Kind::Dir);
        tree.add(DATASET_JSON.to_owned(), 0, None, Kind::Description);
        tree.add(ERROR_TXT.to_owned(), 0, None, Kind::Error);
        let mut taken = taken_names();
        for (layer, name) in layer_names(open, &mut taken).into_iter().enumerate() {
            let shown = LayerRef { open, layer, views };
            let entries = |view: &&dyn View| Some(view.entries(shown)).filter(|entries| can_be_numbered(entries));
            let in_layer = views.iter().filter(|view| view.beside_layer().is_none()).filter_map(entries).flatten();
            let dir = Dir { name: name.clone(), entries: in_layer.collect() };
            tree.add_entry(dir.into(), 0, layer);
            for view in views.iter() {
                let Some(suffix) = view.beside_layer() else { continue };
                let Some(entries) = entries(view).filter(|entries| !entries.is_empty()) else { continue };
                let most = NAME_MAX - suffix.len();
                // the name of the layer's folder, if it leaves room for the suffix
                let short = || file_name(shown.name(), most);
                let folder = if name.len() <= most { name.clone() } else { short() } + suffix;
                tree.add_entry(Dir { name: unique(folder, NAME_MAX, &mut taken), entries }.into(), 0, layer);
            }
        }
        tree.nodes[0].end = tree.nodes.len();
        tree
    }

    fn add_entry(&mut self, entry: Entry, parent: usize, layer: usize) {
        match entry {
            Entry::File(mut file) => {
                let name = std::mem::take(&mut file.name);
                self.add(name, parent, Some(layer), Kind::File(file));
            }
            Entry::Grid(mut grid) => {
                let name = std::mem::take(&mut grid.name);
                self.add(name, parent, Some(layer), Kind::Grid(grid));
            }
            Entry::Dir(dir) => {
                let at = self.nodes.len();
                self.add(dir.name, parent, Some(layer), Kind::Dir);
                for entry in dir.entries {
                    self.add_entry(entry, at, layer);
                }
                self.nodes[at].end = self.nodes.len();
            }
        }
    }

    fn add(&mut self, name: String, parent: usize, layer: Option<usize>, kind: Kind) {
        let first = self.nodes.last().map_or(0, |last| {
            let nodes = if let Kind::Grid(grid) = &last.kind { grid.nodes().unwrap_or(u64::MAX) } else { 1 };
            last.first.saturating_add(nodes)
        });
        let end = self.nodes.len() + 1;
        self.nodes.push(Node { first, name, parent, end, layer, kind });
    }

    /// Returns whether the other tree has the same files and folders under the same numbers.
    pub(crate) fn has_files_of(&self, other: &Self) -> bool {
        let files = |tree: &Self| tree.nodes.iter().map(|node| (node.first, node.name.clone(), node.parent)).collect();
        let (files, others): (Vec<_>, Vec<_>) = (files(self), files(other));
        files == others
    }

    fn node(&self, item: Item) -> &Node {
        &self.nodes[item.node]
    }

    /// Returns the layer that a file or folder belongs to.
    pub(crate) fn layer(&self, item: Item) -> Option<usize> {
        self.node(item).layer
    }

    /// Returns what a view is asked about, of the layer that a node belongs to.
    fn layer_of<'a>(&self, open: &'a OpenDataset, node: &Node) -> LayerRef<'a> {
        LayerRef { open, layer: node.layer.unwrap_or(0), views: self.views }
    }

    /// Returns the file or folder with a number.
    pub(crate) fn item(&self, number: u64) -> Option<Item> {
        let at = self.nodes.partition_point(|node| node.first <= number).checked_sub(1)?;
        let node = &self.nodes[at];
        let mut number = number - node.first;
        let Kind::Grid(grid) = &node.kind else { return (number == 0).then_some(Item::at(at)) };
        for depth in 0..=grid.count.len() {
            let here = grid.at_depth(depth)?;
            if number < here {
                return Some(Item { node: at, depth, number });
            }
            number -= here;
        }
        None
    }

    /// Returns the number of a file or folder.
    pub(crate) fn number(&self, item: Item) -> u64 {
        let before = match &self.node(item).kind {
            Kind::Grid(grid) => grid.before(item.depth).unwrap_or(u64::MAX),
            _ => 0,
        };
        self.node(item).first.saturating_add(before).saturating_add(item.number)
    }

    /// Returns whether an item is a folder.
    pub(crate) fn is_folder(&self, item: Item) -> bool {
        match &self.node(item).kind {
            Kind::Dir => true,
            Kind::Grid(grid) => item.depth < grid.count.len(),
            Kind::Description | Kind::Error | Kind::File(_) => false,
        }
    }

    /// Returns the folder that contains an item.
    pub(crate) fn parent(&self, item: Item) -> Item {
        match (&self.node(item).kind, item.depth.checked_sub(1)) {
            (Kind::Grid(grid), Some(depth)) => Item { depth, number: item.number / grid.count[depth].max(1), ..item },
            _ => Item::at(self.node(item).parent),
        }
    }

    /// Returns the name of an item in its folder.
    pub(crate) fn name(&self, item: Item) -> String {
        match (&self.node(item).kind, item.depth.checked_sub(1)) {
            (Kind::Grid(grid), Some(depth)) => {
                let suffix = if item.depth == grid.count.len() { grid.suffix } else { "" };
                format!("{}{suffix}", item.number % grid.count[depth].max(1))
            }
            _ => self.node(item).name.clone(),
        }
    }

    /// Returns whether a folder may have so many entries that they are not collected when it is opened, or has to look
    /// at the source to know which it has: then [`Tree::list`] may wait.
    pub(crate) fn is_streamed(&self, folder: Item) -> bool {
        matches!(self.node(folder).kind, Kind::Grid(_))
    }

    /// Passes the entries of a folder to `add`, from position `from` on and until it returns false: the item, and the
    /// position of the next entry.
    pub(crate) fn list(&self, open: &OpenDataset, folder: Item, from: u64, add: &mut dyn FnMut(Item, u64) -> bool) {
        if let Kind::Grid(grid) = &self.node(folder).kind {
            let Some(along) = grid.count.get(folder.depth) else { return };
            for at in from..*along {
                let item = Item { depth: folder.depth + 1, number: folder.number * along + at, ..folder };
                // one that cannot be looked for is there: reading it says what is wrong
                let is_there = self.is_there(open, item, Blocking::Yes).unwrap_or(true);
                if is_there && !add(item, at + 1) {
                    return;
                }
            }
            return;
        }
        let next = |item: &Item| self.nodes.get(item.node).map(|node| Item::at(node.end));
        let first = Item::at(folder.node + 1);
        let entries = iter::successors(Some(first), next).take_while(|item| item.node < self.node(folder).end);
        for (item, position) in entries.zip(0..).skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            if self.is_there(open, item, Blocking::Yes).unwrap_or(true) && !add(item, position + 1) {
                return;
            }
        }
    }

    /// Finds `name` in a folder. Fails with [`SourceError::WouldBlock`] if it has to look at the source and may not wait.
    pub(crate) fn find(
        &self,
        open: &OpenDataset,
        folder: Item,
        name: &str,
        blocking: Blocking,
    ) -> Result<Option<Item>, FormatError> {
        let found = match &self.node(folder).kind {
            Kind::Grid(grid) => find_in_grid(grid, folder, name),
            _ => {
                let (mut at, end) = (folder.node + 1, self.node(folder).end);
                while at < end && self.nodes[at].name != name {
                    at = self.nodes[at].end;
                }
                (at < end).then_some(Item::at(at))
            }
        };
        let Some(found) = found else { return Ok(None) };
        Ok(self.is_there(open, found, blocking)?.then_some(found))
    }

    fn is_there(&self, open: &OpenDataset, item: Item, blocking: Blocking) -> Result<bool, FormatError> {
        let node = self.node(item);
        match &node.kind {
            Kind::Error => Ok(false),
            Kind::File(File { is_there: Some(is_there), .. }) => Ok(is_there(self.layer_of(open, node))),
            Kind::Grid(Grid { count, is_absent: Some(is_absent), .. }) if item.depth == count.len() => {
                Ok(!is_absent(self.layer_of(open, node), &count.index_of(item.number), blocking)?)
            }
            _ => Ok(true),
        }
    }

    /// Returns the content of a file; `None` for a folder. Fails with [`SourceError::WouldBlock`] if it has to wait and
    /// may not.
    pub(crate) fn content(
        &self,
        open: &OpenDataset,
        item: Item,
        blocking: Blocking,
    ) -> Result<Option<Content>, FormatError> {
        let (node, may_not_wait) = (self.node(item), blocking == Blocking::No);
        match &node.kind {
            Kind::Description | Kind::File(File { may_block: true, .. }) if may_not_wait => {
                Err(SourceError::WouldBlock.into())
            }
            Kind::Description => {
                let _claim = claim(DESCRIPTION_BYTES)?;
                Ok(Some(json::text(&json::dataset(open, self.views)?).into()))
            }
            Kind::File(file) => (file.content)(self.layer_of(open, node)).map(Some),
            Kind::Grid(grid) if item.depth == grid.count.len() => {
                (grid.content)(self.layer_of(open, node), &grid.count.index_of(item.number)).map(Some)
            }
            Kind::Grid(_) | Kind::Dir | Kind::Error => Ok(None),
        }
    }

    /// Returns the array that a file shows, if it shows one. Such files have extended attributes that describe it.
    pub(crate) fn shown_array(&self, open: &OpenDataset, item: Item) -> Option<ShownArray> {
        match self.content(open, item, Blocking::No) {
            Ok(Some(Content::Array(file))) => Some(file.shown()),
            _ => None,
        }
    }
}

/// Finds a name in a folder of a grid.
fn find_in_grid(grid: &Grid, folder: Item, name: &str) -> Option<Item> {
    let along = *grid.count.get(folder.depth)?;
    let depth = folder.depth + 1;
    let digits = if depth == grid.count.len() { name.strip_suffix(grid.suffix)? } else { name };
    let is_exact = digits.len() == 1 || !digits.starts_with(['0', '+']);
    let at: u64 = digits.parse().ok().filter(|at| is_exact && *at < along)?;
    Some(Item { depth, number: folder.number * along + at, ..folder })
}
