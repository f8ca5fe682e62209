//! What a layer needs to be a SEG-Y file: three axes of a survey, in integers.

use std::sync::Arc;

use super::sample_axis::{SampleAxis, SampleUnit, whole};
use super::world::World;
use crate::format::Array;
use crate::view::virtual_file::LayerRef;
use crate::volume::{ArrayInfo, Axis};

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
