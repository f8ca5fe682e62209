//! `tiff/lodN.tif`: the planes of a level as a TIFF stack.

mod container;
mod description;
mod directory;
mod tiff_view;

pub(crate) use tiff_view::Tiff;
