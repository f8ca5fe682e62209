//! The cache of decoded bricks, bounded in bytes. A brick is decoded once, however many readers wait for it.
//!
//! Constant and plain bricks never enter the cache. A reader holds a reference to the brick that it copies from, so
//! eviction never takes bytes away from it. Failures are not cached: the next reader tries again.

mod brick_cache;
mod decoded_brick;
mod eviction;
mod passed;
mod single_flight;

pub(crate) use brick_cache::{BrickCache, Lookup};
pub(crate) use decoded_brick::{BrickKey, DecodeResult, DecodedBrick};
pub(crate) use eviction::{Partition, ScanQuota};
