//! What a layer is as a survey of SEG-Y: its lines, samples and positions, in integers.

use std::ops::Range;
use std::sync::Arc;

use crate::format::Array;
use crate::view::LayerRef;
use crate::view::segments::Samples;
use crate::volume::{Affine, Axis, Dims, Dtype, Geometry, Region};

/// The names of the axes of a survey: inlines and crosslines, or what stands for them.
const LINES: [[&str; 2]; 3] = [["inline", "crossline"], ["i", "j"], ["x", "y"]];
/// The names of an axis of the traces of a gather.
const OFFSETS: [&str; 2] = ["offset", "trace (offset)"];
/// The names of the axis of the samples of a trace.
const SAMPLES: [&str; 5] = ["sample", "time", "depth", "k", "z"];

/// Programs take 16 bits of SEG-Y for signed numbers, as revision 1 says, and do not read the greater ones of
/// revision 2.
const MOST: u64 = i16::MAX as u64;

/// A survey, or a box of one, in the integers of SEG-Y.
pub(crate) struct Survey {
    /// The samples. The last axis is that of the samples of a trace.
    pub array: Arc<dyn Array>,
    /// Those that the file has.
    region: Region,
    /// The inlines and the crosslines.
    pub lines: [Lines; 2],
    /// Whether the first axis is that of the inlines.
    pub inline_first: bool,
    /// The traces at each crossing of lines.
    pub gather: u64,
    /// The offsets in a gather, if they are the same in all.
    pub offsets: Option<Lines>,
    /// Arrays with a value for each trace, if the dataset has them: whether the trace is there (uint8, 0 if it is not),
    /// and its offset (float32).
    pub of_traces: [Option<Arc<dyn Array>>; 2],
    pub samples: SampleAxis,
    /// The world coordinates, if they are known.
    pub world: Option<World>,
    /// The code of the measurement system: 1 metres, 2 feet, 0 unknown.
    pub measurement_system: i16,
}

/// The numbers of inlines, crosslines or offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The number of the first line.
    pub first: i64,
    /// The difference of two neighbouring numbers.
    pub step: i64,
    pub count: u64,
}

/// What differs from trace to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    pub inline: i64,
    pub crossline: i64,
    /// The number in the gather, from 0 on.
    pub in_gather: u64,
    /// X and Y, scaled; 0 if they are unknown.
    pub position: [i32; 2],
}

impl Survey {
    /// Returns what a layer is at LOD 0.
    pub(crate) fn of(layer: LayerRef<'_>) -> Result<Self, String> {
        let finest = layer.levels().first().ok_or("it has no LOD 0")?;
        Self::of_box(layer, 0, Region::whole(finest.info().shape()))
    }

    /// Returns what a box of a level is, with the numbers and positions that its lines have in the whole.
    pub(crate) fn of_box(layer: LayerRef<'_>, lod: usize, region: Region) -> Result<Self, String> {
        let array = Arc::clone(layer.levels().get(lod).ok_or("it has no such level")?);
        let info = array.info();
        if info.dtype.is_complex() {
            return Err("SEG-Y has no complex samples; raw, npy, tif and csv files do".into());
        }
        let inline_first = is_inline_first(&info.axes).ok_or_else(|| {
            let names: Vec<_> = info.axes.iter().map(|axis| axis.name.as_str()).collect();
            format!("it is no 3D survey with the samples of a trace side by side: its axes are {}", names.join(", "))
        })?;
        if !Region::whole(info.shape()).contains(&region) || region.shape.contains(&0) {
            return Err("it has no samples".into());
        }
        let held = info.axes.iter().zip(region.start.iter().zip(region.shape.iter()));
        let axes: Vec<Axis> = held.map(|(axis, (start, count))| axis.part(*start, *count)).collect();
        let [first, second, gather @ .., samples] = &axes[..] else { return Err("it has too few axes".into()) };
        let mut lines = [Lines::of(first)?, Lines::of(second)?];
        let mut starts = [region.start[0], region.start[1]];
        if !inline_first {
            lines.reverse();
            starts.reverse();
        }
        let of_traces = [("Trace", Dtype::UInt8), ("Offset", Dtype::Float32)];
        let [live, mut offset] = of_traces.map(|(name, dtype)| one_for_each_trace(layer, name, dtype, lod));
        let mut offsets = None;
        match gather {
            [] => offset = None,
            [axis] if axis.name.eq_ignore_ascii_case(OFFSETS[0]) => (offsets, offset) = (Some(Lines::of(axis)?), None),
            _ if offset.is_none() => return Err("the offsets of its traces are not stored".into()),
            _ => {}
        }
        let gather = gather.first().map_or(1, |axis| axis.count);
        let traces = first.count.checked_mul(second.count).and_then(|all| all.checked_mul(gather));
        if gather > MOST || traces.is_none_or(|traces| i32::try_from(traces).is_err()) {
            return Err("it has more traces than SEG-Y can number".into());
        }
        let geometry = layer.open.dataset.info().geometry.as_ref();
        let samples = SampleAxis::of(samples, geometry)?;
        // positions are known by the indexes of LOD 0
        let step = (1u64 << lod.min(62)) as f64;
        let world = World::of(geometry, starts.map(|start| start as f64 * step), step, lines.map(|lines| lines.count));
        let measurement_system = match (geometry.and_then(Length::of), samples.unit) {
            (Some(Length::Feet), _) | (None, SampleUnit::FEET) => 2,
            (Some(Length::Metres(_)), _) | (None, SampleUnit::METRES) => 1,
            (None, _) => 0,
        };
        let of_traces = [live, offset];
        Ok(Self { array, region, lines, inline_first, gather, offsets, of_traces, samples, world, measurement_system })
    }

