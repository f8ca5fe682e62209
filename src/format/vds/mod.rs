//! VDS, the format of OpenVDS: volumes of 2 to 6 axes with several channels. Each channel is stored in one or more
//! partitionings and levels of detail.
//!
//! The [`description`] of a dataset is parsed from its `VolumeDataLayout` or `VDSObject`, and [`describe`] makes JSON
//! of it. The chunks are in a [`store`]: one file, or a folder of objects. A [`chunk_grid`] computes which chunk has
//! which samples, [`layers`] combines the stored layers of a channel by their [`layer_name`], and [`array`] makes
//! bricks of chunks, which [`data_block`] or [`wavelet`] decodes. [`check`] looks for faults of the tables as a whole.
//! Sizes and counts from a file are checked before memory is allocated for them.
//!
//! The format has no written specification: the names and the arithmetic are those of the OpenVDS source code.

mod array;
mod array_info;
mod check;
mod checked_bitmap;
mod chunk_grid;
mod data_block;
mod dataset;
mod describe;
mod description;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz_entry;
mod layer_name;
mod layers;
#[cfg(test)]
mod mutation_tests;
mod rle;
mod segy_import;
mod store;
mod unreadable_level;
mod value;
pub(crate) mod wavelet;

pub(crate) use dataset::Vds;
