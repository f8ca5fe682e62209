//! Opens the mags of each layer as arrays, or reports why a layer has none.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Volume;
use super::bricks::{WkwArray, grid};
use super::cubes::Cubes;
use super::describe::{Level, layer_keys};
use super::files::{self, HEADER};
use super::header::{BYTES, Header};
use super::properties::{DescribedLayer, DescribedMag, Extent, Mag, Scale};
use crate::format::{Array, Finding, HiddenLayer, Layer, Severity};
use crate::source::{Blocking, Folder, IndexCache, NoFolder, SourceError};
use crate::volume::{ArrayId, Dtype};

/// Files that a mag's folder has in other formats of webKNOSSOS.
const OTHER_FORMATS: [&str; 3] = ["zarr.json", ".zarray", "attributes.json"];

/// The state of a dataset while its layers are opened.
pub(super) struct Opening {
    pub folder: Arc<dyn Folder>,
    pub cache: Arc<IndexCache>,
    pub scale: Option<Scale>,
    /// The mags opened so far: layers may share them, by links or by their paths in the description.
    pub cubes: Vec<Arc<Cubes>>,
    /// The arrays made so far, each with its folder and box: layers that share both share the array's id, and with it
    /// cached bricks.
    pub arrays: Vec<(ArrayId, (u64, u64), Extent)>,
    /// What was opened so far.
    pub volume: Volume,
}

/// A mag that can be read.
struct OpenMag {
    mag: Mag,
    cubes: Arc<Cubes>,
    /// Its path from the dataset's folder, or an absolute one.
    path: String,
}

/// A mag that cannot be shown, and why.
struct NoMag {
    mag: Value,
    reason: String,
    /// Whether data that should be there are damaged or missing.
    damaged: bool,
}

impl NoMag {
    fn damaged(reason: impl Into<String>) -> Self {
        Self { mag: Value::Null, reason: reason.into(), damaged: true }
    }

    fn not_read(reason: impl Into<String>) -> Self {
        Self { damaged: false, ..Self::damaged(reason) }
    }

    /// Returns the name of the mag for messages.
    fn name(&self) -> String {
        Mag::from_json(&self.mag)
            .map_or_else(|| self.mag.to_string(), |mag| format!("mag {}", mag.names().swap_remove(0)))
    }

    fn finding(&self, layer: &str) -> Finding {
        let severity = if self.damaged { Severity::Damage } else { Severity::Note };
        Finding { severity, ..Finding::damage(format!("{}: {}", self.name(), self.reason)).of_layer(layer) }
    }
}

impl Opening {
    /// Opens a layer.
    pub(super) fn layer(&mut self, described: &DescribedLayer) {
        let (mut missing, mut dtype) = (Vec::new(), None);
        let levels = self.levels(described, &mut missing, &mut dtype);
        let (name, mut native) = (described.name.clone(), layer_keys(described));
        if !missing.is_empty() {
            let entries = missing.iter().map(|missing| json!({"mag": missing.mag, "reason": missing.reason}));
            native.insert("missing".into(), entries.collect());
        }
        match levels {
            Ok(levels) => {
                self.volume.findings.extend(missing.iter().map(|missing| missing.finding(&name)));
                self.volume.layers.push(Layer { name, levels, native });
            }
            Err(reason) => {
                let damaged = missing.iter().any(|missing| missing.damaged);
                self.volume.hidden.push(HiddenLayer { name, dtype, shape: None, reason, damaged, native });
            }
        }
    }

