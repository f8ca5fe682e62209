//! The counters of an object store, as status.json shows them.

use std::time::Duration;

use super::disk_cache::DiskCacheStatistics;

/// What a store was asked for so far, and what is in flight now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreStatus {
    /// Requests that were sent, each retry included.
    pub requests: u64,
    /// Bytes that have arrived as content of objects.
    pub bytes: u64,
    /// Requests that failed in a way that may pass, and so were sent again.
    pub retries: u64,
    /// Requests that wait for an answer.
    pub in_flight: usize,
    /// Bytes in memory that were requested ahead, or are awaited.
    pub staged_bytes: usize,
    /// The time until an answer begins: half of them are faster; `None` before the first.
    pub latency_p50: Option<Duration>,
    /// Of a hundred answers one takes longer.
    pub latency_p99: Option<Duration>,
    /// The disk cache, if there is one.
    pub disk: Option<DiskCacheStatistics>,
}
