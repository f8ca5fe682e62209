//! The basic types: arrays, bricks, their geometry and metadata. Nothing here reads files.
//!
//! Shapes, indexes and strides are slowest axis first everywhere; LOD 0 is the finest.

mod array;
mod brick;
mod dims;
mod dtype;
mod grid;
mod survey;
mod unit;

pub(crate) use array::{Arithmetic, ArrayId, ArrayInfo, Axis, BrickCounts, NativeJson, Scaling};
pub(crate) use brick::{Brick, BrickSet, Coded, Element, ObjectName, Plain, StoredLength};
pub(crate) use dims::{Dims, Layout, MAX_AXES, Region};
pub use dtype::Dtype;
pub(crate) use dtype::{OfNumbers, half, half_bits, parts_of_complex64, parts_of_complex128};
pub(crate) use grid::{AxisPermutation, BrickGrid, slab};
pub(crate) use survey::{Affine, Corner, DatasetInfo, Geometry, Histogram, Statistics};
pub(crate) use unit::{Unit, conversion};
