//! N5: arrays in blocks, each a file, in a tree of folders with `attributes.json`, and the multiscale images of Cellmap,
//! BigDataViewer and Paintera.
//!
//! [`metadata`] reads the descriptions, [`image`] which arrays are levels of one image, [`block`] decodes a block. What
//! the arrays and layers are is in [`chunked`](super::chunked). N5 names the fastest axis first: axes are reversed here.
//!
//! The public description is the repository `saalfeldlab/n5`.

mod block;
mod image;
mod metadata;

use std::sync::Arc;

use super::chunked::{Convention, Image, Node, Nodes, one_array, open};
use super::verdicts::Verdicts;
use super::{Array, Dataset, Format, FormatError, OpenWith};
use crate::format::native;
use crate::source::{Folder, FolderProbe};
use crate::volume::DatasetInfo;

/// Whether files of the name of descriptions are such.
static VERDICTS: Verdicts = Verdicts::new();

pub(crate) struct N5;

impl Format for N5 {
    fn name(&self) -> &'static str {
        "n5"
    }

    fn described_folder(&self, folder: &FolderProbe) -> Option<bool> {
        let description = folder.find(metadata::FILE).filter(|found| found.about().is_file())?;
        let verdict = VERDICTS.of(description.about().version, || {
            Some(metadata::is_description(&description.read_head(metadata::MAX_HEAD).ok()?))
        });
        // opening it gives the reason why it cannot be read
        Some(verdict.unwrap_or(true))
    }

    fn folder_files(&self) -> &'static [&'static str] {
        &[metadata::FILE]
    }

    fn array_names(&self) -> &'static [&'static str] {
        &["n5"]
    }

    fn counts_axes_from_the_fastest(&self) -> bool {
        true
    }

    fn open_array(&self, folder: Arc<dyn Folder>, _: &str, with: &OpenWith) -> Result<Arc<dyn Array>, FormatError> {
        let top = metadata::node(&*folder, "")?;
        one_array(folder, &with.index, top)
    }

    fn open_folder(&self, folder: Arc<dyn Folder>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let top = metadata::node(&*folder, "")?;
        let top = top.ok_or_else(|| FormatError::NotThisFormat(format!("it has no {}", metadata::FILE)))?;
        let version = top.attributes.get("n5").and_then(|version| version.as_str()).unwrap_or_default().to_owned();
        let keys = native(serde_json::json!({"attributes": top.attributes}));
        let info = DatasetInfo { version, native: keys, ..DatasetInfo::default() };
        open(&Descriptions, (folder, &with.index), top, info)
    }
}

/// Groups and arrays as N5 describes them.
struct Descriptions;

impl Convention for Descriptions {
    fn node(&self, folder: &dyn Folder, path: &str) -> Result<Option<Node>, FormatError> {
        metadata::node(folder, path)
    }

    /// A folder without description is a group.
    fn has_bare_groups(&self) -> bool {
        true
    }

    fn images(&self, group: &Node, nodes: &Nodes) -> Vec<Image> {
        image::image(group, nodes).into_iter().collect()
    }

    fn named_paths(&self, _: &dyn Folder, group: &Node) -> Result<Vec<String>, FormatError> {
        Ok(image::named_paths(group))
    }
}
