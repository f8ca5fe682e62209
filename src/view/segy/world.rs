//! The positions of traces as integers of SEG-Y: coordinates times a power of ten.

use crate::volume::{Affine, Geometry};

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
mod tests {
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
