//! World coordinates of a survey, from its control points.

use crate::volume::{Affine, Corner};

/// A point with known annotation and world position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ControlPoint {
    /// Inline number, crossline number.
    pub annotation: [f64; 2],
    /// X and Y.
    pub world: [f64; 2],
}

/// The control points count as collinear if the determinant of their annotations is smaller than this.
const FLAT: f64 = 1e-6;

/// Four corners count as those of no parallelogram if the fourth is further than this from its place, as a share of the
/// sides' lengths.
const UNEVEN: f64 = 1e-6;

/// The position of a survey.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Position {
    /// The corners (inline, crossline): (first, first), (last, first), (first, last), (last, last).
    pub corners: [Corner; 4],
    /// The map from inline and crossline number to world coordinates.
    pub annotation_to_world: Option<Affine>,
    /// The map from inline and crossline index to world coordinates.
    pub index_to_world: Option<Affine>,
}

/// Returns the position of a survey. `orig` and `inc` are the first inline and crossline numbers and their steps, `size`
/// is the number of inlines and crosslines.
pub(super) fn position(orig: [f64; 2], inc: [f64; 2], size: [u64; 2], points: &[ControlPoint; 4]) -> Position {
    let last = size.map(|n| n.saturating_sub(1));
    let indexes = [[0, 0], [last[0], 0], [0, last[1]], last];
    let map = Map::new(points);
    let mut corners = [Corner::default(); 4];
    for (number, (corner, index)) in corners.iter_mut().zip(indexes).enumerate() {
        let annotation = [0, 1].map(|axis: usize| orig[axis] + inc[axis] * index[axis] as f64);
        let world = map.world(annotation, points[number].world);
        *corner = Corner { index, annotation, world: world.filter(|position| position.iter().all(|x| x.is_finite())) };
    }
    let [annotation_to_world, index_to_world] = match (&map, corners.map(|corner| corner.world)) {
        (Map::Affine { .. }, [Some(first), Some(_), Some(_), Some(_)]) => {
            let [p0, p1, p2, _] = points;
            let map = Affine::through([p0.annotation, p1.annotation, p2.annotation], [p0.world, p1.world, p2.world]);
            // the corners have more exact positions than the map's own origin, which may be far away
            [map, map.map(|map| Affine { origin: first, ..map.of_indexes(orig, inc) })]
        }
        (Map::Corners, [Some(a), Some(b), Some(c), Some(d)]) if is_parallelogram([a, b, c, d]) => {
            let through = |of: fn(&Corner) -> [f64; 2]| {
                Affine::through([of(&corners[0]), of(&corners[1]), of(&corners[2])], [a, b, c])
            };
            [through(|corner| corner.annotation), through(|corner| corner.index.map(|n| n as f64))]
        }
        _ => [None, None],
    };
    let finite = |map: Option<Affine>| map.and_then(Affine::finite);
    Position { corners, annotation_to_world: finite(annotation_to_world), index_to_world: finite(index_to_world) }
}

/// Returns whether the last of four corners lies where those of a parallelogram do.
fn is_parallelogram([a, b, c, d]: [[f64; 2]; 4]) -> bool {
    let length = |v: [f64; 2]| v[0].hypot(v[1]);
    let (u, v, diagonal) = (minus(b, a), minus(c, a), minus(d, a));
    length(minus(diagonal, [u[0] + v[0], u[1] + v[1]])) <= UNEVEN * (length(u) + length(v))
}

/// The map from annotation to world coordinates.
enum Map {
    Affine {
        p0: [f64; 2],
        q0: [f64; 2],
        u: [f64; 2],
        v: [f64; 2],
        qu: [f64; 2],
        qv: [f64; 2],
        det: f64,
    },
    /// The writer left out the annotation: the world positions are those of the corners.
    Corners,
    Unknown,
}

impl Map {
    /// Computes the map from the first three points. The fourth is redundant and ignored, since some writers leave it
    /// wrong.
    fn new([zero, one, two, _]: &[ControlPoint; 4]) -> Self {
        let u = minus(one.annotation, zero.annotation);
        let v = minus(two.annotation, zero.annotation);
        let det = cross(u, v);
        if det.abs() >= FLAT {
            let (qu, qv) = (minus(one.world, zero.world), minus(two.world, zero.world));
            return Self::Affine { p0: zero.annotation, q0: zero.world, u, v, qu, qv, det };
        }
        let left_out = one.annotation == zero.annotation && one.world != zero.world;
        if left_out { Self::Corners } else { Self::Unknown }
    }

