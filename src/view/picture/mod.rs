//! Pictures: PNG files of slices, and a preview of a whole layer.

mod plane;
mod png;
mod preview;
mod preview_values;
mod slice_file;
mod slices;

pub(crate) use preview::Preview;
pub(crate) use slices::Slices;
