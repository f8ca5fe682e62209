//! The position of an array in space, for headers that have an origin and directions.

use crate::volume::{ArrayInfo, Geometry};

/// The affine map from indexes to positions in a space that has one dimension for each spatial axis.
///
/// The dimensions of the space are in reverse order of the array's axes: x is the fastest axis of a volume `(z, y, x)`.
/// A survey `(inline, crossline, sample)` is shown without its rotation, in world units: x increases with the inline
/// index, y with the crossline index, and z points up, so that it decreases with the sample index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpatialTransform {
    /// Centre of the first sample.
    pub origin: Vec<f64>,
    /// Unit of each dimension of the space; empty if unknown.
    pub units: Vec<String>,
    /// The step along each axis of the array, slowest first; none for an axis that is not spatial.
    pub directions: Vec<Option<Vec<f64>>>,
}

impl SpatialTransform {
    /// Returns the transform of an array in a dataset with or without a survey.
    pub(crate) fn of(info: &ArrayInfo, geometry: Option<&Geometry>) -> Self {
        match geometry {
            Some(geometry) if info.axes.len() == 3 && info.axes.iter().all(|a| a.spatial) => {
                Self::survey(info, geometry)
            }
            _ => Self::plain(info),
        }
    }

    fn plain(info: &ArrayInfo) -> Self {
        let spatial: Vec<usize> = (0..info.axes.len()).rev().filter(|a| info.axes[*a].spatial).collect();
        let unit = |a: &usize| info.axes[*a].unit.clone().unwrap_or_default();
        let direction = |axis: usize| {
            let dimension = spatial.iter().position(|a| *a == axis)?;
            let mut vector = vec![0.0; spatial.len()];
            vector[dimension] = step(info.axes[axis].step);
            Some(vector)
        };
        Self {
            origin: spatial.iter().map(|a| finite(info.axes[*a].first)).collect(),
            units: spatial.iter().map(unit).collect(),
            directions: (0..info.axes.len()).map(direction).collect(),
        }
    }

    fn survey(info: &ArrayInfo, geometry: &Geometry) -> Self {
        let down = &info.axes[2];
        let (origin, steps, unit) = horizontal(info, geometry);
        Self {
            origin: vec![origin[0], origin[1], 0.0 - finite(down.first)],
            units: vec![unit.clone(), unit, down.unit.clone().unwrap_or_default()],
            directions: vec![
                Some(vec![steps[0], 0.0, 0.0]),
                Some(vec![0.0, steps[1], 0.0]),
                Some(vec![0.0, 0.0, -step(down.step)]),
            ],
        }
    }
}

/// Returns the position of the first sample, the distances between inlines and between crosslines, and their unit: in
/// world coordinates if they are known, else in line numbers.
fn horizontal(info: &ArrayInfo, geometry: &Geometry) -> ([f64; 2], [f64; 2], String) {
    let [first, last_inline, last_crossline, _] = geometry.corners;
    let (Some(first_at), Some(inline_at), Some(crossline_at)) = (first.world, last_inline.world, last_crossline.world)
    else {
        let axis = |a: usize| (finite(info.axes[a].first), step(info.axes[a].step));
        let ((inline, inlines), (crossline, crosslines)) = (axis(0), axis(1));
        return ([inline, crossline], [inlines, crosslines], String::new());
    };
    let factor = (1u64 << info.lod.min(62)) as f64;
    let spacing = |to: [f64; 2], lines: u64| {
        let length = (to[0] - first_at[0]).hypot(to[1] - first_at[1]);
        // a single line has no neighbour to measure a distance to
        if lines > 0 { step(rounded(length / lines as f64) * factor) } else { factor }
    };
    let steps = [spacing(inline_at, last_inline.index[0]), spacing(crossline_at, last_crossline.index[1])];
    (first_at, steps, geometry.horizontal_unit.clone().unwrap_or_default())
}

/// Rounds off the last digits of a length, in which the rotation of a survey leaves rounding errors.
fn rounded(length: f64) -> f64 {
    format!("{length:.10e}").parse().unwrap_or(length)
}

/// Replaces a step that readers cannot divide by.
pub(crate) fn step(step: f64) -> f64 {
    if step.is_finite() && step != 0.0 { step } else { 1.0 }
}

/// Replaces a position that is not a number by 0.
pub(crate) fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// Formats a number for a text header: short, exact, and in exponent form if it would be very long otherwise.
pub(crate) fn number(value: f64) -> String {
    if value != 0.0 && !(1e-5..1e16).contains(&value.abs()) { format!("{value:e}") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::super::array_file::tests::zeros;
    use super::*;
    use crate::volume::{Corner, Dtype};

    fn corner(index: [u64; 2], world: [f64; 2]) -> Corner {
        Corner { index, annotation: [0.0, 0.0], world: Some(world) }
    }

    #[test]
    fn a_survey_is_unrotated_and_samples_go_down() {
        let array = zeros(&[11, 21, 30], Dtype::Int8);
        let corners = [
            corner([0, 0], [100.0, 200.0]),
            corner([10, 0], [400.0, 600.0]),
            corner([0, 20], [20.0, 260.0]),
            corner([10, 20], [320.0, 660.0]),
        ];
        let geometry = Geometry { corners, horizontal_unit: Some("m".into()), ..Geometry::default() };
        let got = SpatialTransform::of(array.info(), Some(&geometry));
        assert_eq!(got.origin, [100.0, 200.0, -10.0]);
        assert_eq!(got.units, ["m", "m", ""]);
        let directions: Vec<Vec<f64>> = got.directions.into_iter().flatten().collect();
        assert_eq!(directions, [[50.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, -4.0]]);
    }

    #[test]
    fn line_numbers_replace_unknown_world_coordinates() {
        let array = zeros(&[11, 21, 30], Dtype::Int8);
        let got = SpatialTransform::of(array.info(), Some(&Geometry::default()));
        assert_eq!(got.origin, [10.0, 10.0, -10.0]);
        assert_eq!(got.directions[1], Some(vec![0.0, 3.0, 0.0]));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(12.5), "12.5");
        assert_eq!(number(-3.0), "-3");
        assert_eq!(number(1e300), "1e300");
        assert_eq!(number(0.0), "0");
    }
}
