//! volfs shows bricked volumes (seismic, microscopy) as plain array files.
//!
//! Each layer of a dataset at each level of detail is a virtual file of samples in C order, with JSON beside it; bricks are
//! found, read and decoded when somebody reads the bytes that they hold, and kept in a cache of bounded size.
//!
//! The data path is one straight line, from the kernel down to the file:
//!
//! ```text
//! mount::fuse  a read request of the kernel
//!   fs         the open file, and what to read ahead of its reader
//!   view       bytes of a virtual file: header bytes, or a range of an array's samples
//!   array      the range as boxes, the boxes as bricks; bricks in parallel; rows copied into the reply
//!   cache      brick (array, index): held, being decoded by another thread, or to be decoded
//!   format     brick index -> constant, or plain or coded bytes at (object, offset, length)
//!   codec      coded bytes -> samples
//!   source     bytes of an object
//! ```
//!
//! Every module uses only those below it. `volume` has the words that all of them share (shape, region, brick grid, layout) and
//! knows nothing of files; `memory`, `pool`, `sequential` and `counters` are what any of them may need; `catalog` finds
//! datasets below the source and opens them; `cli` is the command line.
//!
//! The threads that talk to the kernel answer from memory or not at all: whatever needs a disk or a decoder is done on the
//! pool's threads, which reply from there. A new format is a folder below `format` and a line of its registry, a new kind of
//! virtual file a file below `view` and a line of its registry.

#[cfg(test)]
mod architecture_tests;
pub mod array;
pub mod cache;
pub mod catalog;
pub mod cli;
pub mod codec;
pub mod counters;
pub mod format;
pub mod fs;
pub mod logging;
pub mod memory;
pub mod mount;
pub mod pool;
pub mod sequential;
pub mod source;
pub mod sync;
pub mod view;
pub mod volume;
