//! Views that have one file for each LOD: `lodN` and a suffix.

use super::content::{Content, ShownArray};
use super::virtual_file::{Entry, LayerRef, View};
use crate::format::FormatError;
use crate::volume::ArrayInfo;

/// A view with one file for each LOD, which has the number of its LOD as its node.
pub(crate) trait LevelFile: Send + Sync {
    /// See [`View::name`].
    fn name(&self) -> Option<&'static str> {
        None
    }

    /// Returns what follows `lodN` in the file name.
    fn suffix(&self) -> &'static str;

    /// Returns whether a layer with this metadata at LOD 0 has such files.
    fn applies_to(&self, _info: &ArrayInfo) -> bool {
        true
    }

    /// Returns why a layer with this metadata at LOD 0 has no such files, if layers usually have them.
    fn why_hidden(&self, _info: &ArrayInfo) -> Option<&'static str> {
        None
    }

    /// See [`View::may_block`].
    fn may_block(&self) -> bool {
        false
    }

    /// See [`View::shown_array`].
    fn shown_array(&self, _info: &ArrayInfo) -> Option<ShownArray> {
        None
    }

    /// Returns the content of the file of `lod`.
    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError>;
}

impl<T: LevelFile> View for T {
    fn name(&self) -> Option<&'static str> {
        LevelFile::name(self)
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        if self.applies_to(layer.info(0)) { layer.levels().len() as u64 } else { 0 }
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        let reason = self.why_hidden(layer.info(0)).filter(|_| View::nodes(self, layer) == 0)?;
        Some((format!("lod0{}", self.suffix()), reason.to_owned()))
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_none() {
            for node in 0..View::nodes(self, layer) {
                add(Entry { node, name: format!("lod{node}{}", self.suffix()), folder: false });
            }
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let digits = name.strip_prefix("lod")?.strip_suffix(self.suffix())?;
        let node = digits.parse().ok()?;
        let exact = digits.len() == 1 || !digits.starts_with(['0', '+']);
        let exists = folder.is_none() && exact && node < View::nodes(self, layer);
        exists.then(|| Entry { node, name: name.to_owned(), folder: false })
    }

    fn shown_array(&self, layer: LayerRef<'_>, node: u64) -> Option<ShownArray> {
        let level = layer.levels().get(usize::try_from(node).ok()?)?;
        LevelFile::shown_array(self, level.info())
    }

    fn may_block(&self) -> bool {
        LevelFile::may_block(self)
    }

    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        LevelFile::content(self, layer, node as usize)
    }
}
