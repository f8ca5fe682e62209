//! Pictures: PNG files of slices, and a preview of a whole layer.

mod checksums;
mod colours;
mod pixels;
mod plane;
mod png_layout;
mod preview;
mod preview_file;
mod preview_plan;
mod preview_tiles;
mod preview_values;
mod recent;
mod slice_file;
mod slices;
mod subject;

pub(crate) use preview::Preview;
pub(crate) use slices::Slices;
