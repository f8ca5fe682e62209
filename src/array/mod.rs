//! N-dimensional reading: a range of samples becomes boxes, boxes become pieces of bricks, and their rows are copied
//! out.
//!
//! A read only descends:
//!
//! ```text
//! reader     the fast path copies the pieces that are in memory; the slow path gives the others to workers of the pool
//! prefetch   decodes the bricks that scans will need next, and divides the cache among scans
//! bricks     one brick for one reader: from the cache, from its scan, read in parts, or decoded now
//! scan       detects sequential readers; keeps planes of bricks for scans whose bricks do not fit the cache
//! copy       rows of samples from one layout to another
//! request    ranges and boxes as pieces of bricks: arithmetic only
//! ```

mod array_view;
mod brick_sizes;
mod bricks;
mod copy;
mod decode_gate;
mod error;
mod permuted;
mod prefetch;
mod reader;
mod request;
mod resources;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use error::ReadError;
pub(crate) use reader::{BoxRequest, CheckedBrick, Gauges, ReadRequest, Reader, ReaderConfig};
pub(crate) use request::boxes;
pub(crate) use scan::ScanDetector;
