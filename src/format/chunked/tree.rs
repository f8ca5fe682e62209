//! The layers of a hierarchy: each array, or each image of several arrays.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::sync::Arc;

use serde_json::json;

use super::array::ChunkedArray;
use super::coordinates::{self, Coordinates};
use super::description::MAX_NAMES;
use super::node::{ArrayMetadata, Image, Node, join};
use crate::format::bytes::decimal;
use crate::format::{Array, FormatError, HiddenLayer, Layer, native};
use crate::source::{EntryKind, Folder, IndexCache};
use crate::volume::{ArrayInfo, BrickGrid, NativeJson};

/// The name of the layer that stands at the top.
const TOP: &str = "data";
/// The most groups and arrays of a dataset.
const MAX_NODES: usize = 1 << 12;
/// Bytes of all descriptions of a dataset: each takes several times as much memory.
const MAX_TEXT: u64 = 16 << 20;
/// Groups deeper than this are not looked into.
const MAX_DEPTH: usize = 32;

/// What a dataset has.
#[derive(Default)]
pub(in crate::format) struct Layers {
    pub layers: Vec<Layer>,
    pub hidden: Vec<HiddenLayer>,
    pub warnings: Vec<String>,
}

/// How a format describes its groups and arrays.
pub(in crate::format) trait Convention {
    /// Reads the description of a group or an array; `None` if there is neither at the path.
    fn node(&self, folder: &dyn Folder, path: &str) -> Result<Option<Node>, FormatError>;

    /// Returns whether a folder without description is a group.
    fn has_bare_groups(&self) -> bool {
        false
    }

    /// Returns the images of a group. `nodes` has all groups and arrays by their paths.
    fn images(&self, group: &Node, nodes: &Nodes) -> Vec<Image>;

    /// Returns the paths below a group that its descriptions have: what is there where a store does not list its objects.
    fn named_paths(&self, folder: &dyn Folder, group: &Node) -> Result<Vec<String>, FormatError>;

    /// Returns the dimensions that the description of the dataset gives to the axes of its arrays, by the attributes of the
    /// top: their names, and the positions along them.
    fn dimensions(&self, _attributes: &NativeJson) -> Vec<(String, Vec<f64>)> {
        Vec::new()
    }

    /// Returns the least and the greatest value that an image is to be shown with, by the attributes of its group.
    fn value_range(&self, _attributes: &NativeJson) -> Option<(f64, f64)> {
        None
    }
}

/// Groups and arrays by their paths.
pub(in crate::format) type Nodes = BTreeMap<String, Node>;

/// All groups and arrays.
struct Hierarchy<'a> {
    folder: &'a dyn Folder,
    convention: &'a dyn Convention,
    nodes: Nodes,
    /// The paths in the order in which they were found: each group before what is in it.
    order: Vec<String>,
    /// Bytes of all descriptions.
    text: u64,
    warnings: Vec<String>,
}

/// Reads the hierarchy below `top`, and makes its layers.
pub(in crate::format) fn layers(
    convention: &dyn Convention,
    folder: &Arc<dyn Folder>,
    cache: &Arc<IndexCache>,
    top: Node,
) -> Result<Layers, FormatError> {
    let (nodes, order, warnings) = (Nodes::new(), Vec::new(), Vec::new());
    let mut hierarchy = Hierarchy { folder: &**folder, convention, nodes, order, text: 0, warnings };
    hierarchy.add(top, 0)?;
    let Hierarchy { mut nodes, order, warnings, .. } = hierarchy;
    describe_axes(convention, (folder, cache), &mut nodes);
    let groups = nodes.values().filter(|node| node.array.is_none());
    let images: BTreeMap<String, Vec<Image>> =
        groups.map(|group| (group.path.clone(), convention.images(group, &nodes))).collect();
    let levels = images.iter().flat_map(|(path, images)| {
        images.iter().flat_map(move |image| image.levels.iter().map(move |level| join(path, &level.path)))
    });
    let is_level: HashSet<String> = levels.collect();
    let made = Layers { warnings, ..Layers::default() };
    let mut making = Making { convention, folder, cache, taken: HashSet::new(), text: 0, made };
    for path in order {
        if let Some(images) = images.get(&path) {
            let attributes = nodes.remove(&path).map(|node| node.attributes).unwrap_or_default();
            for (number, image) in images.iter().enumerate() {
                let range = convention.value_range(&attributes);
                // once: there may be many images, and long attributes
                let described = if number == 0 { attributes.clone() } else { NativeJson::new() };
                making.image(&path, image, &mut nodes, (range, described));
            }
        } else if !is_level.contains(&path)
            && let Some(node) = nodes.remove(&path)
        {
            making.array(node);
        }
    }
    Ok(making.made)
}

