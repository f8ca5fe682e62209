//! JSON that is made of a description, for dataset.json.

mod ebcdic;
mod geometry;
mod metadata;
mod native;
mod segy;

pub(crate) use geometry::geometry;
pub(crate) use metadata::metadata;
pub(crate) use native::native;
