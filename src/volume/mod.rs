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

pub use affine::Affine;
pub use array::{Arithmetic, ArrayId, ArrayInfo, Axis, BrickCounts, NativeJson, Scaling};
pub use axis_permutation::AxisPermutation;
pub use brick::{Brick, Coded, Element, ObjectName, Plain, StoredLength};
pub use brick_set::BrickSet;
pub use dims::{Dims, MAX_AXES};
pub use dtype::Dtype;
pub use grid::BrickGrid;
pub use layout::Layout;
pub use region::Region;
pub use survey::{Corner, DatasetInfo, Geometry, Histogram, Statistics};