/// Gives the axes of all arrays the positions that coordinate arrays have.
fn describe_axes(
    convention: &dyn Convention,
    (folder, cache): (&Arc<dyn Folder>, &Arc<IndexCache>),
    nodes: &mut Nodes,
) {
    let mut coordinates = Coordinates::default();
    let dimensions = nodes.get("").map(|top| convention.dimensions(&top.attributes)).unwrap_or_default();
    let paths: Vec<String> = nodes.keys().cloned().collect();
    for path in paths {
        let Some(array) = array_at(nodes, &path) else { continue };
        coordinates::name_axes(&dimensions, array);
        // taken out while the nodes are looked at, also this one: a coordinate array has positions itself
        let mut axes = mem::take(&mut array.axes);
        coordinates.describe(&path, &mut axes, |of| {
            let beside = nodes.get(of)?;
            let is_line = beside.array.as_ref().is_some_and(|array| array.as_ref().is_ok_and(|a| a.shape.len() == 1));
            let read = if is_line { convention.node(&**folder, of).ok()?? } else { return None };
            Some((Box::new(chunked((folder, cache), read.array?.ok()?, 0, None)), beside))
        });
        if let Some(array) = array_at(nodes, &path) {
            array.axes = axes;
        }
    }
}

fn array_at<'a>(nodes: &'a mut Nodes, path: &str) -> Option<&'a mut ArrayMetadata> {
    nodes.get_mut(path)?.array.as_mut()?.as_mut().ok()
}

