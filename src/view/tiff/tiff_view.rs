//! The view: a folder `tiff` with a file for each level.

use std::sync::Arc;

use super::super::array_file::ArrayFile;
use super::super::content::{Content, ShownArray};
use super::super::stack::Stack;
use super::super::virtual_file::{Entry, LayerRef, View};
use super::container::Container;
use crate::format::FormatError;
use crate::volume::ArrayInfo;

/// The node of the folder; that of a level is one more than its number.
const FOLDER: u64 = 0;

/// The view of all levels.
pub(crate) struct Tiff;

fn container(info: &ArrayInfo) -> Option<Container> {
    Container::of(Stack::of(info)?)
}

impl Tiff {
    /// Returns the level of a node, if it has a file.
    fn level(layer: LayerRef<'_>, node: u64) -> Option<usize> {
        let lod = usize::try_from(node.checked_sub(1)?).ok()?;
        container(layer.levels().get(lod)?.info()).map(|_| lod)
    }
}

impl View for Tiff {
    fn name(&self) -> Option<&'static str> {
        Some("tiff")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        let levels = layer.levels().len() as u64;
        if (1..=levels).any(|node| Self::level(layer, node).is_some()) { 1 + levels } else { 0 }
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        let reason = match Stack::of(layer.info(0)) {
            None => "a TIFF file is a stack of images: of two to five axes, besides up to 64 channels",
            Some(_) => "it would be longer than a file can be",
        };
        (self.nodes(layer) == 0).then(|| ("tiff".to_owned(), reason.to_owned()))
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        let nodes = self.nodes(layer);
        match folder {
            None if nodes > 0 => add(Entry { node: FOLDER, name: "tiff".to_owned(), folder: true }),
            Some(FOLDER) => {
                for (node, lod) in (1..nodes).filter_map(|node| Some((node, Self::level(layer, node)?))) {
                    add(Entry { node, name: format!("lod{lod}.tif"), folder: false });
                }
            }
            _ => {}
        }
    }

    fn parent(&self, _: LayerRef<'_>, node: u64) -> Option<u64> {
        (node != FOLDER).then_some(FOLDER)
    }

    fn is_folder(&self, _: LayerRef<'_>, node: u64) -> bool {
        node == FOLDER
    }

    fn shown_array(&self, layer: LayerRef<'_>, node: u64) -> Option<ShownArray> {
        Self::level(layer, node).map(|lod| ShownArray::stored(layer.info(lod)))
    }

    fn may_block(&self) -> bool {
        false
    }

    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        let array = node.checked_sub(1).and_then(|lod| layer.levels().get(usize::try_from(lod).ok()?));
        let file = array.and_then(|array| Some((array, container(array.info())?)));
        let Some((array, container)) = file else {
            return Err(FormatError::Unsupported(format!("there is no TIFF file number {node}")));
        };
        let header = container.header(array.info());
        Ok(Content::Array(ArrayFile::stored(header, Arc::clone(array)).with_tail(Arc::new(container))))
    }
}
