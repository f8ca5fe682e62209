//! The helpers of tests that need no program of volfs. The library's own tests use them, and those in tests/formats.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used)]

mod data;
pub mod exchange;
#[cfg(feature = "mount")]
pub mod faulty_folder;
pub mod handmade;
pub mod memory_folder;
#[cfg(feature = "mount")]
pub mod own_fs;
pub mod png;
mod run;
pub mod stress;
pub mod vds;
pub mod vds_dataset;

pub use data::*;
pub use run::*;

use crate::volume::Dtype;

/// All types of samples.
pub const DTYPES: [Dtype; 13] = [
    Dtype::Int8,
    Dtype::UInt8,
    Dtype::Int16,
    Dtype::UInt16,
    Dtype::Int32,
    Dtype::UInt32,
    Dtype::Int64,
    Dtype::UInt64,
    Dtype::Float32,
    Dtype::Float64,
    Dtype::Float16,
    Dtype::Complex64,
    Dtype::Complex128,
];

/// The naive model of the data path, and a check of lookups.
pub mod naive {
    use crate::format::Array;
    pub(crate) use crate::internals::{read_all, read_brick, read_what_can_be};
    use crate::source::Blocking;

    /// Checks that each of the first 200 bricks, once looked up, is found without waiting, unless each lookup has to read
    /// the source.
    pub fn check_without_waiting(array: &dyn Array) {
        for number in 0..array.info().grid.total().min(200) {
            let at = array.info().grid.count().index_of(number);
            let with = array.brick(&at, Blocking::Yes);
            match array.brick(&at, Blocking::No) {
                Err(e) if e.would_block() => {}
                without => assert_eq!(without, with),
            }
        }
    }
}
