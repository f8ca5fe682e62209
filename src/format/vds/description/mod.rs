//! The description of a VDS, and its two syntaxes: the JSON of `VolumeDataLayout`, and the older `VDSObject`.

mod json;
mod object;
#[cfg(test)]
pub(super) mod tests;

use std::ops::RangeInclusive;

use serde_json::Value;

pub(crate) use json::parse as from_json;
pub(crate) use object::parse as from_object;

use crate::volume::Dtype;

/// The longest description that is read, in bytes. The largest values are BLOBs with a few numbers for each trace of
/// a line.
pub(crate) const MAX_DESCRIPTION_BYTES: u64 = 32 << 20;
/// The most stored layers and channels of a dataset. Real ones have tens; each takes some 8 KiB of memory once it is
/// open.
pub(crate) const MAX_LAYERS: usize = 1 << 13;
/// The most axes of a VDS.
pub(crate) const MAX_DIMENSIONS: usize = 6;

/// The description of a dataset. All values are within the bounds that are given here, and that
/// [`Description::checked`] has checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Description {
    pub layout: LayoutDescriptor,
    /// 2 to 6 axes, dimension 0 (the fastest) first.
    pub axes: Vec<AxisDescriptor>,
    /// At least one channel, the primary one first.
    pub channels: Vec<Channel>,
    pub metadata: Vec<MetadataEntry>,
    /// Problems that users of the data should know of.
    pub warnings: Vec<String>,
}

/// How channels are divided into chunks (`layoutDescriptor` in JSON).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayoutDescriptor {
    /// Samples of a chunk along each of its dimensions, both margins included: 32 to 4096, a power of two.
    pub brick: u64,
    /// Samples that a chunk repeats of the chunk before it; less than half a brick.
    pub negative_margin: u64,
    /// Samples that a chunk repeats of the chunk after it; less than half a brick.
    pub positive_margin: u64,
    /// Chunks of two dimensions are longer by this factor; brick * multiplier is at most 4096.
    pub multiplier_2d: u64,
    /// The coarsest LOD: 0 to 12.
    pub lods: u64,
    /// Whether chunks of two dimensions have LODs, too.
    pub lods_2d: bool,
    /// The dimension that keeps all samples at every LOD.
    pub full_resolution: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AxisDescriptor {
    pub name: String,
    pub unit: String,
    /// Samples at LOD 0: 1 to 2^31 - 1.
    pub samples: u64,
    pub min: f32,
    pub max: f32,
}

impl AxisDescriptor {
    /// Returns the difference of the annotation between neighbouring samples of LOD 0; 1 if there is a single sample.
    pub(crate) fn step(&self) -> f64 {
        match self.samples {
            0 | 1 => 1.0,
            n => (f64::from(self.max) - f64::from(self.min)) / (n - 1) as f64,
        }
    }

