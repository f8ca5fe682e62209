//! Describes a file and its levels: the fields that all formats share, and the native keys of this format. Computes the
//! coding range and the position of the survey.

use serde_json::json;

use super::header::{ControlPoint, Header, some_text};
use super::table::Level;
use crate::format::native;
use crate::volume::{
    Affine, ArrayInfo, Axis, BrickGrid, Corner, DatasetInfo, Dims, Dtype, Element, Geometry, NativeJson, Scaling,
};

/// A header, and values that are derived from it and from the brick table.
pub(super) struct FileMetadata<'a> {
    pub header: &'a Header,
    /// The coding range; `None` for float32.
    pub range: Option<CodingRange>,
    /// The storage value of bricks that were never written.
    pub default: i64,
    /// Number of levels that have data.
    pub usable: usize,
}

impl FileMetadata<'_> {
    /// Returns the metadata of the dataset.
    pub(super) fn dataset(&self) -> DatasetInfo {
        let header = self.header;
        DatasetInfo {
            version: header.version.to_string(),
            geometry: Some(self.geometry()),
            statistics: Some(header.info.statistics),
            histogram: Some(header.histogram.clone()),
            warnings: self.range_warning().into_iter().chain(self.other_warnings()).collect(),
            native: self.native(),
        }
    }

    /// Returns the metadata of level `lod`.
    pub(super) fn array(&self, lod: usize, level: &Level) -> ArrayInfo {
        let info = &self.header.info;
        let (shape, brick) = (Dims::from(level.shape), Dims::from(info.brick));
        ArrayInfo {
            lod,
            axes: (0..shape.len()).map(|axis| self.axis(axis, lod, shape[axis])).collect(),
            value_range: self.value_range(),
            scaling: self.range.map(|range| range.scaling),
            warnings: self.range_warning().into_iter().collect(),
            ..ArrayInfo::new(info.dtype, BrickGrid::aligned(shape, brick), brick)
        }
    }

    fn axis(&self, axis: usize, lod: usize, count: u64) -> Axis {
        const NAMES: [&str; 3] = ["inline", "crossline", "sample"];
        let info = &self.header.info;
        let unit = if axis == 2 { some_text(&info.vertical.name) } else { None };
        // each level halves the previous one; there are at most 32 of them
        let step = info.inc[axis] * (1u64 << lod.min(63)) as f64;
        Axis { name: NAMES[axis].into(), unit, first: info.orig[axis], step, count, spatial: true }
    }

    /// Returns the coding range of integers, and the range of the statistics for float32, whose coding range in the
    /// header is often garbage.
    fn range_in_use(&self) -> [f64; 2] {
        let statistics = self.header.info.statistics;
        self.range.map_or([statistics.min, statistics.max], |range| range.used)
    }

    fn value_range(&self) -> Option<(f64, f64)> {
        let [low, high] = self.range_in_use();
        (low.is_finite() && high.is_finite() && low <= high).then_some((low, high))
    }

    fn geometry(&self) -> Geometry {
        let info = &self.header.info;
        let ([il, xl, _], [di, dx, _], [ni, nj, _]) = (info.orig, info.inc, info.size);
        let (horizontal, vertical) = (&info.horizontal, &info.vertical);
        let (corners, annotation_to_world, index_to_world) = position([il, xl], [di, dx], [ni, nj], &info.points);
        Geometry {
            corners,
            annotation_to_world,
            index_to_world,
            horizontal_unit: some_text(&horizontal.name),
            horizontal_factor: horizontal.usable_factor(),
            horizontal_kind: horizontal.kind(&["unknown", "length", "angle"]),
            vertical_unit: some_text(&vertical.name),
            vertical_factor: vertical.usable_factor(),
            vertical_kind: vertical.kind(&["unknown", "depth", "two-way time", "one-way time"]),
            coordinate_system: some_text(&self.header.text.coordinate_system),
        }
    }

    fn range_warning(&self) -> Option<String> {
        let CodingRange { file: [low, high], used, .. } = self.range.filter(|range| range.replaced())?;
        let [least, greatest] = used;
        Some(format!(
            "the coding range {low} to {high} makes no sense: {least} to {greatest} is used, \
             so that values are the stored numbers"
        ))
    }

    fn other_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let in_header = self.header.levels.all.len();
        if self.usable < in_header {
            warnings.push(format!(
                "the file has room for {in_header} levels, but those of low resolution were never written: \
                 only LOD 0 is shown"
            ));
        }
        let info = &self.header.info;
        for (which, unit) in [("horizontal", &info.horizontal), ("vertical", &info.vertical)] {
            if !unit.has_usable_factor() {
                warnings.push(format!("the factor {} of the {which} unit makes no sense: 1 is used", unit.factor));
            }
        }
        warnings
    }

    fn native(&self) -> NativeJson {
        let (header, info) = (self.header, &self.header.info);
        let [dataid, verid, previd] = info.ids.map(|id| id.to_string());
        let (horizontal, vertical) = (&info.horizontal, &info.vertical);
        let all = |of: fn(&ControlPoint) -> f64| info.points.each_ref().map(of);
        let scaling = self.range.map(|range| range.scaling);
        let mut native = native(json!({
            "version": header.version,
            "size": info.size,
            "bricksize": info.brick,
            "datatype": {"code": info.code, "name": info.dtype.name()},
            "nlods_header": header.levels.all.len(),
            "nlods_usable": self.usable,
            "codingrange_file": info.coding_range,
            "codingrange": self.range_in_use(),
            "storage_to_float": scaling.map(|scaling| json!({"slope": scaling.scale, "intercept": scaling.offset})),
            "default_storage": self.default,
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
            "srcname": header.text.source_name,
            "srcdesc": header.text.source_description,
            "hprjsys": header.text.coordinate_system,
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

/// Returns the limits of an integer type.
fn limits(dtype: Dtype) -> Option<[f64; 2]> {
    Some(match dtype {
        Dtype::Int8 => [i8::MIN.into(), i8::MAX.into()],
        Dtype::UInt8 => [u8::MIN.into(), u8::MAX.into()],
        Dtype::Int16 => [i16::MIN.into(), i16::MAX.into()],
        Dtype::UInt16 => [u16::MIN.into(), u16::MAX.into()],
        Dtype::Int32 => [i32::MIN.into(), i32::MAX.into()],
        Dtype::UInt32 => [u32::MIN.into(), u32::MAX.into()],
        _ => return None,
    })
}

/// The control points count as collinear if the determinant of their annotations is smaller than this.
const FLAT: f64 = 1e-6;

/// Four corners are no parallelogram if the fourth is further than this from its place, as a share of the lengths of the
/// sides.
const UNEVEN: f64 = 1e-6;

/// Returns the corners of a survey (first and last inline at the first crossline, then at the last), and the maps from
/// inline and crossline number, and index, to world coordinates. `orig` and `inc` are the first inline and crossline numbers and their steps, `size`
/// is the number of inlines and crosslines.
pub(super) fn position(
    orig: [f64; 2],
    inc: [f64; 2],
    size: [u64; 2],
    points: &[ControlPoint; 4],
) -> ([Corner; 4], Option<Affine>, Option<Affine>) {
    let last = size.map(|n| n.saturating_sub(1));
    let indexes = [[0, 0], [last[0], 0], [0, last[1]], last];
    let map = Map::of(points);
    let mut corners = [Corner::default(); 4];
    for (number, (corner, index)) in corners.iter_mut().zip(indexes).enumerate() {
        let annotation = [0, 1].map(|axis: usize| orig[axis] + inc[axis] * index[axis] as f64);
        let world = match map {
            Map::Affine => Some(world(points, annotation)),
            Map::Corners => Some(points[number].world),
            Map::Unknown => None,
        };
        *corner = Corner { index, annotation, world: world.filter(|position| position.iter().all(|x| x.is_finite())) };
    }
    let [annotation_to_world, index_to_world] = match (&map, corners.map(|corner| corner.world)) {
        (Map::Affine, [Some(first), Some(_), Some(_), Some(_)]) => {
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
    (corners, finite(annotation_to_world), finite(index_to_world))
}

/// Returns whether four corners are a parallelogram.
fn is_parallelogram([a, b, c, d]: [[f64; 2]; 4]) -> bool {
    let length = |v: [f64; 2]| v[0].hypot(v[1]);
    let (u, v, diagonal) = (minus(b, a), minus(c, a), minus(d, a));
    length(minus(diagonal, [u[0] + v[0], u[1] + v[1]])) <= UNEVEN * (length(u) + length(v))
}

/// How annotation is mapped to world coordinates.
enum Map {
    /// By the first three control points. The fourth is redundant and ignored, since some writers leave it wrong.
    Affine,
    /// The writer left out the annotation: the world positions are those of the corners.
    Corners,
    Unknown,
}

impl Map {
    fn of([zero, one, two, _]: &[ControlPoint; 4]) -> Self {
        let det = cross(minus(one.annotation, zero.annotation), minus(two.annotation, zero.annotation));
        let left_out = one.annotation == zero.annotation && one.world != zero.world;
        match left_out {
            _ if det.abs() >= FLAT => Self::Affine,
            true => Self::Corners,
            false => Self::Unknown,
        }
    }
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
    use super::super::header::{Unit, Uuid};
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
        assert_eq!(Uuid(bytes).to_string(), "b0a085ab-c332-0350-3971-9c2a0c772bcd");
        assert_eq!(Uuid::default().to_string(), "00000000-0000-0000-0000-000000000000");
    }

    #[test]
    fn invalid_factors_count_as_1() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let unit = Unit { factor, ..Unit::unknown() };
            assert_eq!((unit.usable_factor(), unit.has_usable_factor()), (1.0, false));
        }
        assert_eq!(Unit { factor: 0.3048, ..Unit::unknown() }.usable_factor(), 0.3048);
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
