//! Describes a file and its levels: the fields that all formats share, and the native keys of this format. Computes the
//! coding range and the position of the survey.

use serde_json::json;

use super::header::{ControlPoint, Header, some_text, uuid};
use super::table::Level;
use crate::format::native;
use crate::volume::{
    Affine, ArrayInfo, Axis, BrickGrid, Corner, DatasetInfo, Dims, Dtype, Element, Geometry, NativeJson, Scaling,
};

impl Header {
    /// Returns the coding range; `None` for float32.
    fn range(&self) -> Option<CodingRange> {
        CodingRange::new(self.info.dtype, self.info.coding_range)
    }

    /// Returns the storage value of bricks that were never written.
    pub(super) fn default(&self) -> i64 {
        self.range().map_or(0, |range| range.default(self.info.dtype))
    }

    /// Returns the metadata of the dataset, of which so many levels have data.
    pub(super) fn dataset(&self, usable: usize) -> DatasetInfo {
        DatasetInfo {
            version: self.version.to_string(),
            geometry: Some(self.geometry()),
            statistics: Some(self.info.statistics),
            histogram: Some(self.histogram.clone()),
            warnings: self.range_warning().into_iter().chain(self.other_warnings(usable)).collect(),
            native: self.native(usable),
        }
    }

    /// Returns the metadata of level `lod`.
    pub(super) fn array(&self, lod: usize, level: &Level) -> ArrayInfo {
        let info = &self.info;
        let (shape, brick, [low, high]) = (Dims::from(level.shape), Dims::from(info.brick), self.range_in_use());
        // statistics that were never made are all zero
        let counted = info.statistics.count.unwrap_or(self.histogram.count);
        let is_known = info.dtype != Dtype::Float32 || counted != 0 || [low, high] != [0.0; 2];
        ArrayInfo {
            lod,
            axes: (0..shape.len()).map(|axis| self.axis(axis, lod, shape[axis])).collect(),
            value_range: (is_known && low.is_finite() && high.is_finite() && low <= high).then_some((low, high)),
            scaling: self.range().map(|range| range.scaling),
            warnings: self.range_warning().into_iter().collect(),
            ..ArrayInfo::new(info.dtype, BrickGrid::aligned(shape, brick), brick)
        }
    }

    fn axis(&self, axis: usize, lod: usize, count: u64) -> Axis {
        const NAMES: [&str; 3] = ["inline", "crossline", "sample"];
        let info = &self.info;
        let unit = if axis == 2 { some_text(&info.vertical.name) } else { None };
        // each level halves the previous one; there are at most 32 of them
        let step = info.inc[axis] * (1u64 << lod.min(63)) as f64;
        Axis { name: NAMES[axis].into(), unit, first: info.orig[axis], step, count, spatial: true }
    }

    /// Returns the coding range of integers, and the range of the statistics for float32, whose coding range in the
    /// header is often garbage.
    fn range_in_use(&self) -> [f64; 2] {
        let statistics = self.info.statistics;
        self.range().map_or([statistics.min, statistics.max], |range| range.used)
    }

    fn geometry(&self) -> Geometry {
        let info = &self.info;
        let ([il, xl, _], [di, dx, _], [ni, nj, _]) = (info.orig, info.inc, info.size);
        let (horizontal, vertical) = (&info.horizontal, &info.vertical);
        let (corners, annotation_to_world, index_to_world) = position([il, xl], [di, dx], [ni, nj], &info.points);
        Geometry {
            corners,
            annotation_to_world,
            index_to_world,
            horizontal_unit: some_text(&horizontal.name),
            horizontal_factor: horizontal.usable_factor().unwrap_or(1.0),
            horizontal_kind: horizontal.kind(&["unknown", "length", "angle"]),
            vertical_unit: some_text(&vertical.name),
            vertical_factor: vertical.usable_factor().unwrap_or(1.0),
            vertical_kind: vertical.kind(&["unknown", "depth", "two-way time", "one-way time"]),
            coordinate_system: some_text(&self.text[2]),
        }
    }

    fn range_warning(&self) -> Option<String> {
        let CodingRange { file: [low, high], used, .. } = self.range().filter(|range| range.replaced())?;
        let [least, greatest] = used;
        Some(format!(
            "the coding range {low} to {high} makes no sense: {least} to {greatest} is used, \
             so that values are the stored numbers"
        ))
    }

