//! The metadata of a whole dataset.

use super::affine::Affine;
use super::array::NativeJson;

/// The metadata of a dataset: the content of dataset.json without names and paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DatasetInfo {
    /// The version of the format, as text.
    pub version: String,
    /// The position of the survey.
    pub geometry: Option<Geometry>,
    /// Statistics of the values at LOD 0.
    pub statistics: Option<Statistics>,
    /// Histogram of the values at LOD 0.
    pub histogram: Option<Histogram>,
    /// Warnings for readers of the dataset.
    pub warnings: Vec<String>,
    /// The keys that only this format has.
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
    /// Description of the coordinate system, free text.
    pub coordinate_system: Option<String>,
}

/// One corner of a survey.
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
    /// Number of samples, if known.
    pub count: Option<i64>,
    /// Sum of the values, if known.
    pub sum: Option<f64>,
    /// Sum of the squares, if known.
    pub sum_of_squares: Option<f64>,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

/// Histogram of the values (scaled) at LOD 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    /// Number of samples.
    pub count: i64,
    /// Centre of the first bin.
    pub min: f64,
    /// Centre of the last bin.
    pub max: f64,
    /// Samples in each bin; any number, negative ones included, if the file is damaged.
    pub bins: Vec<i64>,
}
