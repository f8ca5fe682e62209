//! What is known of a whole dataset.

use super::NativeJson;

/// What is known of a dataset as a whole: the content of dataset.json, but for names and places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatasetInfo {
    /// The format's version, as text.
    pub version: String,
    /// Where the survey lies.
    pub geometry: Option<Geometry>,
    /// Figures over the samples of LOD 0.
    pub statistics: Option<Statistics>,
    /// Distribution of the samples of LOD 0.
    pub histogram: Option<Histogram>,
    /// What a reader of the dataset should know.
    pub warnings: Vec<String>,
    /// The format's own keys.
    pub native: NativeJson,
}

/// Where a survey lies in the world.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Geometry {
    /// First inline and crossline, last and first, first and last, last and last.
    pub corners: [Corner; 4],
    /// Name of the horizontal unit, if known.
    pub horizontal_unit: Option<String>,
    /// A horizontal length times this is in SI units.
    pub horizontal_factor: f64,
    /// What horizontal coordinates are: `length`, `angle`, `unknown`.
    pub horizontal_kind: &'static str,
    /// Name of the vertical unit, if known.
    pub vertical_unit: Option<String>,
    /// A vertical position times this is in SI units.
    pub vertical_factor: f64,
    /// What the vertical axis is: `depth`, `two-way time`, `one-way time`, `unknown`.
    pub vertical_kind: &'static str,
    /// Free text on the coordinate system.
    pub coordinate_system: Option<String>,
}

/// One corner of a survey.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Corner {
    /// Inline index, crossline index.
    pub index: [u64; 2],
    /// Inline number, crossline number.
    pub annotation: [f64; 2],
    /// X and Y, where known.
    pub world: Option<[f64; 2]>,
}

/// Figures over the samples of LOD 0, of values (scaled).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Samples counted, where known.
    pub count: Option<i64>,
    /// Their sum, where known.
    pub sum: Option<f64>,
    /// The sum of their squares, where known.
    pub sum_of_squares: Option<f64>,
    /// The least of them.
    pub min: f64,
    /// The greatest of them.
    pub max: f64,
}

/// Distribution of the samples of LOD 0, of values (scaled).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Samples counted.
    pub count: i64,
    /// Centre of the first bin.
    pub min: f64,
    /// Centre of the last bin.
    pub max: f64,
    /// Samples in each bin; a damaged file may say anything.
    pub bins: Vec<i64>,
}
