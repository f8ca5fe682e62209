//! The basic types: arrays, bricks, their geometry and metadata. Nothing here reads files.
//!
//! Shapes, indexes and strides are slowest axis first everywhere; LOD 0 is the finest.

mod affine;
mod array;
mod axis_permutation;
mod brick;
mod brick_set;
mod dims;
mod dtype;
mod grid;
mod layout;
mod region;
mod survey;

pub(crate) use affine::Affine;
pub(crate) use array::{Arithmetic, ArrayId, ArrayInfo, Axis, BrickCounts, NativeJson, Scaling};
pub(crate) use axis_permutation::AxisPermutation;
pub(crate) use brick::{Brick, Coded, Element, ObjectName, Plain, StoredLength};
pub(crate) use brick_set::BrickSet;
pub(crate) use dims::{Dims, MAX_AXES};
pub(crate) use dtype::Dtype;
pub(crate) use grid::BrickGrid;
pub(crate) use layout::Layout;
pub(crate) use region::Region;
pub(crate) use survey::{Corner, DatasetInfo, Geometry, Histogram, Statistics};
