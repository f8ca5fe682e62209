//! The layers of a dataset, each combined from stored layers: one channel in one partitioning, at all its LODs. Parses
//! the names of stored layers, and hides the damaged ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::bricks::{CheckedBitmap, VdsArray};
use super::check::Checked;
use super::chunk_grid::{ChunkGrid, Group};
use super::describe::array_info;
use super::description::{Channel, Description, MAX_LAYERS, SampleFormat};
use super::store::StoredLayer;
use super::wavelet;
use crate::format::bytes::decimal;
use crate::format::{Array, Census, Finding, FormatError, HiddenLayer, Layer, OpenWith, native};
use crate::source::{Blocking, Source};
use crate::volume::{ArrayInfo, Brick, BrickSet, Dims};

/// Opens the stored layer with a number in its container, which has as many chunks by the chunk grid.
pub(super) type OpenLayer<'a> = &'a dyn Fn(usize, u64) -> Result<StoredLayer, FormatError>;

#[derive(Default)]
pub(super) struct Layers {
    pub shown: Vec<Layer>,
    pub hidden: Vec<HiddenLayer>,
    pub warnings: Vec<String>,
    /// What a check of the structure needs.
    pub checked: Checked,
}

/// The number and the name of each stored layer, by its LOD.
type Levels<'a> = BTreeMap<u32, (usize, &'a str)>;

/// One channel in one partitioning.
struct Partition<'a> {
    channel: Arc<Channel>,
    name: String,
    group: Group,
    stored: Levels<'a>,
}

