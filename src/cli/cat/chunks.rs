//! A box cut into chunks that follow one another in C order, so that each brick is decoded once; and the reads of a file
//! of the box, in parts that end where chunks do, ahead of the writer.
//!
//! The natural chunk is a layer of bricks along the slowest axis: it holds whole bricks, each of which is decoded once.
//! Where that takes too much memory, chunks are thinner than a brick, and the cache has to hold the bricks until the
//! next chunk needs them. Bricks that need no decoding may be cut anywhere: small chunks then stay in the processor's
//! cache.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::{mem, thread};

use crate::array::{ReadError, ReadRequest, Reader};
use crate::format::{Array, FormatError};
use crate::memory::Buffer;
use crate::pool::Bulkhead;
use crate::source::Blocking;
use crate::view::{Content, FileRead, SampleRequest, Step};
use crate::volume::{Brick, Dims, Region};

/// Bytes of a chunk without coded bricks, and the least of any other chunk, where the box allows it.
const SMALL: u64 = 4 << 20;

/// Iterates over the chunks of a box, in C order.
pub(super) struct ChunkedBox<'a> {
    array: &'a dyn Array,
    region: Region,
    /// The axis that is cut. A chunk has one position along each slower axis, and all positions along each faster one.
    axis: usize,
    /// Bytes of a chunk with one position along the cut axis.
    slice: u64,
    /// The most bytes of a chunk, unless one position alone has more.
    max_bytes: u64,
    /// First position of the next chunk, along the axes up to the one that is cut.
    next: Option<Dims>,
}

impl<'a> ChunkedBox<'a> {
    /// Cuts a box of `array` into chunks of at most `max_bytes`.
    pub(super) fn new(array: &'a dyn Array, region: Region, max_bytes: u64) -> Self {
        let size = array.info().dtype.size() as u64;
        let slice = |axis: usize| region.shape[axis + 1..].iter().fold(size, |bytes, n| bytes.saturating_mul(*n));
        let axis = (0..region.axes()).find(|axis| slice(*axis) <= max_bytes).unwrap_or(region.axes() - 1);
        let next = (!region.shape.contains(&0)).then_some(region.start);
        Self { array, region, axis, slice: slice(axis), max_bytes, next }
    }

    /// Returns whether a brick may belong to several chunks, so that a cache is of use.
    pub(super) fn share_bricks(&self) -> bool {
        let step = self.array.info().grid.step();
        let several = self.region.shape[..self.axis].iter().any(|n| *n > 1);
        let layer = step[self.axis].min(self.region.shape[self.axis]);
        several || layer.saturating_mul(self.slice) > self.max_bytes
    }

    /// Returns one past the last position, along the cut axis, of the chunk that begins at `at`.
    fn end(&self, at: &Dims) -> u64 {
        let (axis, grid) = (self.axis, &self.array.info().grid);
        let stop = self.region.end(axis);
        let positions = |bytes: u64| (bytes / self.slice).max(1);
        let mut end = at[axis];
        while end < stop && (end - at[axis]).saturating_mul(self.slice) < SMALL {
            end = grid.owned(axis, grid.brick_of(axis, end)).1.clamp(end + 1, stop);
        }
        let max_bytes = if self.decodes(&self.chunk(at, end)) { self.max_bytes } else { SMALL };
        end.min(at[axis].saturating_add(positions(max_bytes)))
    }

    fn chunk(&self, at: &Dims, end: u64) -> Region {
        let axes = self.region.axes();
        let start = Dims::from_fn(axes, |a| if a <= self.axis { at[a] } else { self.region.start[a] });
        let shape = Dims::from_fn(axes, |a| match a {
            a if a < self.axis => 1,
            a if a == self.axis => end - at[a],
            a => self.region.shape[a],
        });
        Region { start, shape }
    }

    /// Returns whether any brick of a chunk has to be decoded. Ignores errors, which the read will report.
    fn decodes(&self, chunk: &Region) -> bool {
        let touched = self.array.info().grid.touched(chunk);
        (0..touched.samples()).any(|n| {
            let within = touched.shape.index_of(n);
            let brick = Dims::from_fn(within.len(), |a| touched.start[a] + within[a]);
            matches!(self.array.brick(&brick, Blocking::Yes), Ok(Brick::Coded(_)))
        })
    }

    /// Returns the first position after the chunk from `at` to `end`; `None` after the last chunk.
    fn after(&self, mut at: Dims, end: u64) -> Option<Dims> {
        at[self.axis] = end;
        for axis in (0..=self.axis).rev() {
            if at[axis] < self.region.end(axis) {
                return Some(at);
            }
            at[axis] = self.region.start[axis];
            *at[..axis].last_mut()? += 1;
        }
        None
    }
}

impl Iterator for ChunkedBox<'_> {
    type Item = Region;

    fn next(&mut self) -> Option<Region> {
        let at = self.next?;
        let end = self.end(&at);
        self.next = self.after(at, end);
        Some(self.chunk(&at, end))
    }
}

