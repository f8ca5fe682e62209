//! The folder of the Zarr arrays as a view: its files and folders by name and by number.

use std::sync::Arc;

use super::absent::is_absent;
use super::arrays::{chunk_grid, fill_value, nodes, positions};
use super::chunk_file::ChunkFile;
use super::metadata::{self, array_names};
use super::nodes::{CHUNKS, METADATA, Node, Nodes, Part};
use crate::format::FormatError;
use crate::source::Wait;
use crate::view::content::Content;
use crate::view::json_text;
use crate::view::virtual_file::{Entry, LayerRef, View};

/// The view of all levels.
pub struct OmeZarr;

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
        Node::Root if name == METADATA => Some(Node::RootMetadata),
        Node::Root => {
            let level = usize::try_from(number(name.strip_prefix("lod")?)?).ok()?;
            (level < nodes.levels()).then_some(Node::Level(level))
        }
        Node::Level(level) if name == METADATA => Some(Node::LevelMetadata(level)),
        Node::Level(level) => {
            let array = array_names(layer.info(level)).iter().position(|array| array == name)?;
            Some(Node::Array { level, array, part: Part::Folder })
        }
        Node::Array { level, array, part: Part::Folder } => {
            let part = match name {
                METADATA => Part::Metadata,
                CHUNKS => Part::Chunks { depth: 0, number: 0 },
                _ => return None,
            };
            Some(Node::Array { level, array, part })
        }
        Node::Array { level, array, part: Part::Chunks { depth, number: before } } => {
            let along = *nodes.arrays(level).get(array)?.count().get(depth)?;
            let at = number(name).filter(|at| *at < along)?;
            Some(Node::Array { level, array, part: Part::Chunks { depth: depth + 1, number: before * along + at } })
        }
        Node::RootMetadata | Node::LevelMetadata(_) | Node::Array { part: Part::Metadata, .. } => None,
    }
}

/// Returns whether a chunk is known to have the fill value for all samples. No other node is absent.
fn is_chunk_absent(layer: LayerRef<'_>, nodes: &Nodes, node: Node, wait: Wait) -> Result<bool, FormatError> {
    let Node::Array { level, array: 0, part: Part::Chunks { depth, number } } = node else { return Ok(false) };
    let Some(chunks) = nodes.arrays(level).first().filter(|chunks| depth == chunks.count().len()) else {
        return Ok(false);
    };
    let array = &*layer.levels()[level];
    let region = chunk_grid(array.info()).region(&chunks.chunk(number));
    is_absent(array, &region, &fill_value(array), wait)
}

impl View for OmeZarr {
    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        nodes(layer).map_or(0, |nodes| nodes.len())
    }

    fn beside_layer(&self) -> Option<&'static str> {
        Some(".ome.zarr")
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        let Some((nodes, folder)) = folder.and_then(|folder| Self::at(layer, folder)) else { return };
        let names = match folder {
            Node::Root => (0..nodes.levels()).map(|lod| format!("lod{lod}")).collect(),
            Node::Level(level) => array_names(layer.info(level)),
            Node::Array { part: Part::Folder, .. } => vec![CHUNKS.to_owned()],
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
        matches!(Self::at(layer, folder), Some((_, Node::Array { part: Part::Chunks { .. }, .. })))
    }

    fn stream(&self, layer: LayerRef<'_>, folder: u64, from: u64, add: &mut dyn FnMut(Entry, u64) -> bool) {
        let Some((nodes, Node::Array { level, array, part: Part::Chunks { depth, number } })) = Self::at(layer, folder)
        else {
            return;
        };
        let Some(along) = nodes.arrays(level).get(array).and_then(|array| array.count().get(depth).copied()) else {
            return;
        };
        for at in from..along {
            let part = Part::Chunks { depth: depth + 1, number: number * along + at };
            let entry = Node::Array { level, array, part };
            let is_there = !is_chunk_absent(layer, &nodes, entry, Wait::Yes).unwrap_or(false);
            let Some(node) = nodes.number(entry).filter(|_| is_there) else { continue };
            if !add(Entry { node, name: at.to_string(), folder: nodes.is_folder(entry) }, at + 1) {
                return;
            }
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        self.find_in_source(layer, folder, name, Wait::Yes).ok()?
    }

    fn find_in_source(
        &self,
        layer: LayerRef<'_>,
        folder: Option<u64>,
        name: &str,
        wait: Wait,
    ) -> Result<Option<Entry>, FormatError> {
        let Some((nodes, folder)) = folder.and_then(|folder| Self::at(layer, folder)) else { return Ok(None) };
        let Some(found) = find(layer, &nodes, folder, name) else { return Ok(None) };
        if is_chunk_absent(layer, &nodes, found, wait)? {
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
        let text = |value| Ok(json_text::format(&value).into());
        match Self::at(layer, node) {
            Some((_, Node::RootMetadata)) => text(metadata::root(layer)),
            Some((_, Node::LevelMetadata(lod))) => text(metadata::level(layer, lod)),
            Some((_, Node::Array { level, array, part: Part::Metadata })) => text(metadata::array(layer, level, array)),
            Some((nodes, Node::Array { level, array: 0, part: Part::Chunks { number, .. } })) => {
                let (array, chunks) = (&layer.levels()[level], nodes.arrays(level)[0]);
                let grid = chunk_grid(array.info());
                let file = ChunkFile::new(Arc::clone(array), grid.chunk(), grid.region(&chunks.chunk(number)));
                Ok(Content::Computed(Arc::new(file)))
            }
            Some((_, Node::Array { level, array, part: Part::Chunks { number, .. } })) => {
                Ok(Content::Bytes(positions(layer.info(level), array - 1, number).into()))
            }
            _ => Err(FormatError::Unsupported(format!("there is no file number {node} of Zarr arrays"))),
        }
    }
}