    /// Returns the world position of a corner; `stored` is that of the control point with the same number.
    fn world(&self, annotation: [f64; 2], stored: [f64; 2]) -> Option<[f64; 2]> {
        match *self {
            Self::Affine { p0, q0, u, v, qu, qv, det } => {
                let d = minus(annotation, p0);
                let (s, t) = (cross(d, v) / det, cross(u, d) / det);
                Some([0, 1].map(|axis: usize| q0[axis] + s * qu[axis] + t * qv[axis]))
            }
            Self::Corners => Some(stored),
            Self::Unknown => None,
        }
    }
}

fn minus(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

fn cross(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[1] - b[0] * a[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(annotation: [[f64; 2]; 4], world: [[f64; 2]; 4]) -> [ControlPoint; 4] {
        [0, 1, 2, 3].map(|n: usize| ControlPoint { annotation: annotation[n], world: world[n] })
    }

    fn worlds(points: &[ControlPoint; 4]) -> [Option<[f64; 2]>; 4] {
        position([1234.0, 5678.0], [5.0, 2.0], [112, 64], points).corners.map(|corner| corner.world)
    }

    #[test]
    fn control_points_need_not_be_corners() {
        // inline + 5 is X + 25, crossline + 2 is Y + 30; the fourth point is nonsense
        let annotation = [[1244.0, 5678.0], [1234.0, 5682.0], [1239.0, 5678.0], [-9e9, 7.0]];
        let world = [[1050.0, 1000.0], [1000.0, 1060.0], [1025.0, 1000.0], [0.0, 0.0]];
        let Position { corners: found, annotation_to_world, index_to_world } =
            position([1234.0, 5678.0], [5.0, 2.0], [112, 64], &points(annotation, world));
        assert_eq!(annotation_to_world.unwrap().rows(), [[5.0, 0.0, -5170.0], [0.0, 15.0, -84_170.0]]);
        assert_eq!(index_to_world.unwrap().rows(), [[25.0, 0.0, 1000.0], [0.0, 30.0, 1000.0]]);
        assert_eq!(found[3].index, [111, 63]);
        assert_eq!(found[3].annotation, [1789.0, 5804.0]);
        let expected = [[1000.0, 1000.0], [3775.0, 1000.0], [1000.0, 2890.0], [3775.0, 2890.0]];
        for (corner, expected) in found.iter().zip(expected) {
            let position = corner.world.unwrap();
            assert!((0..2).all(|axis| (position[axis] - expected[axis]).abs() < 1e-6), "{position:?}");
        }
    }

    #[test]
    fn without_annotation_the_stored_positions_are_the_corners() {
        let world = [[1.0, 5.0], [2.0, 5.0], [1.0, 9.0], [2.0, 9.0]];
        assert_eq!(worlds(&points([[0.0; 2]; 4], world)), world.map(Some));
        let maps = |inc, size, world| {
            let found = position([1234.0, 5678.0], inc, size, &points([[0.0; 2]; 4], world));
            [found.annotation_to_world, found.index_to_world].map(|map| map.map(|map| map.rows()))
        };
        let by_index = [[0.5, 0.0, 1.0], [0.0, 2.0, 5.0]];
        let by_annotation = [[0.25, 0.0, 1.0 - 1234.0 / 4.0], [0.0, 1.0, 5.0 - 5678.0]];
        assert_eq!(maps([2.0, 2.0], [3, 3], world), [Some(by_annotation), Some(by_index)]);
        // without steps of the annotation, or a single line, or corners of no parallelogram
        assert_eq!(maps([0.0, 2.0], [3, 3], world), [None, Some(by_index)]);
        assert_eq!(maps([2.0, 2.0], [3, 1], world), [None, None]);
        assert_eq!(maps([2.0, 2.0], [3, 3], [world[0], world[1], world[2], [2.0, 9.1]]), [None, None]);
        assert_eq!(worlds(&points([[0.0; 2]; 4], [[0.0; 2]; 4])), [None; 4]);
    }

    #[test]
    fn collinear_or_undefined_points_give_no_coordinates() {
        let line = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 0.0]];
        assert_eq!(worlds(&points(line, line)), [None; 4]);
        let square = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
        assert_eq!(worlds(&points(square, [[f64::NAN; 2]; 4])), [None; 4]);
        assert_eq!(worlds(&points([[f64::NAN; 2]; 4], square)), [None; 4]);
        for points in [points(line, line), points(square, [[f64::NAN; 2]; 4]), points([[f64::NAN; 2]; 4], square)] {
            let found = position([0.0; 2], [1.0; 2], [4, 4], &points);
            assert_eq!((found.annotation_to_world, found.index_to_world), (None, None));
        }
    }
}
