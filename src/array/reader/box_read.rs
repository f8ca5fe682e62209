//! Reads boxes: for callers that want part of an array and not a range of a file's bytes.

use std::sync::Arc;

use super::array_reader::{Reader, first_brick};
use super::copied::Copied;
use crate::array::ReadError;
use crate::array::array_view::ArrayView;
use crate::array::bricks::BrickAccess;
use crate::array::request::{ReplyLayout, pieces_of_box};
use crate::counters::Counters;
use crate::format::Array;
use crate::memory::Buffer;
use crate::pool::Bulkhead;
use crate::volume::Region;

/// Of a box with more bytes nothing is copied on the calling thread: several workers are faster.
const MAX_AT_ONCE: usize = 1 << 20;

/// A box of an array.
pub(crate) struct BoxRequest {
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
    /// Reads a box. `done` gets its samples in C order, little-endian: from within this call if the box is small and
    /// nothing has to be waited for, otherwise from a worker of the pool.
    pub(crate) fn read_box(
        self: &Arc<Self>,
        request: BoxRequest,
        done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static,
    ) {
        let BoxRequest { array, region, bulkhead, counters } = request;
        let view = ArrayView { array, permutation: None, bulkhead };
        let access = BrickAccess { resources: Arc::clone(&self.resources), view, scan: None, counters };
        let (array, info) = (access.array(), access.view.info());
        let (layout, bytes) = (ReplyLayout::of_box(info, &region), region.samples() as usize * info.dtype.size());
        let (pieces, buffers) = (|| pieces_of_box(array, region), &self.resources.buffers);
        let is_small = bytes <= MAX_AT_ONCE;
        let mut out = match if is_small { buffers.take_reply(bytes) } else { buffers.try_take(bytes) } {
            Ok(out) => out,
            Err(e) => return done(Err(ReadError { brick: first_brick(pieces()), cause: e.into() })),
        };
        let copied = if is_small {
            Copied::at_once(&access, pieces(), layout, &mut out)
        } else {
            Ok(Copied::nothing(pieces().collect(), layout))
        };
        let copied = match copied {
            Ok(copied) => copied,
            Err(e) => return done(Err(e)),
        };
        self.prefetcher.record_request(&self.resources, copied.has_coded());
        let first = pieces().next();
        copied.finish(access, first, out, done);
    }
}
