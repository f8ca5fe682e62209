//! Pictures: PNG files of slices, and a preview of a whole layer.

mod palettes;
mod pixels;
mod plane;
mod png;
mod preview;
mod slices;

pub(crate) use palettes::{labels as label_palette, of_label as number_of_label};
pub(crate) use preview::PREVIEW;
pub(crate) use slices::SLICES;
