//! From the description of a layer to its arrays, or to why it has none.

use std::sync::Arc;

use serde_json::{Value, json};

use super::array::{WkwArray, grid};
use super::cubes::Cubes;
use super::describe::{Level, of_level};
use super::disk::{self, HEADER};
use super::element_class;
use super::header::{BYTES, Header};
use super::mag::{Extent, Mag};
use super::properties::{Described, Listed, Scale};
use crate::format::{Array, HiddenLayer, Layer};
use crate::source::{Folder, IndexCache, NoFolder, SourceError, Wait};
use crate::volume::{ArrayId, Dtype, NativeJson};

/// Files of other formats that a mag's folder may have instead of a header.
const OTHERS: [&str; 3] = ["zarr.json", ".zarray", "attributes.json"];

/// What the layers of a dataset share while they are opened.
pub(super) struct Opening {
    pub folder: Arc<dyn Folder>,
    pub cache: Arc<IndexCache>,
    pub scale: Option<Scale>,
    /// Layers may show the same files, by links or by the places that they name.
    pub cubes: Vec<Arc<Cubes>>,
    /// Arrays that are the same box of the same files.
    pub arrays: Vec<(ArrayId, (u64, u64), Extent)>,
    /// Folders that change when a mag comes or goes.
    pub watched: Vec<Arc<dyn Folder>>,
    pub warnings: Vec<String>,
}

/// A mag that can be read.
struct Found {
    mag: Mag,
    cubes: Arc<Cubes>,
    /// Where it was found.
    path: String,
}

/// Why a mag cannot be shown.
struct Missing {
    mag: Value,
    reason: String,
}

/// A layer that can be shown, or one that cannot.
pub(super) enum Outcome {
    ShownArray(Layer),
    Hidden(HiddenLayer),
}

/// What is found out of a layer on the way to its arrays.
#[derive(Default)]
struct Findings {
    dtype: Option<Dtype>,
    missing: Vec<Missing>,
}

impl Opening {
    /// A layer with its arrays, or with the reason why nothing of it can be shown.
    pub(super) fn layer(&mut self, described: &Described) -> Outcome {
        let mut findings = Findings::default();
        let levels = self.levels(described, &mut findings);
        let (name, mut native) = (described.name.clone(), native(described));
        if !findings.missing.is_empty() {
            let entries = findings.missing.iter().map(|m| json!({"mag": m.mag, "reason": m.reason}));
            native.insert("missing".into(), entries.collect());
        }
        match levels {
            Ok(levels) => Outcome::ShownArray(Layer { name, levels, native }),
            Err(reason) => Outcome::Hidden(HiddenLayer { name, dtype: findings.dtype, shape: None, reason, native }),
        }
    }

    /// The arrays of a layer; the error is the reason why there are none.
    fn levels(&mut self, described: &Described, findings: &mut Findings) -> Result<Vec<Arc<dyn Array>>, String> {
        self.may_be_shown(described)?;
        let found = self.find_all(described, &mut findings.missing);
        let Some(finest) = found.first() else {
            return Err(findings.missing.first().map_or("it lists no mags".into(), |first| {
                format!("none of its mags can be read; {}: {}", name(&first.mag), first.reason)
            }));
        };
        let header = finest.cubes.header;
        findings.dtype = Some(header.dtype);
        let mut warnings = described.warnings.clone();
        let extent = self.extent(described, &found, &mut warnings)?;
        if let Some(class) = described.element_class.as_ref().filter(|class| !element_class::is_of(class, &header)) {
            let (channels, dtype) = (header.channels(), header.dtype);
            warnings.push(format!("its elementClass is {class}, but voxels are {channels} x {dtype}"));
        }
        let mut levels = Vec::new();
        for at in found {
            match self.level(described, &at, extent, levels.len(), &header, &warnings) {
                Some(level) => levels.push(level),
                None => findings.missing.push(Missing { mag: json!(at.mag.0), reason: "its box is too large".into() }),
            }
        }
        if levels.is_empty() { Err("its box is too large".into()) } else { Ok(levels) }
    }

    fn may_be_shown(&self, described: &Described) -> Result<(), String> {
        if !described.may_be_wkw() {
            let format = described.format.as_deref().unwrap_or_default();
            return Err(format!("its format is {format}, which is not read"));
        }
        if described.more_axes {
            return Err("it has additional axes".into());
        }
        Ok(())
    }

    /// Every mag of a layer, the finest first; those that cannot be shown go to `missing`.
    fn find_all(&mut self, described: &Described, missing: &mut Vec<Missing>) -> Vec<Found> {
        let odd = described.odd_mags.iter().map(|entry| {
            let mag = entry.get("mag").or(entry.get("resolution")).unwrap_or(entry).clone();
            Missing { mag, reason: "it is no mag".into() }
        });
        missing.extend(odd);
        let mut found = Vec::new();
        for listed in &described.mags {
            match self.find(described, listed) {
                Ok((cubes, path)) => found.push(Found { mag: listed.mag, cubes, path }),
                Err(reason) => missing.push(Missing { mag: json!(listed.mag.0), reason }),
            }
        }
        if described.format.is_some() || !found.is_empty() {
            self.note_unlisted(described);
        }
        found
    }

