//! The bodies of the fuzz targets: plain functions, so that ordinary tests on stable Rust can call them too.
//!
//! A body panics if volfs breaks a promise: a panic of volfs itself, bytes outside of a file, memory out of proportion
//! to the input, samples that differ from a naive model or depend on what a buffer held before. It returns how much it
//! could read, so that a test can tell a target that reads from one that refuses everything.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod allocations;
mod bounded;
pub(crate) mod bricks;
mod bytes;
mod folder;
mod views;

#[cfg(fuzzing)]
#[path = "../../tests/support/handmade.rs"]
mod handmade;
#[cfg(fuzzing)]
#[path = "../../tests/support/memory_folder.rs"]
#[allow(dead_code)]
mod memory_folder;
#[cfg(not(fuzzing))]
use crate::test_support::{handmade, memory_folder};

pub mod array_read;
pub mod codecs;
pub mod compressed_segmentation;
pub mod hdf5_open;
pub mod jpeg;
pub mod lz4;
pub mod n5_open;
pub mod png;
pub mod precomputed_open;
pub mod vds_chunk;
pub mod vds_container;
pub mod vds_description;
pub mod vds_open;
pub mod vds_rle;
pub mod vds_wavelet;
pub mod wkw_cube;
pub mod wkw_open;
pub mod wkw_properties;
pub mod zarr_open;
pub mod zfp;
pub mod zgy_bricks;
pub mod zgy_open;
pub mod zlib;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: that of its file in `fuzz_targets`, and of its folders in `seeds` and `regressions`.
    pub name: &'static str,
    /// Reads one input, and returns how many things it could read: bricks, streams, descriptions.
    pub body: fn(&[u8]) -> u64,
    /// The least sum of what `body` returns for all seeds.
    pub least: u64,
}

/// All targets.
pub const TARGETS: [Target; 23] = [
    Target { name: "array_read", body: array_read::run, least: 200 },
    Target { name: "codecs", body: codecs::run, least: 30 },
    Target { name: "compressed_segmentation", body: compressed_segmentation::run, least: 8 },
    Target { name: "hdf5_open", body: hdf5_open::run, least: 200 },
    Target { name: "jpeg", body: jpeg::run, least: 20 },
    Target { name: "lz4", body: lz4::run, least: 10 },
    Target { name: "n5_open", body: n5_open::run, least: 50 },
    Target { name: "png", body: png::run, least: 10 },
    Target { name: "precomputed_open", body: precomputed_open::run, least: 50 },
    Target { name: "vds_chunk", body: vds_chunk::run, least: 20 },
    Target { name: "vds_container", body: vds_container::run, least: 20 },
    Target { name: "vds_description", body: vds_description::run, least: 5 },
    Target { name: "vds_open", body: vds_open::run, least: 100 },
    Target { name: "vds_rle", body: vds_rle::run, least: 10 },
    Target { name: "vds_wavelet", body: vds_wavelet::run, least: 20 },
    Target { name: "wkw_cube", body: wkw_cube::run, least: 100 },
    Target { name: "wkw_open", body: wkw_open::run, least: 20 },
    Target { name: "wkw_properties", body: wkw_properties::run, least: 100 },
    Target { name: "zarr_open", body: zarr_open::run, least: 100 },
    Target { name: "zfp", body: zfp::run, least: 50 },
    Target { name: "zgy_bricks", body: zgy_bricks::run, least: 200 },
    Target { name: "zgy_open", body: zgy_open::run, least: 200 },
    Target { name: "zlib", body: zlib::run, least: 10 },
];
