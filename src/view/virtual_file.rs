//! The trait that every kind of virtual file implements.

use super::content::{Content, ShownArray};
use super::layer_ref::LayerRef;
use crate::format::FormatError;

/// A file or folder that a view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number within the view.
    pub node: u64,
    /// Its name in its folder.
    pub name: String,
    /// Whether it is a folder.
    pub folder: bool,
}

/// One kind of virtual file.
pub trait View: Send + Sync {
    /// Returns how many nodes the view has for a layer; 0 if it does not apply. Nodes are numbered from 0.
    fn nodes(&self, layer: LayerRef<'_>) -> u64;

    /// Calls `add` for each entry in the layer's folder (`folder` is `None`) or in a folder of the view, in order.
    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry));

    /// Finds an entry by name. The default lists all entries; views with many override it.
    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let mut found = None;
        self.list(layer, folder, &mut |entry| {
            if entry.name == name {
                found = Some(entry);
            }
        });
        found
    }

    /// Returns the node of the view's folder that contains `node`; `None` if that is the layer's folder.
    fn parent(&self, _layer: LayerRef<'_>, _node: u64) -> Option<u64> {
        None
    }

    /// Returns whether a node is a folder.
    fn is_folder(&self, _layer: LayerRef<'_>, _node: u64) -> bool {
        false
    }

    /// Returns the array that a file shows, if it shows one. Such files have extended attributes that describe it.
    fn shown_array(&self, _layer: LayerRef<'_>, _node: u64) -> Option<ShownArray> {
        None
    }

    /// Returns whether [`View::content`] may block to read from the source.
    fn may_block(&self) -> bool {
        true
    }

    /// Returns the content of a file.
    ///
    /// # Errors
    /// Those of the format, if the source has to be read.
    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError>;
}
