//! The files and folders of a dataset, as its views declare them: their numbers, names and places.
//!
//! They are numbered in the order in which they are declared, each folder before what is in it; inode numbers are
//! computed from these numbers. What is in the folders of a layer is counted, and declared again when it is first asked
//! for: a dataset may have thousands of layers, of which most are only listed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::iter;
use std::sync::OnceLock;

use super::entry::{Entry, File, Grid, Kind, numbered};
use super::json;
use super::names::{NAME_MAX, axis_names, file_name, find_name, unique};
use super::outline::outline;
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
/// The outline of a survey with world coordinates.
const OUTLINE: &str = "outline.geojson";
/// The file with the reason why the dataset does not open.
pub(crate) const ERROR_TXT: &str = "error.txt";
/// The files of a dataset, from which on no more folders of views are shown: inode numbers have 40 bits for them.
const MOST_NUMBERS: u64 = 1 << 39;
/// The name by which the first layer is found where no layer is called so.
const FIRST_LAYER: &str = "data";

/// A file or folder of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its place among all nodes of the tree.
    node: usize,
    /// In a grid: how many numbers its path has, and the number of these numbers in C order.
    depth: usize,
    number: u64,
}

impl Item {
    pub(crate) const DATASET: Self = Self::at(0);
    pub(crate) const DESCRIPTION: Self = Self::at(1);
    /// `error.txt`, of a dataset that does not open.
    pub(crate) const ERROR: Self = Self::at(2);
    /// Its number.
    pub(crate) const ERROR_NUMBER: u64 = 2;

    const fn at(node: usize) -> Self {
        Self { node, depth: 0, number: 0 }
    }
}

pub(crate) struct Tree {
    views: &'static [View],
    /// The folder of the dataset and its own files. All nodes are in the order of their numbers: these come first, then
    /// those of each branch. The entries of a folder follow it.
    own: Vec<Node>,
    branches: Vec<Branch>,
    /// The branches in the order of their names.
    by_name: Vec<usize>,
}

/// A folder of a layer, or one beside it, with all that is in it.
struct Branch {
    /// The folder's place among all nodes.
    at: usize,
    folder: Node,
    /// The view whose folder it is; `None` for the folder of the layer.
    view: Option<&'static View>,
    /// Its nodes, the folder first, once they were asked for.
    nodes: OnceLock<Vec<Node>>,
    /// The first number after those of the nodes.
    next: u64,
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
    is_unlisted: bool,
    /// The entries of a folder are nodes.
    kind: Kind,
}

impl Node {
    /// Returns the first number after this one's.
    fn after(&self) -> u64 {
        self.first.saturating_add(self.kind.nodes().unwrap_or(u64::MAX))
    }
}

/// Adds an entry and all that is in it to `nodes`, the first of which gets the place and the number `begin`.
fn add(
    nodes: &mut Vec<Node>,
    begin: (usize, u64),
    Entry { name, mut kind, is_unlisted }: Entry,
    parent: usize,
    layer: Option<usize>,
) {
    let first = nodes.last().map_or(begin.1, Node::after);
    let (index, at) = (nodes.len(), begin.0 + nodes.len());
    let below = if let Kind::Dir(entries) = &mut kind { std::mem::take(entries) } else { Vec::new() };
    nodes.push(Node { first, name, parent, end: at + 1, layer, is_unlisted, kind });
    for entry in below {
        add(nodes, begin, entry, at, layer);
    }
    nodes[index].end = begin.0 + nodes.len();
}

/// Returns the name of the folder of each layer.
pub(crate) fn layer_folders(open: &OpenDataset) -> Vec<String> {
    layer_names(open, &mut taken_names())
}

/// Returns the index of the layer that a name means: that of its folder, in any case, or `data` for the first one. No
/// layer is found in place of one that cannot be shown.
pub(crate) fn find_layer(open: &OpenDataset, name: &str) -> Option<usize> {
    layer_among(open, &layer_folders(open), name)
}