    /// Returns the unit; `None` if there is none.
    pub(crate) fn unit(&self) -> Option<&str> {
        Some(self.unit.as_str()).filter(|unit| !unit.is_empty() && *unit != "unitless")
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SampleFormat {
    /// Single bits, packed along the lowest dimension of a chunk.
    Bit,
    U8,
    U16,
    #[default]
    R32,
    U32,
    R64,
    U64,
}

impl SampleFormat {
    /// All formats, by their codes in the headers of chunks.
    const ALL: [Self; 7] = [Self::Bit, Self::U8, Self::U16, Self::R32, Self::U32, Self::R64, Self::U64];

    /// Returns the name in JSON, without `Format_`.
    pub(crate) fn name(self) -> &'static str {
        ["1Bit", "U8", "U16", "R32", "U32", "R64", "U64"][self as usize]
    }

    /// Returns the format with a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the type of the samples in the array: single bits become a byte each.
    pub(crate) fn dtype(self) -> Dtype {
        match self {
            Self::Bit | Self::U8 => Dtype::UInt8,
            Self::U16 => Dtype::UInt16,
            Self::R32 => Dtype::Float32,
            Self::U32 => Dtype::UInt32,
            Self::R64 => Dtype::Float64,
            Self::U64 => Dtype::UInt64,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Channel {
    pub name: String,
    pub unit: String,
    pub format: SampleFormat,
    /// Components of a sample: 1, 2 or 4.
    pub components: u64,
    pub value_range: [f32; 2],
    /// For a channel with values for each trace: their number, which replaces the samples of dimension 0. At least 1.
    pub per_trace: Option<u64>,
    /// Values are identifiers and cannot be interpolated.
    pub discrete: bool,
    /// LODs other than 0 may exist.
    pub renderable: bool,
    pub lossy_allowed: bool,
    /// The value of missing samples.
    pub no_value: Option<f32>,
    /// U8 and U16: value = stored * scale + offset.
    pub integer_scale: f32,
    pub integer_offset: f32,
}

impl Channel {
    /// Returns the name of how values are mapped to positions.
    pub(crate) fn mapping(&self) -> &'static str {
        if self.per_trace.is_some() { "PerTrace" } else { "Direct" }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetadataEntry {
    pub category: String,
    pub name: String,
    pub value: MetadataValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MetadataValue {
    /// `Int`, or a vector of 2 to 4.
    Int(Vec<i32>),
    /// `Float`, or a vector of 2 to 4.
    Float(Vec<f32>),
    /// `Double`, or a vector of 2 to 4.
    Double(Vec<f64>),
    Text(String),
    Blob(Vec<u8>),
    /// An unknown type: its name, and the value as JSON.
    Other(String, Value),
}

/// Returns the element type of a type, and the number of its elements: `IntVector3` is three of `Int`.
pub(crate) fn element_type(kind: &str) -> (&str, usize) {
    let vectors = [("Vector2", 2), ("Vector3", 3), ("Vector4", 4)];
    vectors.iter().find_map(|(suffix, length)| Some((kind.strip_suffix(suffix)?, *length))).unwrap_or((kind, 1))
}

/// The longest side of a chunk, two-dimensional ones included.
const MAX_CHUNK_SIDE: u64 = 4096;
/// The coarsest LOD.
const MAX_LODS: u64 = 12;
/// The bounds of samples along an axis, and of values for a trace.
const SAMPLES: RangeInclusive<u64> = 1..=i32::MAX as u64;

/// Bytes of the longest name or unit of an axis or a channel. Thousands of levels may have a copy of each.
const MAX_TEXT: usize = 1024;

/// The most warnings: a text of some MiB may have a million oddities.
const MAX_WARNINGS: usize = 32;

impl Description {
    /// Returns the value of the metadata entry with this category and name.
    pub(crate) fn entry(&self, category: &str, name: &str) -> Option<&MetadataValue> {
        self.metadata.iter().find(|e| e.category == category && e.name == name).map(|e| &e.value)
    }

    /// Returns the description, if all of it is within bounds. The error begins with the key in `VolumeDataLayout` of
    /// the value that is not.
    fn checked(self) -> Result<Self, String> {
        let axes = self.axes.len();
        if !(2..=MAX_DIMENSIONS).contains(&axes) {
            return Err(format!("axisDescriptors are {axes} in number: there must be 2 to {MAX_DIMENSIONS}"));
        }
        self.layout.check(axes)?;
        for (number, axis) in self.axes.iter().enumerate() {
            let key = |key: &str| format!("axisDescriptors[{number}].{key}");
            within(axis.samples, SAMPLES, &key("numSamples"))?;
            check_text(&axis.name, &key("name"))?;
            check_text(&axis.unit, &key("unit"))?;
        }
        if self.channels.is_empty() {
            return Err("channelDescriptors is empty: there must be at least 1".into());
        }
        if self.channels.len() > MAX_LAYERS {
            let n = self.channels.len();
            return Err(format!("channelDescriptors are {n} in number: there must be at most {MAX_LAYERS}"));
        }
        for (number, channel) in self.channels.iter().enumerate() {
            self.check_channel(channel, |key| format!("channelDescriptors[{number}].{key}"))?;
        }
        Ok(self)
    }

    fn check_channel(&self, channel: &Channel, key: impl Fn(&str) -> String) -> Result<(), String> {
        check_text(&channel.name, &key("name"))?;
        check_text(&channel.unit, &key("unit"))?;
        if !matches!(channel.components, 1 | 2 | 4) {
            return Err(format!("{} is {}: it must be 1, 2 or 4", key("components"), channel.components));
        }
        if let Some(values) = channel.per_trace {
            within(values, SAMPLES, &key("mappedValues"))?;
        }
        if channel.format == SampleFormat::Bit && channel.no_value.is_some() {
            return Err(format!("{} is true, but a channel of single bits has no room for one", key("useNoValue")));
        }
        let first = channel.per_trace.or(self.axes.first().map(|axis| axis.samples));
        let others = self.axes.iter().skip(1).map(|axis| axis.samples);
        let sample = channel.components * channel.format.dtype().size() as u64;
        let bytes = first.into_iter().chain(others).try_fold(sample, u64::checked_mul);
        if bytes.is_none_or(|bytes| i64::try_from(bytes).is_err()) {
            return Err(format!("{} \"{}\" has too many samples for any file", key("name"), channel.name));
        }
        Ok(())
    }
}

impl LayoutDescriptor {
    fn check(&self, axes: usize) -> Result<(), String> {
        let brick = self.brick;
        within(brick, 32..=MAX_CHUNK_SIDE, "layoutDescriptor.brickSize")?;
        if !brick.is_power_of_two() {
            return Err(format!("layoutDescriptor.brickSize is {brick}: it must be a power of two"));
        }
        for (key, margin) in [("negativeMargin", self.negative_margin), ("positiveMargin", self.positive_margin)] {
            if margin >= brick / 2 {
                let must = format!("it must be less than half a brick of {brick}");
                return Err(format!("layoutDescriptor.{key} is {margin}: {must}"));
            }
        }
        within(self.multiplier_2d, 1..=MAX_CHUNK_SIDE / brick, "layoutDescriptor.brickSize2DMultiplier")?;
        within(self.lods, 0..=MAX_LODS, "layoutDescriptor.lodLevels")?;
        match self.full_resolution {
            Some(dimension) if dimension >= axes as u64 => {
                let key = "layoutDescriptor.fullResolutionDimension";
                Err(format!("{key} is {dimension}: there are only {axes} axes"))
            }
            _ => Ok(()),
        }
    }
}

/// Checks the length of a text that every layer and level repeats.
fn check_text(text: &str, key: &str) -> Result<(), String> {
    match text.len() {
        ..=MAX_TEXT => Ok(()),
        length => Err(format!("{key} has {length} bytes: there must be at most {MAX_TEXT}")),
    }
}

/// Checks that a number is within its bounds.
fn within(number: u64, bounds: RangeInclusive<u64>, key: &str) -> Result<(), String> {
    let (least, most) = (*bounds.start(), *bounds.end());
    match number {
        _ if number < least => Err(format!("{key} is {number}: there must be at least {least}")),
        _ if number > most => Err(format!("{key} is {number}: there must be at most {most}")),
        _ => Ok(()),
    }
}

/// Adds a warning, unless there are too many already.
fn warn(warnings: &mut Vec<String>, warning: impl FnOnce() -> String) {
    match warnings.len() {
        0..MAX_WARNINGS => warnings.push(warning()),
        MAX_WARNINGS => warnings.push("there are more oddities of this kind".into()),
        _ => (),
    }
}
