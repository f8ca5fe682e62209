//! What a description says, in the words of dataset.json.

mod ebcdic;
mod geometry;
mod metadata;
mod native;
mod segy;

pub use geometry::geometry;
pub use metadata::metadata;
pub use native::native;
