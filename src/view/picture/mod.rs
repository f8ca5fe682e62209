//! Pictures: PNG files of slices, and a preview of a whole layer.

mod colours;
mod pixels;
mod plane;
mod png_layout;
mod preview;
mod preview_file;
mod preview_plan;
mod preview_values;
mod recent;
mod slice_file;
mod slices;
mod subject;

pub use preview::Preview;
pub use slices::Slices;