    /// Opens the arrays of a layer, the finest first, or returns the reason why it has no array. Sets the type of voxels as
    /// soon as it is known.
    fn levels(
        &mut self,
        described: &DescribedLayer,
        missing: &mut Vec<NoMag>,
        dtype: &mut Option<Dtype>,
    ) -> Result<Vec<Arc<dyn Array>>, String> {
        if !described.may_be_wkw() {
            return Err(format!(
                "its format is {}, which is not read",
                described.format.as_deref().unwrap_or_default()
            ));
        }
        if described.more_axes {
            return Err("it has additional axes".into());
        }
        let found = self.open_mags(described, missing);
        let Some(finest) = found.first() else {
            return Err(missing.first().map_or("it lists no mags".into(), |first| {
                format!("none of its mags can be read; {}: {}", first.name(), first.reason)
            }));
        };
        let header = finest.cubes.header;
        *dtype = Some(header.dtype);
        let mut warnings = described.warnings.clone();
        let extent = extent(described, &found, &mut warnings)?;
        if let Some(class) = described.element_class.as_ref().filter(|class| !header.is_of_class(class)) {
            let (channels, dtype) = (header.channels(), header.dtype);
            warnings.push(format!("its elementClass is {class}, but voxels are {channels} x {dtype}"));
        }
        let mut levels = Vec::new();
        for at in found {
            match self.level(described, &at, extent, levels.len(), &header, &warnings) {
                Some(level) => levels.push(level),
                None => missing.push(NoMag { mag: json!(at.mag.0), ..NoMag::not_read("its box is too large") }),
            }
        }
        if levels.is_empty() { Err("its box is too large".into()) } else { Ok(levels) }
    }

    /// Opens every mag of a layer, the finest first; those that cannot be read are added to `missing`.
    fn open_mags(&mut self, described: &DescribedLayer, missing: &mut Vec<NoMag>) -> Vec<OpenMag> {
        missing.extend(described.odd_mags.iter().map(|entry| {
            let mag = entry.get("mag").or(entry.get("resolution")).unwrap_or(entry).clone();
            NoMag { mag, ..NoMag::not_read("not a valid mag") }
        }));
        let mut found = Vec::new();
        for listed in &described.mags {
            match self.open_mag(described, listed) {
                Ok((cubes, path)) => found.push(OpenMag { mag: listed.mag, cubes, path }),
                Err(why) => missing.push(NoMag { mag: json!(listed.mag.0), ..why }),
            }
        }
        if described.format.is_some() || !found.is_empty() {
            self.note_unlisted(described);
        }
        found
    }

    /// Opens a mag, and returns its path. Without a path in the description its folder is `LAYER/MAG`, where `MAG` is
    /// written `2-2-1`, or also `2` if the three factors are the same.
    fn open_mag(&mut self, described: &DescribedLayer, listed: &DescribedMag) -> Result<(Arc<Cubes>, String), NoMag> {
        let paths = match &listed.path {
            Some(path) if path.contains("://") => {
                return Err(NoMag::not_read(format!("{path} is remote, and only local folders are read")));
            }
            Some(path) => vec![path.clone()],
            None => listed.mag.names().into_iter().map(|name| format!("{}/{name}", described.name)).collect(),
        };
        let mut no_mag = None;
        for path in paths {
            match self.folder.folder(&path) {
                Ok(folder) => match self.cubes_of(folder) {
                    Ok(cubes) => return Ok((cubes, path)),
                    Err(why) => return Err(NoMag { reason: format!("{path}: {}", why.reason), ..why }),
                },
                // the first of two names is the usual one
                Err(NoFolder::Absent) if no_mag.is_some() => {}
                Err(why) => {
                    let damaged = why != NoFolder::Outside;
                    no_mag = Some(NoMag { damaged, ..NoMag::damaged(format!("{path}: {why}")) });
                }
            }
        }
        Err(no_mag.unwrap_or_else(|| NoMag::damaged("it has no name")))
    }

    fn cubes_of(&mut self, folder: Arc<dyn Folder>) -> Result<Arc<Cubes>, NoMag> {
        if let Some(known) = self.cubes.iter().find(|cubes| cubes.folder.identity() == folder.identity()) {
            return Ok(Arc::clone(known));
        }
        let header = header_of(&*folder)?;
        let cubes = Arc::new(Cubes::new(folder, header, Arc::clone(&self.cache)));
        self.cubes.push(Arc::clone(&cubes));
        Ok(cubes)
    }