/// Like [`find_layer`], with the names of the folders.
fn layer_among(open: &OpenDataset, folders: &[impl AsRef<str>], name: &str) -> Option<usize> {
    let hidden = open.dataset.hidden().iter().map(|layer| Cow::from(file_name(&layer.name, NAME_MAX)));
    match find_name(folders.iter().map(|name| Cow::from(name.as_ref())).chain(hidden), name) {
        Ok(None) => (!folders.is_empty() && name.eq_ignore_ascii_case(FIRST_LAYER)).then_some(0),
        found => found.ok().flatten().filter(|layer| *layer < folders.len()),
    }
}

/// Declares what is in the folder of a layer.
fn in_layer(layer: LayerRef<'_>) -> Vec<Entry> {
    let views = layer.views.iter().filter(|view| view.beside_layer.is_none());
    views.flat_map(|view| numbered((view.entries)(layer))).collect()
}

/// Returns the names in a dataset's folder that no layer can have.
fn taken_names() -> HashSet<String> {
    [DATASET_JSON, ERROR_TXT, OUTLINE].map(str::to_owned).into()
}

fn layer_names(open: &OpenDataset, taken: &mut HashSet<String>) -> Vec<String> {
    let layers = open.dataset.layers().iter();
    layers.map(|layer| unique(file_name(&layer.name, NAME_MAX), NAME_MAX, taken)).collect()
}

impl Tree {
    /// Creates the tree of a dataset. Each layer has the files of all `views`.
    pub(crate) fn new(open: &OpenDataset, views: &'static [View]) -> Self {
        let mut tree = Self { views, own: Vec::new(), branches: Vec::new(), by_name: Vec::new() };
        let description = File { may_block: true, ..File::new(description) };
        let error = File { is_there: |_| false, ..File::new(|_| Ok(String::new().into())) };
        let outline = File { is_there: |layer| outline(layer.open).is_some(), ..File::new(outline_text) };
        let own = [(DATASET_JSON, description), (ERROR_TXT, error), (OUTLINE, outline)];
        let own = own.map(|(name, file)| Entry::new(name, Kind::File(file)));
        add(&mut tree.own, (0, 0), Entry::dir("", own.into()), 0, None);
        let mut taken = taken_names();
        for (layer, name) in layer_names(open, &mut taken).into_iter().enumerate() {
            let shown = LayerRef { open, layer, views };
            tree.add_branch(shown, name.clone(), None, in_layer(shown));
            for (view, suffix) in views.iter().filter_map(|view| Some((view, view.beside_layer?))) {
                let entries = numbered((view.entries)(shown));
                let has_room = tree.branches.last().is_none_or(|last| last.next < MOST_NUMBERS);
                if entries.is_empty() || !has_room {
                    continue;
                }
                let most = NAME_MAX - suffix.len();
                // the name of the layer's folder, if it leaves room for the suffix
                let short = || file_name(shown.name(), most);
                let folder = if name.len() <= most { name.clone() } else { short() } + suffix;
                tree.add_branch(shown, unique(folder, NAME_MAX, &mut taken), Some(view), entries);
            }
        }
        tree.own[0].end = tree.branches.last().map_or(tree.own.len(), |last| last.folder.end);
        tree.by_name = (0..tree.branches.len()).collect();
        tree.by_name.sort_unstable_by(|a, b| tree.branches[*a].folder.name.cmp(&tree.branches[*b].folder.name));
        tree
    }

    /// Adds a folder of a layer, and counts what is in it.
    fn add_branch(&mut self, of: LayerRef<'_>, name: String, view: Option<&'static View>, entries: Vec<Entry>) {
        let last = self.branches.last().map(|branch| (branch.folder.end, branch.next));
        let (at, first) = last.unwrap_or_else(|| (self.own.len(), self.own.last().map_or(0, Node::after)));
        let mut nodes = Vec::new();
        add(&mut nodes, (at, first), Entry::dir(name, entries), 0, Some(of.layer));
        let next = nodes.last().map_or(first, Node::after);
        if let Some(folder) = nodes.into_iter().next() {
            self.branches.push(Branch { at, folder, next, view, nodes: OnceLock::new() });
        }
    }

