//! JSON that is made of a description, for dataset.json.

mod ebcdic;
mod geometry;
mod metadata;
mod native;
mod segy;

pub use geometry::geometry;
pub use metadata::metadata;
pub use native::native;
