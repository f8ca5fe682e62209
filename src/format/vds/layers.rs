//! The layers of a dataset, each combined from stored layers: one channel in one partitioning, at all its LODs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::array::VdsArray;
use super::check::Checked;
use super::checked_bitmap::CheckedBitmap;
use super::chunk_grid::ChunkGrid;
use super::description::{Channel, Description, MAX_LAYERS, SampleFormat};
use super::layer_name::{Group, LayerName};
use super::store::StoredLayer;
use super::unreadable_level::UnreadableLevel;
use super::{array_info, wavelet};
use crate::format::{Array, Finding, FormatError, HiddenLayer, Layer, OpenWith};
use crate::source::Source;
use crate::volume::NativeJson;

/// Opens a stored layer of a container by its name; the number is that of its chunks by the chunk grid.
pub(super) type OpenLayer<'a> = &'a dyn Fn(&str, u64) -> Result<StoredLayer, FormatError>;

/// All layers of a dataset.
#[derive(Default)]
pub(super) struct Layers {
    pub shown: Vec<Layer>,
    pub hidden: Vec<HiddenLayer>,
    pub warnings: Vec<String>,
    /// What a check of the structure needs.
    pub checked: Checked,
}

/// One channel in one partitioning.
struct Partition<'a> {
    channel: Arc<Channel>,
    /// The name of the layer.
    name: String,
    group: Group,
    /// LOD and name of each stored layer.
    stored: BTreeMap<u32, &'a str>,
}

/// Combines the stored layers `names`. Damaged ones are hidden, with the reason.
pub(super) fn layers<'a>(
    description: &Description,
    names: impl Iterator<Item = &'a str>,
    open_layer: OpenLayer<'_>,
    source: &Arc<dyn Source>,
    with: &OpenWith,
) -> Result<Layers, FormatError> {
    let mut layers = Layers::default();
    let mut found: BTreeMap<(usize, Group), BTreeMap<u32, &str>> = BTreeMap::new();
    // the primary channel has no name in layer names
    let mut channels = HashMap::from([("", 0)]);
    for (number, channel) in description.channels.iter().enumerate() {
        channels.entry(channel.name.as_str()).or_insert(number);
    }
    for (number, name) in names.enumerate() {
        if number == MAX_LAYERS {
            return Err(FormatError::Damaged(format!("it has more than {MAX_LAYERS} layers")));
        }
        let known = LayerName::parse(name).and_then(|parsed| Some((*channels.get(parsed.channel.as_str())?, parsed)));
        let Some((channel, parsed)) = known else {
            let reason = "its name says no channel of this dataset, or no dimensions".into();
            layers.hidden.push(HiddenLayer {
                name: name.into(),
                dtype: None,
                shape: None,
                reason,
                damaged: false,
                native: NativeJson::new(),
            });
            continue;
        };
        if found.entry((channel, parsed.group)).or_default().insert(parsed.lod, name).is_some() {
            layers.warnings.push(format!("there are two layers called {name}: one is shown"));
        }
    }
    let mut partitions: Vec<_> = found.into_iter().collect();
    // for each channel the partitioning with most dimensions first, then the one with the lowest
    partitions.sort_by_key(|((channel, group), _)| (*channel, usize::MAX - group.len(), group.to_string()));
    let mut before = None;
    for ((number, group), stored) in partitions {
        let channel = &description.channels[number];
        let own_name = if channel.name.is_empty() { format!("channel{number}") } else { channel.name.clone() };
        let name = if before == Some(number) { format!("{own_name}@{group}") } else { own_name };
        before = Some(number);
        let partition = Partition { channel: Arc::new(channel.clone()), name, group, stored };
        partition.combine(description, open_layer, source, with, &mut layers)?;
    }
    Ok(layers)
}

