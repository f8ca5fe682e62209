//! volfs shows bricked volumes (seismic, microscopy) as plain array files.
//!
//! Each layer of a dataset at each level of detail is a virtual file of samples in C order, with JSON beside it; a
//! brick is found, read and decoded when a client reads its samples, and kept in a cache of bounded size.
//!
//! The data path is one straight line, from the kernel down to the file:
//!
//! ```text
//! mount::fuse  a read request of the kernel
//!   fs         the open file; which pages to read ahead
//!   view       the segments of a virtual file: known bytes, or samples of an array
//!   array      samples as bricks: cached, in flight on another thread, or decoded now, in parallel
//!   format     brick index -> constant, plain or coded: a value, or bytes at (object, offset, length)
//!   codec      coded bytes -> samples
//!   source     bytes of an object
//! ```
//!
//! docs/architecture.md says what each folder does, and which may use which.

// what only these features use stays in a build without them
#![cfg_attr(not(all(feature = "serve", feature = "store")), allow(dead_code, unused_imports))]

mod api;
mod array;
mod catalog;
mod cli;
mod codec;
mod counters;
mod format;
#[cfg(test)]
#[path = "../tests/formats/mod.rs"]
mod formats_tests;
mod fs;
/// The bodies of the fuzz targets.
#[cfg(any(test, fuzzing))]
#[path = "../fuzz/src/mod.rs"]
pub mod fuzz;
#[doc(hidden)]
pub mod internals;
mod logging;
mod memory;
mod mount;
mod pool;
mod safe_open;
#[cfg(feature = "serve")]
mod serve;
mod source;
mod sync;
#[cfg(test)]
#[path = "../tests/support/library.rs"]
mod test_support;
mod verify;
mod view;
mod volume;

use std::ffi::OsString;
use std::process::ExitCode;

pub use api::{
    Array, Axis, Dataset, Dtype, IntoRegion, Layer, OpenError, OpenOptions, ReadError, Sample, Selection, Slice,
    cache_size, open, set_cache_size,
};
pub use memory::ReservingAllocator;

/// Runs the command that the arguments name, and prints an error if it fails. `args` begins with the name of the
/// program.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match cli::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_status())
        }
    }
}
