//! The trait that every kind of virtual file implements, and the layer that it is asked about.

use std::sync::Arc;

use super::file::{Content, ShownArray};
use crate::catalog::OpenDataset;
use crate::format::{Array, FormatError, Layer};
use crate::source::Blocking;
use crate::volume::ArrayInfo;

/// One layer of an open dataset.
#[derive(Clone, Copy)]
pub(crate) struct LayerRef<'a> {
    /// The dataset.
    pub open: &'a OpenDataset,
    /// Index of the layer in the dataset.
    pub layer: usize,
    /// The views that the folder of the layer shows.
    pub views: &'a [&'a dyn View],
}

impl<'a> LayerRef<'a> {
    fn layer(&self) -> &'a Layer {
        &self.open.dataset.layers()[self.layer]
    }

    /// Returns the name of the layer.
    pub(crate) fn name(&self) -> &'a str {
        &self.layer().name
    }

    /// Returns the arrays of the layer, LOD 0 first.
    pub(crate) fn levels(&self) -> &'a [Arc<dyn Array>] {
        &self.layer().levels
    }

    /// Returns the metadata of the layer at `lod`, which must exist.
    pub(crate) fn info(&self, lod: usize) -> &'a ArrayInfo {
        self.levels()[lod].info()
    }

    /// Returns the names of all files of one level in the folder of the layer, in order of the views: those that begin
    /// with `lodN.`. A folder of the level ends in `/`; of other folders the files of the level are named, as
    /// `FOLDER/FILE`.
    pub(crate) fn files_of(&self, lod: usize) -> Vec<String> {
        let beginning = format!("lod{lod}.");
        let mut files = Vec::new();
        for view in self.views.iter().filter(|view| view.beside_layer().is_none()) {
            let mut folders = Vec::new();
            view.list(*self, None, &mut |Entry { node, name, folder }| match (name.starts_with(&beginning), folder) {
                (true, _) => files.push(if folder { name + "/" } else { name }),
                (false, true) if !is_of_a_level(&name) => folders.push((node, name)),
                (false, _) => {}
            });
            for (folder, path) in folders.into_iter().filter(|(node, _)| !view.is_streamed(*self, *node)) {
                view.list(*self, Some(folder), &mut |entry| {
                    if !entry.folder && entry.name.starts_with(&beginning) {
                        files.push(format!("{path}/{}", entry.name));
                    }
                });
            }
        }
        files
    }
}

/// Whether a name begins with `lodN.`, whatever the number.
fn is_of_a_level(name: &str) -> bool {
    let number = name.strip_prefix("lod").and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(digits, _)| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// A file or folder that a view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its number within the view.
    pub node: u64,
    /// Its name in its folder.
    pub name: String,
    /// Whether it is a folder.
    pub folder: bool,
}

/// One kind of virtual file.
pub(crate) trait View: Send + Sync {
    /// Returns the name by which users choose the view, one of [`view_names`](super::view_names); views may share one.
    /// A view without a name is always shown.
    fn name(&self) -> Option<&'static str> {
        None
    }

    /// Returns how many nodes the view has for a layer; 0 if it does not apply. Nodes are numbered from 0.
    fn nodes(&self, layer: LayerRef<'_>) -> u64;

    /// Returns what follows the layer's name in the name of the view's folder beside the layer's folder, if the view has
    /// one: all its nodes are in there, node 0 is the folder itself, and nothing is listed in the layer's folder.
    fn beside_layer(&self) -> Option<&'static str> {
        None
    }

    /// Calls `add` for each entry in the layer's folder (`folder` is `None`) or in a folder of the view, in order.
    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry));

    /// Returns whether a folder may have so many entries that they are not collected when it is opened: they are passed
    /// on by [`View::stream`] and not by [`View::list`].
    fn is_streamed(&self, _layer: LayerRef<'_>, _folder: u64) -> bool {
        false
    }

    /// Calls `add` for each entry of a folder that [is streamed](View::is_streamed) from position `from` on (0: the
    /// first), in order, until it returns false. Passes the position of the next entry along. May block to read from
    /// the source.
    fn stream(&self, _layer: LayerRef<'_>, _folder: u64, _from: u64, _add: &mut dyn FnMut(Entry, u64) -> bool) {}

    /// Finds an entry by name. The default lists all entries; views with many, or with folders that are
    /// streamed, override it.
    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let mut found = None;
        self.list(layer, folder, &mut |entry| {
            if entry.name == name {
                found = Some(entry);
            }
        });
        found
    }

    /// Finds an entry by name, in a view that has to look at the source to know which entries there are. Otherwise like
    /// [`View::find`], which need not be implemented then. Fails with
    /// [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if it has to wait and `blocking` is
    /// [`Blocking::No`].
    fn find_in_source(
        &self,
        layer: LayerRef<'_>,
        folder: Option<u64>,
        name: &str,
        _wait: Blocking,
    ) -> Result<Option<Entry>, FormatError> {
        Ok(self.find(layer, folder, name))
    }

    /// Returns the node of the view's folder that contains `node`; `None` if that is the layer's folder, or `node` the
    /// view's folder beside it.
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

    /// Returns the name of a file or folder that a layer of this kind usually has, and why this one does not have it.
    fn hidden(&self, _layer: LayerRef<'_>) -> Option<(String, String)> {
        None
    }

    /// Returns whether [`View::content`] may block to read from the source.
    fn may_block(&self) -> bool {
        true
    }

    /// Returns the content of a file.
    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError>;
}

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
