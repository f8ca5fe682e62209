//! What is known of one array: a layer at one LOD.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};

use super::{BrickGrid, Dims, Dtype};

/// Tells the arrays of one process apart, whichever dataset they belong to; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayId(u64);

impl ArrayId {
    /// An id that no array had before.
    #[must_use]
    pub fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One axis of an array: what its positions mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The axis' name in its field: `inline`, `z`, `channel`, ...
    pub name: String,
    /// Unit of `first` and `step`, if known.
    pub unit: Option<String>,
    /// Annotation of position 0.
    pub first: f64,
    /// Annotation from one position to the next, at this LOD.
    pub step: f64,
    /// Positions: the same number as in the shape.
    pub count: u64,
    /// Whether the axis is a direction in space or time (and not, say, a channel).
    pub spatial: bool,
}

/// How stored samples become values: `value = stored * scale + offset`, each operation rounded on its own, as float32 in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// The factor.
    pub scale: f64,
    /// The value of a stored 0.
    pub offset: f64,
    /// What the operations are rounded to.
    pub arithmetic: Arithmetic,
    /// The stored sample that stands for "nothing here": its value is NaN.
    pub no_value: Option<f64>,
}

impl Scaling {
    /// A scaling in float64, without a sample that stands for nothing.
    #[must_use]
    pub fn double(scale: f64, offset: f64) -> Self {
        Self { scale, offset, arithmetic: Arithmetic::Double, no_value: None }
    }
}

/// What operations on values are rounded to: formats differ, and so do the last bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// float32.
    Single,
    /// float64.
    Double,
}

/// How many bricks of each kind an array has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrickCounts {
    /// All bricks of the grid.
    pub total: u64,
    /// Bricks with bytes in the source.
    pub stored: u64,
    /// Bricks of one value.
    pub constant: u64,
    /// Bricks that were never written.
    pub missing: u64,
}

/// What is known of one array before any brick is read.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayInfo {
    /// Tells this array from all others of the process.
    pub id: ArrayId,
    /// Level of detail, 0 is the finest.
    pub lod: usize,
    /// Type of a sample.
    pub dtype: Dtype,
    /// The brick grid, and with it the shape. The product of the shape and the sample's size fits 63 bits.
    pub grid: BrickGrid,
    /// Samples of a whole brick along each axis, as the format has them.
    pub brick_shape: Dims,
    /// One for each axis of the shape.
    pub axes: Vec<Axis>,
    /// Least and greatest value (scaled), where the dataset says so.
    pub value_range: Option<(f64, f64)>,
    /// The value that stands for "nothing here".
    pub no_value: Option<f64>,
    /// Downsampling along x, y, z (the reverse of the array's axes): how many voxels of full resolution one voxel of this
    /// array stands for. `None` where the format does not tell.
    pub mag: Option<[u64; 3]>,
    /// How stored samples become values; `None` where they are values already.
    pub scaling: Option<Scaling>,
    /// How stored bricks are coded, where that is known without counting them.
    pub codec: Option<&'static str>,
    /// What a reader of the data should know.
    pub warnings: Vec<String>,
    /// The format's own keys of lodN.json that are known without counting bricks.
    pub native: NativeJson,
}

impl ArrayInfo {
    /// An array of LOD 0 of which nothing is known but its type and its bricks.
    #[must_use]
    pub fn new(dtype: Dtype, grid: BrickGrid, brick_shape: Dims) -> Self {
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

    /// Samples along each axis.
    #[must_use]
    pub fn shape(&self) -> Dims {
        self.grid.shape()
    }

    /// Bytes of all samples in C order.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shape().product().and_then(|n| n.checked_mul(self.dtype.size() as u64)).unwrap_or(u64::MAX)
    }
}

/// A format's own keys of a JSON file.
pub type NativeJson = Map<String, Value>;
