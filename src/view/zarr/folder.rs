//! The folder of the Zarr arrays as a view: its files and folders by name and by number.

use std::sync::Arc;

use super::chunk::ChunkFile;
use super::metadata::{self, array_names};
use super::tree::{
    ArrayAt, CHUNKS, LABELS, METADATA, Node, Nodes, Part, chunk_grid, fill_value, is_absent, is_looked_up, label_name,
    nodes, positions,
};
use crate::format::FormatError;
use crate::source::Blocking;
use crate::view::file::Content;
use crate::view::json_text;
use crate::view::virtual_file::{Entry, LayerRef, View};

/// What follows the layer's name in that of the folder.
const SUFFIX: &str = ".ome.zarr";

/// The view of all levels.
pub(crate) struct OmeZarr;

impl OmeZarr {
    /// Returns the numbers of all files and folders, and the one with number `node`.
    fn at(layer: LayerRef<'_>, node: u64) -> Option<(Nodes, Node)> {
        let nodes = nodes(layer)?;
        let at = nodes.at(node)?;
        Some((nodes, at))
    }
}

/// Returns the number that a name stands for, if it is written in the one right way.
fn number(name: &str) -> Option<u64> {
    let is_exact = name.len() == 1 || !name.starts_with(['0', '+']);
    name.parse().ok().filter(|_| is_exact)
}

/// Finds `name` in a folder whose entries do not depend on the source.
fn find(layer: LayerRef<'_>, nodes: &Nodes, folder: Node, name: &str) -> Option<Node> {
    match folder {
        Node::Image(image) if name == METADATA => Some(Node::ImageMetadata(image)),
        Node::Image(0) if name == LABELS => nodes.has_labels().then_some(Node::Labels),
        Node::Image(image) => {
            let level = usize::try_from(number(name.strip_prefix("lod")?)?).ok()?;
            (level < nodes.levels(image)).then_some(Node::Level(image, level))
        }
        Node::Labels if name == METADATA => Some(Node::LabelsMetadata),
        Node::Labels => label_name(layer).filter(|label| label == name).map(|_| Node::Image(1)),
        Node::Level(image, level) if name == METADATA => Some(Node::LevelMetadata(image, level)),
        Node::Level(image, level) => {
            let names = array_names(layer.info(level));
            let array = names.iter().position(|array| array == name)?;
            Some(Node::Array(ArrayAt { image, level, array }, Part::Folder))
        }
        Node::Array(array, Part::Folder) => match name {
            METADATA => Some(Node::Array(array, Part::Metadata)),
            CHUNKS => Some(Node::Array(array, Part::Chunks { depth: 0, number: 0 })),
            _ => None,
        },
        Node::Array(array, Part::Chunks { depth, number: before }) => {
            let along = *nodes.array(array)?.count().get(depth)?;
            let at = number(name).filter(|at| *at < along)?;
            Some(Node::Array(array, Part::Chunks { depth: depth + 1, number: before * along + at }))
        }
        Node::ImageMetadata(_) | Node::LabelsMetadata | Node::LevelMetadata(..) | Node::Array(_, Part::Metadata) => {
            None
        }
    }
}

/// Returns whether a chunk is known to have the fill value for all samples. No other node is absent.
fn is_chunk_absent(layer: LayerRef<'_>, nodes: &Nodes, node: Node, blocking: Blocking) -> Result<bool, FormatError> {
    let Node::Array(at @ ArrayAt { array: 0, .. }, Part::Chunks { depth, number }) = node else { return Ok(false) };
    let Some(chunks) = nodes.array(at).filter(|chunks| depth == chunks.count().len()) else { return Ok(false) };
    let array = &*layer.levels()[at.level];
    let (region, along) = (chunk_grid(array.info()).region(&chunks.chunk(number)), chunks.count()[depth - 1]);
    if !is_looked_up(array.info(), &region, along) {
        return Ok(false);
    }
    is_absent(array, &region, &fill_value(array), blocking)
}

