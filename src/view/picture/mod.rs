//! Pictures: PNG files of slices, and a preview of a whole layer.

mod palettes;
mod pixels;
mod plane;
mod png;
mod preview;
mod slices;

pub(crate) use preview::PREVIEW;
pub(crate) use slices::SLICES;