/// Bytes of the parts in flight at a time. One is prefetched in any case, however large.
const PREFETCH_BYTES: u64 = 64 << 20;

/// Reads the parts of a file of a box, and returns them in order, with some more in flight.
pub(super) struct Prefetch<'a> {
    reader: Arc<Reader>,
    content: Content,
    chunks: ChunkedBox<'a>,
    /// Samples of the chunks so far, and where in the file the next part begins.
    samples: u64,
    at: u64,
    /// The next part, which did not fit beside those in flight.
    waiting: Option<Range<u64>>,
    in_flight: VecDeque<(Receiver<Result<Buffer, ReadError>>, u64)>,
}

impl<'a> Prefetch<'a> {
    pub(super) fn new(reader: Arc<Reader>, content: Content, chunks: ChunkedBox<'a>) -> Self {
        Self { reader, content, chunks, samples: 0, at: 0, waiting: None, in_flight: VecDeque::new() }
    }

    /// Returns the bytes of the next part: up to the end of a chunk, and at last up to that of the file.
    fn part(&mut self) -> Option<Range<u64>> {
        let end = match self.chunks.next() {
            Some(chunk) => {
                self.samples += chunk.samples();
                self.content.offset_of(self.samples, self.chunks.region.samples())
            }
            None => self.content.len(),
        };
        Some(mem::replace(&mut self.at, end)..end).filter(|part| !part.is_empty())
    }

    fn request(&mut self) {
        while let Some(part) = self.waiting.take().or_else(|| self.part()) {
            let length = part.end - part.start;
            let bytes: u64 = self.in_flight.iter().map(|(_, bytes)| bytes).sum();
            if bytes + length > PREFETCH_BYTES && !self.in_flight.is_empty() {
                self.waiting = Some(part);
                break;
            }
            let (answer, receiver) = mpsc::channel();
            begin(&self.reader, &self.content, part, answer);
            self.in_flight.push_back((receiver, length));
        }
    }
}

type Answer = Sender<Result<Buffer, ReadError>>;

/// Begins to read a part of a file. The receiver of the answer is gone if an earlier part failed.
fn begin(reader: &Arc<Reader>, content: &Content, part: Range<u64>, answer: Answer) {
    let buffers = reader.buffers();
    let begun = content.read(part, buffers).map_err(FormatError::from);
    let begun = begun.and_then(|mut read| read.step(None, buffers).map(|step| (read, step)));
    let (read, step) = match begun {
        Ok(begun) => begun,
        Err(cause) => return drop(answer.send(Err(failed(content, cause)))),
    };
    match step {
        // samples as they are
        Step::Read { samples, is_last: true } => {
            let (request, out) = request(samples);
            reader.read(request, out, Arc::default(), move |read| drop(answer.send(read)));
        }
        step => {
            let (reader, content) = (Arc::clone(reader), content.clone());
            let finish = move || drop(answer.send(finish(&reader, &content, read, step)));
            // without a thread there is no answer, which the receiver notices
            let _ = thread::Builder::new().name("volfs-cat".into()).spawn(finish);
        }
    }
}

/// Goes on with a read until all its bytes are there.
fn finish(reader: &Arc<Reader>, content: &Content, mut read: FileRead, mut step: Step) -> Result<Buffer, ReadError> {
    loop {
        let (samples, is_last) = match step {
            Step::Done(bytes) => return Ok(bytes),
            Step::Read { samples, is_last } => (samples, is_last),
        };
        let (request, mut memory) = request(samples);
        reader.read_into(request, &mut memory)?;
        if is_last {
            return Ok(memory);
        }
        step = read.step(Some(memory), reader.buffers()).map_err(|cause| failed(content, cause))?;
    }
}

fn request(samples: SampleRequest) -> (ReadRequest, Buffer) {
    let SampleRequest { array, selections, memory, .. } = samples;
    let bulkhead = Bulkhead::new(0);
    (ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: false }, memory)
}

/// Returns an error that concerns no brick in particular.
fn failed(content: &Content, cause: FormatError) -> ReadError {
    let axes = content.array().map_or(1, |array| array.info().shape().len());
    ReadError { brick: Dims::filled(axes, 0), cause }
}