    /// Returns the nodes of a branch, which are declared now if nobody has asked for them.
    fn nodes<'a>(&self, open: &OpenDataset, branch: &'a Branch) -> &'a [Node] {
        branch.nodes.get_or_init(|| self.declare(open, branch))
    }

    fn declare(&self, open: &OpenDataset, Branch { at, folder, view, .. }: &Branch) -> Vec<Node> {
        let shown = self.layer_of(open, folder);
        let entries = view.map_or_else(|| in_layer(shown), |view| numbered((view.entries)(shown)));
        let mut nodes = Vec::new();
        add(&mut nodes, (*at, folder.first), Entry::dir(&*folder.name, entries), 0, folder.layer);
        nodes
    }

    /// Returns whether the other tree, that of the dataset `others`, has the same files and folders under the same
    /// numbers.
    pub(crate) fn has_files_of(&self, open: &OpenDataset, other: &Self, others: &OpenDataset) -> bool {
        let is_same = |a: &Node, b: &Node| (a.first, &a.name, a.parent) == (b.first, &b.name, b.parent);
        let are_same = |a: &[Node], b: &[Node]| a.len() == b.len() && iter::zip(a, b).all(|(a, b)| is_same(a, b));
        are_same(&self.own, &other.own)
            && self.branches.len() == other.branches.len()
            && iter::zip(&self.branches, &other.branches)
                .all(|(a, b)| are_same(&self.declare(open, a), &other.declare(others, b)))
    }

    /// Returns a node by its place among all nodes, unless it is in a branch that nobody has asked for.
    fn at(&self, at: usize) -> Option<&Node> {
        if at < self.own.len() {
            return self.own.get(at);
        }
        let branch = &self.branches[self.branches.partition_point(|branch| branch.at <= at).checked_sub(1)?];
        if at == branch.at { Some(&branch.folder) } else { branch.nodes.get()?.get(at - branch.at) }
    }

    fn node(&self, item: Item) -> &Node {
        // an item that somebody holds was found among the nodes of its branch
        self.at(item.node).unwrap_or(&self.own[0])
    }

    pub(crate) fn layer(&self, item: Item) -> Option<usize> {
        self.node(item).layer
    }

    /// Returns the layer whose folder this is.
    pub(crate) fn layer_of_folder(&self, folder: Item) -> Option<usize> {
        let at = self.branches.binary_search_by_key(&folder.node, |branch| branch.at).ok()?;
        let branch = &self.branches[at];
        branch.view.is_none().then_some(branch.folder.layer)?
    }

    /// Returns what a view is asked about, of the layer that a node belongs to.
    fn layer_of<'a>(&self, open: &'a OpenDataset, node: &Node) -> LayerRef<'a> {
        LayerRef { open, layer: node.layer.unwrap_or(0), views: self.views }
    }

    /// Returns the file or folder with a number.
    pub(crate) fn item(&self, open: &OpenDataset, number: u64) -> Option<Item> {
        let branch = self.branches.partition_point(|branch| branch.folder.first <= number).checked_sub(1);
        let branch = branch.map(|branch| &self.branches[branch]);
        let (begin, nodes) = branch.map_or((0, &self.own[..]), |branch| (branch.at, self.nodes(open, branch)));
        let within = nodes.partition_point(|node| node.first <= number).checked_sub(1)?;
        let (at, node) = (begin + within, &nodes[within]);
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

    pub(crate) fn is_folder(&self, item: Item) -> bool {
        match &self.node(item).kind {
            Kind::Dir(_) => true,
            Kind::Grid(grid) => item.depth < grid.count.len(),
            Kind::File(_) => false,
        }
    }

    pub(crate) fn parent(&self, item: Item) -> Item {
        match (&self.node(item).kind, item.depth.checked_sub(1)) {
            (Kind::Grid(grid), Some(depth)) => Item { depth, number: item.number / grid.count[depth].max(1), ..item },
            _ => Item::at(self.node(item).parent),
        }
    }

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

    /// Returns the entries of a folder from position `from` on, whether they are there or not.
    fn entries(&self, open: &OpenDataset, folder: Item, from: u64) -> Box<dyn Iterator<Item = Item> + '_> {
        if let Kind::Grid(grid) = &self.node(folder).kind {
            let along = grid.count.get(folder.depth).copied().unwrap_or(0);
            let entry = move |at| Item { depth: folder.depth + 1, number: folder.number * along + at, ..folder };
            return Box::new((from..along).map(entry));
        }
        if let Ok(branch) = self.branches.binary_search_by_key(&folder.node, |branch| branch.at) {
            self.nodes(open, &self.branches[branch]);
        }
        let (first, end) = (folder.node + 1, self.node(folder).end);
        let nodes = iter::successors(Some(first), |at| self.at(*at).map(|node| node.end));
        let entries = nodes.take_while(move |at| *at < end).map(Item::at);
        Box::new(entries.skip(usize::try_from(from).unwrap_or(usize::MAX)))
    }

    /// Passes the entries of a folder to `add`, from position `from` on and until it returns false: the item, and the
    /// position of the next entry.
    pub(crate) fn list(&self, open: &OpenDataset, folder: Item, from: u64, add: &mut dyn FnMut(Item, u64) -> bool) {
        for (item, position) in self.entries(open, folder, from).zip(from..) {
            // one that cannot be looked for is there: reading it says what is wrong
            let is_there = self.is_there(open, item, Blocking::Yes).unwrap_or(true);
            let is_listed = item.depth > 0 || !self.node(item).is_unlisted;
            if is_there && is_listed && !add(item, position + 1) {
                return;
            }
        }
    }

    /// Finds `name` in a folder. Layers and axes are found in any case, and `data` is the first layer of a dataset
    /// without one of that name; an entry has one number, whatever it is called. Fails with
    /// [`SourceError::WouldBlock`] if it has to look at the source and may not wait.
    pub(crate) fn find(
        &self,
        open: &OpenDataset,
        folder: Item,
        name: &str,
        blocking: Blocking,
    ) -> Result<Option<Item>, FormatError> {
        let found = match &self.node(folder).kind {
            Kind::Grid(grid) => find_in_grid(grid, folder, name),
            _ => self.named(open, folder, name).or_else(|| match folder {
                Item::DATASET => self.find_by_layer(open, name),
                _ => self.find_by_axis(open, folder, name),
            }),
        };
        let Some(found) = found else { return Ok(None) };
        Ok(self.is_there(open, found, blocking)?.then_some(found))
    }

    fn named(&self, open: &OpenDataset, folder: Item, name: &str) -> Option<Item> {
        if folder == Item::DATASET {
            let own = self.own.iter().skip(1).position(|node| node.name == name);
            let branch = || self.by_name.binary_search_by(|at| (*self.branches[*at].folder.name).cmp(name)).ok();
            return own.map(|at| at + 1).or_else(|| Some(self.branches[self.by_name[branch()?]].at)).map(Item::at);
        }
        self.entries(open, folder, 0).find(|item| self.node(*item).name == name)
    }

    /// Finds the folder of a layer, or one beside it, whose name is typed with another name of the layer.
    fn find_by_layer(&self, open: &OpenDataset, name: &str) -> Option<Item> {
        let of_layers = self.branches.iter().filter(|branch| branch.view.is_none());
        let folders: Vec<&str> = of_layers.map(|branch| &*branch.folder.name).collect();
        let mut suffixes = iter::once("").chain(self.views.iter().filter_map(|view| view.beside_layer));
        suffixes.find_map(|suffix| {
            let layer = layer_among(open, &folders, name.strip_suffix(suffix)?)?;
            self.named(open, Item::DATASET, &format!("{}{suffix}", folders[layer]))
        })
    }

    /// Finds an entry whose name has the name of an axis, which is typed in another case.
    fn find_by_axis(&self, open: &OpenDataset, folder: Item, name: &str) -> Option<Item> {
        let axes = axis_names(self.layer_of(open, self.node(folder)).levels().first()?.info());
        self.entries(open, folder, 0).find(|item| {
            let entry = &*self.node(*item).name;
            let mut places = axes.iter().enumerate().flat_map(|(n, axis)| {
                entry.match_indices(axis.as_str()).map(move |(begin, _)| (n, begin, begin + axis.len()))
            });
            places.any(|(n, begin, end)| {
                let typed = name.strip_prefix(&entry[..begin]).and_then(|rest| rest.strip_suffix(&entry[end..]));
                typed.is_some_and(|typed| find_name(&axes, typed) == Ok(Some(n)))
            })
        })
    }

    fn is_there(&self, open: &OpenDataset, item: Item, blocking: Blocking) -> Result<bool, FormatError> {
        let node = self.node(item);
        match &node.kind {
            Kind::File(file) => Ok((file.is_there)(self.layer_of(open, node))),
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
        let node = self.node(item);
        match &node.kind {
            Kind::File(file) if file.may_block && blocking == Blocking::No => Err(SourceError::WouldBlock.into()),
            Kind::File(file) => (file.content)(self.layer_of(open, node)).map(Some),
            Kind::Grid(grid) if item.depth == grid.count.len() => {
                (grid.content)(self.layer_of(open, node), &grid.count.index_of(item.number)).map(Some)
            }
            Kind::Grid(_) | Kind::Dir(_) => Ok(None),
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

fn description(layer: LayerRef<'_>) -> Result<Content, FormatError> {
    let _claim = claim(DESCRIPTION_BYTES)?;
    Ok(json::text(&json::dataset(layer.open, layer.views)?).into())
}

fn outline_text(layer: LayerRef<'_>) -> Result<Content, FormatError> {
    Ok(json::text(&outline(layer.open).unwrap_or_default()).into())
}

fn find_in_grid(grid: &Grid, folder: Item, name: &str) -> Option<Item> {
    let along = *grid.count.get(folder.depth)?;
    let depth = folder.depth + 1;
    let digits = if depth == grid.count.len() { name.strip_suffix(grid.suffix)? } else { name };
    let is_exact = digits.len() == 1 || !digits.starts_with(['0', '+']);
    let at: u64 = digits.parse().ok().filter(|at| is_exact && *at < along)?;
    Some(Item { depth, number: folder.number * along + at, ..folder })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::registry::registry;
    use super::super::tests::{Layers, Zeros, dataset, zeros};
    use super::*;
    use crate::format::{Dataset, HiddenLayer, Layer};
    use crate::volume::{DatasetInfo, Dtype, NativeJson};

    /// A dataset with layers that can be shown, and others that cannot.
    struct Various(DatasetInfo, Vec<Layer>, Vec<HiddenLayer>);

    impl Dataset for Various {
        fn info(&self) -> &DatasetInfo {
            &self.0
        }
        fn layers(&self) -> &[Layer] {
            &self.1
        }
        fn hidden(&self) -> &[HiddenLayer] {
            &self.2
        }
    }

    /// Opens a dataset whose layers have these axes.
    fn opened(shown: &[&str], hidden: &[&str], axes: [&str; 3]) -> OpenDataset {
        let mut info = zeros(&[4, 5, 6], Dtype::UInt8).info().clone();
        info.axes.iter_mut().zip(axes).for_each(|(axis, name)| axis.name = name.to_owned());
        let layer = |name: &&str| Layer {
            name: (*name).to_owned(),
            levels: vec![Arc::new(Zeros(info.clone()))],
            native: NativeJson::new(),
        };
        let hidden = hidden.iter().map(|name| HiddenLayer { name: (*name).to_owned(), ..HiddenLayer::default() });
        let various = Various(DatasetInfo::default(), shown.iter().map(layer).collect(), hidden.collect());
        let none = Layers(DatasetInfo::default(), Vec::new(), None);
        OpenDataset { dataset: Box::new(various), ..dataset("vds", none) }
    }

    /// Returns the path in the tree that a typed path leads to.
    fn found(open: &OpenDataset, path: &str) -> Option<String> {
        let tree = Tree::new(open, registry());
        let step = |folder, name| tree.find(open, folder, name, Blocking::Yes).unwrap();
        let mut item = path.split('/').try_fold(Item::DATASET, step)?;
        assert_eq!(Tree::new(open, registry()).item(open, tree.number(item)), Some(item), "it has a number of its own");
        let mut names = Vec::new();
        while item != Item::DATASET {
            names.insert(0, tree.name(item));
            item = tree.parent(item);
        }
        Some(names.join("/"))
    }

    #[test]
    fn layers_and_axes_are_found_in_any_case() {
        let open = opened(&["Amplitude", "a/b", "Offset", "offset"], &["Depth"], ["Inline", "Crossline", "Sample"]);
        for (typed, path) in [
            ("amplitude/lod0.raw", "Amplitude/lod0.raw"),
            ("Amplitude/lod0.by-sample.npy", "Amplitude/lod0.by-Sample.npy"),
            ("AMPLITUDE/lod0.by-CROSSLINE.npy", "Amplitude/lod0.by-Crossline.npy"),
            ("amplitude/lod0.slices/inline/3.png", "Amplitude/lod0.slices/Inline/3.png"),
            ("amplitude.ome.zarr/lod0/sample/zarr.json", "Amplitude.ome.zarr/lod0/Sample/zarr.json"),
            ("A%2fB/lod0.raw", "a%2Fb/lod0.raw"),
            ("offset", "offset"),
            ("Offset", "Offset"),
            ("data/lod0.npy", "Amplitude/lod0.npy"),
            ("DATA/lod0.by-sample.npy", "Amplitude/lod0.by-Sample.npy"),
            ("data.ome.zarr/lod0", "Amplitude.ome.zarr/lod0"),
            ("data.zarr/lod0", "Amplitude.zarr/lod0"),
        ] {
            assert_eq!(found(&open, typed).as_deref(), Some(path), "{typed}");
        }
        for typed in [
            "OFFSET",
            "Depth",
            "depth",
            "depth.ome.zarr",
            "Dataset.json",
            "ERROR.txt",
            "Amplitude.OME.zarr",
            "data.ZARR",
            "data.txt",
            "data~2",
            "Amplitude/LOD0.raw",
            "Amplitude/lod0.by-inline.npy",
            "Amplitude/lod0.by-samples.npy",
            "Amplitude/lod0.BY-Sample.npy",
            "Amplitude/data",
        ] {
            assert_eq!(found(&open, typed), None, "{typed}");
        }
    }

    #[test]
    fn no_other_layer_stands_in_for_one_that_is_there() {
        let axes = ["Z", "y", "z"];
        assert_eq!(found(&opened(&["a", "data"], &[], axes), "data").as_deref(), Some("data"));
        assert_eq!(found(&opened(&["a", "Data"], &[], axes), "data.ome.zarr").as_deref(), Some("Data.ome.zarr"));
        assert_eq!(found(&opened(&["a", "Data", "DATA"], &[], axes), "data"), None);
        assert_eq!(found(&opened(&["a"], &["Data"], axes), "data"), None);
        assert_eq!(found(&opened(&["color"], &["Color"], axes), "Color"), None);
        assert_eq!(found(&opened(&["color"], &["Color"], axes), "color").as_deref(), Some("color"));
        assert_eq!(found(&opened(&[], &[], axes), "data"), None);
        // the first axis has no file, and that of another axis is not it
        let open = opened(&["a"], &[], axes);
        assert_eq!(found(&open, "a/lod0.by-Y.npy").as_deref(), Some("a/lod0.by-y.npy"));
        assert_eq!(found(&open, "a/lod0.by-Z.npy"), None);
        assert_eq!(found(&open, "a/lod0.slices/Z/0.png").as_deref(), Some("a/lod0.slices/Z/0.png"));
    }
}