    /// A mag's files and where they are (section 6.2).
    fn find(&mut self, described: &Described, listed: &Listed) -> Result<(Arc<Cubes>, String), String> {
        let places = match &listed.path {
            Some(path) if path.contains("://") => {
                return Err(format!("{path} is remote, and only local folders are read"));
            }
            Some(path) => vec![path.clone()],
            None => listed.mag.names().into_iter().map(|name| format!("{}/{name}", described.name)).collect(),
        };
        let mut reason = String::new();
        for path in places {
            match self.folder.folder(&path) {
                Ok(folder) => return Ok((self.cubes_of(folder).map_err(|why| format!("{path}: {why}"))?, path)),
                // the first of two names is the usual one
                Err(NoFolder::Absent) if !reason.is_empty() => {}
                Err(why) => reason = format!("{path}: {why}"),
            }
        }
        Err(reason)
    }

    fn cubes_of(&mut self, folder: Arc<dyn Folder>) -> Result<Arc<Cubes>, String> {
        if let Some(known) = self.cubes.iter().find(|cubes| cubes.folder.identity() == folder.identity()) {
            return Ok(Arc::clone(known));
        }
        let header = header_of(&*folder)?;
        let cubes = Arc::new(Cubes::new(folder, header, Arc::clone(&self.cache)));
        self.cubes.push(Arc::clone(&cubes));
        Ok(cubes)
    }

    /// Mags on disk that the description leaves out are left out here, too.
    fn note_unlisted(&mut self, described: &Described) {
        // what was found on disk has a place each, and the folder is the mag's own
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

    /// The layer's box in voxels of mag 1; the box around its files if nothing says.
    fn extent(&self, described: &Described, found: &[Found], warnings: &mut Vec<String>) -> Result<Extent, String> {
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

    /// One mag as an array; `None` if there is no counting its voxels.
    fn level(
        &mut self,
        described: &Described,
        at: &Found,
        extent: Extent,
        lod: usize,
        finest: &Header,
        warnings: &[String],
    ) -> Option<Arc<dyn Array>> {
        let (in_mag, header) = (extent.in_mag(at.mag), &at.cubes.header);
        let (grid, brick) = grid(&at.cubes, &in_mag)?;
        let key = (at.cubes.folder.identity(), in_mag);
        let known = self.arrays.iter().find(|(_, folder, shown)| (*folder, *shown) == key);
        let id = known.map_or_else(ArrayId::next, |(id, ..)| *id);
        if known.is_none() {
            self.arrays.push((id, key.0, key.1));
        }
        let mut warnings = warnings.to_vec();
        if (header.dtype, header.voxel) != (finest.dtype, finest.voxel) {
            warnings.push("its voxels are of another type than those of the finest mag".into());
        }
        let level =
            Level { described, scale: self.scale.as_ref(), mag: at.mag, path: &at.path, header, extent, in_mag };
        Some(Arc::new(WkwArray::new(of_level(&level, lod, id, grid, brick, warnings), Arc::clone(&at.cubes), in_mag)))
    }
}

/// The header of a mag.
fn header_of(mag: &dyn Folder) -> Result<Header, String> {
    let mut bytes = [0; BYTES];
    match mag.read_at(HEADER, 0, &mut bytes, Wait::Yes) {
        Ok(true) => Header::parse(&bytes).map_err(|e| format!("{HEADER}: {e}")),
        Ok(false) => match OTHERS.into_iter().find(|file| matches!(mag.len(file), Ok(Some(_)))) {
            Some(file) => Err(format!("it is not WKW: it has {file} and no {HEADER}")),
            None => Err(format!("{HEADER} is missing")),
        },
        Err(SourceError::TooShort { size, .. }) => Err(format!("{HEADER} has only {size} bytes")),
        Err(e) => Err(e.to_string()),
    }
}

/// What dataset.json says of every layer.
fn native(described: &Described) -> NativeJson {
    let mags: Vec<_> = described.mags.iter().map(|listed| listed.mag.0).collect();
    let native = [
        ("category", json!(described.category)),
        ("dataFormat", json!(described.format)),
        ("boundingBox", described.bounding_box.clone()),
        ("mags", json!(mags)),
    ];
    native.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A mag as people write it.
fn name(mag: &Value) -> String {
    Mag::of_json(mag).map_or_else(|| mag.to_string(), |mag| format!("mag {}", mag.names().swap_remove(0)))
}