    /// Warns of mags on disk that the description leaves out: they are not shown.
    fn note_unlisted(&mut self, described: &DescribedLayer) {
        // the layer of mags in the dataset's own folder has no folder of its name
        let Ok(folder) = self.folder.folder(&described.name) else { return };
        let on_disk = files::mags(&*folder, "").unwrap_or_default().into_iter().map(|found| found.mag);
        let unlisted = on_disk.filter(|mag| described.mags.iter().all(|listed| listed.mag != *mag));
        let names: Vec<String> = unlisted.map(|mag| mag.names().swap_remove(0)).collect();
        if !names.is_empty() {
            let (name, mags) = (&described.name, names.join(", "));
            let warnings = &mut self.volume.info.warnings;
            warnings.push(format!("layer {name}: mags {mags} are there but not listed, and not shown"));
        }
        self.volume.folders.push(folder);
    }

    /// Makes an array of a mag; `None` if its box has too many voxels.
    fn level(
        &mut self,
        described: &DescribedLayer,
        at: &OpenMag,
        extent: Extent,
        lod: usize,
        finest: &Header,
        warnings: &[String],
    ) -> Option<Arc<dyn Array>> {
        let (in_mag, header) = (extent.in_mag(at.mag), &at.cubes.header);
        let (grid, brick) = grid(&at.cubes, &in_mag)?;
        let key = (at.cubes.folder.identity(), in_mag);
        let known = self.arrays.iter().find(|(_, folder, shown)| (*folder, *shown) == key).map(|(id, ..)| *id);
        let id = known.unwrap_or_else(ArrayId::next);
        let mut warnings = warnings.to_vec();
        if (header.dtype, header.voxel) != (finest.dtype, finest.voxel) {
            warnings.push("its voxels are of another type than those of the finest mag".into());
        }
        let level =
            Level { described, scale: self.scale.as_ref(), mag: at.mag, path: &at.path, header, extent, in_mag };
        let info = level.info(lod, id, grid, brick, warnings);
        let array = Arc::new(WkwArray::new(info, Arc::clone(&at.cubes), in_mag));
        if known.is_none() {
            self.arrays.push((id, key.0, key.1));
            self.volume.to_check.push((described.name.clone(), Arc::clone(&array)));
        }
        Some(array)
    }
}

/// Returns the layer's box in voxels of mag 1: that of the description, or else the box around the data files.
fn extent(described: &DescribedLayer, found: &[OpenMag], warnings: &mut Vec<String>) -> Result<Extent, String> {
    if let Some(extent) = described.extent {
        return if extent.is_empty() { Err("its boundingBox is empty".into()) } else { Ok(extent) };
    }
    if described.format.is_some() {
        warnings.push("it has no usable boundingBox: the box around its data files is shown".into());
    }
    for OpenMag { mag, cubes, .. } in found {
        if let Some(extent) = files::extent(&*cubes.folder, &cubes.header).map_err(|e| e.to_string())? {
            return extent.to_mag_1(*mag).ok_or_else(|| "its box is too large".into());
        }
    }
    Err("it has no data files".into())
}

/// Reads the header of a mag.
fn header_of(mag: &dyn Folder) -> Result<Header, NoMag> {
    let mut bytes = [0; BYTES];
    match mag.read_at(HEADER, 0, &mut bytes, Blocking::Yes) {
        Ok(true) => Header::parse(&bytes).map_err(|e| NoMag::damaged(format!("{HEADER}: {e}"))),
        Ok(false) => match OTHER_FORMATS.into_iter().find(|file| matches!(mag.len(file), Ok(Some(_)))) {
            Some(file) => Err(NoMag::not_read(format!("it is not WKW: it has {file} and no {HEADER}"))),
            None => Err(NoMag::damaged(format!("{HEADER} is missing"))),
        },
        Err(SourceError::TooShort { size, .. }) => Err(NoMag::damaged(format!("{HEADER} has only {size} bytes"))),
        Err(e) => Err(NoMag::damaged(e.to_string())),
    }
}
