//! `tiff/lodN.tif`: the planes of a level as a TIFF stack.

mod tiff_view;

pub(crate) use tiff_view::Tiff;
