//! Opens the mags of each layer as arrays and describes them, or reports why a layer has none.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Volume;
use super::bricks::{WkwArray, grid};
use super::cubes::Cubes;
use super::files::{self, HEADER};
use super::header::Header;
use super::properties::{DescribedLayer, DescribedMag, Extent, Mag, Scale};
use crate::format::{Array, Finding, HiddenLayer, Layer, Severity, native, registry};
use crate::source::{Blocking, Folder, IndexCache, NoFolder};
use crate::volume::{ArrayId, ArrayInfo, Axis, Dtype, NativeJson};

/// The state of a dataset while its layers are opened.
pub(super) struct Opening {
    pub folder: Arc<dyn Folder>,
    pub cache: Arc<IndexCache>,
    pub scale: Option<Scale>,
    /// The mags opened so far: layers may share them, by links or by their paths in the description.
    pub cubes: Vec<Arc<Cubes>>,
    /// What was opened so far.
    pub volume: Volume,
}

struct OpenMag {
    mag: Mag,
    cubes: Arc<Cubes>,
    /// Its path from the dataset's folder, or an absolute one.
    path: String,
}

/// Why a mag cannot be shown: damage if data that should be there are damaged or missing, else a note.
pub(super) type Fault = (Severity, String);
/// A mag that cannot be shown, as JSON, and why.
pub(super) type NoMag = (Value, Fault);

/// Returns the name of a mag in JSON for messages.
pub(super) fn mag_name(mag: &Value) -> String {
    Mag::from_json(mag).map_or_else(|| mag.to_string(), |mag| format!("mag {}", mag.names().swap_remove(0)))
}

impl Opening {
    pub(super) fn layer(&mut self, described: &DescribedLayer) {
        let (mut missing, mut dtype) = (Vec::new(), None);
        let levels = self.levels(described, &mut missing, &mut dtype);
        let name = described.name.clone();
        let mut native = native(json!({
            "category": described.category,
            "dataFormat": described.format,
            "boundingBox": described.bounding_box,
            "mags": described.mags.iter().map(|listed| listed.mag.0).collect::<Vec<_>>(),
        }));
        if !missing.is_empty() {
            let entries = missing.iter().map(|(mag, (_, reason))| json!({"mag": mag, "reason": reason}));
            native.insert("missing".into(), entries.collect());
        }
        match levels {
            Ok(levels) => {
                self.volume.findings.extend(missing.iter().map(|(mag, (severity, reason))| {
                    let finding = Finding::damage(format!("{}: {reason}", mag_name(mag))).of_layer(&name);
                    Finding { severity: *severity, ..finding }
                }));
                self.volume.layers.push(Layer { name, levels, native });
            }
            Err(reason) => {
                let damaged = missing.iter().any(|(_, (severity, _))| *severity == Severity::Damage);
                self.volume.hidden.push(HiddenLayer { name, dtype, shape: None, reason, damaged, native });
            }
        }
    }

