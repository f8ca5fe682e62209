//! All levels of a layer as Zarr arrays (version 3).
//!
//! ```text
//! LAYER.ome.zarr/                described as an image of OME-NGFF 0.5
//!   zarr.json                    the image: axes, levels, positions
//!   N/zarr.json                  the samples of a level
//!   N/c/I/J/K                    a chunk
//!   labels/LAYER/                of a segmentation: the same again, as a label
//!   lodN/                        as in LAYER.zarr, and not listed
//! LAYER.zarr/                    for xarray
//!   zarr.json                    the metadata of everything below
//!   lodN/zarr.json               a group for each level: its arrays have the same axes
//!   lodN/image/zarr.json, c/...  the samples
//!   lodN/AXIS/zarr.json, c/I     the positions along an axis
//! ```

mod arrays;
mod chunk;
mod metadata;
mod tree;

pub(crate) use tree::{OME_ZARR, TREE};
