//! The sample axis in the integers of SEG-Y: interval and delay.

use crate::volume::{Axis, Geometry};

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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64, first: f64, step: f64, kind: &'static str, factor: f64) -> Result<SampleAxis, String> {
        let axis = Axis { name: "sample".into(), unit: None, first, step, count, spatial: true };
        let geometry = Geometry { vertical_kind: kind, vertical_factor: factor, ..Geometry::default() };
        SampleAxis::of(&axis, Some(&geometry))
    }

    #[test]
    fn units_are_those_of_the_standard() {
        use SampleUnit::{Feet, Metres, Milliseconds, Unknown};
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
