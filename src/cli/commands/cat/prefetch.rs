//! Reads the chunks of a box ahead of the writer.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use super::chunked_box::ChunkedBox;
use crate::array::{BoxRequest, ReadError, Reader};
use crate::format::{Array, FormatError};
use crate::memory::Buffer;
use crate::pool::Bulkhead;
use crate::volume::Region;

/// Bytes of the chunks in flight at a time. One chunk is prefetched in any case, however large.
const PREFETCH_BYTES: u64 = 64 << 20;

/// Reads chunks and returns them in order, with some more in flight.
pub(crate) struct Prefetch<'a> {
    reader: Arc<Reader>,
    array: &'a Arc<dyn Array>,
    chunks: Peekable<ChunkedBox<'a>>,
    in_flight: VecDeque<(Receiver<Result<Buffer, ReadError>>, Region)>,
    /// Bytes of the chunks in flight.
    bytes: u64,
}

impl<'a> Prefetch<'a> {
    /// Reads these chunks of an array.
    pub(crate) fn new(reader: Arc<Reader>, array: &'a Arc<dyn Array>, chunks: ChunkedBox<'a>) -> Self {
        Self { reader, array, chunks: chunks.peekable(), in_flight: VecDeque::new(), bytes: 0 }
    }

    fn bytes_of(&self, chunk: &Region) -> u64 {
        chunk.samples() * self.array.info().dtype.size() as u64
    }

    /// Requests the next chunks.
    fn request(&mut self) {
        while let Some(chunk) = self.chunks.peek().copied() {
            let bytes = self.bytes + self.bytes_of(&chunk);
            if bytes > PREFETCH_BYTES && !self.in_flight.is_empty() {
                break;
            }
            let (answer, receiver) = mpsc::channel();
            let request =
                BoxRequest { array: Arc::clone(self.array), region: chunk, bulkhead: Bulkhead::new(0), counters: None };
            // the receiver is gone if an earlier chunk failed
            self.reader.read_box(request, move |read| drop(answer.send(read)));
            self.in_flight.push_back((receiver, chunk));
            self.bytes = bytes;
            self.chunks.next();
        }
    }
}

impl Iterator for Prefetch<'_> {
    type Item = Result<Buffer, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.request();
        let (answer, chunk) = self.in_flight.pop_front()?;
        // a reader that is dropped without an answer must not end the output as if it were complete
        let gone = |_| ReadError { brick: chunk.start, cause: FormatError::Damaged("there was no answer".into()) };
        let read = answer.recv().map_err(gone).and_then(|read| read);
        self.bytes -= self.bytes_of(&chunk);
        // the next chunks are read while this one is written
        self.request();
        Some(read)
    }
}
