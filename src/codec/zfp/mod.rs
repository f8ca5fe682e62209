//! ZFP: three-dimensional float32 in every mode, decoded by libzfp.

mod decode;
mod error;
mod header;
mod libzfp;

pub use decode::{decode, padding, shortest};
pub use error::ZfpError;
