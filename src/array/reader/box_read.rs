//! Reads boxes: for callers that want part of an array and not a range of a file's bytes.

use std::sync::Arc;

use super::array_reader::{Reader, first_brick};
use super::slow_path::SlowPath;
use crate::array::ReadError;
use crate::array::array_view::ArrayView;
use crate::array::bricks::{BrickAccess, Origins};
use crate::array::request::{ReplyLayout, pieces_of_box};
use crate::counters::Counters;
use crate::format::Array;
use crate::memory::Buffer;
use crate::pool::Bulkhead;
use crate::volume::Region;

/// A box of an array.
pub struct BoxRequest {
    /// The array.
    pub array: Arc<dyn Array>,
    /// The samples; they lie within the array.
    pub region: Region,
    /// The concurrency limit of the source that the array is read from.
    pub bulkhead: Bulkhead,
    /// Counters that count the work for this read, besides those of all reads.
    pub counters: Option<Arc<Counters>>,
}

impl Reader {
    /// Reads a box. `done` gets its samples in C order, little-endian, from a worker of the pool. A box is expected to
    /// take time, so the fast path is not tried.
    pub fn read_box(
        self: &Arc<Self>,
        request: BoxRequest,
        done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static,
    ) {
        let BoxRequest { array, region, bulkhead, counters } = request;
        let info = array.info();
        let layout = ReplyLayout::of_box(info, &region);
        let pieces: Vec<_> = pieces_of_box(&*array, region).collect();
        let out = match self.resources.buffers.try_take(region.samples() as usize * info.dtype.size()) {
            Ok(out) => out,
            Err(e) => {
                return done(Err(ReadError { brick: first_brick(pieces.into_iter()), cause: e.into() }));
            }
        };
        if pieces.is_empty() {
            return done(Ok(out));
        }
        let view = ArrayView { array, permutation: None, bulkhead };
        let access = BrickAccess { resources: Arc::clone(&self.resources), view, scan: None, counters };
        SlowPath::start(access, layout, pieces, out, Origins::default(), Box::new(done));
    }
}
