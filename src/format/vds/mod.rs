//! VDS, the format of OpenVDS: volumes of 2 to 6 axes with several channels. Each channel is stored in one or more
//! partitionings and levels of detail.
//!
//! The [`description`] of a dataset is parsed from its `VolumeDataLayout` or `VDSObject`, and [`describe`] makes JSON
//! of it. The chunks are in a [`store`]: one file, or a folder of objects. A [`chunk_grid`] computes which chunk has
//! which samples, [`layers`] combines the stored layers of a channel by their names, and [`bricks`] makes bricks of
//! chunks, which [`chunk`] or [`wavelet`] decodes. [`check`] looks for faults of the tables as a whole. Sizes and
//! counts from a file are checked before memory is allocated for them.
//!
//! The format has no written specification: the names and the arithmetic are those of the OpenVDS source code.

mod bricks;
mod check;
pub(crate) mod chunk;
mod chunk_grid;
pub(crate) mod describe;
pub(crate) mod description;
mod layers;
mod segy;
mod store;
pub(crate) mod wavelet;

use std::sync::Arc;

use serde_json::Value;

use description::Description;
use layers::{Layers, parse_layer_name};
use store::{Cloud, Container, DescriptionText};

use super::{Dataset, Finding, Format, FormatError, HiddenLayer, Layer, OpenWith, SegyImport};
use crate::source::{EntryKind, Folder, FolderProbe, Source};
use crate::volume::{DatasetInfo, NativeJson};

pub(crate) struct Vds;

impl Format for Vds {
    fn name(&self) -> &'static str {
        "vds"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["vds"]
    }

    fn is_file(&self, head: &[u8]) -> bool {
        head.starts_with(store::MAGIC)
    }

    fn described_folder(&self, folder: &FolderProbe) -> Option<bool> {
        let both = |extension: &str| {
            [store::LAYOUT, store::STATUS].iter().all(|name| folder.is_file(format!("{name}{extension}")))
        };
        // a folder with copies of the two JSON files but no layers is not a dataset
        let has_layers = || {
            let mut found = false;
            folder.visit(usize::MAX, |name, kind| {
                let is_layer = name.to_str().is_some_and(|name| parse_layer_name(name).is_some());
                found = is_layer && (kind == EntryKind::Folder || kind == EntryKind::Link && folder.is_folder(name));
                !found
            });
            found
        };
        (both("") || both(store::EXTENSION) && has_layers()).then_some(true)
    }

    fn folder_files(&self) -> &'static [&'static str] {
        &[store::STATUS, "LayerStatus.json", store::LAYOUT, "VolumeDataLayout.json"]
    }

    fn release_idle(&self) {
        wavelet::release_idle();
    }

    fn open(&self, source: Arc<dyn Source>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let container = Container::open(Arc::clone(&source), Arc::clone(&with.index))?;
        let absent = || FormatError::NotThisFormat("not a VDS: it has no description of a volume".into());
        let text = container.text()?.ok_or_else(absent)?;
        let description = text.read()?;
        let (major, minor) = container.version;
        let syntax = if text.is_json { "JSON" } else { "VDSObject" };
        let version = format!("{major}.{minor} (one file, description as {syntax})");
        let mut layers =
            layers::layers(&description, container.layers(), &|number, _| container.layer(number), &source, with)?;
        layers.checked.parts = Some(container.parts());
        Ok(Box::new(Volume::new(&description, version, layers, text, None)))
    }

    fn open_folder(&self, folder: Arc<dyn Folder>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let cloud = Cloud::open(Arc::clone(&folder), Arc::clone(&with.index))?;
        let text = cloud.text()?;
        let description = text.read()?;
        let source = Arc::clone(&folder) as Arc<dyn Source>;
        let find = |number, chunks| cloud.layer(number, chunks);
        let layers = layers::layers(&description, cloud.layers(), &find, &source, with)?;
        Ok(Box::new(Volume::new(
            &description,
            "cloud layout (a folder of objects)".to_owned(),
            layers,
            text,
            Some(folder),
        )))
    }
}

struct Volume {
    info: DatasetInfo,
    layers: Layers,
    /// The text of the description, which is parsed again for the metadata.
    text: DescriptionText,
    folder: Option<Arc<dyn Folder>>,
    /// The file that it was imported from, or why that cannot be made again.
    segy: Result<SegyImport, String>,
}

impl Volume {
    fn new(
        description: &Description,
        version: String,
        layers: Layers,
        text: DescriptionText,
        folder: Option<Arc<dyn Folder>>,
    ) -> Self {
        let segy = segy::import(description, &layers);
        let info = DatasetInfo {
            version,
            geometry: describe::geometry(description),
            warnings: description.warnings.iter().chain(&layers.warnings).cloned().collect(),
            native: native(description),
            ..DatasetInfo::default()
        };
        Self { info, layers, text, folder, segy }
    }
}

impl Dataset for Volume {
    fn info(&self) -> &DatasetInfo {
        &self.info
    }

    fn layers(&self) -> &[Layer] {
        &self.layers.shown
    }

    fn hidden(&self) -> &[HiddenLayer] {
        &self.layers.hidden
    }

    fn metadata(&self) -> Result<Option<Value>, FormatError> {
        Ok(Some(describe::metadata(&self.text.read()?)))
    }

    fn segy_import(&self) -> Option<Result<&SegyImport, &str>> {
        Some(self.segy.as_ref().map_err(String::as_str))
    }

    fn check_structure(&self, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        self.layers.checked.check(report)
    }

    fn is_changed(&self) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.is_changed())
    }
}

/// Returns the format's own keys of dataset.json.
pub(crate) fn native(description: &Description) -> NativeJson {
    let mut native = describe::native(description);
    if let Some(headers) = segy::headers(description) {
        native.insert("segy".into(), headers.into());
    }
    native
}
