//! What a virtual file consists of: a sequence of segments, known bytes or converted samples, each found by its place.
//! A read of any range of bytes is put together from them here, whatever the file.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::cf::Positions;
use super::convert::{self, Form};
use crate::array::{Selection, boxes};
use crate::format::{Array, FormatError};
use crate::memory::{Buffer, BufferPool, OutOfMemory, make_room, try_push};
use crate::volume::{ArrayInfo, AxisPermutation, Dims, Dtype, Region, Scaling};

/// No more segments are read together once their samples have this many bytes.
const READ_TOGETHER: usize = 1 << 20;
/// The most bytes that are made together without samples: so few that they need not ask for memory.
const MADE_TOGETHER: u64 = 32 << 10;

/// A part of a file, at a range of its bytes.
#[expect(clippy::large_enum_variant, reason = "a segment is moved once, and most have samples")]
pub(crate) enum Segment {
    /// Bytes from this offset of the file on.
    Bytes(u64, Arc<[u8]>),
    /// All bytes of the file, which may be so many that they had to ask for their memory.
    Whole(Arc<Vec<u8>>),
    /// Samples that become these bytes of the file. If there are none, the samples are only looked at: the next segment
    /// depends on them.
    Samples(Range<u64>, Samples, Option<Convert>),
    /// The bytes cannot be computed.
    Failed(FormatError),
}

/// Makes the bytes of a segment of its samples, which are little-endian.
pub(crate) type Convert = Box<dyn FnOnce(&[u8], &mut [u8]) -> Result<(), FormatError> + Send>;

/// Returns the segment with the first of these bytes, which are those of a read that come next. The segment may begin
/// before and end after them, but has few MiB.
pub(crate) type NextSegment = Box<dyn FnMut(Range<u64>) -> Segment + Send>;

/// Samples of an array in the order in which a file has them.
pub(crate) struct Samples {
    array: Arc<dyn Array>,
    which: Which,
}

#[expect(clippy::large_enum_variant, reason = "as for segments, each of which has one")]
enum Which {
    /// Those with these numbers in C order of permuted axes. The readers of such a file are sequential in the array.
    Range(AxisPermutation, Range<u64>),
    /// Places with these numbers in C order of a box, which begins with as many samples along each axis as a region
    /// says, and has zeros elsewhere. Neighbours are `step` samples apart in the array.
    Box { region: Region, step: Dims, shape: Dims, places: Range<u64> },
}

impl Samples {
    /// Returns the samples with these numbers in C order of the array.
    pub(crate) fn range(array: &Arc<dyn Array>, samples: Range<u64>) -> Self {
        Self { array: Arc::clone(array), which: Which::Range(AxisPermutation::IDENTITY, samples) }
    }

    /// Returns the samples of a region, in C order.
    pub(crate) fn region(array: &Arc<dyn Array>, region: Region) -> Self {
        Self::padded(array, region, region.shape, 0..region.samples())
    }

    /// Returns the places with these numbers, in C order, of a box of `shape`. The region is at its beginning, and what
    /// is beyond it is zeros.
    pub(crate) fn padded(array: &Arc<dyn Array>, region: Region, shape: Dims, places: Range<u64>) -> Self {
        let step = Dims::filled(region.axes(), 1);
        Self { array: Arc::clone(array), which: Which::Box { region, step, shape, places } }
    }

    /// Returns those with these numbers, in C order, of the samples that begin at the start of a region, are as many
    /// along each axis as its shape says, and `step` apart.
    pub(crate) fn strided(array: &Arc<dyn Array>, region: Region, step: Dims, places: Range<u64>) -> Self {
        Self { array: Arc::clone(array), which: Which::Box { region, step, shape: region.shape, places } }
    }

    /// Returns the bytes of the samples, zeros included.
    fn bytes(&self) -> usize {
        let (Which::Range(_, range) | Which::Box { places: range, .. }) = &self.which;
        (range.end - range.start) as usize * self.array.info().dtype.size()
    }
}

/// A file that is computed from samples when it is read.
pub(crate) trait ComputedFile: Send + Sync {
    /// Returns the bytes of the file.
    fn len(&self) -> u64;