impl Partition<'_> {
    fn combine(
        &self,
        description: &Description,
        open_layer: OpenLayer<'_>,
        source: &Arc<dyn Source>,
        with: &OpenWith,
        layers: &mut Layers,
    ) -> Result<(), FormatError> {
        let (mut levels, mut reasons, mut methods) = (Vec::<Arc<dyn Array>>::new(), Vec::new(), Vec::new());
        let mut arrays = Vec::new();
        for (expected, (lod, name)) in (0..).zip(&self.stored) {
            if *lod != expected {
                let rest: Vec<_> = self.stored.range(expected..).map(|(lod, _)| lod.to_string()).collect();
                let warning = format!(
                    "{}: LOD {expected} is not stored, so that LOD {} is not shown",
                    self.name,
                    rest.join(", ")
                );
                layers.checked.findings.push(Finding::damage(warning.clone()));
                layers.warnings.push(warning);
                break;
            }
            let grid = match ChunkGrid::new(description, &self.channel, self.group, *lod) {
                Ok(grid) => grid,
                Err(why) => {
                    reasons.push(format!("LOD {lod}: {why}"));
                    break;
                }
            };
            match self.open(name, &grid, open_layer) {
                Ok(stored) => {
                    methods.push(json!({"method": stored.method.name(), "tolerance": stored.tolerance}));
                    let info =
                        array_info::array_info(description, &self.channel, &grid, *lod, Some(&stored), with.quality);
                    let array = Arc::new(VdsArray {
                        info,
                        name: (*name).into(),
                        grid,
                        channel: Arc::clone(&self.channel),
                        method: stored.method,
                        quality: with.quality,
                        table: stored.table,
                        valid: stored.valid,
                        checked: CheckedBitmap::new(Arc::clone(&with.index)),
                        census: OnceLock::new(),
                    });
                    arrays.push((self.name.clone(), Arc::clone(&array)));
                    levels.push(array);
                }
                Err(FormatError::Source(error)) => return Err(error.into()),
                Err(why) => {
                    reasons.push(format!("LOD {lod}: {why}"));
                    let mut info = array_info::array_info(description, &self.channel, &grid, *lod, None, None);
                    info.warnings.push(format!("it cannot be read: {why}"));
                    let why = FormatError::DamagedObject(format!("{name}: {why}"));
                    levels.push(Arc::new(UnreadableLevel { info, source: Arc::clone(source), why }));
                }
            }
        }
        let native = self.native(methods);
        if levels.is_empty() || reasons.len() >= levels.len() {
            let finest = ChunkGrid::new(description, &self.channel, self.group, 0).ok();
            let reason = if reasons.is_empty() { "LOD 0 is not stored".into() } else { reasons.join("; ") };
            layers.hidden.push(HiddenLayer {
                name: self.name.clone(),
                dtype: Some(self.channel.format.dtype()),
                shape: finest.map(|grid| grid.brick_grid().shape()),
                reason,
                damaged: true,
                native,
            });
            return Ok(());
        }
        layers.warnings.extend(reasons.iter().map(|reason| format!("{}: {reason}", self.name)));
        layers.checked.arrays.append(&mut arrays);
        layers.shown.push(Layer { name: self.name.clone(), levels, native });
        Ok(())
    }

    /// Opens the stored layer `name` and checks it against its chunk grid.
    fn open(&self, name: &str, grid: &ChunkGrid, open_layer: OpenLayer<'_>) -> Result<StoredLayer, FormatError> {
        let stored = open_layer(name, grid.total())?;
        if let Some(chunks) = stored.chunks.filter(|chunks| *chunks != grid.total()) {
            let expected = grid.total();
            return Err(FormatError::Damaged(format!("it has {chunks} chunks, but by the layout {expected}")));
        }
        let (format, several) = (self.channel.format, grid.components() > 1);
        if stored.method.is_wavelet() && (several || !can_be_wavelet(format)) {
            let why = format!("samples of format {} cannot be coded by {}", format.name(), stored.method.name());
            return Err(FormatError::Damaged(if several { format!("{why} with several components") } else { why }));
        }
        if stored.method.is_wavelet() && grid.longest().iter().any(|samples| *samples > wavelet::MAX_SIDE as u64) {
            return Err(FormatError::Damaged(format!("its chunks are too long for {}", stored.method.name())));
        }
        Ok(stored)
    }

    fn native(&self, methods: Vec<Value>) -> NativeJson {
        let native = [
            ("channel", json!(self.channel.name)),
            ("dimensions", json!(self.group.to_string())),
            ("stored", self.stored.values().copied().collect()),
            ("compression", methods.into()),
        ];
        native.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// Returns whether the wavelet methods can store samples of a format.
fn can_be_wavelet(format: SampleFormat) -> bool {
    matches!(format, SampleFormat::R32 | SampleFormat::U8 | SampleFormat::U16)
}
