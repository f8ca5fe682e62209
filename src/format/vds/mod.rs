//! VDS (OpenVDS): volumes of 2 to 6 axes with several channels, each stored in one or more partitionings and levels of detail.
//!
//! What a VDS says of itself is read to one [`description`], and told on by [`describe`]; its chunks are in a [`store`], which is one
//! file, or a folder of objects. [`cuts`] knows which chunk has which samples, [`layers`] puts stored layers together by
//! [`layer_name`], and [`array`] makes bricks of chunks: of what the tables of the store say, [`serial`] or [`wavelet`] decode it.
//! Nothing is allocated by the word of a file alone.
//!
//! The sections that comments name are those of the description of the format.

mod array;
mod arrays;
mod cuts;
mod describe;
mod description;
mod failing;
mod layer_name;
mod layers;
mod marks;
mod rle;
mod serial;
mod store;
mod value;
pub mod wavelet;
#[doc(hidden)]
pub mod words;
mod workshop;

use std::path::Path;
use std::sync::Arc;

use super::{Dataset, Format, FormatError, HiddenLayer, Layer, OpenWith};
use crate::source::{Folder, Source};
use crate::volume::DatasetInfo;
use description::Description;
use layer_name::LayerName;
use layers::Layers;
use store::{Cloud, Container, cloud, container};

/// The format.
pub struct Vds;

impl Format for Vds {
    fn name(&self) -> &'static str {
        "vds"
    }

    fn extension(&self) -> Option<&'static str> {
        Some("vds")
    }

    fn is_file(&self, head: &[u8]) -> bool {
        head.starts_with(container::MAGIC)
    }

    fn is_folder(&self, folder: &Path) -> bool {
        let both = |extension: &str| {
            [cloud::LAYOUT, cloud::STATUS].iter().all(|name| folder.join(format!("{name}{extension}")).is_file())
        };
        // the two texts alone, saved under names of their own, may stand beside anything
        both("") || both(cloud::EXTENSION) && has_layers(folder)
    }

    fn folder_file(&self) -> Option<&'static str> {
        Some(cloud::STATUS)
    }

    fn open(&self, source: Arc<dyn Source>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let container = Container::open(Arc::clone(&source), Arc::clone(&with.index))?;
        let (whole, version) = match container.text(b"JSON", cloud::LAYOUT)? {
            Some(text) => (description::of_json(&text).map_err(bad_layout)?, "HueDataStore 1, VolumeDataLayout"),
            None => match container.text(b"OBJ ", OBJECT)? {
                Some(text) => (description::of_object(&text).map_err(bad_layout)?, "HueDataStore 1, VDSObject"),
                None => {
                    return Err(FormatError::NotThisFormat("not a VDS: it has no description of a volume".into()));
                }
            },
        };
        let layers = layers::layers(&whole, container.layers(), &|name, _| container.layer(name), &source, with)?;
        Ok(Box::new(Volume::new(&whole, version, layers, None)))
    }

    fn open_folder(&self, folder: Arc<dyn Folder>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let cloud = Cloud::open(Arc::clone(&folder), Arc::clone(&with.index))?;
        let whole = description::of_json(&cloud.layout()?).map_err(bad_layout)?;
        let source = Arc::clone(&folder) as Arc<dyn Source>;
        let find = |name: &str, chunks| cloud.layer(name, chunks);
        let layers = layers::layers(&whole, cloud.layers(), &find, &source, with)?;
        Ok(Box::new(Volume::new(&whole, "VolumeDataLayout, LayerStatus", layers, Some(folder))))
    }
}

/// The name of the older description.
const OBJECT: &str = "VDSObject";

fn bad_layout(why: String) -> FormatError {
    FormatError::Damaged(format!("bad layout: {why}"))
}

/// Whether a folder has the folder of any layer.
fn has_layers(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries.flatten().any(|entry| {
        let layer = entry.file_name().to_str().is_some_and(|name| LayerName::parse(name).is_some());
        layer && entry.path().is_dir()
    })
}

/// Whether the wavelet codec knows samples of this format.
fn can_be_wavelet(format: description::Format) -> bool {
    matches!(format, description::Format::R32 | description::Format::U8 | description::Format::U16)
}

/// An open dataset.
struct Volume {
    info: DatasetInfo,
    layers: Vec<Layer>,
    hidden: Vec<HiddenLayer>,
    folder: Option<Arc<dyn Folder>>,
}

impl Volume {
    fn new(whole: &Description, version: &str, layers: Layers, folder: Option<Arc<dyn Folder>>) -> Self {
        let info = DatasetInfo {
            version: version.into(),
            geometry: describe::geometry(whole),
            metadata: Some(describe::metadata(whole)),
            warnings: whole.warnings.iter().cloned().chain(layers.warnings).collect(),
            own: describe::own(whole),
            ..DatasetInfo::default()
        };
        Self { info, layers: layers.shown, hidden: layers.hidden, folder }
    }
}

impl Dataset for Volume {
    fn info(&self) -> &DatasetInfo {
        &self.info
    }

    fn layers(&self) -> &[Layer] {
        &self.layers
    }

    fn hidden(&self) -> &[HiddenLayer] {
        &self.hidden
    }

    fn is_changed(&self) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.is_changed())
    }
}