    /// Returns the array that the file shows; errors that concern no sample in particular name it.
    fn array(&self) -> &Arc<dyn Array>;

    /// Returns what the file's layout depends on, headers included. A client that has read some of a file may read the
    /// rest from another one of the same length and fingerprint.
    fn fingerprint(&self) -> u64;

    /// Returns whether a read of `bytes` may take a worker longer than a few 100 KiB of samples take to be copied.
    /// Then it does not begin on a thread that talks to the kernel.
    fn is_long(&self, _bytes: &Range<u64>) -> bool {
        false
    }

    /// Begins a read.
    fn segments(self: Arc<Self>) -> NextSegment;
}

/// Bytes behind the samples of an [`ArrayFile`]: their number, and those of a range of them. They depend on the file's
/// header, and on the shape and type of its samples, alone.
type Tail = (u64, Arc<dyn Fn(Range<u64>) -> Vec<u8> + Send + Sync>);

/// Positions along axes, float64 and little-endian, one run directly behind the other, and zeros up to `len` bytes.
#[derive(Clone, PartialEq)]
struct PositionBlock {
    runs: Arc<[Positions]>,
    len: u64,
}

impl PositionBlock {
    fn bytes(&self, wanted: Range<u64>) -> Vec<u8> {
        let end = wanted.end;
        let mut bytes = vec![0; (end - wanted.start) as usize];
        let mut begin = 0;
        for run in self.runs.iter() {
            let (first, last) = (wanted.start.saturating_sub(begin) / 8, end.saturating_sub(begin).div_ceil(8));
            for n in first..last.min(run.count) {
                for (at, byte) in (begin + 8 * n..).zip(run.at(n).to_le_bytes()) {
                    let to = at.checked_sub(wanted.start).and_then(|at| bytes.get_mut(at as usize));
                    to.into_iter().for_each(|to| *to = byte);
                }
            }
            begin += 8 * run.count;
        }
        bytes
    }
}

/// A header followed by the samples of an array, little-endian, in C order of its own or of permuted axes, and perhaps
/// by computed bytes.
#[derive(Clone)]
pub(crate) struct ArrayFile {
    header: Arc<[u8]>,
    /// What is between header and samples.
    positions: Option<PositionBlock>,
    array: Arc<dyn Array>,
    order: AxisPermutation,
    /// If set, the file shows values as float32 instead of the stored samples.
    float32: Option<Scaling>,
    tail: Option<Tail>,
}

impl ArrayFile {
    /// Creates a file of the stored samples.
    pub(crate) fn new(header: Vec<u8>, array: &Arc<dyn Array>) -> Self {
        let (array, order) = (Arc::clone(array), AxisPermutation::IDENTITY);
        Self { header: header.into(), positions: None, array, order, float32: None, tail: None }
    }

    /// Puts positions between header and samples, with zeros behind them up to `len` bytes. They are computed when they
    /// are read: there may be millions.
    pub(crate) fn with_positions(self, runs: Vec<Positions>, len: u64) -> Self {
        Self { positions: Some(PositionBlock { runs: runs.into(), len }), ..self }
    }

    /// Shows the samples with permuted axes.
    pub(crate) fn permuted(self, order: AxisPermutation) -> Self {
        Self { order, ..self }
    }

    /// Shows the samples' values as float32.
    pub(crate) fn float32(self, scaling: Scaling) -> Self {
        Self { float32: Some(scaling), ..self }
    }

    /// Adds `length` bytes behind the samples, of which `bytes` returns any range.
    pub(crate) fn with_tail(self, length: u64, bytes: impl Fn(Range<u64>) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self { tail: Some((length, Arc::new(bytes))), ..self }
    }

