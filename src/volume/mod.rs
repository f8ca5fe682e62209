//! The basic types: arrays, bricks, their geometry and metadata. Nothing here reads files.
//!
//! Shapes, indexes and strides are slowest axis first everywhere; LOD 0 is the finest.

mod array;
mod brick;
mod dims;
mod grid;
mod survey;
mod unit;

pub use array::Dtype;
pub(crate) use array::{Arithmetic, ArrayId, ArrayInfo, Axis, BrickCounts, NativeJson, Scaling};
pub(crate) use brick::{Brick, BrickSet, Coded, Element, ObjectName, Plain, StoredLength};
pub(crate) use dims::{Dims, Layout, MAX_AXES, Region};
pub(crate) use grid::{AxisPermutation, BrickGrid};
pub(crate) use survey::{Affine, Corner, DatasetInfo, Geometry, Histogram, Statistics};
pub(crate) use unit::{Unit, conversion};
