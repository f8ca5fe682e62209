//! Precomputed volumes of Neuroglancer: images and segmentations in chunks, each an object of a folder or a part of a
//! shard, at several resolutions.
//!
//! A dataset is a folder. [`metadata`] reads its description `info`; the volume at each resolution is an array
//! ([`array`]). [`sharding`] finds a chunk in a shard, [`encoding`] decodes it. Meshes and skeletons are not read.
//!
//! The public descriptions are `src/datasource/precomputed/volume.md` and `sharded.md` of the repository
//! `google/neuroglancer`.

mod array;
mod encoding;
mod metadata;
mod sharding;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::json;

use array::PrecomputedArray;
use metadata::{FILE, MAX_HEAD, Volume};

use super::chunked::{Hidden, read};
use super::verdicts::Verdicts;
use super::{Array, Dataset, Finding, Format, FormatError, Layer, OpenWith, native};
use crate::source::{Folder, FolderProbe, NoFolder};
use crate::volume::{DatasetInfo, NativeJson};

/// The name of the only layer.
const LAYER: &str = "data";

/// Whether files of the name of descriptions are those of volumes.
static VERDICTS: Verdicts = Verdicts::new();

pub(crate) struct Precomputed;

impl Format for Precomputed {
    fn name(&self) -> &'static str {
        "precomputed"
    }

    fn described_folder(&self, folder: &FolderProbe) -> Option<bool> {
        let description = folder.find(FILE).filter(|found| found.about().is_file())?;
        VERDICTS
            .of(description.about().version, || Some(metadata::is_description(&description.read_head(MAX_HEAD).ok()?)))
    }

    fn folder_files(&self) -> &'static [&'static str] {
        &[FILE]
    }

    fn array_names(&self) -> &'static [&'static str] {
        &["neuroglancerPrecomputed"]
    }

    fn describes_scales(&self) -> bool {
        true
    }

    fn open_array(&self, folder: Arc<dyn Folder>, scale: &str, with: &OpenWith) -> Result<Arc<dyn Array>, FormatError> {
        let (_, volume) = volume_of(&*folder)?;
        let found = volume.scales.into_iter().find(|(key, _)| key.trim_matches('/') == scale);
        let (_, found) = found.ok_or_else(|| format!("{FILE} has no scale {scale}"))?;
        let made = found.and_then(|found| Ok((folder_of(&folder, &found.key)?, found)));
        let (place, found) = made.map_err(Hidden::error)?;
        let info = found.info(volume.dtype, 0, found.resolution);
        Ok(Arc::new(PrecomputedArray::new(info, found, place, Arc::clone(&with.index))))
    }

    fn open_folder(&self, folder: Arc<dyn Folder>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let (keys, volume) = volume_of(&*folder)?;
        let finest = volume.scales.iter().find_map(|(_, scale)| scale.as_ref().ok()?.resolution);
        let info = DatasetInfo { version: "1".into(), ..DatasetInfo::default() };
        let mut opened = Opened { info, ..Opened::default() };
        let mut levels: Vec<Arc<dyn Array>> = Vec::new();
        for (key, scale) in volume.scales {
            let found = scale.and_then(|scale| {
                let (place, prefix) = folder_of(&folder, &scale.key)?;
                Ok((scale.info(volume.dtype, levels.len(), finest), scale, place, prefix))
            });
            match found {
                Ok((info, scale, place, prefix)) => {
                    if !Arc::ptr_eq(&place, &folder) {
                        opened.folders.push(Arc::clone(&place));
                    }
                    levels.push(Arc::new(PrecomputedArray::new(info, scale, (place, prefix), Arc::clone(&with.index))));
                }
                Err(hidden) => opened.missing.push((key, hidden)),
            }
        }
        if levels.is_empty() {
            let (key, hidden) = opened.missing.into_iter().next().ok_or("it has no scales")?;
            return Err(Hidden { reason: format!("scale {key}: {}", hidden.reason), ..hidden }.error());
        }
        let left_out =
            opened.missing.iter().map(|(key, hidden)| format!("scale {key} is not shown: {}", hidden.reason));
        opened.info.warnings = volume.warnings.into_iter().chain(left_out).collect();
        let mut own = native(json!({"type": keys.get("type")}));
        if !opened.missing.is_empty() {
            let entries = opened.missing.iter().map(|(key, hidden)| json!({"path": key, "reason": hidden.reason}));
            own.insert("missing".into(), entries.collect());
        }
        opened.layers = vec![Layer { name: LAYER.into(), levels, native: own }];
        opened.info.native = keys;
        opened.folders.push(folder);
        Ok(Box::new(opened))
    }
}

/// Returns the description of a volume, as JSON and parsed.
fn volume_of(folder: &dyn Folder) -> Result<(NativeJson, Volume), FormatError> {
    let found = read(folder, FILE, None)?.map(|(parsed, _)| parsed);
    let keys = found.ok_or_else(|| FormatError::NotThisFormat(format!("it has no {FILE}")))??;
    let volume = Volume::parse(&keys)?;
    Ok((keys, volume))
}

/// Returns the folder of a scale, and what the names of its objects begin with there.
fn folder_of(folder: &Arc<dyn Folder>, key: &str) -> Result<(Arc<dyn Folder>, String), Hidden> {
    if key.contains("://") {
        return Err(Hidden::unsupported("it is remote, and only folders below the source are read".into()));
    }
    let parts: Vec<&str> = key.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if key.starts_with('/') || parts.contains(&"..") {
        let found = folder.folder(key).map_err(|why| match why {
            NoFolder::Outside => Hidden::unsupported(why.to_string()),
            _ => Hidden::damaged(why.to_string()),
        });
        return Ok((found?, String::new()));
    }
    // chunks are objects of the dataset's folder: where none was written there may be no folder
    Ok((Arc::clone(folder), parts.iter().map(|part| format!("{part}/")).collect()))
}

#[derive(Default)]
struct Opened {
    info: DatasetInfo,
    layers: Vec<Layer>,
    /// The keys of scales that are not shown.
    missing: Vec<(String, Hidden)>,
    /// All folders that are read.
    folders: Vec<Arc<dyn Folder>>,
}

impl Dataset for Opened {
    fn info(&self) -> &DatasetInfo {
        &self.info
    }

    fn layers(&self) -> &[Layer] {
        &self.layers
    }

    fn check_structure(&self, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        for (key, hidden) in self.missing.iter().filter(|(_, hidden)| hidden.damaged) {
            report(Finding::damage(format!("scale {key}: {}", hidden.reason)).of_layer(LAYER));
        }
        Ok(())
    }

    fn is_changed(&self) -> bool {
        // not `any`: every folder is asked, so that each notices its own change
        self.folders.iter().filter(|folder| folder.is_changed()).count() > 0
    }
}
