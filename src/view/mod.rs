//! The virtual files: one file here for each kind. Which bytes a file consists of is arithmetic; nothing is decoded.
//!
//! A view has some number of *nodes* (files, or folders of its own) in the folder of a layer, and numbers them from 0 as it
//! likes; that is all the file system needs to give them inode numbers that it can compute again. A new view is a file here and
//! a line of [`registry`].

mod array_file;
mod float;
pub mod json;
mod metaimage;
pub mod names;
pub mod npy;
mod nrrd;
mod permuted;
mod placement;
pub mod pretty;
mod raw;

pub use array_file::{ArrayFile, FileSlice};

use std::sync::Arc;

use crate::catalog::OpenDataset;
use crate::format::{FormatError, Layer};
use crate::volume::{ArrayInfo, Dims, Dtype};

/// Every view, in the order of their nodes.
#[must_use]
pub fn registry() -> &'static [&'static dyn View] {
    &[&raw::Raw, &npy::Npy, &json::Json, &nrrd::Nrrd, &metaimage::MetaImage, &float::Float32Npy, &permuted::ByAxis]
}

/// One layer of an open dataset.
#[derive(Clone, Copy)]
pub struct LayerRef<'a> {
    /// The dataset.
    pub open: &'a OpenDataset,
    /// Which of its layers.
    pub layer: usize,
}

impl<'a> LayerRef<'a> {
    /// The layer.
    #[must_use]
    pub fn layer(&self) -> &'a Layer {
        &self.open.dataset.layers()[self.layer]
    }

    /// What is known of the layer at `lod`, which it has.
    #[must_use]
    pub fn info(&self, lod: usize) -> &'a ArrayInfo {
        self.layer().levels[lod].info()
    }
}

/// What a virtual file consists of.
#[derive(Clone)]
pub enum Content {
    /// A few bytes, computed when the file is opened.
    Bytes(Arc<[u8]>),
    /// The samples of an array, with or without something before them.
    Array(ArrayFile),
}

impl Content {
    /// Bytes of the file.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Array(file) => file.len(),
        }
    }

    /// Whether the file has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes().into())
    }
}

/// An array as a file shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownArray {
    /// Samples along each axis of the file's array, slowest first.
    pub shape: Dims,
    /// The type of its samples.
    pub dtype: Dtype,
}

impl ShownArray {
    /// The array as it is stored.
    #[must_use]
    pub fn stored(info: &ArrayInfo) -> Self {
        Self { shape: info.shape(), dtype: info.dtype }
    }
}

/// A file or folder that a view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number within the view.
    pub node: u64,
    /// Its name in the folder that it stands in.
    pub name: String,
    /// Whether it is a folder.
    pub folder: bool,
}

/// One kind of virtual file.
pub trait View: Send + Sync {
    /// How many nodes the view has for a layer; 0 if it does not apply. Nodes have the numbers below that.
    fn nodes(&self, place: LayerRef<'_>) -> u64;

    /// Names the view's entries in the layer's folder, or in the view's own folder `folder`, in order.
    fn list(&self, place: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry));

    /// The entry of a name. Views with many entries know better than to list them.
    fn find(&self, place: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let mut found = None;
        self.list(place, folder, &mut |entry| {
            if entry.name == name {
                found = Some(entry);
            }
        });
        found
    }

    /// The node's own folder among the view's nodes; `None` for the layer's folder.
    fn parent(&self, _place: LayerRef<'_>, _node: u64) -> Option<u64> {
        None
    }

    /// Whether a node is a folder.
    fn is_folder(&self, _place: LayerRef<'_>, _node: u64) -> bool {
        false
    }

    /// The array that a file shows, if it shows one: such files have extended attributes that say so.
    fn shows(&self, _place: LayerRef<'_>, _node: u64) -> Option<ShownArray> {
        None
    }

    /// Whether [`View::content`] may have to read from the source, so that it should not be called where nothing may wait.
    fn may_wait(&self) -> bool {
        true
    }

    /// What a file consists of.
    ///
    /// # Errors
    /// Those of the format, where the source has to be read.
    fn content(&self, place: LayerRef<'_>, node: u64) -> Result<Content, FormatError>;
}

/// A view that has one file for each LOD: `lodN` and a suffix.
pub trait LevelFile: Send + Sync {
    /// What follows `lodN`.
    fn suffix(&self) -> &'static str;

    /// Whether layers like this have such a file.
    fn applies(&self, _info: &ArrayInfo) -> bool {
        true
    }

    /// See [`View::may_wait`].
    fn may_wait(&self) -> bool {
        false
    }

    /// See [`View::shows`].
    fn shows(&self, _info: &ArrayInfo) -> Option<ShownArray> {
        None
    }

    /// What the file consists of.
    ///
    /// # Errors
    /// Those of the format, where the source has to be read.
    fn content(&self, place: LayerRef<'_>, lod: usize) -> Result<Content, FormatError>;
}

impl<T: LevelFile> View for T {
    fn nodes(&self, place: LayerRef<'_>) -> u64 {
        if self.applies(place.info(0)) { place.layer().levels.len() as u64 } else { 0 }
    }

    fn list(&self, place: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_none() {
            for node in 0..View::nodes(self, place) {
                add(Entry { node, name: format!("lod{node}{}", self.suffix()), folder: false });
            }
        }
    }

    fn find(&self, place: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let digits = name.strip_prefix("lod")?.strip_suffix(self.suffix())?;
        let node = digits.parse().ok()?;
        let exact = digits.len() == 1 || !digits.starts_with(['0', '+']);
        let there = folder.is_none() && exact && node < View::nodes(self, place);
        there.then(|| Entry { node, name: name.to_owned(), folder: false })
    }

    fn shows(&self, place: LayerRef<'_>, node: u64) -> Option<ShownArray> {
        let level = place.layer().levels.get(usize::try_from(node).ok()?)?;
        LevelFile::shows(self, level.info())
    }

    fn may_wait(&self) -> bool {
        LevelFile::may_wait(self)
    }

    fn content(&self, place: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        LevelFile::content(self, place, node as usize)
    }
}
