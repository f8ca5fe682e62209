//! The virtual files: one file here for each kind. A view computes which bytes a virtual file consists of; it decodes
//! nothing.
//!
//! A view has *nodes* (files, and folders of its own) in the folder of a layer, and numbers them from 0. The file
//! system needs only these numbers to compute inode numbers, so they must depend on the dataset alone. A view may also
//! have a folder of its own beside the layer's folder. A new view is a file here and a line of [`registry`].

mod convert;
mod file;
#[cfg(test)]
pub(crate) mod fixture;
mod headers;
pub(crate) mod json;
mod names;
pub(crate) mod npy;
mod picture;
mod registry;
mod segy;
mod slice_cost;
mod tiff;
mod virtual_file;
mod zarr;

#[cfg(test)]
pub(crate) use file::ArrayFile;
pub(crate) use file::{ComputedFile, Content, ReadSteps, SampleRequest, Samples, ShownArray, Step};
pub(crate) use json::text as json_text;
pub(crate) use names::{NAME_MAX, file_name, unique};
pub(crate) use registry::{registry, view_names, views_of, with_needed};
#[cfg(test)]
pub(crate) use slice_cost::SliceCost;
#[cfg(test)]
pub(crate) use virtual_file::LevelFile;
pub(crate) use virtual_file::{Entry, LayerRef, View};
