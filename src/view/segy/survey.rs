//! What a layer needs to be a SEG-Y file: three axes of a survey, in integers.

use std::sync::Arc;

use crate::format::Array;
use crate::view::virtual_file::LayerRef;
use crate::volume::{Affine, ArrayInfo, Axis, Geometry};

/// The names of the axes of a survey: inlines and crosslines, or what stands for them.
const LINES: [[&str; 2]; 3] = [["inline", "crossline"], ["i", "j"], ["x", "y"]];
/// The names of the axis of the samples of a trace.
const SAMPLES: [&str; 5] = ["sample", "time", "depth", "k", "z"];

/// A survey in the integers of SEG-Y.
pub(crate) struct Survey {
    /// The samples, at LOD 0. The last axis is that of the samples of a trace.
    pub array: Arc<dyn Array>,
    /// The lines of the first two axes, in the order of the array.
    axes: [Lines; 2],
    /// Whether the first axis is that of the inlines.
    pub inline_first: bool,
    /// The samples of a trace.
    pub samples: SampleAxis,
    /// The world coordinates, if they are known.
    pub world: Option<World>,
    /// Whether lengths are in feet.
    feet: bool,
}

/// The numbers of inlines or crosslines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The number of the first line.
    pub first: i64,
    /// The difference of two neighbouring numbers.
    pub step: i64,
    /// How many lines there are.
    pub count: u64,
}

/// What differs from trace to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// The inline number.
    pub inline: i64,
    /// The crossline number.
    pub crossline: i64,
    /// X and Y, scaled; 0 if they are unknown.
    pub position: [i32; 2],
}

impl Survey {
    /// Returns the survey that a layer is.
    pub(crate) fn of(layer: LayerRef<'_>) -> Result<Self, String> {
        let array = Arc::clone(layer.levels().first().ok_or("it has no LOD 0")?);
        let info = array.info();
        let inline_first = is_inline_first(info).ok_or_else(|| {
            let names: Vec<_> = info.axes.iter().map(|axis| axis.name.as_str()).collect();
            format!("it is no 3D survey with the samples of a trace side by side: its axes are {}", names.join(", "))
        })?;
        let [first, second, samples] = &info.axes[..] else { return Err("it has not three axes".into()) };
        let axes = [Lines::of(first)?, Lines::of(second)?];
        let traces = first.count.checked_mul(second.count).filter(|traces| i32::try_from(*traces).is_ok());
        if traces.is_none() {
            return Err("it has more traces than SEG-Y can number".into());
        }
        if info.shape().contains(&0) {
            return Err("it has no samples".into());
        }
        let geometry = layer.open.dataset.info().geometry.as_ref();
        let samples = SampleAxis::of(samples, geometry)?;
        let lines = if inline_first { [first.count, second.count] } else { [second.count, first.count] };
        let world = World::of(geometry, lines);
        let horizontal = geometry.filter(|geometry| geometry.horizontal_kind == "length");
        let feet = horizontal
            .map_or(samples.unit == SampleUnit::Feet, |geometry| (0.3..0.31).contains(&geometry.horizontal_factor));
        Ok(Self { array, axes, inline_first, samples, world, feet })
    }

    /// Returns how many traces there are.
    pub(crate) fn traces(&self) -> u64 {
        self.axes[0].count * self.axes[1].count
    }

    /// Returns the inlines and the crosslines.
    pub(crate) fn lines(&self) -> [Lines; 2] {
        let [first, second] = self.axes;
        if self.inline_first { [first, second] } else { [second, first] }
    }

    /// Returns the code of the measurement system: 1 metres, 2 feet.
    pub(crate) fn measurement_system(&self) -> i16 {
        if self.feet { 2 } else { 1 }
    }