impl View for OmeZarr {
    fn name(&self) -> Option<&'static str> {
        Some("zarr")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        nodes(layer).map_or(0, |nodes| nodes.len())
    }

    fn beside_layer(&self) -> Option<&'static str> {
        Some(SUFFIX)
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        let has_samples = layer.levels().iter().all(|level| !level.info().shape().contains(&0));
        let reason = "it would have more files and folders than a layer can show: its bricks are too many";
        (has_samples && nodes(layer).is_none()).then(|| (format!("{}{SUFFIX}", layer.name()), reason.to_owned()))
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        let Some((nodes, folder)) = folder.and_then(|folder| Self::at(layer, folder)) else { return };
        let names = match folder {
            Node::Image(image) => {
                let labels = (image == 0 && nodes.has_labels()).then(|| LABELS.to_owned());
                (0..nodes.levels(image)).map(|lod| format!("lod{lod}")).chain(labels).collect()
            }
            Node::Labels => label_name(layer).into_iter().collect(),
            Node::Level(_, level) => array_names(layer.info(level)),
            Node::Array(_, Part::Folder) => vec![CHUNKS.to_owned()],
            _ => return,
        };
        for name in std::iter::once(METADATA.to_owned()).chain(names) {
            let found = find(layer, &nodes, folder, &name);
            if let Some((found, node)) = found.and_then(|found| Some((found, nodes.number(found)?))) {
                add(Entry { node, name, folder: nodes.is_folder(found) });
            }
        }
    }

    fn is_streamed(&self, layer: LayerRef<'_>, folder: u64) -> bool {
        matches!(Self::at(layer, folder), Some((_, Node::Array(_, Part::Chunks { .. }))))
    }

    fn stream(&self, layer: LayerRef<'_>, folder: u64, from: u64, add: &mut dyn FnMut(Entry, u64) -> bool) {
        let Some((nodes, Node::Array(array, Part::Chunks { depth, number }))) = Self::at(layer, folder) else { return };
        let Some(along) = nodes.array(array).and_then(|array| array.count().get(depth).copied()) else { return };
        for at in from..along {
            let entry = Node::Array(array, Part::Chunks { depth: depth + 1, number: number * along + at });
            let is_there = !is_chunk_absent(layer, &nodes, entry, Blocking::Yes).unwrap_or(false);
            let Some(node) = nodes.number(entry).filter(|_| is_there) else { continue };
            if !add(Entry { node, name: at.to_string(), folder: nodes.is_folder(entry) }, at + 1) {
                return;
            }
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        self.find_in_source(layer, folder, name, Blocking::Yes).ok()?
    }

    fn find_in_source(
        &self,
        layer: LayerRef<'_>,
        folder: Option<u64>,
        name: &str,
        blocking: Blocking,
    ) -> Result<Option<Entry>, FormatError> {
        let Some((nodes, folder)) = folder.and_then(|folder| Self::at(layer, folder)) else { return Ok(None) };
        let Some(found) = find(layer, &nodes, folder, name) else { return Ok(None) };
        if is_chunk_absent(layer, &nodes, found, blocking)? {
            return Ok(None);
        }
        let entry = |node| Entry { node, name: name.to_owned(), folder: nodes.is_folder(found) };
        Ok(nodes.number(found).map(entry))
    }

    fn parent(&self, layer: LayerRef<'_>, node: u64) -> Option<u64> {
        let (nodes, node) = Self::at(layer, node)?;
        nodes.number(nodes.parent(node)?)
    }

    fn is_folder(&self, layer: LayerRef<'_>, node: u64) -> bool {
        Self::at(layer, node).is_some_and(|(nodes, node)| nodes.is_folder(node))
    }

    fn may_block(&self) -> bool {
        false
    }

    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        let text = |value| Ok(json_text(&value).into());
        match Self::at(layer, node) {
            Some((_, Node::ImageMetadata(0))) => text(metadata::root(layer)),
            Some((_, Node::ImageMetadata(_))) => text(metadata::label(layer)),
            Some((_, Node::LabelsMetadata)) => text(metadata::labels(layer)),
            Some((_, Node::LevelMetadata(_, lod))) => text(metadata::level(layer, lod)),
            Some((_, Node::Array(ArrayAt { level, array, .. }, Part::Metadata))) => {
                text(metadata::array(layer, level, array))
            }
            Some((nodes, Node::Array(at, Part::Chunks { number, .. }))) => {
                let Some(chunks) = nodes.array(at) else { return no_such_file(node) };
                let array = &layer.levels()[at.level];
                if let Some(axis) = at.array.checked_sub(1) {
                    return Ok(Content::Bytes(positions(array.info(), axis, number).into()));
                }
                let grid = chunk_grid(array.info());
                let file = ChunkFile::new(Arc::clone(array), grid.chunk(), grid.region(&chunks.chunk(number)));
                Ok(Content::Computed(Arc::new(file)))
            }
            _ => no_such_file(node),
        }
    }
}

fn no_such_file(node: u64) -> Result<Content, FormatError> {
    Err(FormatError::Unsupported(format!("there is no file number {node} of Zarr arrays")))
}
