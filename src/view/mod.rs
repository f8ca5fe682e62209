//! The virtual files: one file or folder here for each kind. A view declares which files and folders a layer has, and
//! which segments a file consists of; it decodes nothing.
//!
//! [`entry`] has what a view declares, [`tree`] numbers and finds the files of all views, and [`segments`] puts the
//! bytes of a read together. A new view is a file here and a line of [`registry`].

mod arrays;
mod boxed;
mod cf;
mod convert;
mod csv;
mod entry;
mod headers;
pub(crate) mod json;
mod names;
mod netcdf;
mod outline;
mod picture;
mod registry;
mod segments;
mod segy;
mod slice_cost;
#[cfg(test)]
pub(crate) mod tests;
mod tiff;
mod tree;
mod zarr;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

pub(crate) use boxed::{BoxFile, BoxOf, Form};
#[cfg(feature = "serve")]
pub(crate) use cf::{CfArray, CfValue, DATA, Positions, has_type};
pub(crate) use csv::Rows;
pub(crate) use entry::Entry;
#[cfg(test)]
pub(crate) use entry::level_files;
pub(crate) use json::text as json_text;
pub(crate) use names::find_name;
pub(crate) use registry::{VIEW_NAMES, registry, views_of, with_needed};
#[cfg(any(test, feature = "serve"))]
pub(crate) use segments::{ComputedFile, Convert, NextSegment, Samples, Segment};
pub(crate) use segments::{Content, FileRead, SampleRequest, ShownArray, Step};
#[cfg(test)]
pub(crate) use slice_cost::SliceCost;
pub(crate) use tree::{ERROR_TXT, Item, Tree, find_layer, layer_folders};

use crate::catalog::OpenDataset;
use crate::format::{Array, Layer};
use crate::volume::ArrayInfo;

/// One kind of virtual file.
#[derive(Clone, Copy)]
pub(crate) struct View {
    /// The name by which users choose the view, one of [`VIEW_NAMES`]; views may share one. A view without a name is
    /// always shown.
    pub name: Option<&'static str>,
    /// What follows the layer's name in the name of the view's folder beside the layer's folder, if it has one: its
    /// entries are in there, and none in the layer's folder.
    pub beside_layer: Option<&'static str>,
    /// Declares the files and folders of a layer. They depend on the dataset alone.
    pub entries: fn(LayerRef<'_>) -> Vec<Entry>,
    /// Returns the name of a file or folder that a layer of this kind usually has, and why this one does not have it.
    pub hidden: fn(LayerRef<'_>) -> Option<(String, String)>,
}

impl View {
    /// Creates a view whose entries are in the layer's folder.
    pub(crate) const fn new(name: Option<&'static str>, entries: fn(LayerRef<'_>) -> Vec<Entry>) -> Self {
        Self { name, beside_layer: None, entries, hidden: |_| None }
    }
}

/// Returns a number that tells a value from others, whatever the process.
fn hash_of(value: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// One layer of an open dataset.
#[derive(Clone, Copy)]
pub(crate) struct LayerRef<'a> {
    pub open: &'a OpenDataset,
    /// Index of the layer in the dataset.
    pub layer: usize,
    /// The views that the folder of the layer shows.
    pub views: &'a [View],
}

impl<'a> LayerRef<'a> {
    fn layer(&self) -> &'a Layer {
        &self.open.dataset.layers()[self.layer]
    }

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
}