    /// Returns a trace by its number in C order of the array.
    pub(crate) fn trace(&self, number: u64) -> Trace {
        let (slow, fast) = (number / self.axes[1].count, number % self.axes[1].count);
        let index = if self.inline_first { [slow, fast] } else { [fast, slow] };
        let [inlines, crosslines] = self.lines();
        let at = |lines: Lines, index: u64| lines.first + lines.step * index as i64;
        Trace {
            inline: at(inlines, index[0]),
            crossline: at(crosslines, index[1]),
            position: self.world.map_or([0; 2], |world| world.position(index)),
        }
    }
}

impl Lines {
    /// Returns the lines of an axis.
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
    /// Samples in a trace.
    pub count: u16,
    /// The distance of two samples, in thousandths of the unit of the delay.
    pub interval: u16,
    /// The position of the first sample, in the unit.
    pub delay: i16,
    /// The unit.
    pub unit: SampleUnit,
}

/// The unit of the first sample's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleUnit {
    /// Milliseconds, so that the interval is in microseconds.
    Milliseconds,
    /// Metres.
    Metres,
    /// Feet.
    Feet,
    /// That of the dataset, whatever it is.
    Unknown,
}

impl SampleUnit {
    /// Returns the name of the unit and of its thousandth part.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Milliseconds => ("ms", "us"),
            Self::Metres => ("m", "mm"),
            Self::Feet => ("ft", "thousandths of a foot"),
            Self::Unknown => ("units of the dataset", "thousandths of it"),
        }
    }
}

