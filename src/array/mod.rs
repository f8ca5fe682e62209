//! N-dimensional reading: regions of samples into memory of the caller, brick by brick.
//!
//! A read only descends:
//!
//! ```text
//! read         the one entry; divides what is not in memory among workers
//! prefetch     decodes the bricks that scans will need next; shares: divides the cache among scans
//! copier       the pieces of a read, for all kinds of brick; plain: those of bricks that need no decoding
//! brick        one brick: from the cache, from the planes of a scan, or loaded now
//! readers      the readers of an open file, and which of them a read belongs to; progress: how far one has come
//! scan         what is kept and prefetched for one reader; planes: what it keeps if a layer does not fit the cache
//! cache        decoded bricks; early_eviction: which of them are evicted early
//! copy         samples between memory of different layouts; output: the caller's memory, which several threads fill
//! region       which samples a read selects, and the pieces of bricks that they come from
//! ```

mod brick;
mod cache;
mod check;
mod copier;
mod copy;
mod early_eviction;
mod output;
mod plain;
mod planes;
mod prefetch;
mod progress;
mod read;
mod readers;
mod region;
mod resources;
mod scan;
mod shares;
#[cfg(test)]
mod tests;

pub(crate) use check::CheckedBrick;
pub(crate) use copier::ReadError;
pub(crate) use progress::Progress;
pub(crate) use read::{Gauges, ReadRequest, Reader};
pub(crate) use readers::{Readers, Recorded};
pub(crate) use region::{Selection, are_disjoint, boxes};
