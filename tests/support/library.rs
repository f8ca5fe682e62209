//! The helpers of tests that need no program of volfs. The library's own tests use them, and those in tests/formats.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used)]

pub mod exchange;
pub mod faults;
pub mod faulty_folder;
mod folder;
pub mod handmade;
pub mod memory_folder;
pub mod naive;
mod noise;
mod npy;
pub mod own_fs;
pub mod png;
mod skip;
pub mod stress;
mod value;
pub mod vds;
pub mod vds_dataset;
mod wait;
pub mod wkw;
mod zgy;

pub use folder::{copy_all, is_eio, names, read_at, read_directly, replace, set, source_of, test_data};
pub use noise::Noise;
pub use npy::Npy;
pub use skip::{fuse_or_skip, skip};
pub use value::{by_dataset, crc, floats, json, numbers};
pub use wait::{SOON, comes_true, settled, wait_until, within};
pub use zgy::{Fixture, damaged, fixture, fixtures, source_with};
