//! The metadata of a file: the fields that all formats have, and the native keys of this one.

use serde_json::{Map, Value, json};

use super::geometry::{ControlPoint, Position, position};
use super::header::Header;
use super::levels::Level;
use super::sample_type::CodingRange;
use super::units::some_text;
use crate::volume::{ArrayId, ArrayInfo, Axis, BrickGrid, DatasetInfo, Dims, Geometry, NativeJson};

/// A header, and what is derived from it and from the brick table.
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
        let shape = Dims::from(level.shape);
        let brick = Dims::from(info.brick);
        ArrayInfo {
            id: ArrayId::next(),
            lod,
            dtype: info.dtype,
            grid: BrickGrid::aligned(shape, brick),
            brick_shape: brick,
            axes: (0..shape.len()).map(|axis| self.axis(axis, lod, shape[axis])).collect(),
            value_range: self.value_range(),
            no_value: None,
            mag: None,
            scaling: self.range.map(|range| range.scaling()),
            codec: None,
            warnings: self.range_warning().into_iter().collect(),
            native: NativeJson::new(),
        }
    }

    fn axis(&self, axis: usize, lod: usize, count: u64) -> Axis {
        const NAMES: [&str; 3] = ["inline", "crossline", "sample"];
        let info = &self.header.info;
        let unit = if axis == 2 { info.units.vertical.name() } else { None };
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
        let units = &info.units;
        let Position { corners, annotation_to_world, index_to_world } =
            position([il, xl], [di, dx], [ni, nj], &info.points);
        Geometry {
            corners,
            annotation_to_world,
            index_to_world,
            horizontal_unit: units.horizontal.name(),
            horizontal_factor: units.horizontal.usable_factor(),
            horizontal_kind: units.horizontal_kind(),
            vertical_unit: units.vertical.name(),
            vertical_factor: units.vertical.usable_factor(),
            vertical_kind: units.vertical_kind(),
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
        let units = &self.header.info.units;
        for (which, unit) in [("horizontal", &units.horizontal), ("vertical", &units.vertical)] {
            if !unit.has_usable_factor() {
                warnings.push(format!("the factor {} of the {which} unit makes no sense: 1 is used", unit.factor));
            }
        }
        warnings
    }

    fn native(&self) -> NativeJson {
        let (header, info) = (self.header, &self.header.info);
        let [dataid, verid, previd] = info.ids.map(|id| id.to_string());
        let units = &info.units;
        let [p0, p1, p2, p3] = info.points;
        let all = |of: fn(&ControlPoint) -> f64| [of(&p0), of(&p1), of(&p2), of(&p3)];
        let mut native = Map::new();
        let mut put = |key: &str, value: Value| native.insert(key.to_owned(), value);
        put("version", json!(header.version));
        put("size", json!(info.size));
        put("bricksize", json!(info.brick));
        put("datatype", json!({"code": info.code, "name": info.dtype.name()}));
        put("nlods_header", json!(header.levels.all.len()));
        put("nlods_usable", json!(self.usable));
        put("codingrange_file", json!(info.coding_range));
        put("codingrange", json!(self.range_in_use()));
        if let Some(scaling) = self.range.map(|range| range.scaling()) {
            put("storage_to_float", json!({"slope": scaling.scale, "intercept": scaling.offset}));
        }
        put("default_storage", json!(self.default));
        put("annot", json!({"start": info.orig[..2], "inc": info.inc[..2]}));
        put("vertical", json!({"start": info.orig[2], "inc": info.inc[2]}));
        put(
            "control_points",
            json!({
                "inline": all(|p| p.annotation[0]), "crossline": all(|p| p.annotation[1]),
                "x": all(|p| p.world[0]), "y": all(|p| p.world[1]),
            }),
        );
        put(
            "units",
            json!({
                "hdim": units.horizontal.dimension, "hunitname": units.horizontal.name,
                "hunitfactor": units.horizontal.factor,
                "vdim": units.vertical.dimension, "vunitname": units.vertical.name,
                "vunitfactor": units.vertical.factor,
            }),
        );
        put("dataid", json!(dataid));
        put("verid", json!(verid));
        put("previd", json!(previd));
        put("srcname", json!(header.text.source_name));
        put("srcdesc", json!(header.text.source_description));
        put("hprjsys", json!(header.text.coordinate_system));
        native
    }
}
