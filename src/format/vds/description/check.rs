//! The bounds that the values of a description must be within, whatever its syntax.

use std::ops::RangeInclusive;

use super::model::{Channel, Description, LayoutDescriptor, MAX_DIMENSIONS, MAX_LAYERS, SampleFormat};

/// The longest side of a chunk, two-dimensional ones included.
const MAX_CHUNK_SIDE: u64 = 4096;
/// The coarsest LOD.
const MAX_LODS: u32 = 12;
/// The bounds of samples along an axis, and of values for a trace.
const SAMPLES: RangeInclusive<u64> = 1..=i32::MAX as u64;

/// Bytes of the longest name or unit of an axis or a channel. Thousands of levels may have a copy of each.
const MAX_TEXT: usize = 1024;

/// The most warnings: a text of some MiB may have a million oddities.
const MAX_WARNINGS: usize = 32;

/// The syntax whose keys are named in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Those of `VolumeDataLayout`.
    Json,
    /// Those of `VDSObject`.
    Object,
}

impl Keys {
    /// Returns the key of a property of the layout; `key` is the one in JSON.
    fn layout(self, key: &str) -> String {
        match (self, key) {
            (Self::Json, _) => format!("layoutDescriptor.{key}"),
            (Self::Object, "brickSize") => "FullVCSize".into(),
            (Self::Object, "lodLevels") => "LODLevels".into(),
            (Self::Object, _) => capitalised(key),
        }
    }

    /// Returns the key of the number of samples of an axis.
    fn samples(self, axis: usize) -> String {
        match self {
            Self::Json => format!("axisDescriptors[{axis}].numSamples"),
            Self::Object => format!("Dimension{axis}Size"),
        }
    }

    /// Returns the key of a text of an axis; `key` is the one in JSON.
    fn axis(self, axis: usize, key: &str) -> String {
        match self {
            Self::Json => format!("axisDescriptors[{axis}].{key}"),
            Self::Object => format!("Dimension{axis}{}", capitalised(key)),
        }
    }

    fn axes(self) -> &'static str {
        match self {
            Self::Json => "axisDescriptors",
            Self::Object => "Dimensions",
        }
    }

    fn channels(self) -> &'static str {
        match self {
            Self::Json => "channelDescriptors",
            Self::Object => "VolumeDataChannelDescriptor",
        }
    }

    /// Returns the key of a property of a channel; `key` is the one in JSON.
    fn channel(self, number: usize, key: &str) -> String {
        match (self, number, key) {
            (Self::Json, _, _) => format!("channelDescriptors[{number}].{key}"),
            (Self::Object, 0, "components") => "VoxelComponents".into(),
            (Self::Object, 0, _) => capitalised(key),
            (Self::Object, _, _) => format!("VolumeDataChannelDescriptor[{}].{}", number - 1, capitalised(key)),
        }
    }
}