    /// Returns the array.
    pub(crate) fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }

    /// Returns shape and type of the array that the file shows.
    pub(crate) fn shown(&self) -> ShownArray {
        let info = self.array.info();
        let dtype = if self.float32.is_some() { Dtype::Float32 } else { info.dtype };
        ShownArray { shape: self.order.permute_dims(&info.shape()), dtype }
    }

    /// Returns the bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.tail_start().saturating_add(self.tail_len())
    }

    /// Returns the offset behind the samples.
    fn tail_start(&self) -> u64 {
        let samples = self.array.info().shape().product().unwrap_or(u64::MAX);
        samples.saturating_mul(self.sample_size()).saturating_add(self.header_bytes())
    }

    fn tail_len(&self) -> u64 {
        self.tail.as_ref().map_or(0, |(length, _)| *length)
    }

    /// Returns whether the other file has the same header, shape and type of samples.
    pub(crate) fn has_layout_of(&self, other: &Self) -> bool {
        let layout = |file: &Self| {
            let ArrayInfo { dtype, .. } = file.array.info();
            (file.array.info().shape(), *dtype, file.order, file.float32, file.tail_len())
        };
        self.header == other.header && self.positions == other.positions && layout(self) == layout(other)
    }

    /// Returns the bytes of one sample in the file.
    pub(crate) fn sample_size(&self) -> u64 {
        self.shown().dtype.size() as u64
    }

    /// Returns the bytes before the samples.
    pub(crate) fn header_bytes(&self) -> u64 {
        self.header.len() as u64 + self.positions.as_ref().map_or(0, |positions| positions.len)
    }

    /// Returns the numbers of the samples that have some of these bytes, in the order of the file.
    pub(crate) fn samples(&self, bytes: &Range<u64>) -> Range<u64> {
        let (header, size) = (self.header_bytes(), self.sample_size());
        let end = bytes.end.min(self.tail_start()).saturating_sub(header).div_ceil(size);
        (bytes.start.saturating_sub(header) / size).min(end)..end
    }

    fn segment(&self, bytes: &Range<u64>) -> Segment {
        let (header, tail) = (self.header_bytes(), self.tail_start());
        let of_header = self.header.len() as u64;
        if bytes.start < of_header {
            return Segment::Bytes(0, Arc::clone(&self.header));
        }
        if let Some(positions) = self.positions.as_ref().filter(|_| bytes.start < header) {
            let end = bytes.end.min(header).min(bytes.start + MADE_TOGETHER);
            let wanted = bytes.start - of_header..end - of_header;
            return Segment::Bytes(bytes.start, positions.bytes(wanted).into());
        }
        if let Some((_, write)) = self.tail.as_ref().filter(|_| bytes.start >= tail) {
            let end = bytes.end.min(bytes.start + MADE_TOGETHER);
            return Segment::Bytes(bytes.start, write(bytes.start - tail..end - tail).into());
        }
        let size = self.sample_size();
        let samples = self.samples(bytes);
        let convert = self.float32.map(|scaling| -> Convert {
            let dtype = self.array.info().dtype;
            Box::new(move |stored, out| {
                convert::to_float32(dtype, Some(scaling), Form::LITTLE_ENDIAN, stored, out);
                Ok(())
            })
        });
        let bytes = header + samples.start * size..header + samples.end * size;
        let which = Which::Range(self.order, samples);
        Segment::Samples(bytes, Samples { array: Arc::clone(&self.array), which }, convert)
    }
}

/// Shape and type of the array that a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownArray {
    /// Samples along each axis of the file's array, slowest first.
    pub shape: Dims,
    /// The type of its samples.
    pub dtype: Dtype,
}

/// The content of a virtual file.
#[derive(Clone)]
pub(crate) enum Content {
    /// A few bytes, computed when the file is opened.
    Bytes(Arc<[u8]>),
    /// The samples of an array, behind a header or not.
    Array(ArrayFile),
    /// Bytes that are computed from samples when they are read.
    Computed(Arc<dyn ComputedFile>),
}

