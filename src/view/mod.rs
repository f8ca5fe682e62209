//! The virtual files: one file here for each kind. A view computes which bytes a virtual file consists of; it decodes
//! nothing.
//!
//! A view has *nodes* (files, and folders of its own) in the folder of a layer, and numbers them from 0. The file
//! system needs only these numbers to compute inode numbers, so they must depend on the dataset alone. A view may also
//! have a folder of its own beside the layer's folder. A new view is a file here and a line of [`registry`].

mod array_file;
mod axis_positions;
mod computed_file;
mod content;
mod envi;
#[cfg(test)]
pub(crate) mod fixture;
mod float;
mod float_values;
pub(crate) mod json;
mod level_file;
mod metaimage;
mod names;
pub(crate) mod npy;
mod nrrd;
mod permuted;
mod picture;
mod raw;
mod registry;
mod segy;
mod selection;
mod slice_cost;
mod spatial_transform;
mod stack;
mod tiff;
mod virtual_file;
mod zarr;

#[cfg(test)]
pub(crate) use array_file::ArrayFile;
pub(crate) use computed_file::{ComputedFile, ReadSteps, SampleRequest, Samples, Step};
pub(crate) use content::{Content, ShownArray};
pub(crate) use json::text as json_text;
#[cfg(test)]
pub(crate) use level_file::LevelFile;
pub(crate) use names::{NAME_MAX, file_name, unique};
pub(crate) use registry::registry;
pub(crate) use selection::{view_names, views_of, with_needed};
#[cfg(test)]
pub(crate) use slice_cost::SliceCost;
pub(crate) use virtual_file::{Entry, LayerRef, View};
