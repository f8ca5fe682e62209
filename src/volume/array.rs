//! The metadata of one array: a layer at one LOD.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};

use super::dims::Dims;
use super::dtype::Dtype;
use super::grid::BrickGrid;

/// The identity of an array, unique among all datasets of the process and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ArrayId(u64);

impl ArrayId {
    /// Returns an id that no array has had before.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One axis of an array, and the annotation of its positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// The name of the axis: `inline`, `z`, `channel`, ...
    pub name: String,
    /// Unit of `first` and `step`, if known.
    pub unit: Option<String>,
    /// Annotation of position 0.
    pub first: f64,
    /// Difference of the annotation between neighbouring positions, at this LOD.
    pub step: f64,
    /// Number of positions: the same as in the shape.
    pub count: u64,
    /// Whether the axis is a direction in space or time (and not, say, a channel).
    pub spatial: bool,
}

impl Axis {
    /// Returns `count` positions of the axis, from `start` on.
    pub(crate) fn part(&self, start: u64, count: u64) -> Self {
        Self { first: self.first + self.step * start as f64, count, ..self.clone() }
    }
}

/// How stored samples become values: `value = stored * scale + offset`. Each operation is rounded on its own, and the
/// result is rounded to float32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scaling {
    pub scale: f64,
    /// The value of a stored 0.
    pub offset: f64,
    /// The precision of the operations.
    pub arithmetic: Arithmetic,
    /// The stored sample that means "no data": its value is NaN.
    pub no_value: Option<f64>,
    /// Whether samples are codes: programs of the format know the values alone, whatever the scale is.
    pub is_code: bool,
}

impl Scaling {
    /// Returns the scaling of codes, in float64 and without a "no data" sample.
    pub(crate) fn of_codes(scale: f64, offset: f64) -> Self {
        Self { scale, offset, arithmetic: Arithmetic::Double, no_value: None, is_code: true }
    }

    /// Returns whether the values say more than the samples as they are stored.
    pub(crate) fn says_something(&self) -> bool {
        self.is_code || self.scale != 1.0 || self.offset != 0.0 || self.no_value.is_some()
    }
}

/// The precision to which operations on values are rounded. Formats differ in it, and so do the last bits of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Single,
    Double,
}

/// The number of bricks of each kind in an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BrickCounts {
    /// All bricks of the grid.
    pub total: u64,
    /// Bricks with bytes in the source.
    pub stored: u64,
    /// Bricks whose samples all have one value.
    pub constant: u64,
    /// Bricks that were never written.
    pub missing: u64,
}

/// The metadata of one array, known before any brick is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArrayInfo {
    pub id: ArrayId,
    /// Level of detail, 0 is the finest.
    pub lod: usize,
    pub dtype: Dtype,
    /// The brick grid, and with it the shape. The product of the shape and the sample's size fits 63 bits.
    pub grid: BrickGrid,
    /// Samples of a whole brick along each axis, as stored.
    pub brick_shape: Dims,
    /// One for each axis of the shape.
    pub axes: Vec<Axis>,
    /// Least and greatest value (scaled), if the dataset has them; of complex samples those of the magnitude.
    pub value_range: Option<(f64, f64)>,
    /// The value that means "no data".
    pub no_value: Option<f64>,
    /// Downsampling along x, y, z (the reverse of the array's axes): how many voxels of full resolution one voxel of
    /// this array stands for. `None` if the format does not have it.
    pub mag: Option<[u64; 3]>,
    /// How stored samples become values; `None` if they are values already.
    pub scaling: Option<Scaling>,
    /// The codec of stored bricks, if it is known without counting them.
    pub codec: Option<&'static str>,
    pub warnings: Vec<String>,
    /// The format's native keys of lodN.json that are known without counting bricks.
    pub native: NativeJson,
}

impl ArrayInfo {
    /// Returns the metadata of an array at LOD 0 of which only the type and the bricks are known.
    pub(crate) fn new(dtype: Dtype, grid: BrickGrid, brick_shape: Dims) -> Self {
        Self {
            id: ArrayId::next(),
            lod: 0,
            dtype,
            grid,
            brick_shape,
            axes: Vec::new(),
            value_range: None,
            no_value: None,
            mag: None,
            scaling: None,
            codec: None,
            warnings: Vec::new(),
            native: NativeJson::default(),
        }
    }

    /// Returns the samples along each axis, slowest first.
    pub(crate) fn shape(&self) -> Dims {
        self.grid.shape()
    }

    /// Returns the bytes of all samples in C order.
    pub(crate) fn bytes(&self) -> u64 {
        self.shape().product().and_then(|n| n.checked_mul(self.dtype.size() as u64)).unwrap_or(u64::MAX)
    }
}

/// The keys of a JSON file that only one format has.
pub(crate) type NativeJson = Map<String, Value>;