    fn other_warnings(&self, usable: usize) -> Vec<String> {
        let mut warnings = Vec::new();
        let in_header = self.levels.all.len();
        if usable < in_header {
            warnings.push(format!(
                "the file has room for {in_header} levels, but those of low resolution were never written: \
                 only LOD 0 is shown"
            ));
        }
        let info = &self.info;
        for (which, unit) in [("horizontal", &info.horizontal), ("vertical", &info.vertical)] {
            if unit.usable_factor().is_none() {
                warnings.push(format!("the factor {} of the {which} unit makes no sense: 1 is used", unit.factor));
            }
        }
        warnings
    }

    fn native(&self, usable: usize) -> NativeJson {
        let info = &self.info;
        let [dataid, verid, previd] = info.ids.map(uuid);
        let [source_name, source_description, system] = &self.text;
        let (horizontal, vertical) = (&info.horizontal, &info.vertical);
        let all = |of: fn(&ControlPoint) -> f64| info.points.each_ref().map(of);
        let scaling = self.range().map(|range| range.scaling);
        let mut native = native(json!({
            "version": self.version,
            "size": info.size,
            "bricksize": info.brick,
            "datatype": {"code": info.code, "name": info.dtype.name()},
            "nlods_header": self.levels.all.len(),
            "nlods_usable": usable,
            "codingrange_file": info.coding_range,
            "codingrange": self.range_in_use(),
            "storage_to_float": scaling.map(|scaling| json!({"slope": scaling.scale, "intercept": scaling.offset})),
            "default_storage": self.default(),
            "annot": {"start": info.orig[..2], "inc": info.inc[..2]},
            "vertical": {"start": info.orig[2], "inc": info.inc[2]},
            "control_points": {
                "inline": all(|p| p.annotation[0]), "crossline": all(|p| p.annotation[1]),
                "x": all(|p| p.world[0]), "y": all(|p| p.world[1]),
            },
            "units": {
                "hdim": horizontal.dimension, "hunitname": horizontal.name, "hunitfactor": horizontal.factor,
                "vdim": vertical.dimension, "vunitname": vertical.name, "vunitfactor": vertical.factor,
            },
            "dataid": dataid,
            "verid": verid,
            "previd": previd,
            "srcname": source_name,
            "srcdesc": source_description,
            "hprjsys": system,
        }));
        if scaling.is_none() {
            native.shift_remove("storage_to_float");
        }
        native
    }
}

/// The coding range: the values of the least and the greatest storage value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CodingRange {
    /// The range in the file.
    pub file: [f64; 2],
    /// The range in use.
    pub used: [f64; 2],
    /// From storage values to values.
    pub scaling: Scaling,
}

impl CodingRange {
    /// Creates the range of an integer type; `None` for float32, whose samples are values already. An invalid range is
    /// replaced by the limits of the type, so that the values are the storage values.
    pub(super) fn new(dtype: Dtype, file: [f64; 2]) -> Option<Self> {
        let [least, greatest] = limits(dtype)?;
        let [low, high] = file;
        let sensible = low.is_finite() && high.is_finite() && low < high;
        let used @ [low, high] = if sensible { file } else { [least, greatest] };
        // exactly OpenZGY's operations in this order: the default value below depends on their last bits
        let scale = (high - low) / (greatest - least);
        let offset = low - scale * least;
        Some(Self { file, used, scaling: Scaling::of_codes(scale, offset) })
    }

    /// Returns whether the range in the file was invalid and has been replaced.
    pub(super) fn replaced(&self) -> bool {
        self.file != self.used
    }

    /// Returns the storage value whose value is nearest to zero, with ties away from zero as in the C++ library. Bricks
    /// that were never written consist of it.
    pub(super) fn default(&self, dtype: Dtype) -> i64 {
        let [least, greatest] = limits(dtype).unwrap_or_default();
        let Scaling { scale, offset, .. } = self.scaling;
        ((0.0 - offset) / scale).clamp(least, greatest).round() as i64
    }
}

/// Returns a sample of an integer type with this value, or of float32 with these bits.
pub(super) fn element(dtype: Dtype, number: i64) -> Element {
    Element::new(number.to_le_bytes().get(..dtype.size()).unwrap_or_default())
}

