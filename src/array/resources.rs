//! The state that all reads share.

use std::sync::Arc;

use super::decode_gate::DecodeGate;
use crate::cache::BrickCache;
use crate::counters::Counters;
use crate::memory::BufferPool;
use crate::pool::Pool;

/// The cache, the workers and the memory that all reads of the process share.
pub struct Resources {
    /// Decoded bricks.
    pub cache: BrickCache,
    /// Bounds the number of decoders and their memory.
    pub gate: DecodeGate,
    /// Worker threads.
    pub pool: Arc<Pool>,
    /// Recycles buffers.
    pub buffers: Arc<BufferPool>,
    /// The counters of status.json.
    pub counters: Arc<Counters>,
}