impl Content {
    /// Returns the bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Array(file) => file.len(),
            Self::Computed(file) => file.len(),
        }
    }

    /// Returns the offset in the file of a sample, counted from 0 to `all`; in a computed file about where it may be.
    pub(crate) fn offset_of(&self, sample: u64, all: u64) -> u64 {
        match self {
            Self::Array(file) => file.header_bytes() + sample * file.sample_size(),
            _ => (u128::from(self.len()) * u128::from(sample) / u128::from(all.max(1))) as u64,
        }
    }

    /// Returns the array that the file shows, if it shows one.
    pub(crate) fn array(&self) -> Option<&Arc<dyn Array>> {
        match self {
            Self::Bytes(_) => None,
            Self::Array(file) => Some(file.array()),
            Self::Computed(file) => Some(file.array()),
        }
    }

    /// Returns the order of axes in which the file shows the array.
    pub(crate) fn order(&self) -> AxisPermutation {
        match self {
            Self::Array(file) => file.order,
            Self::Bytes(_) | Self::Computed(_) => AxisPermutation::IDENTITY,
        }
    }

    /// Begins a read of bytes that lie within the file.
    pub(crate) fn read(&self, bytes: Range<u64>, buffers: &Arc<BufferPool>) -> Result<FileRead, OutOfMemory> {
        let segments = match self {
            Self::Bytes(known) => Segments::Known(Arc::clone(known)),
            Self::Array(file) => Segments::Array(file.clone()),
            Self::Computed(file) => Segments::Computed(Arc::clone(file).segments()),
        };
        let out = Some(buffers.take_reply((bytes.end - bytes.start) as usize)?);
        Ok(FileRead { segments, at: bytes.start, bytes, out, parts: Vec::new(), reading: Vec::new() })
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes().into())
    }
}

/// A read of a file in progress. It never waits: whoever drives it reads the samples that it asks for.
pub(crate) struct FileRead {
    segments: Segments,
    bytes: Range<u64>,
    /// Up to here segments are known.
    at: u64,
    /// The reply; `None` while samples are read to it.
    out: Option<Buffer>,
    /// Segments whose samples are still to be read.
    parts: Vec<Part>,
    /// Those whose samples are being read: of one array, and all straight to the reply or none.
    reading: Vec<Part>,
}

/// Where a read finds its segments.
enum Segments {
    Known(Arc<[u8]>),
    Array(ArrayFile),
    Computed(NextSegment),
}

/// A segment whose samples are to be read.
struct Part {
    bytes: Range<u64>,
    samples: Samples,
    convert: Option<Convert>,
    /// Whether the samples are read straight to the reply.
    is_direct: bool,
}

/// What a read does next.
pub(crate) enum Step {
    /// It needs samples. If it is the last step, the memory with the samples is the bytes of the read.
    Read { samples: SampleRequest, is_last: bool },
    /// It has all its bytes.
    Done(Buffer),
}

/// Samples that a read needs.
pub(crate) struct SampleRequest {
    /// The array.
    pub array: Arc<dyn Array>,
    /// Which samples, and their places in `memory`.
    pub selections: Vec<Selection>,
    /// The numbers of the samples in the order in which the file shows the array, from the first to the last, if they
    /// are parts of one range.
    pub range: Option<Range<u64>>,
    /// Where they go. It is given back with [`FileRead::step`].
    pub memory: Buffer,
}

