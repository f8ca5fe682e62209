//! Reads of boxes: for who wants part of an array for itself, and not a range of its bytes.

use std::sync::Arc;

use super::ReadError;
use super::access::Access;
use super::fetch::Frame;
use super::pieces::pieces_of_box;
use super::reader::Reader;
use super::work::{Tally, Work};
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
    /// The bulkhead of the pool that the work belongs to.
    pub bulkhead: Bulkhead,
}

impl Reader {
    /// Reads a box. `done` gets its samples in C order, little-endian, from a thread of the pool: a box is read to be had, so
    /// that nothing is tried without waiting first.
    pub fn read_box(
        self: &Arc<Self>,
        request: BoxRequest,
        done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static,
    ) {
        let BoxRequest { array, region, bulkhead } = request;
        let info = array.info();
        let out = self.buffers().take(region.samples() as usize * info.dtype.size());
        let frame = Frame::of_box(info, &region);
        let pieces: Vec<_> = pieces_of_box(&*array, region).collect();
        if pieces.is_empty() {
            return done(Ok(out));
        }
        let access = Access { reader: Arc::clone(self), array, turn: None, bulkhead, scan: None };
        Work::start(access, frame, pieces, out, Tally::default(), Box::new(done));
    }
}
