//! volfs reads bricked volumes, seismic (ZGY, VDS) and microscopy (WKW, Zarr, N5, HDF5), as arrays: here in process, and
//! by the program `volfs` as the files of a mount.
//!
//! ```
//! let survey = volfs::open("tests/data/demo/north.zgy")?; // or s3://BUCKET/north.zgy
//! let layer = survey.layers().next().ok_or("no layer")?; // or survey.layer("Amplitude")?
//! let array = layer.level(0).ok_or("no level")?; // 0 is the finest
//! assert_eq!(array.shape(), [128, 96, 192]); // inline, crossline, sample
//! let inline: Vec<f32> = array.read((20,))?; // 96 x 192 samples, in C order
//! let trace: Vec<f32> = array.read((20, 48))?;
//! let window: Vec<f32> = array.read((.., 40..60, 100..))?;
//! # assert_eq!((inline.len(), trace.len(), window.len()), (96 * 192, 192, 128 * 20 * 92));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`open`] reads headers only. All arrays of a process share one cache of decoded bricks, whose bound
//! [`set_cache_size`] sets, and everything is `Send` and `Sync`. A forked child opens its datasets anew when it first reads.
//!
//! # Inside
//!
//! The data path is one straight line, from the kernel down to the file:
//!
//! ```text
//! mount::fuse  a read request of the kernel       api  a read in process, which goes on at `array`
//!   fs         the open file; which pages to read ahead
//!   view       the segments of a virtual file: known bytes, or samples of an array
//!   array      samples as bricks: cached, in flight on another thread, or decoded now, in parallel
//!   format     brick index -> constant, plain or coded: a value, or bytes at (object, offset, length)
//!   codec      coded bytes -> samples
//!   source     bytes of an object
//! ```
//!
//! docs/architecture.md says what each folder does, and which may use which.

#[cfg(all(feature = "mount", not(target_os = "linux")))]
compile_error!("the program, which the feature \"mount\" builds, needs Linux; see docs/rust.md");

// Of a floor with such an attribute the public API uses a part; the program, or stores, use the rest.

mod api;
#[cfg_attr(not(feature = "mount"), allow(dead_code, unused_imports))]
mod array;
#[cfg_attr(not(feature = "mount"), allow(dead_code, unused_imports))]
mod catalog;
#[cfg(feature = "mount")]
mod cli;
mod codec;
#[cfg_attr(not(feature = "mount"), allow(dead_code))]
mod counters;
#[cfg_attr(not(feature = "mount"), allow(dead_code, unused_imports))]
mod format;
#[cfg(all(test, feature = "mount"))]
#[path = "../tests/formats/mod.rs"]
mod formats_tests;
#[cfg(feature = "mount")]
#[cfg_attr(not(feature = "serve"), allow(dead_code, unused_imports))]
mod fs;
/// The bodies of the fuzz targets.
#[cfg(any(test, fuzzing))]
#[cfg_attr(not(feature = "mount"), allow(dead_code))]
#[path = "../fuzz/src/mod.rs"]
pub mod fuzz;
#[doc(hidden)]
pub mod internals;
mod logging;
#[cfg_attr(not(all(feature = "mount", feature = "store")), allow(dead_code, unused_imports))]
mod memory;
#[cfg(feature = "mount")]
mod mount;
#[cfg_attr(not(feature = "mount"), allow(dead_code))]
mod pool;
#[cfg(feature = "mount")]
mod safe_open;
#[cfg(feature = "serve")]
mod serve;
#[cfg_attr(not(all(feature = "mount", feature = "store")), allow(dead_code, unused_imports))]
mod source;
mod sync;
#[cfg(test)]
#[path = "../tests/support/library.rs"]
mod test_support;
#[cfg(feature = "mount")]
mod verify;
#[cfg_attr(not(feature = "mount"), allow(dead_code, unused_imports))]
mod view;
#[cfg_attr(not(feature = "mount"), allow(dead_code))]
mod volume;

#[cfg(feature = "mount")]
use std::ffi::OsString;
#[cfg(feature = "mount")]
use std::process::ExitCode;

pub use api::{
    Array, Axis, Dataset, Dtype, IntoRegion, Layer, OpenError, OpenOptions, ReadError, Sample, Selection, Slice,
    cache_size, open, set_cache_size,
};
#[cfg(feature = "mount")]
pub use memory::ReservingAllocator;

#[cfg(doctest)]
#[doc = include_str!("../docs/rust.md")]
mod docs_of_rust {}

/// Runs the command that the arguments name, and prints an error if it fails. `args` begins with the name of the
/// program.
#[cfg(feature = "mount")]
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match cli::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_status())
        }
    }
}
