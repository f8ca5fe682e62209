//! `LAYER.ome.zarr`: all levels of a layer as Zarr arrays (version 3), described as an image of OME-NGFF 0.5.
//!
//! ```text
//! zarr.json                  the image: axes, levels, positions
//! lodN/zarr.json             a group for each level: its arrays have the same axes
//! lodN/image/zarr.json       the samples
//! lodN/image/c/I/J/K         a chunk
//! lodN/AXIS/zarr.json, c/I   the positions along an axis
//! labels/LAYER               of a segmentation: the same again, as a label
//! ```

mod arrays;
mod chunk;
mod metadata;
mod tree;

pub(crate) use tree::OME_ZARR;