/// Returns a key as `VDSObject` spells it.
fn capitalised(key: &str) -> String {
    let mut letters = key.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

impl Description {
    /// Returns the description, if all of it is within bounds.
    pub(crate) fn checked(self, keys: Keys) -> Result<Self, String> {
        let axes = self.axes.len();
        if !(2..=MAX_DIMENSIONS).contains(&axes) {
            return Err(format!("{} are {axes} in number: there must be 2 to {MAX_DIMENSIONS}", keys.axes()));
        }
        check_layout(&self.layout, axes, keys)?;
        for (number, axis) in self.axes.iter().enumerate() {
            within(axis.samples, SAMPLES, || keys.samples(number))?;
            for (key, text) in [("name", &axis.name), ("unit", &axis.unit)] {
                check_text(text, || keys.axis(number, key))?;
            }
        }
        if self.channels.is_empty() {
            return Err(format!("{} is empty: there must be at least 1", keys.channels()));
        }
        if self.channels.len() > MAX_LAYERS {
            let n = self.channels.len();
            return Err(format!("{} are {n} in number: there must be at most {MAX_LAYERS}", keys.channels()));
        }
        for (number, channel) in self.channels.iter().enumerate() {
            self.check_channel(channel, |key| keys.channel(number, key))?;
        }
        Ok(self)
    }

    fn check_channel(&self, channel: &Channel, key: impl Fn(&str) -> String) -> Result<(), String> {
        for (name, text) in [("name", &channel.name), ("unit", &channel.unit)] {
            check_text(text, || key(name))?;
        }
        if !matches!(channel.components, 1 | 2 | 4) {
            return Err(format!("{} is {}: it must be 1, 2 or 4", key("components"), channel.components));
        }
        if let Some(values) = channel.per_trace {
            within(values, SAMPLES, || key("mappedValues"))?;
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

fn check_layout(layout: &LayoutDescriptor, axes: usize, keys: Keys) -> Result<(), String> {
    let brick = layout.brick;
    within(brick, 32..=MAX_CHUNK_SIDE, || keys.layout("brickSize"))?;
    if !brick.is_power_of_two() {
        return Err(format!("{} is {brick}: it must be a power of two", keys.layout("brickSize")));
    }
    for (key, margin) in [("negativeMargin", layout.negative_margin), ("positiveMargin", layout.positive_margin)] {
        if margin >= brick / 2 {
            let key = keys.layout(key);
            return Err(format!("{key} is {margin}: it must be less than half a brick of {brick}"));
        }
    }
    let multiplier = || keys.layout("brickSize2DMultiplier");
    within(layout.multiplier_2d, 1..=MAX_CHUNK_SIDE / brick, multiplier)?;
    within(layout.lods.into(), 0..=MAX_LODS.into(), || keys.layout("lodLevels"))?;
    if let Some(dimension) = layout.full_resolution
        && dimension >= axes
    {
        let key = keys.layout("fullResolutionDimension");
        return Err(format!("{key} is {dimension}: there are only {axes} axes"));
    }
    Ok(())
}

/// Checks the length of a text that every layer and level repeats.
fn check_text(text: &str, key: impl Fn() -> String) -> Result<(), String> {
    if text.len() <= MAX_TEXT {
        return Ok(());
    }
    Err(format!("{} has {} bytes: there must be at most {MAX_TEXT}", key(), text.len()))
}

/// Checks that a number is within its bounds.
fn within(number: u64, bounds: RangeInclusive<u64>, key: impl Fn() -> String) -> Result<(), String> {
    let (least, most) = (*bounds.start(), *bounds.end());
    if number < least {
        return Err(format!("{} is {number}: there must be at least {least}", key()));
    }
    if number > most {
        return Err(format!("{} is {number}: there must be at most {most}", key()));
    }
    Ok(())
}

/// Adds a warning, unless there are too many already.
pub(crate) fn warn(warnings: &mut Vec<String>, warning: impl FnOnce() -> String) {
    match warnings.len() {
        0..MAX_WARNINGS => warnings.push(warning()),
        MAX_WARNINGS => warnings.push("there are more oddities of this kind".into()),
        _ => (),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::model::AxisDescriptor;
    use super::*;

    /// Returns a valid description: 3 axes of 100, 50 and 20 samples, one channel.
    pub(crate) fn sound() -> Description {
        let axis = |name: &str, samples| AxisDescriptor {
            name: name.into(),
            samples,
            max: samples as f32,
            ..AxisDescriptor::default()
        };
        let channel = Channel { name: "Amplitude".into(), components: 1, integer_scale: 1.0, ..Channel::default() };
        Description {
            layout: LayoutDescriptor { brick: 64, multiplier_2d: 4, ..LayoutDescriptor::default() },
            axes: vec![axis("Sample", 100), axis("Crossline", 50), axis("Inline", 20)],
            channels: vec![channel],
            ..Description::default()
        }
    }

    fn fault(spoil: impl Fn(&mut Description)) -> [String; 2] {
        [Keys::Json, Keys::Object].map(|keys| {
            let mut description = sound();
            spoil(&mut description);
            description.checked(keys).map_or_else(|fault| fault, |_| "none".into())
        })
    }

    #[test]
    fn values_at_the_bounds_are_accepted_and_those_beyond_refused() {
        type Spoil = fn(&mut Description);
        let sides: [(Spoil, bool); 24] = [
            (|_| {}, true),
            (|d| d.layout.brick = 16, false),
            (|d| d.layout.brick = 96, false),
            (|d| d.layout.brick = 8192, false),
            (|d| (d.layout.brick, d.layout.multiplier_2d) = (4096, 1), true),
            (|d| d.layout.negative_margin = 31, true),
            (|d| d.layout.negative_margin = 32, false),
            (|d| d.layout.positive_margin = 32, false),
            (|d| d.layout.multiplier_2d = 64, true),
            (|d| d.layout.multiplier_2d = 65, false),
            (|d| d.layout.multiplier_2d = 0, false),
            (|d| d.layout.lods = 12, true),
            (|d| d.layout.lods = 13, false),
            (|d| d.layout.full_resolution = Some(2), true),
            (|d| d.layout.full_resolution = Some(3), false),
            (|d| d.axes.truncate(1), false),
            (|d| d.axes.resize(7, d.axes[0].clone()), false),
            (|d| d.axes[1].samples = 0x7fff_ffff, true),
            (|d| d.axes[1].samples = 0x8000_0000, false),
            (|d| d.channels.clear(), false),
            (|d| d.channels.resize(MAX_LAYERS, d.channels[0].clone()), true),
            (|d| d.channels.resize(MAX_LAYERS + 1, d.channels[0].clone()), false),
            (|d| d.channels[0].per_trace = Some(240), true),
            (|d| d.channels[0].per_trace = Some(0), false),
        ];
        for (number, (change, good)) in sides.into_iter().enumerate() {
            assert_eq!(fault(change) == ["none", "none"], good, "{number}: {:?}", fault(change));
        }
    }

    #[test]
    fn errors_name_the_key_in_each_syntax() {
        let found = fault(|d| d.axes[1].samples = 0);
        let rest = "is 0: there must be at least 1";
        assert_eq!(found, [format!("axisDescriptors[1].numSamples {rest}"), format!("Dimension1Size {rest}")]);
        let [json, object] = fault(|d| d.layout.negative_margin = 40);
        assert!(json.starts_with("layoutDescriptor.negativeMargin is 40"), "{json}");
        assert!(object.starts_with("NegativeMargin is 40"), "{object}");
        let [json, object] = fault(|d| {
            d.channels.push(Channel { components: 3, ..d.channels[0].clone() });
        });
        assert!(json.starts_with("channelDescriptors[1].components is 3"), "{json}");
        assert!(object.starts_with("VolumeDataChannelDescriptor[0].Components is 3"), "{object}");
    }

    #[test]
    fn texts_that_levels_repeat_are_short() {
        let text = |length: usize| "x".repeat(length);
        assert_eq!(fault(|d| d.axes[1].unit = text(MAX_TEXT)), ["none", "none"]);
        let rest = "has 1025 bytes: there must be at most 1024";
        let found = fault(|d| d.axes[1].unit = text(MAX_TEXT + 1));
        assert_eq!(found, [format!("axisDescriptors[1].unit {rest}"), format!("Dimension1Unit {rest}")]);
        assert_eq!(fault(|d| d.axes[0].name = text(MAX_TEXT + 1))[1], format!("Dimension0Name {rest}"));
        assert_eq!(fault(|d| d.channels[0].name = text(MAX_TEXT))[0], "none");
        assert_eq!(fault(|d| d.channels[0].name = text(MAX_TEXT + 1))[0], format!("channelDescriptors[0].name {rest}"));
        assert_eq!(fault(|d| d.channels[0].unit = text(MAX_TEXT + 1))[0], format!("channelDescriptors[0].unit {rest}"));
    }

    #[test]
    fn single_bits_cannot_have_a_no_value() {
        let [json, _] = fault(|d| (d.channels[0].format, d.channels[0].no_value) = (SampleFormat::Bit, Some(1.0)));
        assert!(json.starts_with("channelDescriptors[0].useNoValue"), "{json}");
    }

    #[test]
    fn channels_fit_in_63_bits() {
        let of = |format, dims: [u64; 4]| {
            fault(|d| {
                d.axes.push(d.axes[0].clone());
                d.axes.iter_mut().zip(dims).for_each(|(axis, samples)| axis.samples = samples);
                d.channels[0].format = format;
            })[0]
                .clone()
        };
        assert_eq!(of(SampleFormat::U8, [1 << 30, 1 << 30, 2, 1]), "none");
        assert!(of(SampleFormat::U8, [1 << 30, 1 << 30, 8, 1]).contains("too many samples"));
        assert!(of(SampleFormat::U16, [1 << 30, 1 << 30, 4, 1]).contains("too many samples"));
        assert!(of(SampleFormat::R64, [0x7fff_ffff; 4]).contains("too many samples"));
        let few = fault(|d| {
            d.axes[0].samples = 0x7fff_ffff;
            d.channels[0].per_trace = Some(1);
        });
        assert_eq!(few[0], "none");
    }

    #[test]
    fn the_number_of_warnings_is_bounded() {
        let mut warnings = Vec::new();
        (0..100).for_each(|number| warn(&mut warnings, || number.to_string()));
        assert_eq!(warnings.len(), MAX_WARNINGS + 1);
        assert_eq!(warnings[..2], ["0", "1"]);
    }
}
