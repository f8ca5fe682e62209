//! What reads are in progress just now: all of it is 0 when nothing is read.

use super::array_reader::Reader;

/// What reads are in progress just now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gauges {
    /// Jobs of the pool that run or wait: of reads, prefetches, and requests that had to wait for the source.
    pub jobs: usize,
    /// Bricks that are being loaded and that others may wait for.
    pub bricks_in_flight: usize,
    /// Decoders at work.
    pub decoders: usize,
    /// Bytes of memory that they need.
    pub decoder_bytes: usize,
}

impl Reader {
    /// Returns what is in progress just now.
    pub(crate) fn gauges(&self) -> Gauges {
        let (decoders, decoder_bytes) = self.resources.gate.admitted();
        let (jobs, bricks_in_flight) = (self.resources.pool.jobs(), self.resources.cache.in_flight());
        Gauges { jobs, bricks_in_flight, decoders, decoder_bytes }
    }
}