/// Returns the least and the greatest number of an integer type of up to 4 bytes.
fn limits(dtype: Dtype) -> Option<[f64; 2]> {
    let codes = 256f64.powi(dtype.size() as i32);
    match dtype {
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 => Some([-codes / 2.0, codes / 2.0 - 1.0]),
        Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 => Some([0.0, codes - 1.0]),
        _ => None,
    }
}

/// The control points count as collinear if the determinant of their annotations is smaller than this.
const FLAT: f64 = 1e-6;

/// Four corners are no parallelogram if the fourth is further than this from its place, as a share of the lengths of
/// the sides.
const UNEVEN: f64 = 1e-6;

/// Returns the corners of a survey (first and last inline at the first crossline, then at the last), and the maps from
/// inline and crossline number, and index, to world coordinates. `orig` and `inc` are the first inline and crossline
/// numbers and their steps, `size` is the number of inlines and crosslines.
pub(super) fn position(
    orig: [f64; 2],
    inc: [f64; 2],
    size: [u64; 2],
    points: &[ControlPoint; 4],
) -> ([Corner; 4], Option<Affine>, Option<Affine>) {
    let last = size.map(|n| n.saturating_sub(1));
    let indexes = [[0, 0], [last[0], 0], [0, last[1]], last];
    let [zero, one, two, _] = points;
    // the fourth point is redundant and ignored, since some writers leave it wrong
    let is_affine = cross(minus(one.annotation, zero.annotation), minus(two.annotation, zero.annotation)).abs() >= FLAT;
    // if the writer left out the annotation, the world positions are those of the corners
    let are_corners = !is_affine && one.annotation == zero.annotation && one.world != zero.world;
    let mut corners = [Corner::default(); 4];
    for (number, (corner, index)) in corners.iter_mut().zip(indexes).enumerate() {
        let annotation = [0, 1].map(|axis: usize| orig[axis] + inc[axis] * index[axis] as f64);
        let world = match are_corners {
            true => Some(points[number].world),
            false => is_affine.then(|| world(points, annotation)),
        };
        *corner = Corner { index, annotation, world: world.filter(|position| position.iter().all(|x| x.is_finite())) };
    }
    let [annotation_to_world, index_to_world] = match corners.map(|corner| corner.world) {
        [Some(first), Some(_), Some(_), Some(_)] if is_affine => {
            let three = [zero, one, two];
            let map = Affine::through(three.map(|point| point.annotation), three.map(|point| point.world));
            // the corners have more exact positions than the map's own origin, which may be far away
            [map, map.map(|map| Affine { origin: first, ..map.of_indexes(orig, inc) })]
        }
        [Some(a), Some(b), Some(c), Some(d)] if is_parallelogram([a, b, c, d]) => {
            let through = |of: fn(&Corner) -> [f64; 2]| {
                Affine::through([of(&corners[0]), of(&corners[1]), of(&corners[2])], [a, b, c])
            };
            [through(|corner| corner.annotation), through(|corner| corner.index.map(|n| n as f64))]
        }
        _ => [None, None],
    };
    let finite = |map: Option<Affine>| map.and_then(Affine::finite);
    (corners, finite(annotation_to_world), finite(index_to_world))
}

fn is_parallelogram([a, b, c, d]: [[f64; 2]; 4]) -> bool {
    let length = |v: [f64; 2]| v[0].hypot(v[1]);
    let (u, v, diagonal) = (minus(b, a), minus(c, a), minus(d, a));
    length(minus(diagonal, [u[0] + v[0], u[1] + v[1]])) <= UNEVEN * (length(u) + length(v))
}

/// Returns the world position of an annotation by the map through the first three control points.
fn world([zero, one, two, _]: &[ControlPoint; 4], annotation: [f64; 2]) -> [f64; 2] {
    let [u, v, d] = [one.annotation, two.annotation, annotation].map(|place| minus(place, zero.annotation));
    let [qu, qv] = [one.world, two.world].map(|place| minus(place, zero.world));
    let det = cross(u, v);
    let (s, t) = (cross(d, v) / det, cross(u, d) / det);
    [0, 1].map(|axis: usize| zero.world[axis] + s * qu[axis] + t * qv[axis])
}

