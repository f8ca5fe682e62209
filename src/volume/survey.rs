//! The metadata of a whole dataset.

use super::array::NativeJson;

/// The metadata of a dataset: the content of dataset.json without names and paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DatasetInfo {
    pub version: String,
    pub geometry: Option<Geometry>,
    pub statistics: Option<Statistics>,
    pub histogram: Option<Histogram>,
    pub warnings: Vec<String>,
    pub native: NativeJson,
}

/// The position of a survey in world coordinates, and its units.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Geometry {
    /// Corners (inline, crossline): (first, first), (last, first), (first, last), (last, last).
    pub corners: [Corner; 4],
    /// The map from inline and crossline number to world coordinates, if the survey has one.
    pub annotation_to_world: Option<Affine>,
    /// The map from inline and crossline index (at LOD 0) to world coordinates, if the survey has one.
    pub index_to_world: Option<Affine>,
    /// Name of the horizontal unit, if known.
    pub horizontal_unit: Option<String>,
    /// Factor from horizontal coordinates to SI units.
    pub horizontal_factor: f64,
    /// The kind of the horizontal coordinates: `length`, `angle`, `unknown`.
    pub horizontal_kind: &'static str,
    /// Name of the vertical unit, if known.
    pub vertical_unit: Option<String>,
    /// Factor from vertical positions to SI units.
    pub vertical_factor: f64,
    /// The kind of the vertical axis: `depth`, `two-way time`, `one-way time`, `time` (which of
    /// the two is unknown), `unknown`.
    pub vertical_kind: &'static str,
    pub coordinate_system: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Corner {
    /// Inline index, crossline index.
    pub index: [u64; 2],
    /// Inline number, crossline number.
    pub annotation: [f64; 2],
    /// World X and Y, if known.
    pub world: Option<[f64; 2]>,
}

/// Statistics of the values (scaled) at LOD 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Statistics {
    pub count: Option<i64>,
    pub sum: Option<f64>,
    pub sum_of_squares: Option<f64>,
    pub min: f64,
    pub max: f64,
}

/// Histogram of the values (scaled) at LOD 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    pub count: i64,
    /// Centre of the first bin.
    pub min: f64,
    /// Centre of the last bin.
    pub max: f64,
    /// Samples in each bin; any number, negative ones included, if the file is damaged.
    pub bins: Vec<i64>,
}

/// The smallest determinant of three points that still define a map.
const FLAT: f64 = 1e-6;

/// An affine map of the plane: the point `(a, b)` maps to `origin + a * steps[0] + b * steps[1]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Affine {
    /// What (0, 0) maps to.
    pub origin: [f64; 2],
    /// The vector of a step of 1 along each axis.
    pub steps: [[f64; 2]; 2],
}

impl Affine {
    /// Returns the map that takes each of three points to its image. `None` if the points lie on a line.
    pub(crate) fn through([p0, p1, p2]: [[f64; 2]; 3], [q0, q1, q2]: [[f64; 2]; 3]) -> Option<Self> {
        let minus = |a: [f64; 2], b: [f64; 2]| [a[0] - b[0], a[1] - b[1]];
        let (u, v) = (minus(p1, p0), minus(p2, p0));
        let (along_u, along_v) = (minus(q1, q0), minus(q2, q0));
        let det = u[0] * v[1] - v[0] * u[1];
        if det.is_nan() || det.abs() < FLAT {
            return None;
        }
        let first = [0, 1].map(|axis: usize| (along_u[axis] * v[1] - along_v[axis] * u[1]) / det);
        let second = [0, 1].map(|axis: usize| (along_v[axis] * u[0] - along_u[axis] * v[0]) / det);
        let origin = [0, 1].map(|axis: usize| q0[axis] - p0[0] * first[axis] - p0[1] * second[axis]);
        Some(Self { origin, steps: [first, second] })
    }

    pub(crate) fn map(&self, [a, b]: [f64; 2]) -> [f64; 2] {
        let [first, second] = self.steps;
        [0, 1].map(|axis: usize| self.origin[axis] + a * first[axis] + b * second[axis])
    }

    /// Returns the map of indexes `(i, j)` that stand for the points `first + (i * step[0], j * step[1])`.
    pub(crate) fn of_indexes(&self, first: [f64; 2], step: [f64; 2]) -> Self {
        let steps = [0, 1].map(|axis: usize| self.steps[axis].map(|length| length * step[axis]));
        Self { origin: self.map(first), steps }
    }

    pub(crate) fn finite(self) -> Option<Self> {
        let all_finite = self.rows().iter().flatten().all(|number| number.is_finite());
        all_finite.then_some(self)
    }

    /// Returns the rows of the matrix that is multiplied with the column `(a, b, 1)`.
    pub(crate) fn rows(&self) -> [[f64; 3]; 2] {
        [0, 1].map(|axis: usize| [self.steps[0][axis], self.steps[1][axis], self.origin[axis]])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_are_multiplied_with_a_column() {
        let map = Affine { origin: [100.0, 200.0], steps: [[1.0, 2.0], [30.0, 40.0]] };
        assert_eq!(map.rows(), [[1.0, 30.0, 100.0], [2.0, 40.0, 200.0]]);
        assert_eq!(map.map([5.0, 7.0]), [5.0 + 210.0 + 100.0, 10.0 + 280.0 + 200.0]);
    }

    #[test]
    fn points_on_a_line_define_no_map() {
        let line = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]];
        assert_eq!(Affine::through(line, line), None);
        assert_eq!(Affine::through([[f64::NAN; 2]; 3], line), None);
        let overflows = Affine { origin: [f64::MAX; 2], steps: [[f64::MAX; 2]; 2] }.of_indexes([1.0; 2], [1.0; 2]);
        assert_eq!(overflows.finite(), None);
    }

    proptest! {
        #[test]
        fn a_map_is_found_again_from_any_three_points(
            origin in [-1e6f64..1e6, -1e6f64..1e6], angle in 0.0f64..7.0, lengths in [1f64..50.0, -50f64..-1.0],
            points in [[-5000i32..5000, -5000i32..5000], [-5000i32..5000, -5000i32..5000], [-5000i32..5000, -5000i32..5000]],
            first in [-3000f64..3000.0, -3000f64..3000.0], step in [-4f64..4.0, -4f64..4.0],
        ) {
            let along = |angle: f64, length: f64| [angle.cos() * length, angle.sin() * length];
            let map = Affine { origin, steps: [along(angle, lengths[0]), along(angle + 1.3, lengths[1])] };
            let points = points.map(|point| point.map(f64::from));
            let [p, q, r] = points;
            let area = (q[0] - p[0]) * (r[1] - p[1]) - (r[0] - p[0]) * (q[1] - p[1]);
            // long and thin triangles lose digits
            prop_assume!(area.abs() > 1e6);
            let found = Affine::through(points, points.map(|point| map.map(point))).unwrap();
            let near = |a: [f64; 2], b: [f64; 2]| (0..2).all(|axis| (a[axis] - b[axis]).abs() < 1e-6);
            for point in [[0.0, 0.0], p, q, r] {
                prop_assert!(near(found.map(point), map.map(point)), "{point:?}");
            }
            let indexes = map.of_indexes(first, step);
            for [i, j] in [[0.0, 0.0], [7.0, 0.0], [0.0, 9.0], [100.0, 200.0]] {
                let annotation = [first[0] + i * step[0], first[1] + j * step[1]];
                prop_assert!(near(indexes.map([i, j]), map.map(annotation)), "{i} {j}");
            }
        }
    }
}
