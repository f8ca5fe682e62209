//! Opens the mags of each layer as arrays, or reports why a layer has none.

use std::sync::Arc;

use serde_json::{Value, json};

use super::array::{WkwArray, grid};
use super::cubes::Cubes;
use super::describe::{Level, of_level};
use super::disk::{self, HEADER};
use super::element_class;
use super::header::{BYTES, Header};
use super::mag::{Extent, Mag};
use super::properties::{DescribedLayer, DescribedMag, Scale};
use crate::format::{Array, Finding, HiddenLayer, Layer, Severity};
use crate::source::{Blocking, Folder, IndexCache, NoFolder, SourceError};
use crate::volume::{ArrayId, Dtype, NativeJson};

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
    /// Folders whose versions change when a mag is added or removed.
    pub watched: Vec<Arc<dyn Folder>>,
    pub warnings: Vec<String>,
    /// The layer's name and the array of each mag whose structure can be checked, each mag's box once.
    pub to_check: Vec<(String, Arc<WkwArray>)>,
    /// The mags that cannot be shown, of layers that are.
    pub findings: Vec<Finding>,
}

/// A mag that can be read.
struct OpenMag {
    mag: Mag,
    cubes: Arc<Cubes>,
    /// Its path from the dataset's folder, or an absolute one.
    path: String,
}

/// A mag that cannot be shown.
struct MissingMag {
    mag: Value,
    why: NoMag,
}

/// Why a mag cannot be shown.
struct NoMag {
    reason: String,
    /// Whether data that should be there are damaged or missing.
    damaged: bool,
}

impl NoMag {
    fn damaged(reason: String) -> Self {
        Self { reason, damaged: true }
    }

    fn not_read(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), damaged: false }
    }
}

impl MissingMag {
    fn finding(&self, layer: &str) -> Finding {
        let severity = if self.why.damaged { Severity::Damage } else { Severity::Note };
        let found = Finding::damage(format!("{}: {}", name(&self.mag), self.why.reason)).of_layer(layer);
        Finding { severity, ..found }
    }
}

/// A layer after opening.
pub(super) enum OpenedLayer {
    Shown(Layer),
    Hidden(HiddenLayer),
}

/// The fields of a layer that are reported whether it can be shown or not.
#[derive(Default)]
struct LayerReport {
    dtype: Option<Dtype>,
    missing: Vec<MissingMag>,
}

impl Opening {
    /// Opens a layer.
    pub(super) fn layer(&mut self, described: &DescribedLayer) -> OpenedLayer {
        let mut report = LayerReport::default();
        let levels = self.levels(described, &mut report);
        let (name, mut native) = (described.name.clone(), native(described));
        if !report.missing.is_empty() {
            let entries = report.missing.iter().map(|m| json!({"mag": m.mag, "reason": m.why.reason}));
            native.insert("missing".into(), entries.collect());
        }
        match levels {
            Ok(levels) => {
                self.findings.extend(report.missing.iter().map(|missing| missing.finding(&described.name)));
                OpenedLayer::Shown(Layer { name, levels, native })
            }
            Err(reason) => {
                let damaged = report.missing.iter().any(|missing| missing.why.damaged);
                OpenedLayer::Hidden(HiddenLayer { name, dtype: report.dtype, shape: None, reason, damaged, native })
            }
        }
    }

    /// Opens the arrays of a layer, the finest first; the error is the reason why there are none.
    fn levels(&mut self, described: &DescribedLayer, report: &mut LayerReport) -> Result<Vec<Arc<dyn Array>>, String> {
        check_can_be_shown(described)?;
        let found = self.open_mags(described, &mut report.missing);
        let Some(finest) = found.first() else {
            return Err(report.missing.first().map_or("it lists no mags".into(), |first| {
                format!("none of its mags can be read; {}: {}", name(&first.mag), first.why.reason)
            }));
        };
        let header = finest.cubes.header;
        report.dtype = Some(header.dtype);
        let mut warnings = described.warnings.clone();
        let extent = self.extent(described, &found, &mut warnings)?;
        if let Some(class) =
            described.element_class.as_ref().filter(|class| !element_class::matches_header(class, &header))
        {
            let (channels, dtype) = (header.channels(), header.dtype);
            warnings.push(format!("its elementClass is {class}, but voxels are {channels} x {dtype}"));
        }
        let mut levels = Vec::new();
        for at in found {
            match self.level(described, &at, extent, levels.len(), &header, &warnings) {
                Some(level) => levels.push(level),
                None => report
                    .missing
                    .push(MissingMag { mag: json!(at.mag.0), why: NoMag::not_read("its box is too large") }),
            }
        }
        if levels.is_empty() { Err("its box is too large".into()) } else { Ok(levels) }
    }

