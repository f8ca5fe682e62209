//! WKW (webKNOSSOS): microscopy volumes and segmentations in cubes of blocks, at several magnifications.
//!
//! A dataset is a folder. [`properties`] reads its description in all dialects; without one, [`disk`] finds the layers
//! by the names of folders. [`opening`] opens the mags (magnifications) of each layer as arrays. An [`array`] maps each
//! brick to a block of a data file ("cube"), and [`cubes`] finds the block in the file. No allocation depends on an
//! unchecked number of a file, and no jump table is read as a whole.
//!
//! The public descriptions of the format are the repository `scalableminds/webknossos-wkw` for the data files, and
//! "Datasets" in the documentation of webKNOSSOS for `datasource-properties.json`.

mod array;
mod check;
mod cube_files;
mod cubes;
mod describe;
mod disk;
mod element_class;
mod header;
mod limits;
mod mag;
mod morton;
mod opening;
mod properties;
mod recognise;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use super::{Array, Dataset, Finding, Format, FormatError, HiddenLayer, Layer, OpenWith};
use crate::memory::try_zeroed;
use crate::source::{Blocking, Folder, FolderProbe, IndexCache, SourceError};
use crate::volume::DatasetInfo;
use array::WkwArray;
use opening::{OpenedLayer, Opening};
use properties::Properties;

/// The format.
pub(crate) struct Wkw;

impl Format for Wkw {
    fn name(&self) -> &'static str {
        "wkw"
    }

    fn described_folder(&self, folder: &FolderProbe) -> Option<bool> {
        recognise::has_described_layer(folder)
    }

    fn is_layer_folder(&self, folder: &FolderProbe) -> bool {
        recognise::has_mag(folder)
    }

    fn folder_file(&self) -> Option<&'static str> {
        Some(properties::FILE)
    }

    fn open_folder(&self, folder: Arc<dyn Folder>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        Ok(Box::new(Volume::open(folder, Arc::clone(&with.index))?))
    }
}

/// An open dataset.
struct Volume {
    info: DatasetInfo,
    layers: Vec<Layer>,
    hidden: Vec<HiddenLayer>,
    /// All folders that were read.
    folders: Vec<Arc<dyn Folder>>,
    /// The layer's name and the array of each mag.
    to_check: Vec<(String, Arc<WkwArray>)>,
    /// What was found wrong when the dataset was opened.
    findings: Vec<Finding>,
}

impl Volume {
    fn open(folder: Arc<dyn Folder>, cache: Arc<IndexCache>) -> Result<Self, FormatError> {
        let properties = properties_of(&*folder)?;
        let mut opening = Opening {
            folder: Arc::clone(&folder),
            cache,
            scale: properties.scale,
            cubes: Vec::new(),
            arrays: Vec::new(),
            watched: vec![folder],
            warnings: properties.warnings,
            to_check: Vec::new(),
            findings: Vec::new(),
        };
        let (mut layers, mut hidden, mut names) = (Vec::new(), Vec::new(), HashSet::new());
        for described in &properties.layers {
            if !names.insert(&described.name) {
                opening.warnings.push(format!("there are two layers called {}", described.name));
            }
            match opening.layer(described) {
                OpenedLayer::Shown(layer) => layers.push(layer),
                OpenedLayer::Hidden(layer) => hidden.push(layer),
            }
        }
        let Opening { cubes, watched: mut folders, warnings, to_check, mut findings, .. } = opening;
        findings.extend(properties.fault.map(Finding::damage));
        folders.extend(cubes.iter().map(|cubes| Arc::clone(&cubes.folder)));
        let info = DatasetInfo { version: "1".into(), warnings, native: properties.json, ..DatasetInfo::default() };
        Ok(Self { info, layers, hidden, folders, to_check, findings })
    }
}

/// Returns the description of a dataset, or one made of the names of its folders if there is none that can be read.
fn properties_of(folder: &dyn Folder) -> Result<Properties, FormatError> {
    let read = match read_description(folder) {
        Err(SourceError::Changed) => return Err(SourceError::Changed.into()),
        read => read.map_err(|e| e.to_string()),
    };
    let parse = |text: Vec<u8>| {
        let properties = Properties::parse(&text)?;
        limits::check(&properties).map(|()| properties)
    };
    let described = read.and_then(|text| text.map(parse).transpose());
    let fault = match described {
        Ok(Some(properties)) => return Ok(properties),
        Ok(None) => None,
        Err(why) => Some(format!("{} cannot be read ({why})", properties::FILE)),
    };
    let layers = disk::layers(folder)?;
    match (fault, layers.is_empty()) {
        (Some(why), true) => Err(FormatError::Damaged(format!("{why}, and no folder has mags"))),
        (None, true) => Err(FormatError::NotThisFormat("no folder has mags with a header.wkw".into())),
        (fault, false) => {
            let fault = fault.map(|why| format!("{why}: what is shown is what the folders have"));
            Ok(Properties { layers, warnings: fault.clone().into_iter().collect(), fault, ..Properties::default() })
        }
    }
}

/// Reads the text of the description. One that is too long is truncated, so that it does not parse.
fn read_description(folder: &dyn Folder) -> Result<Option<Vec<u8>>, SourceError> {
    let Some(length) = folder.len(properties::FILE)? else { return Ok(None) };
    let mut text = try_zeroed(length.min(properties::MAX_BYTES) as usize)?;
    Ok(folder.read_at(properties::FILE, 0, &mut text, Blocking::Yes)?.then_some(text))
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

    fn check_structure(&self, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        self.findings.iter().cloned().for_each(&mut *report);
        for (layer, array) in &self.to_check {
            let lod = array.info().lod;
            check::check_mag(array, &mut |found| report(found.of_layer(layer).of_lod(lod)))?;
        }
        Ok(())
    }

    fn is_changed(&self) -> bool {
        // not `any`: every folder is asked, so that each notices its own change
        self.folders.iter().filter(|folder| folder.is_changed()).count() > 0
    }
}