    pub(crate) fn traces(&self) -> u64 {
        self.lines[0].count * self.lines[1].count * self.gather
    }

    /// Returns a trace by its number in C order of the box.
    pub(crate) fn trace(&self, number: u64) -> Trace {
        let [inlines, crosslines] = self.lines;
        let (place, in_gather) = (number / self.gather, number % self.gather);
        let index = match self.inline_first {
            true => [place / crosslines.count, place % crosslines.count],
            false => [place % inlines.count, place / inlines.count],
        };
        Trace {
            inline: inlines.at(index[0]),
            crossline: crosslines.at(index[1]),
            in_gather,
            position: self.world.map_or([0; 2], |world| world.position(index)),
        }
    }

    /// Returns the offset of a missing trace, as if those of a gather were evenly spaced: readers tell the traces of a
    /// gather by their offsets. It is 0 if there are no gathers.
    pub(crate) fn usual_offset(&self, number: u64) -> f64 {
        let Some(array) = &self.of_traces[1] else { return 0.0 };
        let (axis, (low, high)) = (self.region.axes() - 2, array.info().value_range.unwrap_or_default());
        let (place, last) = (self.region.start[axis] + number % self.gather, array.info().shape()[axis] - 1);
        low + (high - low) * place as f64 / last.max(1) as f64
    }

    /// Returns samples by their numbers in C order of the box: of the survey's array, or of one
    /// [of its traces](Self::of_traces).
    pub(crate) fn samples(&self, array: &Arc<dyn Array>, numbers: Range<u64>) -> Samples {
        let (whole, axes) = (array.info().shape(), self.region.axes());
        let mut region = self.region;
        if whole.get(axes - 1) == Some(&1) {
            (region.start[axes - 1], region.shape[axes - 1]) = (0, 1);
        }
        match region.shape == whole {
            // readers of a range are known to be sequential
            true => Samples::range(array, numbers),
            false => Samples::padded(array, region, region.shape, numbers),
        }
    }
}

impl Lines {
    fn of(axis: &Axis) -> Result<Self, String> {
        let fractional = || {
            let (first, step) = (axis.first, axis.step);
            format!("the numbers of {} are not whole: they begin at {first} in steps of {step}", axis.name)
        };
        let (first, mut step) = (whole(axis.first).ok_or_else(fractional)?, whole(axis.step).ok_or_else(fractional)?);
        if axis.count < 2 {
            step = 1;
        }
        if step == 0 {
            return Err(format!("all lines of {} have the same number", axis.name));
        }
        let last = i64::try_from(axis.count).ok().and_then(|count| step.checked_mul(count.max(1) - 1));
        let last = last.and_then(|last| last.checked_add(first));
        if [Some(first), last].into_iter().any(|number| number.is_none_or(|number| i32::try_from(number).is_err())) {
            return Err(format!("the numbers of {} do not fit 32 bits", axis.name));
        }
        Ok(Self { first, step, count: axis.count })
    }

    /// Returns the number of a line.
    pub(crate) fn at(&self, index: u64) -> i64 {
        self.first + self.step * index as i64
    }
}