/// Combines stored layers, which have these numbers and names. Damaged ones are hidden, with the reason.
pub(super) fn layers<'a>(
    description: &Description,
    names: impl Iterator<Item = (usize, &'a str)>,
    open_layer: OpenLayer<'_>,
    source: &Arc<dyn Source>,
    with: &OpenWith,
) -> Result<Layers, FormatError> {
    let mut layers = Layers::default();
    let mut found = BTreeMap::<(usize, Group), Levels<'_>>::new();
    // the primary channel has no name in layer names
    let mut channels = HashMap::from([("", 0)]);
    for (number, channel) in description.channels.iter().enumerate() {
        channels.entry(channel.name.as_str()).or_insert(number);
    }
    for (before, (number, name)) in names.enumerate() {
        if before == MAX_LAYERS {
            return Err(format!("it has more than {MAX_LAYERS} layers").into());
        }
        let known =
            parse_layer_name(name).and_then(|(channel, group, lod)| Some((*channels.get(channel)?, group, lod)));
        let Some((channel, group, lod)) = known else {
            let reason = "its name says no channel of this dataset, or no dimensions".into();
            layers.hidden.push(HiddenLayer { name: name.into(), reason, ..HiddenLayer::default() });
            continue;
        };
        let levels = found.entry((channel, group)).or_default();
        if let Some(other) = levels.insert(lod, (number, name)) {
            // of layers with one name the first counts
            if other.1 == name {
                levels.insert(lod, other);
            }
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
        for (expected, (lod, (number, name))) in (0..).zip(&self.stored) {
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
            match self.open(*number, &grid, open_layer) {
                Ok(stored) => {
                    methods.push(json!({"method": stored.method.name(), "tolerance": stored.tolerance}));
                    let info = array_info(description, &self.channel, &grid, *lod, Some(&stored), with.quality);
                    let array = Arc::new(VdsArray {
                        info,
                        name: (*name).into(),
                        grid,
                        channel: Arc::clone(&self.channel),
                        quality: with.quality,
                        source: Arc::clone(source),
                        stored,
                        checked: CheckedBitmap::new(Arc::clone(&with.index)),
                        census: OnceLock::new(),
                    });
                    arrays.push((self.name.clone(), Arc::clone(&array)));
                    levels.push(array);
                }
                Err(FormatError::Source(error)) => return Err(error.into()),
                Err(why) => {
                    reasons.push(format!("LOD {lod}: {why}"));
                    let mut info = array_info(description, &self.channel, &grid, *lod, None, None);
                    info.warnings.push(format!("it cannot be read: {why}"));
                    let why = FormatError::DamagedObject(format!("{name}: {why}"));
                    levels.push(Arc::new(UnreadableLevel { info, source: Arc::clone(source), why }));
                }
            }
        }
        let native = native(json!({
            "channel": self.channel.name,
            "dimensions": self.group.to_string(),
            "stored": self.stored.values().map(|(_, name)| name).collect::<Vec<_>>(),
            "compression": methods,
        }));
        if arrays.is_empty() {
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

    /// Opens a stored layer and checks it against its chunk grid.
    fn open(&self, number: usize, grid: &ChunkGrid, open_layer: OpenLayer<'_>) -> Result<StoredLayer, FormatError> {
        let stored = open_layer(number, grid.total())?;
        if let Some(chunks) = stored.chunks.filter(|chunks| *chunks != grid.total()) {
            let expected = grid.total();
            return Err(format!("it has {chunks} chunks, but by the layout {expected}").into());
        }
        let (format, several) = (self.channel.format, grid.components > 1);
        let can_be_wavelet = matches!(format, SampleFormat::R32 | SampleFormat::U8 | SampleFormat::U16);
        if stored.method.is_wavelet() && (several || !can_be_wavelet) {
            let why = format!("samples of format {} cannot be coded by {}", format.name(), stored.method.name());
            return Err(FormatError::Damaged(if several { format!("{why} with several components") } else { why }));
        }
        if stored.method.is_wavelet() && grid.longest().iter().any(|samples| *samples > wavelet::MAX_SIDE as u64) {
            return Err(format!("its chunks are too long for {}", stored.method.name()).into());
        }
        Ok(stored)
    }
}

/// Parses the name of a stored layer, `<channel>Dimensions_<digits>LOD<n>`: returns the channel's name (empty for the
/// primary one), the group of the primary channel (also for a channel that is divided along fewer dimensions), and the
/// LOD. A channel's name is free text and may contain these words, so that the last ones count.
pub(super) fn parse_layer_name(name: &str) -> Option<(&str, Group, u32)> {
    let (rest, lod) = name.rsplit_once("LOD")?;
    let (channel, digits) = rest.rsplit_once("Dimensions_")?;
    let lod = decimal(lod).filter(|lod| *lod < 100)? as u32;
    Some((channel, Group::from_digits(digits)?, lod))
}

/// A level that exists by its name, but whose tables are damaged or unknown.
struct UnreadableLevel {
    info: ArrayInfo,
    source: Arc<dyn Source>,
    why: FormatError,
}

impl Array for UnreadableLevel {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.source
    }

    fn brick(&self, _at: &Dims, _wait: Blocking) -> Result<Brick, FormatError> {
        Err(self.why.clone())
    }

    fn visit_stored(&self, _visit: &mut dyn FnMut(BrickSet) -> bool) -> Result<(), FormatError> {
        Err(self.why.clone())
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_from_the_end() {
        let parts = |name| parse_layer_name(name).map(|(channel, group, lod)| (channel, group.to_string(), lod));
        let found = parts("SEGYTraceHeaderDimensions_012LOD10");
        assert_eq!(found, Some(("SEGYTraceHeader", "Dimensions_012".into(), 10)));
        let found = parts("aLODDimensions_9Dimensions_25LOD0");
        assert_eq!(found, Some(("aLODDimensions_9", "Dimensions_25".into(), 0)));
        assert_eq!(parts("Dimensions_01LOD0"), Some(("", "Dimensions_01".into(), 0)));
        for bad in [
            "",
            "LOD0",
            "Dimensions_LOD0",
            "Dimensions_0LOD0",
            "Dimensions_10LOD0",
            "Dimensions_011LOD0",
            "Dimensions_0123LOD0",
            "Dimensions_016LOD0",
            "Dimensions_012LOD",
            "Dimensions_012LOD-1",
            "Dimensions_012LOD+1",
            "Dimensions_012LOD100",
            "VolumeDataLayout",
        ] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }

    #[test]
    fn groups_know_their_dimensions() {
        let group = Group::from_digits("135").unwrap();
        assert!(group.has(3) && !group.has(2));
        assert_eq!((group.len(), group.highest()), (3, 5));
    }
}
