//! WKW (webKNOSSOS): microscopy volumes and segmentations in cubes of blocks, at several magnifications.
//!
//! A dataset is a folder. [`properties`] reads its description in all dialects; without one, [`files`] finds the layers
//! by the names of folders. [`layers`] opens the mags (magnifications) of each layer as arrays. An array ([`bricks`])
//! maps each brick to a block of a data file ("cube"), and [`cubes`] finds the block in the file. No allocation depends
//! on an unchecked number of a file, and no jump table is read as a whole.
//!
//! The public descriptions of the format are the repository `scalableminds/webknossos-wkw` for the data files, and
//! "Datasets" in the documentation of webKNOSSOS for `datasource-properties.json`.

mod bricks;
mod check;
mod cubes;
mod files;
mod header;
mod layers;
mod other;
mod properties;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use bricks::WkwArray;
use files::HEADER;
use layers::Opening;
use properties::{DescribedLayer, FILE, MAX_BYTES, Mag, Properties};

use super::verdicts::Verdicts;
use super::{Array, Dataset, Finding, Format, FormatError, HiddenLayer, Layer, OpenWith};
use crate::format::bytes::read_bytes;
use crate::source::{EntryKind, Folder, FolderProbe, IndexCache, SourceError};
use crate::volume::DatasetInfo;

/// Entries of a folder among which mags are looked for.
const MAX_ENTRIES: usize = 4096;

/// Whether descriptions have a layer of this format.
static VERDICTS: Verdicts = Verdicts::new();

pub(crate) struct Wkw;

impl Format for Wkw {
    fn name(&self) -> &'static str {
        "wkw"
    }

    /// Returns whether the description has a layer of this format. One that cannot be read counts: opening the dataset
    /// then gives the reason.
    fn described_folder(&self, folder: &FolderProbe) -> Option<bool> {
        let description = folder.find(FILE).filter(|found| found.about().is_file())?;
        let verdict = VERDICTS.of(description.about().version, || {
            Some(match Properties::parse(&description.read_head(MAX_BYTES).ok()?) {
                Ok(described) => {
                    let is_read = |layer: &DescribedLayer| layer.may_be_wkw() || layer.other_format().is_some();
                    described.layers.is_empty() || described.layers.iter().any(is_read)
                }
                Err(_) => true,
            })
        });
        Some(verdict.unwrap_or(true))
    }

    fn is_layer_folder(&self, folder: &FolderProbe) -> bool {
        let mut found = false;
        folder.visit(MAX_ENTRIES, |name, kind| {
            let is_mag = |name: &str| Mag::from_name(name).is_some() && folder.is_file(format!("{name}/{HEADER}"));
            found = kind != EntryKind::File && name.to_str().is_some_and(is_mag);
            !found
        });
        found
    }

    fn folder_files(&self) -> &'static [&'static str] {
        &[FILE]
    }

    fn open_folder(&self, folder: Arc<dyn Folder>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        Ok(Box::new(Volume::open(folder, Arc::clone(&with.index))?))
    }
}

#[derive(Default)]
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
        let info = DatasetInfo {
            version: "1".into(),
            warnings: properties.warnings,
            native: properties.json,
            ..DatasetInfo::default()
        };
        let volume = Self { info, folders: vec![Arc::clone(&folder)], ..Self::default() };
        let mut opening = Opening { folder, cache, scale: properties.scale, cubes: Vec::new(), volume };
        let mut names = HashSet::new();
        for described in &properties.layers {
            if !names.insert(&described.name) {
                let warning = format!("there are two layers called {}", described.name);
                opening.volume.info.warnings.push(warning);
            }
            opening.layer(described);
        }
        let Opening { cubes, mut volume, .. } = opening;
        volume.findings.extend(properties.fault.map(Finding::damage));
        volume.folders.extend(cubes.iter().map(|cubes| Arc::clone(&cubes.folder)));
        Ok(volume)
    }
}

/// Returns the description of a dataset. If it cannot be read, or there is no description, one is made of the names of
/// folders.
fn properties_of(folder: &dyn Folder) -> Result<Properties, FormatError> {
    let read = folder.len(FILE).and_then(|length| match length {
        // one that is too long is truncated, so that it does not parse
        Some(length) => read_bytes(folder, FILE, 0, length.min(MAX_BYTES)),
        None => Ok(None),
    });
    let read = match read {
        Err(SourceError::Changed) => return Err(SourceError::Changed.into()),
        read => read.map_err(|e| e.to_string()),
    };
    let parse = |text: Vec<u8>| Properties::parse(&text)?.within_limits();
    let described = read.and_then(|text| text.map(parse).transpose());
    let fault = match described {
        Ok(Some(properties)) => return Ok(properties),
        Ok(None) => None,
        Err(why) => Some(format!("{} cannot be read ({why})", FILE)),
    };
    let layers = files::layers(folder)?;
    match (fault, layers.is_empty()) {
        (Some(why), true) => Err(FormatError::Damaged(format!("{why}, and no folder has mags"))),
        (None, true) => Err(FormatError::NotThisFormat("no folder has mags with a header.wkw".into())),
        (fault, false) => {
            let fault = fault.map(|why| format!("{why}: what is shown is what the folders have"));
            Ok(Properties { layers, warnings: fault.clone().into_iter().collect(), fault, ..Properties::default() })
        }
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
