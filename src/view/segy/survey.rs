//! What a layer is as a survey of SEG-Y: its lines, samples and positions, in integers.

use std::sync::Arc;

use crate::format::Array;
use crate::view::LayerRef;
use crate::volume::{Affine, ArrayInfo, Axis, Geometry};

/// The names of the axes of a survey: inlines and crosslines, or what stands for them.
const LINES: [[&str; 2]; 3] = [["inline", "crossline"], ["i", "j"], ["x", "y"]];
/// The names of the axis of the samples of a trace.
const SAMPLES: [&str; 5] = ["sample", "time", "depth", "k", "z"];

/// A survey in the integers of SEG-Y.
pub(crate) struct Survey {
    /// The samples, at LOD 0. The last axis is that of the samples of a trace.
    pub array: Arc<dyn Array>,
    /// The inlines and the crosslines.
    pub lines: [Lines; 2],
    /// Whether the first axis is that of the inlines.
    pub inline_first: bool,
    pub samples: SampleAxis,
    /// The world coordinates, if they are known.
    pub world: Option<World>,
    /// The code of the measurement system: 1 metres, 2 feet.
    pub measurement_system: i16,
}

/// The numbers of inlines or crosslines.
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
    /// X and Y, scaled; 0 if they are unknown.
    pub position: [i32; 2],
}

impl Survey {
    pub(crate) fn of(layer: LayerRef<'_>) -> Result<Self, String> {
        let array = Arc::clone(layer.levels().first().ok_or("it has no LOD 0")?);
        let info = array.info();
        let inline_first = is_inline_first(info).ok_or_else(|| {
            let names: Vec<_> = info.axes.iter().map(|axis| axis.name.as_str()).collect();
            format!("it is no 3D survey with the samples of a trace side by side: its axes are {}", names.join(", "))
        })?;
        let [first, second, samples] = &info.axes[..] else { return Err("it has not three axes".into()) };
        let mut lines = [Lines::of(first)?, Lines::of(second)?];
        if !inline_first {
            lines.reverse();
        }
        let traces = first.count.checked_mul(second.count).filter(|traces| i32::try_from(*traces).is_ok());
        if traces.is_none() {
            return Err("it has more traces than SEG-Y can number".into());
        }
        if info.shape().contains(&0) {
            return Err("it has no samples".into());
        }
        let geometry = layer.open.dataset.info().geometry.as_ref();
        let samples = SampleAxis::of(samples, geometry)?;
        let world = World::of(geometry, lines.map(|lines| lines.count));
        let horizontal = geometry.filter(|geometry| geometry.horizontal_kind == "length");
        let is_feet = |geometry: &Geometry| (0.3..0.31).contains(&geometry.horizontal_factor);
        let measurement_system = if horizontal.map_or(samples.unit == SampleUnit::FEET, is_feet) { 2 } else { 1 };
        Ok(Self { array, lines, inline_first, samples, world, measurement_system })
    }

    pub(crate) fn traces(&self) -> u64 {
        self.lines[0].count * self.lines[1].count
    }

    /// Returns a trace by its number in C order of the array.
    pub(crate) fn trace(&self, number: u64) -> Trace {
        let [inlines, crosslines] = self.lines;
        let index = match self.inline_first {
            true => [number / crosslines.count, number % crosslines.count],
            false => [number % inlines.count, number / inlines.count],
        };
        let at = |lines: Lines, index: u64| lines.first + lines.step * index as i64;
        Trace {
            inline: at(inlines, index[0]),
            crossline: at(crosslines, index[1]),
            position: self.world.map_or([0; 2], |world| world.position(index)),
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
}

/// Returns whether the first axis is that of the inlines; `None` if the axes are not those of a survey.
fn is_inline_first(info: &ArrayInfo) -> Option<bool> {
    let [first, second, samples] = &info.axes[..] else { return None };
    let is = |axis: &Axis, name: &str| axis.spatial && axis.name.eq_ignore_ascii_case(name);
    if !SAMPLES.iter().any(|name| is(samples, name)) {
        return None;
    }
    LINES.iter().find_map(|[inline, crossline]| match () {
        () if is(first, inline) && is(second, crossline) => Some(true),
        () if is(first, crossline) && is(second, inline) => Some(false),
        () => None,
    })
}

/// How far a number may be from a whole one, in units of the field: axes are stored in float32, or as first and last
/// position.
const ROUNDING: f64 = 1e-3;

/// Feet, and feet of the U.S. survey, in metres.
const FEET: [f64; 2] = [0.3048, 1200.0 / 3937.0];

/// The positions of the samples of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleAxis {
    pub count: u16,
    /// The distance of two samples, in thousandths of the unit of the delay.
    pub interval: u16,
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
        let Ok(count) = u16::try_from(axis.count) else {
            return Err(format!("a trace has {} samples, and SEG-Y has 65535 at most", axis.count));
        };
        let (unit, to_unit) = unit(axis, geometry);
        let (SampleUnit(name, thousandth), first, step) = (unit, axis.first * to_unit, axis.step * to_unit * 1e3);
        let interval = whole(step).and_then(|step| u16::try_from(step).ok()).filter(|step| *step > 0 || count < 2);
        let interval = interval.ok_or_else(|| {
            format!("its samples are {step} {thousandth} apart, and SEG-Y has whole numbers from 1 to 65535")
        })?;
        let delay = whole(first).and_then(|first| i16::try_from(first).ok());
        let delay = delay
            .ok_or_else(|| format!("its samples begin at {first} {name}, and SEG-Y has whole numbers of 16 bits"))?;
        Ok(Self { count, interval, delay, unit })
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
    /// The code of the coordinates' unit: 1 length, 3 decimal degrees.
    pub unit: i16,
}

impl World {
    /// Returns the coordinates of `lines` inlines and crosslines; `None` if they are unknown, or no scalar makes them
    /// fit.
    pub(crate) fn of(geometry: Option<&Geometry>, lines: [u64; 2]) -> Option<Self> {
        let geometry = geometry?;
        let mut map = geometry.index_to_world?;
        let is_angle = geometry.horizontal_kind == "angle";
        if is_angle {
            // the factor is that to seconds of arc
            let degrees = |number: f64| number * geometry.horizontal_factor / 3600.0;
            map = Affine { origin: map.origin.map(degrees), steps: map.steps.map(|step| step.map(degrees)) };
        }
        let last = lines.map(|count| count.saturating_sub(1) as f64);
        let corners = [[0.0, 0.0], [last[0], 0.0], [0.0, last[1]], last].map(|index| map.map(index));
        let fits = |places: &&i32| {
            let factor = 10f64.powi(**places);
            corners.iter().flatten().all(|coordinate| coordinate.abs() * factor < f64::from(i32::MAX))
        };
        let places: &[i32] = if is_angle { &PLACES_OF_DEGREES } else { &PLACES };
        let places = places.iter().find(fits)?;
        let power = 10i16.pow(places.unsigned_abs());
        let scalar = if *places > 0 { -power } else { power };
        Some(Self { map, factor: 10f64.powi(*places), scalar, unit: if is_angle { 3 } else { 1 } })
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