impl FileRead {
    /// Takes the memory of the last request with its samples (`None` at first), and returns what comes next.
    pub(crate) fn step(&mut self, memory: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, FormatError> {
        if let Some(memory) = memory {
            self.finish(memory, buffers)?;
        }
        loop {
            while self.take_parts()? {
                let samples = self.request(buffers)?;
                if samples.selections.is_empty() {
                    self.finish(samples.memory, buffers)?;
                    continue;
                }
                let is_last = self.reading[0].is_direct && self.parts.is_empty() && self.at >= self.bytes.end;
                return Ok(Step::Read { samples, is_last });
            }
            if self.at >= self.bytes.end {
                return Ok(Step::Done(self.out.take().unwrap_or_else(|| buffers.empty())));
            }
            self.plan()?;
        }
    }

    /// Takes the parts that are read together next. Returns whether there are any.
    fn take_parts(&mut self) -> Result<bool, OutOfMemory> {
        let Some(first) = self.parts.first() else { return Ok(false) };
        let (is_direct, id) = (first.is_direct, first.samples.array.info().id);
        let alike = |part: &mut Part| part.is_direct == is_direct && part.samples.array.info().id == id;
        if self.parts.iter_mut().all(alike) {
            mem::swap(&mut self.parts, &mut self.reading);
        } else {
            make_room(&mut self.reading, self.parts.len())?;
            self.reading.extend(self.parts.extract_if(.., alike));
        }
        Ok(true)
    }

    /// Asks for the next segments: copies known bytes, and keeps those with samples.
    fn plan(&mut self) -> Result<(), FormatError> {
        let mut planned = 0;
        while self.at < self.bytes.end && planned < READ_TOGETHER {
            let wanted = self.at..self.bytes.end;
            let segment = match &mut self.segments {
                Segments::Known(bytes) => Segment::Bytes(0, Arc::clone(bytes)),
                Segments::Array(file) => file.segment(&wanted),
                Segments::Computed(next) => next(wanted),
            };
            match segment {
                Segment::Failed(error) => return Err(error),
                Segment::Bytes(start, bytes) => self.take_bytes(start, &bytes)?,
                Segment::Whole(bytes) => self.take_bytes(0, &bytes)?,
                Segment::Samples(bytes, samples, convert) => {
                    planned += samples.bytes();
                    let is_direct = convert.is_none() && self.bytes.start <= bytes.start && bytes.end <= self.bytes.end;
                    let is_looked_at = bytes.is_empty();
                    if !is_looked_at {
                        self.go_on_to(bytes.start, bytes.end)?;
                    }
                    try_push(&mut self.parts, Part { bytes, samples, convert, is_direct })?;
                    if is_looked_at {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Copies what the read wants of a segment of known bytes, and goes on after it.
    fn take_bytes(&mut self, start: u64, bytes: &[u8]) -> Result<(), FormatError> {
        self.put(start, bytes);
        self.go_on_to(start, start.saturating_add(bytes.len() as u64))
    }

    /// Goes on after a segment.
    fn go_on_to(&mut self, start: u64, end: u64) -> Result<(), FormatError> {
        if !(start..end).contains(&self.at) {
            return Err(FormatError::Internal(format!("byte {} is not in the segment {start}..{end}", self.at)));
        }
        self.at = end.min(self.bytes.end);
        Ok(())
    }

    /// Copies what the read wants of `bytes`, which are at an offset of the file.
    fn put(&mut self, offset: u64, bytes: &[u8]) {
        let (start, end) = (offset.max(self.bytes.start), (offset + bytes.len() as u64).min(self.bytes.end));
        if let (Some(out), true) = (&mut self.out, start < end) {
            let to = (start - self.bytes.start) as usize..(end - self.bytes.start) as usize;
            out[to].copy_from_slice(&bytes[(start - offset) as usize..(end - offset) as usize]);
        }
    }

    /// Returns what has to be read. Ranges that follow each other in the file and in memory become one.
    fn request(&mut self, buffers: &Arc<BufferPool>) -> Result<SampleRequest, OutOfMemory> {
        let (mut array, is_direct) = (Arc::clone(&self.reading[0].samples.array), self.reading[0].is_direct);
        let size = array.info().dtype.size();
        let mut memory = match self.out.take_if(|_| is_direct) {
            Some(out) => out,
            None => buffers.take_reply(self.reading.iter().map(|part| part.samples.bytes()).sum())?,
        };
        let (mut selections, mut scratch) = (Vec::new(), 0);
        for parts in self.reading.chunk_by(Part::is_continued_by) {
            let (first, last) = (&parts[0], &parts[parts.len() - 1]);
            let offset = if is_direct { (first.bytes.start - self.bytes.start) as usize } else { scratch };
            let length = parts.iter().map(|part| part.samples.bytes()).sum::<usize>();
            scratch += length;
            match (&first.samples.which, &last.samples.which) {
                (Which::Range(order, first), Which::Range(_, last)) => {
                    let range = first.start..last.end;
                    for selection in Selection::from_range(array.info(), order, range, offset) {
                        try_push(&mut selections, selection)?;
                    }
                }
                (Which::Box { region, step, shape, places }, _) => {
                    if region.shape != *shape {
                        memory[offset..offset + length].fill(0);
                    }
                    for selection in select_box((region, step), shape, places, (offset, size)) {
                        try_push(&mut selections, selection)?;
                    }
                }
                (Which::Range(..), Which::Box { .. }) => {}
            }
        }
        let mut range = range_of(&self.reading).map(|(_, range)| range);
        if let Some((whole, start)) = array.part_of() {
            let starts = selections.iter_mut().map(|selection| selection.start.iter_mut());
            starts.for_each(|at| at.zip(start.iter()).for_each(|(at, start)| *at += start));
            (array, range) = (Arc::clone(whole), None);
        }
        Ok(SampleRequest { selections, range, memory, array })
    }

    /// Makes the bytes of segments whose samples have been read.
    fn finish(&mut self, memory: Buffer, buffers: &Arc<BufferPool>) -> Result<(), FormatError> {
        let parts = mem::take(&mut self.reading);
        if parts.first().is_none_or(|part| part.is_direct) {
            self.out = Some(memory);
            return Ok(());
        }
        let mut rest = &memory[..];
        for Part { bytes, samples, convert, .. } in parts {
            let (stored, after) = rest.split_at(samples.bytes());
            rest = after;
            let Some(convert) = convert else {
                self.put(bytes.start, stored);
                continue;
            };
            let is_whole = bytes.is_empty() || (self.bytes.start <= bytes.start && bytes.end <= self.bytes.end);
            match &mut self.out {
                Some(out) if is_whole => {
                    let to = (bytes.start - self.bytes.start) as usize..(bytes.end - self.bytes.start) as usize;
                    convert(stored, &mut out[to])?;
                }
                _ => {
                    let mut whole = buffers.take_scratch((bytes.end - bytes.start) as usize)?;
                    convert(stored, &mut whole)?;
                    self.put(bytes.start, &whole);
                }
            }
        }
        Ok(())
    }
}

impl Part {
    /// Whether the other part follows in the file, in memory and in the array, so that one range has both.
    fn is_continued_by(&self, next: &Self) -> bool {
        let follows = !self.is_direct || self.bytes.end == next.bytes.start;
        match (&self.samples.which, &next.samples.which) {
            (Which::Range(order, range), Which::Range(other, next)) => {
                follows && order == other && range.end == next.start
            }
            _ => false,
        }
    }
}

/// Returns the range that all samples of these parts lie in, in order, if they are ranges. Between the traces of a
/// survey some are left out.
fn range_of(parts: &[Part]) -> Option<(AxisPermutation, Range<u64>)> {
    let join = |all: Option<(AxisPermutation, Range<u64>)>, part: &Part| match (&part.samples.which, all) {
        (Which::Range(order, range), None) => Some(Some((*order, range.clone()))),
        (Which::Range(order, range), Some((known, all))) if known == *order && all.end <= range.start => {
            Some(Some((known, all.start..range.end)))
        }
        _ => None,
    };
    parts.iter().try_fold(None, join).flatten()
}

/// Selects places of a box, to be stored from an offset on; a sample has `size` bytes.
fn select_box(
    (region, step): (&Region, &Dims),
    shape: &Dims,
    places: &Range<u64>,
    (offset, size): (usize, usize),
) -> impl Iterator<Item = Selection> {
    let held = Region::whole(region.shape);
    boxes(*shape, places.clone()).filter_map(move |part| part.intersection(&held)).map(move |part| Selection {
        start: Dims::from_fn(part.axes(), |axis| region.start[axis] + part.start[axis] * step[axis]),
        shape: part.shape,
        step: *step,
        offset: offset + (shape.linear_of(&part.start) - places.start) as usize * size,
        strides: shape.strides(size as u64),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{self, zeros};
    use super::*;
    use crate::volume::Arithmetic;

    /// Reads a whole file of an array of one axis with these stored samples.
    fn values(dtype: Dtype, scaling: Scaling, stored: &[u8]) -> Vec<u8> {
        let size = dtype.size();
        let file = ArrayFile::new(Vec::new(), &zeros(&[(stored.len() / size) as u64], dtype)).float32(scaling);
        let content = Content::Array(file);
        tests::read(&content, 0..content.len(), &mut |_, at| stored[at[0] as usize * size..][..size].to_vec()).unwrap()
    }

    #[test]
    fn values_are_scaled_in_float64() {
        let got = values(Dtype::Int16, Scaling::of_codes(0.1, -0.3), &[3, 0, 0xff, 0xff]);
        let expected: Vec<u8> =
            [(3.0f64 * 0.1 - 0.3) as f32, (-0.1f64 - 0.3) as f32].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn values_are_scaled_in_float32_if_the_scaling_requires_it() {
        let scaling = Scaling {
            arithmetic: Arithmetic::Single,
            no_value: Some(255.0),
            ..Scaling::of_codes(0.1f32.into(), -0.3f32 as f64)
        };
        let got = values(Dtype::UInt8, scaling, &[3, 7, 255]);
        let got: Vec<f32> = got.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        assert_eq!(got[..2], [3.0f32 * 0.1 - 0.3, 7.0f32 * 0.1 - 0.3]);
        assert!(got[2].is_nan());
    }

    /// A file of all kinds of segments: records of a known byte, a sample of one array, and a sample of another one that
    /// is doubled. Before each tenth record the read looks at a sample.
    struct Records {
        plain: Arc<dyn Array>,
        doubled: Arc<dyn Array>,
    }

    const RECORDS: u64 = 37;
    const RECORD: u64 = 1 + 2 + 2;

    impl ComputedFile for Records {
        fn len(&self) -> u64 {
            RECORDS * RECORD
        }
        fn array(&self) -> &Arc<dyn Array> {
            &self.plain
        }
        fn fingerprint(&self) -> u64 {
            0
        }
        fn segments(self: Arc<Self>) -> NextSegment {
            let (looked, mut looks) = (Arc::new(crate::sync::Mutex::new(None)), None);
            Box::new(move |bytes| {
                let (record, within) = (bytes.start / RECORD, bytes.start % RECORD);
                let at = record * RECORD;
                if record.is_multiple_of(10) && looks != Some(record) {
                    looks = Some(record);
                    let looked = Arc::clone(&looked);
                    let look: Convert = Box::new(move |stored, out| {
                        assert!(out.is_empty());
                        *looked.lock() = Some(stored[0]);
                        Ok(())
                    });
                    let sample = Samples::range(&self.doubled, record..record + 1);
                    return Segment::Samples(bytes.start..bytes.start, sample, Some(look));
                }
                if record.is_multiple_of(10) {
                    assert_eq!(*looked.lock(), Some(100 + record as u8), "what was looked at comes first");
                }
                match within {
                    0 => Segment::Bytes(at, vec![record as u8].into()),
                    1 | 2 => Segment::Samples(at + 1..at + 3, Samples::range(&self.plain, record..record + 1), None),
                    _ => {
                        let double: Convert = Box::new(|stored, out| {
                            out.iter_mut().zip(stored).for_each(|(out, stored)| *out = stored.wrapping_mul(2));
                            Ok(())
                        });
                        let region = Region { start: [record].into(), shape: [1].into() };
                        Segment::Samples(at + 3..at + 5, Samples::region(&self.doubled, region), Some(double))
                    }
                }
            })
        }
    }

    proptest! {
        #[test]
        fn every_part_of_a_file_of_records_equals_that_of_the_whole(start in 0..RECORDS * RECORD, length in 1u64..200) {
            let (plain, doubled) = (zeros(&[RECORDS], Dtype::Int16), zeros(&[RECORDS], Dtype::UInt16));
            let content = Content::Computed(Arc::new(Records { plain, doubled }));
            let mut sample = |info: &ArrayInfo, at: &Dims| {
                let number = at[0] as u8;
                if info.dtype == Dtype::Int16 { vec![number, 200] } else { vec![100 + number, 9] }
            };
            let record = |n: u8| [n, n, 200, (100 + n).wrapping_mul(2), 18];
            let whole: Vec<u8> = (0..RECORDS as u8).flat_map(record).collect();
            let end = (start + length).min(content.len());
            let got = tests::read(&content, start..end, &mut sample).unwrap();
            prop_assert_eq!(got, &whole[start as usize..end as usize]);
        }

        #[test]
        fn every_part_of_a_padded_box_equals_that_of_the_whole(
            dims in prop::collection::vec((1u64..6, 1u64..6, 1u64..6), 1..5), a in 0.0f64..1.0, b in 0.0f64..1.0,
        ) {
            let of = |part: fn(&(u64, u64, u64)) -> u64| Dims::from_slice(&dims.iter().map(part).collect::<Vec<_>>());
            let (start, held, more) = (of(|d| d.0).unwrap(), of(|d| d.1).unwrap(), of(|d| d.2).unwrap());
            let shape = Dims::from_fn(held.len(), |axis| held[axis] + more[axis] - 1);
            let array = zeros(&(0..held.len()).map(|axis| start[axis] + held[axis]).collect::<Vec<_>>(), Dtype::UInt8);
            let value = |at: &Dims| at.iter().fold(1u64, |sum, at| sum * 7 + at) as u8;
            let whole: Vec<u8> = (0..shape.product().unwrap()).map(|number| {
                let at = shape.index_of(number);
                let is_held = (0..at.len()).all(|axis| at[axis] < held[axis]);
                if is_held { value(&Dims::from_fn(at.len(), |axis| start[axis] + at[axis])) } else { 0 }
            }).collect();
            let (a, b) = ((a * whole.len() as f64) as u64, (b * whole.len() as f64) as u64);
            let (from, to) = (a.min(b), a.max(b) + 1);
            struct Padded(Arc<dyn Array>, Region, Dims);
            impl ComputedFile for Padded {
                fn len(&self) -> u64 {
                    self.2.product().unwrap()
                }
                fn array(&self) -> &Arc<dyn Array> {
                    &self.0
                }
                fn fingerprint(&self) -> u64 {
                    0
                }
                fn segments(self: Arc<Self>) -> NextSegment {
                    Box::new(move |bytes| {
                        Segment::Samples(bytes.clone(), Samples::padded(&self.0, self.1, self.2, bytes), None)
                    })
                }
            }
            let content = Content::Computed(Arc::new(Padded(array, Region { start, shape: held }, shape)));
            let got = tests::read(&content, from..to, &mut |_, at| vec![value(at)]).unwrap();
            prop_assert_eq!(got, &whole[from as usize..to as usize]);
        }

        #[test]
        fn every_part_of_an_array_file_equals_that_of_the_whole(
            offset in 0u64..800, length in 1u64..800, header in 0usize..200, float in any::<bool>(), tail in 0u64..100,
        ) {
            let array = zeros(&[5, 6, 7], Dtype::Int16);
            let header: Vec<u8> = (0..header).map(|n| n as u8).collect();
            let stored: Vec<u8> = (0..420).map(|n| (n % 251) as u8).collect();
            let scaling = Scaling::of_codes(1.0, 0.0);
            let mut file = ArrayFile::new(header.clone(), &array);
            let body = match float {
                true => stored.as_chunks().0.iter().flat_map(|v| f32::from(i16::from_le_bytes(*v)).to_le_bytes()).collect(),
                false => stored.clone(),
            };
            if float {
                file = file.float32(scaling);
            }
            if tail > 0 {
                file = file.with_tail(tail, move |bytes| {
                    assert!(bytes.end <= tail);
                    bytes.map(|n| n as u8).collect()
                });
            }
            let behind: Vec<u8> = (0..tail).map(|n| n as u8).collect();
            let whole = [header, body, behind].concat();
            prop_assert_eq!(file.len(), whole.len() as u64);
            let (start, end) = (offset.min(file.len()), (offset + length).min(file.len()));
            let mut sample = |_: &ArrayInfo, at: &Dims| {
                let number = Dims::from([5, 6, 7]).linear_of(at) as usize;
                stored[2 * number..2 * number + 2].to_vec()
            };
            let got = tests::read(&Content::Array(file), start..end, &mut sample).unwrap();
            prop_assert_eq!(got, &whole[start as usize..end as usize]);
        }
    }
}