impl Iterator for Prefetch<'_> {
    type Item = Result<Buffer, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.request();
        let (answer, _) = self.in_flight.pop_front()?;
        // without an answer the output must not end as if it were complete
        let gone = |_| failed(&self.content, FormatError::Internal("the reader returned no answer".into()));
        let read = answer.recv().map_err(gone).and_then(|read| read);
        // the next parts are read while this one is written
        self.request();
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::{Census, FormatError};
    use crate::source::Source;
    use crate::volume::{ArrayInfo, BrickGrid, Coded, Dtype, Element, Layout, StoredLength};

    /// An array that cannot be read, only asked for the kind of its bricks.
    struct Bricks {
        info: ArrayInfo,
        coded: bool,
    }

    impl Bricks {
        fn new(shape: &[u64], step: &[u64], coded: bool) -> Self {
            let (shape, step) = (Dims::from_slice(shape).unwrap(), Dims::from_slice(step).unwrap());
            let info = ArrayInfo::new(Dtype::Float32, BrickGrid::aligned(shape, step), step);
            Self { info, coded }
        }
    }

    impl Array for Bricks {
        fn info(&self) -> &ArrayInfo {
            &self.info
        }

        fn source(&self) -> &dyn Source {
            unreachable!("nothing is read")
        }

        fn brick(&self, at: &Dims, _: Blocking) -> Result<Brick, FormatError> {
            let layout = Layout { held: self.info.grid.region(at), first: 0, strides: *at };
            let coded = Coded {
                object: "".into(),
                offset: 0,
                length: StoredLength::Bytes(1),
                decoded: 1,
                scratch: 0,
                layout,
                codec: 0,
            };
            Ok(if self.coded { Brick::Coded(coded) } else { Brick::Constant(Element::zero(4)) })
        }

        fn decode(&self, _: &Coded, _: &[u8], _: &mut [u8]) -> Result<(), FormatError> {
            unreachable!("nothing is decoded")
        }

        fn census(&self) -> Result<Option<Census>, FormatError> {
            Ok(None)
        }
    }

    fn first_axis(array: &Bricks, region: Region, max_bytes: u64) -> Vec<(u64, u64)> {
        ChunkedBox::new(array, region, max_bytes).map(|chunk| (chunk.start[0], chunk.end(0))).collect()
    }

    #[test]
    fn layers_of_coded_bricks_stay_together() {
        let array = Bricks::new(&[300, 512, 512], &[64, 64, 64], true);
        let mut region = Region::whole(array.info.shape());
        // a plane has 1 MiB
        assert_eq!(first_axis(&array, region, 1 << 30), [(0, 64), (64, 128), (128, 192), (192, 256), (256, 300)]);
        assert!(!ChunkedBox::new(&array, region, 1 << 30).share_bricks());
        assert_eq!(first_axis(&array, region, 40 << 20)[..4], [(0, 40), (40, 64), (64, 104), (104, 128)]);
        assert!(ChunkedBox::new(&array, region, 40 << 20).share_bricks());
        (region.start[0], region.shape[0]) = (100, 50);
        assert_eq!(first_axis(&array, region, 1 << 30), [(100, 128), (128, 150)]);
        region.shape = [50, 8, 8].into();
        assert_eq!(first_axis(&array, region, 1 << 30), [(100, 150)]);
    }

    #[test]
    fn bricks_without_decoding_are_cut_small() {
        let array = Bricks::new(&[300, 512, 512], &[64, 64, 64], false);
        let chunks = first_axis(&array, Region::whole(array.info.shape()), 1 << 30);
        assert!(chunks.len() > 70 && chunks.iter().all(|(from, to)| to - from <= 4), "{chunks:?}");
    }

    #[test]
    fn a_plane_beyond_the_memory_is_cut_along_the_next_axis() {
        let array = Bricks::new(&[2, 3000, 3000], &[64, 64, 64], true);
        let chunks: Vec<Region> = ChunkedBox::new(&array, Region::whole(array.info.shape()), 16 << 20).collect();
        assert!(chunks.iter().all(|chunk| chunk.shape[0] == 1 && chunk.shape[2] == 3000), "{chunks:?}");
        assert_eq!(chunks[0].shape[1], 384);
        assert!(ChunkedBox::new(&array, Region::whole(array.info.shape()), 16 << 20).share_bricks());
    }

    proptest! {
        #[test]
        fn chunks_cover_the_box_in_order(
            dims in prop::collection::vec((1u64..90, 1u64..30, 0.0f64..1.0, 0.0f64..1.0), 1..4), coded in any::<bool>(),
            max_bytes in prop::sample::select(vec![1u64, 700, 40_000, 1 << 30]),
        ) {
            let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
            let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
            let array = Bricks::new(&shape, &step, coded);
            let edge = |a: usize, fraction: f64| (shape[a] as f64 * fraction) as u64;
            let start = Dims::from_fn(shape.len(), |a| edge(a, dims[a].2.min(dims[a].3)));
            let extent = Dims::from_fn(shape.len(), |a| edge(a, dims[a].2.max(dims[a].3)) - start[a]);
            let region = Region { start, shape: extent };
            let mut next = 0;
            for chunk in ChunkedBox::new(&array, region, max_bytes) {
                prop_assert!(region.contains(&chunk));
                let within = Dims::from_fn(shape.len(), |a| chunk.start[a] - start[a]);
                prop_assert_eq!(extent.linear_of(&within), next);
                next += chunk.samples();
            }
            prop_assert_eq!(next, region.samples());
        }
    }
}