impl SampleAxis {
    /// Returns the axis in integers.
    pub(crate) fn of(axis: &Axis, geometry: Option<&Geometry>) -> Result<Self, String> {
        let Ok(count) = u16::try_from(axis.count) else {
            return Err(format!("a trace has {} samples, and SEG-Y has 65535 at most", axis.count));
        };
        let (unit, to_unit) = unit(axis, geometry);
        let ((name, thousandth), first, step) = (unit.names(), axis.first * to_unit, axis.step * to_unit * 1e3);
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
        kind if kind.contains("time") => (SampleUnit::Milliseconds, factor * 1e3),
        "depth" if FEET.iter().any(|feet| (factor / feet - 1.0).abs() < 1e-5) => (SampleUnit::Feet, 1.0),
        "depth" => (SampleUnit::Metres, factor),
        _ if axis.unit.as_deref() == Some("ms") => (SampleUnit::Milliseconds, 1.0),
        _ => (SampleUnit::Unknown, 1.0),
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

/// The world coordinates of a survey.
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

#[cfg(test)]
mod sample_axis_tests {
    use super::*;

    fn of(count: u64, first: f64, step: f64, kind: &'static str, factor: f64) -> Result<SampleAxis, String> {
        let axis = Axis { name: "sample".into(), unit: None, first, step, count, spatial: true };
        let geometry = Geometry { vertical_kind: kind, vertical_factor: factor, ..Geometry::default() };
        SampleAxis::of(&axis, Some(&geometry))
    }

    #[test]
    fn units_are_those_of_the_standard() {
        use SampleUnit::Feet;
        use SampleUnit::Metres;
        use SampleUnit::Milliseconds;
        use SampleUnit::Unknown;
        for (kind, factor, first, step, (delay, interval, unit)) in [
            ("two-way time", 1e-3, -12.0, 4.0, (-12, 4000, Milliseconds)),
            ("time", 1.0, 0.5, 0.002, (500, 2000, Milliseconds)),
            ("depth", 1.0, 1500.0, 5.0, (1500, 5000, Metres)),
            ("depth", 1000.0, 1.5, 0.005, (1500, 5000, Metres)),
            ("depth", 0.3048, 100.0, 12.5, (100, 12500, Feet)),
            ("depth", 1200.0 / 3937.0, 100.0, 12.5, (100, 12500, Feet)),
            ("unknown", 1.0, 7.0, 2.0, (7, 2000, Unknown)),
            ("time", 1e-3, 0.0, f64::from(0.1f32), (0, 100, Milliseconds)),
        ] {
            let expected = SampleAxis { count: 9, interval, delay, unit };
            assert_eq!(of(9, first, step, kind, factor), Ok(expected), "{kind} {factor}");
        }
        let axis = Axis { name: "x".into(), unit: Some("ms".into()), first: 0.0, step: 4.0, count: 1, spatial: true };
        assert_eq!(SampleAxis::of(&axis, None).unwrap().unit, Milliseconds);
    }

    #[test]
    fn what_integers_cannot_say_is_refused() {
        assert!(of(65535, 0.0, 4.0, "time", 1e-3).is_ok());
        let refused = |count, first, step| of(count, first, step, "time", 1e-3).unwrap_err();
        assert_eq!(refused(65536, 0.0, 4.0), "a trace has 65536 samples, and SEG-Y has 65535 at most");
        let apart = "us apart, and SEG-Y has whole numbers from 1 to 65535";
        assert_eq!(refused(9, 0.0, 1.25e-2), format!("its samples are 12.5 {apart}"));
        for step in [10.0 / 3.0, 65.536, -4.0, 0.0, f64::NAN, f64::INFINITY] {
            assert!(refused(9, 0.0, step).ends_with(apart), "{step}");
        }
        for first in [0.5, 40_000.0, -32_769.0, f64::NAN] {
            assert!(refused(9, first, 4.0).contains("whole numbers of 16 bits"), "{first}");
        }
        // one sample is no distance from another
        assert_eq!(of(1, 5.0, 0.0, "time", 1e-3).unwrap().interval, 0);
    }
}

#[cfg(test)]
mod world_tests {
    use super::*;

    fn of(origin: [f64; 2], kind: &'static str, factor: f64) -> Option<World> {
        let map = Affine { origin, steps: [[3.0, 12.25], [-12.25, 3.004]] };
        let geometry = Geometry {
            index_to_world: Some(map),
            horizontal_kind: kind,
            horizontal_factor: factor,
            ..Geometry::default()
        };
        World::of(Some(&geometry), [101, 201])
    }

    #[test]
    fn centimetres_are_kept_where_they_fit() {
        let world = of([431_964.75, 6_348_565.25], "length", 1.0).unwrap();
        assert_eq!((world.scalar, world.unit, world.rounding()), (-100, 1, 0.01));
        assert_eq!(world.position([0, 0]), [43_196_475, 634_856_525]);
        assert_eq!(world.position([2, 3]), [43_193_400, 634_859_876]);
        assert_eq!(of([1.0, 2.0], "length", 1.0).unwrap().scalar, -100);
    }

    #[test]
    fn the_extent_chooses_the_scalar() {
        for (y, scalar, shown) in [
            (21_470_000.0, -100, 2_147_000_000),
            (-21_474_900.0, -10, -214_749_000),
            (2e8, -10, 2_000_000_000),
            (2e9, 1, 2_000_000_000),
            (-2.1e10, 10, -2_100_000_000),
            (2.1e13, 10_000, 2_100_000_000),
        ] {
            let world = of([0.0, y], "length", 1.0).unwrap();
            assert_eq!((world.scalar, world.position([0, 0])[1]), (scalar, shown), "{y}");
        }
        // the far corner does not fit, although the first does
        assert_eq!(of([0.0, 21_474_836.0], "length", 1.0).unwrap().scalar, -10);
        for y in [3e13, f64::NAN, f64::INFINITY] {
            assert_eq!(of([0.0, y], "length", 1.0), None, "{y}");
        }
        assert_eq!(World::of(Some(&Geometry::default()), [2, 2]), None);
    }

    #[test]
    fn angles_are_degrees() {
        let world = of([36_000.0, 18_000.36], "angle", 1.0).unwrap();
        assert_eq!((world.scalar, world.unit, world.position([0, 0])), (-10_000, 3, [100_000, 50_001]));
        assert_eq!(of([10.0, 5.0], "angle", 3600.0).unwrap().position([0, 0]), [100_000, 50_000]);
    }
}
