//! Zarr: arrays in chunks, each an object of a folder, in versions 2 and 3 of the format, and images of several arrays
//! as OME-NGFF describes them.
//!
//! A dataset is a folder. [`metadata`] reads the descriptions of its groups and arrays, [`data_type`] and [`chain`]
//! what they say of samples and codecs, [`ome`] the images. What the arrays and layers are is in
//! [`chunked`](super::chunked).
//!
//! The public descriptions are the specifications of Zarr (`zarr-specs.readthedocs.io`), the codecs of numcodecs, and
//! OME-NGFF (`ngff.openmicroscopy.org`).

mod chain;
mod data_type;
mod metadata;
mod ome;
mod zip;

use std::sync::Arc;

use super::chunked::{Convention, Image, Node, Nodes, one_array, open};
use super::{Array, Dataset, Format, FormatError, OpenWith};
use crate::format::native;
use crate::source::{Folder, FolderProbe, Source};
use crate::volume::{DatasetInfo, NativeJson};

pub(crate) struct Zarr;

impl Format for Zarr {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["zarr.zip", "ozx"]
    }

    fn may_be_file(&self, head: &[u8]) -> bool {
        head.starts_with(&zip::MAGIC)
    }

    fn described_folder(&self, folder: &FolderProbe) -> Option<bool> {
        self.folder_files().iter().any(|file| folder.is_file(file)).then_some(true)
    }

    fn folder_files(&self) -> &'static [&'static str] {
        &[metadata::V3, metadata::V2_ARRAY, metadata::V2_GROUP]
    }

    fn array_names(&self) -> &'static [&'static str] {
        &["zarr", "zarr3"]
    }

    fn open_array(&self, folder: Arc<dyn Folder>, _: &str, with: &OpenWith) -> Result<Arc<dyn Array>, FormatError> {
        let top = metadata::node(&*folder, "")?;
        one_array(folder, &with.index, top)
    }

    /// Opens the hierarchy in a zip file.
    fn open(&self, source: Arc<dyn Source>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let folder = zip::ZipFolder::open(source)?;
        // the folder of a hierarchy may be in the zip file as a whole
        let top = metadata::node(&folder, "")?.unwrap_or_default();
        open_top(Arc::new(folder), with, top)
    }

    fn open_folder(&self, folder: Arc<dyn Folder>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let top = metadata::node(&*folder, "")?;
        let none = || FormatError::NotThisFormat("it has no description of an array or a group".into());
        open_top(folder, with, top.ok_or_else(none)?)
    }
}

fn open_top(folder: Arc<dyn Folder>, with: &OpenWith, top: Node) -> Result<Box<dyn Dataset>, FormatError> {
    let version = if folder.len(metadata::V3)?.is_some() { 3 } else { 2 };
    let info = DatasetInfo {
        version: version.to_string(),
        native: native(serde_json::json!({"zarr_format": version, "attributes": top.attributes})),
        ..DatasetInfo::default()
    };
    open(&Descriptions, (folder, &with.index), top, info)
}

/// Groups and arrays as Zarr describes them.
struct Descriptions;

impl Convention for Descriptions {
    fn node(&self, folder: &dyn Folder, path: &str) -> Result<Option<Node>, FormatError> {
        metadata::node(folder, path)
    }

    fn images(&self, group: &Node, _: &Nodes) -> Vec<Image> {
        ome::images(&group.attributes)
    }

    fn named_paths(&self, folder: &dyn Folder, group: &Node) -> Result<Vec<String>, FormatError> {
        let mut paths = metadata::consolidated_paths(folder, &group.path)?;
        paths.extend(ome::named_paths(&group.attributes));
        Ok(paths)
    }

    fn dimensions(&self, attributes: &NativeJson) -> Vec<(String, Vec<f64>)> {
        metadata::dimensions(attributes)
    }

    fn value_range(&self, attributes: &NativeJson) -> Option<(f64, f64)> {
        ome::value_range(attributes)
    }
}