    /// Opens every mag of a layer, the finest first; those that cannot be read are added to `missing`.
    fn open_mags(&mut self, described: &DescribedLayer, missing: &mut Vec<MissingMag>) -> Vec<OpenMag> {
        let odd = described.odd_mags.iter().map(|entry| {
            let mag = entry.get("mag").or(entry.get("resolution")).unwrap_or(entry).clone();
            MissingMag { mag, why: NoMag::not_read("it is no mag") }
        });
        missing.extend(odd);
        let mut found = Vec::new();
        for listed in &described.mags {
            match self.open_mag(described, listed) {
                Ok((cubes, path)) => found.push(OpenMag { mag: listed.mag, cubes, path }),
                Err(why) => missing.push(MissingMag { mag: json!(listed.mag.0), why }),
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
                    no_mag = Some(NoMag { reason: format!("{path}: {why}"), damaged: why != NoFolder::Outside });
                }
            }
        }
        Err(no_mag.unwrap_or_else(|| NoMag::damaged("it has no name".into())))
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
        let on_disk = disk::mags(&*folder, "").unwrap_or_default();
        let unlisted = on_disk.iter().map(|found| found.mag);
        let unlisted = unlisted.filter(|mag| described.mags.iter().all(|listed| listed.mag != *mag));
        let names: Vec<String> = unlisted.map(|mag| mag.names().swap_remove(0)).collect();
        if !names.is_empty() {
            let (name, mags) = (&described.name, names.join(", "));
            self.warnings.push(format!("layer {name}: mags {mags} are there but not listed, and not shown"));
        }
        self.watched.push(folder);
    }

    /// Returns the layer's box in voxels of mag 1: that of the description, or else the box around the data files.
    fn extent(
        &self,
        described: &DescribedLayer,
        found: &[OpenMag],
        warnings: &mut Vec<String>,
    ) -> Result<Extent, String> {
        if let Some(extent) = described.extent {
            return if extent.is_empty() { Err("its boundingBox is empty".into()) } else { Ok(extent) };
        }
        if described.format.is_some() {
            warnings.push("it has no usable boundingBox: the box around its data files is shown".into());
        }
        for at in found {
            let cubes = &at.cubes;
            if let Some(extent) = disk::extent(&*cubes.folder, &cubes.header).map_err(|e| e.to_string())? {
                return extent.of_mag(at.mag).ok_or_else(|| "its box is too large".into());
            }
        }
        Err("it has no data files".into())
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
        if known.is_none() {
            self.arrays.push((id, key.0, key.1));
        }
        let mut warnings = warnings.to_vec();
        if (header.dtype, header.voxel) != (finest.dtype, finest.voxel) {
            warnings.push("its voxels are of another type than those of the finest mag".into());
        }
        let level =
            Level { described, scale: self.scale.as_ref(), mag: at.mag, path: &at.path, header, extent, in_mag };
        let info = of_level(&level, lod, id, grid, brick, warnings);
        let array = Arc::new(WkwArray::new(info, Arc::clone(&at.cubes), in_mag));
        if known.is_none() {
            self.to_check.push((described.name.clone(), Arc::clone(&array)));
        }
        Some(array)
    }
}

/// Returns the reason why a layer cannot be shown, whatever its files are.
fn check_can_be_shown(described: &DescribedLayer) -> Result<(), String> {
    if !described.may_be_wkw() {
        let format = described.format.as_deref().unwrap_or_default();
        return Err(format!("its format is {format}, which is not read"));
    }
    if described.more_axes {
        return Err("it has additional axes".into());
    }
    Ok(())
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

/// Returns the format's own keys of a layer in dataset.json.
fn native(described: &DescribedLayer) -> NativeJson {
    let mags: Vec<_> = described.mags.iter().map(|listed| listed.mag.0).collect();
    let native = [
        ("category", json!(described.category)),
        ("dataFormat", json!(described.format)),
        ("boundingBox", described.bounding_box.clone()),
        ("mags", json!(mags)),
    ];
    native.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Returns the name of a mag for messages.
fn name(mag: &Value) -> String {
    Mag::of_json(mag).map_or_else(|| mag.to_string(), |mag| format!("mag {}", mag.names().swap_remove(0)))
}