/// Returns whether the first axis is that of the inlines; `None` if the axes are not those of a survey.
fn is_inline_first(axes: &[Axis]) -> Option<bool> {
    let [first, second, gather @ .., samples] = axes else { return None };
    let is = |axis: &Axis, name: &str| axis.spatial && axis.name.eq_ignore_ascii_case(name);
    let is_one_of = |axis: &Axis, names: &[&str]| names.iter().any(|name| is(axis, name));
    if !is_one_of(samples, &SAMPLES) || gather.len() > 1 || !gather.iter().all(|axis| is_one_of(axis, &OFFSETS)) {
        return None;
    }
    LINES.iter().find_map(|[inline, crossline]| match () {
        () if is(first, inline) && is(second, crossline) => Some(true),
        () if is(first, crossline) && is(second, inline) => Some(false),
        () => None,
    })
}

/// Returns the axes of inlines and of crosslines, if an array has them.
pub(crate) fn line_axes(axes: &[Axis]) -> Option<[usize; 2]> {
    let named = |name: &str| axes.iter().position(|axis| axis.spatial && axis.name.eq_ignore_ascii_case(name));
    LINES.iter().find_map(|[inline, crossline]| Some([named(inline)?, named(crossline)?]))
}

/// Returns the array with this name that has one value for each trace of a level.
fn one_for_each_trace(layer: LayerRef<'_>, name: &str, dtype: Dtype, lod: usize) -> Option<Arc<dyn Array>> {
    let shape = layer.info(lod).shape();
    let traces = Dims::from_fn(shape.len(), |axis| if axis + 1 < shape.len() { shape[axis] } else { 1 });
    let found = layer.open.dataset.layers().iter().find(|layer| layer.name == name)?.levels.get(lod)?;
    (found.info().dtype == dtype && found.info().shape() == traces).then(|| Arc::clone(found))
}

/// How far a number may be from a whole one, in units of the field: axes are stored in float32, or as first and last
/// position.
const ROUNDING: f64 = 1e-3;

/// Feet, and feet of the U.S. survey, in metres.
const FEET: [f64; 2] = [0.3048, 1200.0 / 3937.0];

/// The positions of the samples of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SampleAxis {
    pub count: u16,
    /// The distance of two samples, in thousandths of the unit of the delay.
    pub interval: u16,
    /// The distance before it was rounded.
    pub exact: f64,
    /// The position of the first sample, in the unit.
    pub delay: i16,
    pub unit: SampleUnit,
}

/// The names of the unit of the first sample's position, and of its thousandth part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleUnit(pub &'static str, pub &'static str);

impl SampleUnit {
    pub const MILLISECONDS: Self = Self("ms", "us");
    pub const METRES: Self = Self("m", "mm");
    pub const FEET: Self = Self("ft", "thousandths of a foot");
    /// That of the dataset, whatever it is.
    pub const UNKNOWN: Self = Self("units of the dataset", "thousandths of it");
}

impl SampleAxis {
    pub(crate) fn of(axis: &Axis, geometry: Option<&Geometry>) -> Result<Self, String> {
        let count = u16::try_from(axis.count).ok().filter(|_| axis.count <= MOST);
        let count = count.ok_or_else(|| {
            format!("a trace has {} samples, and programs read no more than {MOST} from SEG-Y", axis.count)
        })?;
        let (unit, to_unit) = unit(axis, geometry);
        let (SampleUnit(name, thousandth), first, step) = (unit, axis.first * to_unit, axis.step * to_unit * 1e3);
        let rounded = step.round();
        // the last sample stays closest to its place
        let is_near = (step - rounded).abs() * f64::from(count.max(1) - 1) < step / 2.0;
        let interval = if is_near && (1.0..=MOST as f64).contains(&rounded) { rounded as u16 } else { 0 };
        if interval == 0 && count > 1 {
            return Err(format!(
                "its samples are {step} {thousandth} apart, and programs read whole numbers from 1 to {MOST} from \
                 SEG-Y; with those the last of {count} samples would be half an interval off, or more"
            ));
        }
        let delay = whole(first).and_then(|first| i16::try_from(first).ok());
        let delay = delay
            .ok_or_else(|| format!("its samples begin at {first} {name}, and SEG-Y has whole numbers of 16 bits"))?;
        Ok(Self { count, interval, exact: step, delay, unit })
    }

    /// Returns whether the interval is not quite the distance of two samples.
    pub(crate) fn is_rounded(&self) -> bool {
        self.interval > 0 && (self.exact - f64::from(self.interval)).abs() > ROUNDING
    }
}

/// The unit of coordinates that are lengths.
#[derive(Clone, Copy, PartialEq)]
enum Length {
    Feet,
    /// Multiples of metres.
    Metres(f64),
}

