//! Decodes bricks before scans need them, and divides the cache among the active scans.

mod brick_layer;
mod brick_prefetch;
mod cache_shares;
mod grants;
mod handover;
mod prefetch_job;
mod prefetcher;

pub(crate) use prefetcher::Prefetcher;