    /// Opens the arrays of a layer, the finest first, or returns the reason why it has no array. Sets the type of
    /// voxels as soon as it is known.
    fn levels(
        &mut self,
        described: &DescribedLayer,
        missing: &mut Vec<NoMag>,
        dtype: &mut Option<Dtype>,
    ) -> Result<Vec<Arc<dyn Array>>, String> {
        if described.more_axes {
            return Err("it has additional axes".into());
        }
        if !described.may_be_wkw() {
            let name = described.format.as_deref().unwrap_or_default();
            let format = described.other_format().ok_or_else(|| format!("its format is {name}, which is not read"))?;
            return self.levels_of(format, described, missing, dtype);
        }
        let found = self.open_mags(described, missing);
        let Some(finest) = found.first() else {
            return Err(missing.first().map_or("it lists no mags".into(), |(mag, (_, reason))| {
                format!("none of its mags can be read; {}: {reason}", mag_name(mag))
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
                None => missing.push((json!(at.mag.0), (Severity::Note, "its box is too large".into()))),
            }
        }
        if levels.is_empty() { Err("its box is too large".into()) } else { Ok(levels) }
    }

    /// Opens every mag of a layer, the finest first; those that cannot be read are added to `missing`.
    fn open_mags(&mut self, described: &DescribedLayer, missing: &mut Vec<NoMag>) -> Vec<OpenMag> {
        missing.extend(described.odd_mags.iter().map(|entry| {
            let mag = entry.get("mag").or(entry.get("resolution")).unwrap_or(entry).clone();
            (mag, (Severity::Note, "not a valid mag".into()))
        }));
        let mut found = Vec::new();
        for listed in &described.mags {
            match self.open_mag(described, listed) {
                Ok((cubes, path)) => found.push(OpenMag { mag: listed.mag, cubes, path }),
                Err(why) => missing.push((json!(listed.mag.0), why)),
            }
        }
        if described.format.is_some() || !found.is_empty() {
            self.note_unlisted(described);
        }
        found
    }

    /// Opens a mag, and returns its path.
    fn open_mag(&mut self, described: &DescribedLayer, listed: &DescribedMag) -> Result<(Arc<Cubes>, String), Fault> {
        let (folder, path, _) = self.folder_of(described, listed, false)?;
        let cubes = self.cubes_of(folder).map_err(|(severity, reason)| (severity, format!("{path}: {reason}")))?;
        Ok((cubes, path))
    }

    /// Opens the folder of a mag, and returns its path. Without a path in the description it is `LAYER/MAG`, where `MAG`
    /// is written `2-2-1`, or also `2` if the three factors are the same. Where the mag `is_scale`, opens the folder
    /// above, and returns the name of the mag in it, too.
    pub(super) fn folder_of(
        &self,
        described: &DescribedLayer,
        listed: &DescribedMag,
        is_scale: bool,
    ) -> Result<(Arc<dyn Folder>, String, String), Fault> {
        let paths = match &listed.path {
            Some(path) if path.contains("://") => {
                return Err((Severity::Note, format!("{path} is remote, and only local folders are read")));
            }
            Some(path) => vec![path.clone()],
            None => listed.mag.names().into_iter().map(|name| format!("{}/{name}", described.name)).collect(),
        };
        let mut no_mag = None;
        for path in paths {
            let bare = path.trim_end_matches('/');
            let (place, scale) = match bare.rsplit_once('/').unwrap_or((".", bare)) {
                (above, scale) if is_scale => (above, scale.to_owned()),
                _ => (&*path, String::new()),
            };
            match self.folder.folder(place) {
                Ok(folder) => return Ok((folder, path, scale)),
                // the first of two names is the usual one
                Err(NoFolder::Absent) if no_mag.is_some() => {}
                Err(why) => {
                    let severity = if why == NoFolder::Outside { Severity::Note } else { Severity::Damage };
                    no_mag = Some((severity, format!("{path}: {why}")));
                }
            }
        }
        Err(no_mag.unwrap_or_else(|| (Severity::Damage, "it has no name".into())))
    }

    fn cubes_of(&mut self, folder: Arc<dyn Folder>) -> Result<Arc<Cubes>, Fault> {
        if let Some(known) = self.cubes.iter().find(|cubes| cubes.folder.identity() == folder.identity()) {
            return Ok(Arc::clone(known));
        }
        let header = match Header::read(&*folder, HEADER, Blocking::Yes) {
            Ok(Some(header)) => header,
            Ok(None) => {
                let mut others = registry().folder_files().into_iter();
                let other = others.find(|file| matches!(folder.len(file), Ok(Some(_))));
                return Err(match other {
                    Some(file) => (Severity::Note, format!("it is not WKW: it has {file} and no {HEADER}")),
                    None => (Severity::Damage, format!("{HEADER} is missing")),
                });
            }
            Err(e) => return Err((Severity::Damage, e.to_string())),
        };
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
        // layers that share the cubes and the box of an array share its id, and with it cached bricks
        let is_same = |array: &WkwArray| Arc::ptr_eq(&array.cubes, &at.cubes) && array.extent == in_mag;
        let known = self.volume.to_check.iter().find(|(_, array)| is_same(array)).map(|(_, array)| array.info().id);
        let mut warnings = warnings.to_vec();
        if (header.dtype, header.voxel) != (finest.dtype, finest.voxel) {
            warnings.push("its voxels are of another type than those of the finest mag".into());
        }
        let spatial = [("z", 2), ("y", 1), ("x", 0)].map(|(name, a)| self.axis(name, a, at.mag, &in_mag));
        let count = header.channels();
        let channel = Axis { name: "channel".into(), unit: None, first: 0.0, step: 1.0, count, spatial: false };
        let info = ArrayInfo {
            id: known.unwrap_or_else(ArrayId::next),
            lod,
            axes: spatial.into_iter().chain((count > 1).then_some(channel)).collect(),
            mag: Some(at.mag.0),
            codec: Some(header.blocks.codec()),
            warnings,
            native: self.level_keys(described, at, &extent, &in_mag),
            ..ArrayInfo::new(header.dtype, grid, brick)
        };
        let array = Arc::new(WkwArray::new(info, Arc::clone(&at.cubes), in_mag));
        if known.is_none() {
            self.volume.to_check.push((described.name.clone(), Arc::clone(&array)));
        }
        Some(array)
    }

    /// Returns an axis. Positions are those of the centres of voxels, relative to the centre of voxel 0 of mag 1, so
    /// that they agree in all mags and with the headers for other programs.
    pub(super) fn axis(&self, name: &str, a: usize, mag: Mag, in_mag: &Extent) -> Axis {
        let (factor, scale) = (mag.0[a] as f64, self.scale.as_ref().map_or(1.0, |scale| scale.factor[a]));
        Axis {
            name: name.into(),
            unit: self.scale.as_ref().map(|scale| scale.unit.clone()),
            first: (in_mag.low[a] as f64 * factor + (factor - 1.0) / 2.0) * scale,
            step: factor * scale,
            count: in_mag.size()[a],
            spatial: true,
        }
    }

    /// Returns the format's own keys of lodN.json; `extent` is the box in voxels of mag 1.
    fn level_keys(&self, described: &DescribedLayer, at: &OpenMag, extent: &Extent, in_mag: &Extent) -> NativeJson {
        let header = &at.cubes.header;
        let mut keys = self.mag_keys(described, (at.mag, &at.path), extent, in_mag);
        keys.extend(native(json!({
            "block_len": header.block_len(),
            "file_len": header.file_len(),
            "block_type": header.blocks.name(),
            "channels": header.channels(),
        })));
        keys
    }

    /// Returns the keys of lodN.json that are there whatever format the arrays of the layer are of.
    pub(super) fn mag_keys(
        &self,
        described: &DescribedLayer,
        (mag, path): (Mag, &str),
        extent: &Extent,
        in_mag: &Extent,
    ) -> NativeJson {
        let (mag, scale) = (mag.0, self.scale.as_ref());
        let each = |of: &dyn Fn(&Scale, usize) -> f64| scale.map(|scale| [0, 1, 2].map(|a| of(scale, a)));
        let [width, height, depth] = extent.size();
        native(json!({
            "mag": mag,
            "offset": in_mag.low,
            "voxel_size": each(&|scale, a| scale.factor[a] * mag[a] as f64),
            "unit": scale.map(|scale| &scale.unit),
            // relative to the lower corner of voxel 0, as webKNOSSOS counts
            "lower_corner": each(&|scale, a| in_mag.low[a] as f64 * mag[a] as f64 * scale.factor[a]),
            "category": described.category,
            "box": {"topLeft": extent.low, "width": width, "height": height, "depth": depth},
            "elementClass": described.element_class,
            "folder": path,
            "largestSegmentId": described.largest_segment_id,
        }))
    }
}

/// Returns the layer's box in voxels of mag 1: that of the description, or else the box around the data files.
fn extent(described: &DescribedLayer, found: &[OpenMag], warnings: &mut Vec<String>) -> Result<Extent, String> {
    if let Some(extent) = described.extent {
        return if extent.size().contains(&0) { Err("its boundingBox is empty".into()) } else { Ok(extent) };
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