impl Length {
    fn of(geometry: &Geometry) -> Option<Self> {
        let factor = geometry.horizontal_factor;
        let is_length = geometry.horizontal_kind == "length" && factor.is_normal() && factor > 0.0;
        is_length.then(|| if (0.3..0.31).contains(&factor) { Self::Feet } else { Self::Metres(factor) })
    }
}

/// Returns the unit of an axis in SEG-Y, and the factor from the axis' own.
fn unit(axis: &Axis, geometry: Option<&Geometry>) -> (SampleUnit, f64) {
    let factor = geometry.map_or(1.0, |geometry| geometry.vertical_factor);
    match geometry.map_or("", |geometry| geometry.vertical_kind) {
        kind if kind.contains("time") => (SampleUnit::MILLISECONDS, factor * 1e3),
        "depth" if FEET.iter().any(|feet| (factor / feet - 1.0).abs() < 1e-5) => (SampleUnit::FEET, 1.0),
        "depth" => (SampleUnit::METRES, factor),
        _ if axis.unit.as_deref() == Some("ms") => (SampleUnit::MILLISECONDS, 1.0),
        _ => (SampleUnit::UNKNOWN, 1.0),
    }
}

/// Returns the number if it is a whole one, but for rounding.
pub(crate) fn whole(number: f64) -> Option<i64> {
    let rounded = number.round();
    let near = (number - rounded).abs() <= ROUNDING && rounded.abs() < 9e15;
    near.then_some(rounded as i64)
}

/// The decimal places that are kept, the most that fit first. Negative ones are zeros before the decimal point.
const PLACES: [i32; 7] = [2, 1, 0, -1, -2, -3, -4];
/// The same for degrees: four places, the most that the standard has, are 11 m.
const PLACES_OF_DEGREES: [i32; 1] = [4];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct World {
    /// The map from indexes along the lines' axes to coordinates.
    map: Affine,
    /// The power of ten that coordinates are multiplied with.
    factor: f64,
    /// The scalar of the trace headers: negative for a divisor.
    pub scalar: i16,
    /// The code of the coordinates' unit: 1 length, 3 decimal degrees, 0 unknown.
    pub unit: i16,
}

impl World {
    /// Returns the coordinates of `lines` inlines and crosslines, from an index of the survey on and so many apart;
    /// `None` if they are unknown, or no scalar makes them fit.
    pub(crate) fn of(geometry: Option<&Geometry>, first: [f64; 2], step: f64, lines: [u64; 2]) -> Option<Self> {
        let geometry = geometry?;
        let (unit, factor) = match Length::of(geometry) {
            Some(Length::Feet) => (1, 1.0),
            Some(Length::Metres(factor)) => (1, factor),
            // the factor is that to seconds of arc
            None if geometry.horizontal_kind == "angle" => (3, geometry.horizontal_factor / 3600.0),
            None => (0, 1.0),
        };
        let map = geometry.index_to_world?.of_indexes(first, [step; 2]);
        let scaled = |point: [f64; 2]| point.map(|coordinate| coordinate * factor);
        let map = Affine { origin: scaled(map.origin), steps: map.steps.map(scaled) };
        let last = lines.map(|count| count.saturating_sub(1) as f64);
        let corners = [[0.0, 0.0], [last[0], 0.0], [0.0, last[1]], last].map(|index| map.map(index));
        let fits = |places: &&i32| {
            let factor = 10f64.powi(**places);
            corners.iter().flatten().all(|coordinate| coordinate.abs() * factor < f64::from(i32::MAX))
        };
        let places: &[i32] = if unit == 3 { &PLACES_OF_DEGREES } else { &PLACES };
        let places = places.iter().find(fits)?;
        let power = 10i16.pow(places.unsigned_abs());
        let scalar = if *places > 0 { -power } else { power };
        Some(Self { map, factor: 10f64.powi(*places), scalar, unit })
    }

    /// Returns X and Y of a trace, scaled and rounded.
    pub(crate) fn position(&self, index: [u64; 2]) -> [i32; 2] {
        self.map.map(index.map(|at| at as f64)).map(|coordinate| (coordinate * self.factor).round() as i32)
    }

    /// Returns the coordinate that a scaled one stands for.
    pub(crate) fn coordinate(&self, scaled: i32) -> f64 {
        f64::from(scaled) / self.factor
    }

    /// Returns what the coordinates are rounded to, in their own unit.
    pub(crate) fn rounding(&self) -> f64 {
        1.0 / self.factor
    }
}