impl Hierarchy<'_> {
    /// Adds a node, and all that is below it. Folders of chunks are not listed.
    fn add(&mut self, mut found: Node, depth: usize) -> Result<(), FormatError> {
        let path = found.path.clone();
        self.warnings.extend(found.warning.take());
        self.text += found.text;
        let is_group = found.array.is_none();
        let children = if is_group { self.children(&found)? } else { Vec::new() };
        self.order.push(path.clone());
        self.nodes.insert(path.clone(), found);
        for name in children {
            let path = join(&path, &name);
            if self.nodes.contains_key(&path) {
                continue;
            }
            if self.nodes.len() >= MAX_NODES || depth >= MAX_DEPTH || self.text > MAX_TEXT {
                let warning = format!(
                    "it has more than {MAX_NODES} groups and arrays, or {MAX_TEXT} bytes of metadata, or is deeper than \
                     {MAX_DEPTH} groups: not all of it is shown"
                );
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
                return Ok(());
            }
            let bare = || Node { path: path.clone(), ..Node::default() };
            let child = self.convention.node(self.folder, &path)?;
            if let Some(child) = child.or_else(|| self.convention.has_bare_groups().then(bare)) {
                self.add(child, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Returns the names in a group: those that its folder has, or, if the store has no listings, those that its
    /// description and its attributes have.
    fn children(&mut self, group: &Node) -> Result<Vec<String>, FormatError> {
        let mut names = Vec::new();
        let lists = self.folder.list(&group.path, &mut |name, kind| {
            if kind != EntryKind::File {
                names.push(name.to_owned());
            }
            names.len() < MAX_NAMES
        })?;
        if !lists {
            let described = self.convention.named_paths(self.folder, group)?;
            names.extend(described.into_iter().filter(|path| is_below(path)));
            let warning = "the server lists no files: only what the metadata names is shown";
            if !self.warnings.iter().any(|known| known == warning) {
                self.warnings.push(warning.into());
            }
        }
        // numbers in their order, then texts
        names.sort_by_cached_key(|name| (decimal(name).is_none(), decimal(name), name.clone()));
        names.dedup();
        Ok(names)
    }
}

/// Returns whether a path leads to something below the folder that it begins in.
fn is_below(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn layer_name(path: &str) -> String {
    if path.is_empty() { TOP.to_owned() } else { path.to_owned() }
}

/// The layers while they are made.
struct Making<'a> {
    convention: &'a dyn Convention,
    folder: &'a Arc<dyn Folder>,
    cache: &'a Arc<IndexCache>,
    /// The paths of the levels of images.
    taken: HashSet<String>,
    /// Bytes of descriptions that were read again.
    text: u64,
    made: Layers,
}

impl Making<'_> {
    fn array(&mut self, node: Node) {
        let name = layer_name(&node.path);
        let native = native(json!({"path": node.path, "attributes": node.attributes}));
        match node.array {
            None => {}
            Some(Err(hidden)) => {
                let (reason, damaged, shape) = (hidden.reason, hidden.damaged, hidden.shape);
                self.made.hidden.push(HiddenLayer { name, dtype: None, shape, reason, damaged, native });
            }
            Some(Ok(metadata)) => {
                let level = level((self.folder, self.cache), metadata, 0, None);
                self.made.layers.push(Layer { name, levels: vec![level], native });
            }
        }
    }

    /// Takes the node of a level; that of an array which is in another image, too, is read again.
    fn take(&mut self, path: String, nodes: &mut Nodes) -> Option<Node> {
        if let Some(node) = nodes.remove(&path) {
            self.taken.insert(path);
            return Some(node);
        }
        if !self.taken.contains(&path) || self.text > MAX_TEXT {
            return None;
        }
        let node = self.convention.node(&**self.folder, &path).ok()??;
        self.text += node.text;
        Some(node)
    }

    /// Adds an image, whose levels are arrays below the group at `path`.
    fn image(
        &mut self,
        path: &str,
        image: &Image,
        nodes: &mut Nodes,
        (range, attributes): (Option<(f64, f64)>, NativeJson),
    ) {
        let (mut levels, mut missing): (Vec<Arc<dyn Array>>, _) = (Vec::new(), Vec::new());
        let mut damaged = false;
        for described in &image.levels {
            let found = self.take(join(path, &described.path), nodes).map(|node| (node.array, node.attributes));
            let metadata = match found {
                Some((Some(Ok(metadata)), _)) => metadata,
                Some((Some(Err(hidden)), _)) => {
                    damaged |= hidden.damaged;
                    missing.push((&described.path, hidden.reason));
                    continue;
                }
                Some((None, _)) | None => {
                    damaged = true;
                    missing.push((&described.path, "there is no such array".into()));
                    continue;
                }
            };
            if levels.first().is_some_and(|first| first.info().shape().len() != metadata.shape.len()) {
                missing.push((&described.path, "it has another number of axes".into()));
                continue;
            }
            let axes = image.axes_of(described, &metadata.shape, &metadata.axes);
            levels.push(level((self.folder, self.cache), ArrayMetadata { axes, ..metadata }, levels.len(), range));
        }
        let mut native = native(json!({"path": path, "attributes": attributes}));
        if !missing.is_empty() {
            let entries = missing.iter().map(|(path, reason)| json!({"path": path, "reason": reason}));
            native.insert("missing".into(), entries.collect());
        }
        let name = layer_name(path);
        if levels.is_empty() {
            let reason =
                missing.first().map_or("it has no levels".into(), |(path, why)| format!("level {path}: {why}"));
            self.made.hidden.push(HiddenLayer { name, reason, damaged, native, ..HiddenLayer::default() });
        } else {
            let left_out =
                missing.iter().map(|(level, why)| format!("layer {name}: level {level} is not shown: {why}"));
            self.made.warnings.extend(left_out);
            self.made.layers.push(Layer { name, levels, native });
        }
    }
}

/// Opens the array that stands in a folder by itself.
pub(in crate::format) fn one_array(
    folder: Arc<dyn Folder>,
    cache: &Arc<IndexCache>,
    top: Option<Node>,
) -> Result<Arc<dyn Array>, FormatError> {
    match top.and_then(|top| top.array) {
        Some(Ok(metadata)) => Ok(level((&folder, cache), metadata, 0, None)),
        Some(Err(hidden)) => Err(hidden.error()),
        None => Err(FormatError::Damaged("it has no description of an array".into())),
    }
}

/// Makes the array of a level.
fn level(
    (folder, cache): (&Arc<dyn Folder>, &Arc<IndexCache>),
    metadata: ArrayMetadata,
    lod: usize,
    value_range: Option<(f64, f64)>,
) -> Arc<dyn Array> {
    Arc::new(chunked((folder, cache), metadata, lod, value_range))
}

fn chunked(
    (folder, cache): (&Arc<dyn Folder>, &Arc<IndexCache>),
    metadata: ArrayMetadata,
    lod: usize,
    value_range: Option<(f64, f64)>,
) -> ChunkedArray {
    let ArrayMetadata { shape, dtype, fill, chain, keys, axes, values, mut native } = metadata;
    native.insert("stored_as".into(), chain.text().into());
    let info = ArrayInfo {
        lod,
        axes,
        value_range,
        no_value: values.no_value,
        scaling: values.scaling,
        codec: Some(chain.pipeline.name()),
        native,
        ..ArrayInfo::new(dtype, BrickGrid::aligned(shape, chain.brick), chain.brick)
    };
    ChunkedArray::new(info, (Arc::clone(folder), Arc::clone(cache)), keys, chain, fill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_name_nothing_outside_of_their_folder() {
        for (path, is) in [("a", true), ("a/b.c", true), ("..a", true), ("", false), ("/a", false), ("a/", false)] {
            assert_eq!(is_below(path), is, "{path:?}");
        }
        assert!(["..", "a/../..", "./a", "a//b"].iter().all(|path| !is_below(path)));
    }
}