fn minus(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

fn cross(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[1] - b[0] * a[1]
}

#[cfg(test)]
mod tests {
    use super::super::header::Unit;
    use super::*;

    fn range(dtype: Dtype, low: f32, high: f32) -> CodingRange {
        CodingRange::new(dtype, [low.into(), high.into()]).unwrap()
    }

    #[test]
    fn the_default_is_nearest_to_zero() {
        assert_eq!(range(Dtype::Int8, -28.0, 227.0).default(Dtype::Int8), -100);
        assert_eq!(range(Dtype::Int8, 10.0, 20.0).default(Dtype::Int8), -128);
        assert_eq!(range(Dtype::Int16, -20.0, -10.0).default(Dtype::Int16), 32767);
        // in a range symmetric about zero the last bit decides between -1 and 0
        assert_eq!(range(Dtype::Int16, -3e38, 3e38).default(Dtype::Int16), -1);
        assert_eq!(range(Dtype::Int16, -1.0, 1.0).default(Dtype::Int16), 0);
        assert_eq!(range(Dtype::UInt32, -1.0, 0.0).default(Dtype::UInt32), 0xffff_ffff);
        // a tie goes away from zero
        assert_eq!(range(Dtype::Int8, -1.5, 253.5).default(Dtype::Int8), -127);
    }

    #[test]
    fn a_senseless_range_means_no_scaling() {
        for (low, high) in [(5.0, 5.0), (100.0, -100.0), (f32::NAN, 1.0), (-1.0, f32::INFINITY)] {
            let range = range(Dtype::Int8, low, high);
            assert!(range.replaced());
            assert_eq!((range.used, range.scaling), ([-128.0, 127.0], Scaling::of_codes(1.0, 0.0)));
            assert_eq!(range.default(Dtype::Int8), 0);
        }
        assert!(!range(Dtype::Int8, -1.0, 1.0).replaced());
        assert_eq!(CodingRange::new(Dtype::Float32, [0.0, 1.0]), None);
    }

    #[test]
    fn elements_are_little_endian() {
        assert_eq!(element(Dtype::Int16, -2).bytes(), [254, 255]);
        assert_eq!(element(Dtype::UInt32, 0xffff_ffff).bytes(), [255; 4]);
    }

    #[test]
    fn identifiers_are_written_in_windows_order() {
        let bytes = 0xab85_a0b0_32c3_5003_3971_9c2a_0c77_2bcd_u128.to_be_bytes();
        assert_eq!(uuid(bytes), "b0a085ab-c332-0350-3971-9c2a0c772bcd");
        assert_eq!(uuid([0; 16]), "00000000-0000-0000-0000-000000000000");
    }

    #[test]
    fn invalid_factors_count_as_1() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let unit = Unit { factor, ..Unit::unknown() };
            assert_eq!(unit.usable_factor(), None);
        }
        assert_eq!(Unit { factor: 0.3048, ..Unit::unknown() }.usable_factor(), Some(0.3048));
    }

    #[test]
    fn coordinate_types_of_version_1() {
        assert_eq!(Unit::from_coordinate_type(4), Unit { dimension: 2, name: "deg".into(), factor: 3600.0 });
        assert_eq!(Unit::from_coordinate_type(99), Unit::unknown());
        assert_eq!(some_text(&Unit::unknown().name), None);
    }

    fn points(annotation: [[f64; 2]; 4], world: [[f64; 2]; 4]) -> [ControlPoint; 4] {
        [0, 1, 2, 3].map(|n: usize| ControlPoint { annotation: annotation[n], world: world[n] })
    }

    fn worlds(points: &[ControlPoint; 4]) -> [Option<[f64; 2]>; 4] {
        position([1234.0, 5678.0], [5.0, 2.0], [112, 64], points).0.map(|corner| corner.world)
    }

    #[test]
    fn control_points_need_not_be_corners() {
        // inline + 5 is X + 25, crossline + 2 is Y + 30; the fourth point is nonsense
        let annotation = [[1244.0, 5678.0], [1234.0, 5682.0], [1239.0, 5678.0], [-9e9, 7.0]];
        let world = [[1050.0, 1000.0], [1000.0, 1060.0], [1025.0, 1000.0], [0.0, 0.0]];
        let (found, annotation_to_world, index_to_world) =
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
            [found.1, found.2].map(|map| map.map(|map| map.rows()))
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
            assert_eq!((found.1, found.2), (None, None));
        }
    }
}
