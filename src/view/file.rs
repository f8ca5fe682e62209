//! Files that are an array behind a header: maps a byte range of the file to a range of samples, and samples back to
//! bytes.

use std::ops::Range;
use std::sync::Arc;

use super::convert::{self, Form};
use crate::format::{Array, FormatError};
use crate::memory::{Buffer, BufferPool, OutOfMemory};
use crate::volume::{ArrayInfo, AxisPermutation, Dims, Dtype, Region, Scaling};

/// Bytes behind the samples of an [`ArrayFile`], computed when they are read. They depend on the file's header, and on
/// the shape and type of its samples, alone.
pub(crate) trait Tail: Send + Sync {
    /// Returns the number of bytes.
    fn length(&self) -> u64;

    /// Fills `out` with the bytes from `from` on. There are as many.
    fn write(&self, from: u64, out: &mut [u8]);
}

/// A header followed by the samples of an array, little-endian, in C order of its own or of permuted axes, and perhaps
/// by computed bytes.
#[derive(Clone)]
pub(crate) struct ArrayFile {
    header: Arc<[u8]>,
    tail: Option<Arc<dyn Tail>>,
    array: Arc<dyn Array>,
    /// The order of the axes in the file, if it differs from the array's.
    permutation: Option<AxisPermutation>,
    /// If set, the file shows values as float32 instead of the stored samples.
    float32: Option<Scaling>,
}

/// The slice of an [`ArrayFile`] that a read requests: parts of the header, of the samples, and of what is behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSlice {
    /// Requested bytes of the header.
    pub header: Range<usize>,
    /// Samples to read, as linear indexes in C order of the file: all of which at least one byte is requested.
    pub samples: Range<u64>,
    /// Requested bytes within these samples, as the file shows them.
    pub bytes: Range<usize>,
    /// Requested bytes behind the samples.
    pub tail: Range<u64>,
}

impl ArrayFile {
    /// Creates a file of the stored samples.
    pub(crate) fn stored(header: Vec<u8>, array: Arc<dyn Array>) -> Self {
        Self { header: header.into(), tail: None, array, permutation: None, float32: None }
    }

    /// Creates a file of the stored samples with permuted axes.
    pub(crate) fn permuted(header: Vec<u8>, array: Arc<dyn Array>, permutation: AxisPermutation) -> Self {
        Self { header: header.into(), tail: None, array, permutation: Some(permutation), float32: None }
    }

    /// Creates a file of the samples' values as float32.
    pub(crate) fn float32(header: Vec<u8>, array: Arc<dyn Array>, scaling: Scaling) -> Self {
        Self { header: header.into(), tail: None, array, permutation: None, float32: Some(scaling) }
    }

    /// Returns the file with further bytes behind its samples.
    pub(crate) fn with_tail(self, tail: Arc<dyn Tail>) -> Self {
        Self { tail: Some(tail), ..self }
    }

    /// Returns the array.
    pub(crate) fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }

    /// Returns the order of the axes in the file, if it differs from the array's.
    pub(crate) fn permutation(&self) -> Option<AxisPermutation> {
        self.permutation
    }

    /// Returns the bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.tail_start().saturating_add(self.tail_len())
    }

    /// Returns the offset behind the samples.
    fn tail_start(&self) -> u64 {
        let samples = self.array.info().shape().product().unwrap_or(u64::MAX);
        samples.saturating_mul(self.sample_size() as u64).saturating_add(self.header.len() as u64)
    }

    fn tail_len(&self) -> u64 {
        self.tail.as_ref().map_or(0, |tail| tail.length())
    }

    /// Returns whether the other file has the same header, shape and type of samples.
    pub(crate) fn has_layout_of(&self, other: &Self) -> bool {
        let (info, of_other) = (self.array.info(), other.array.info());
        let order = |file: &Self| (file.permutation, file.float32);
        let layout = |info: &ArrayInfo| (info.shape(), info.dtype);
        self.header == other.header
            && order(self) == order(other)
            && layout(info) == layout(of_other)
            && self.tail_len() == other.tail_len()
    }

    /// Returns the bytes of one sample in the file.
    fn sample_size(&self) -> usize {
        if self.float32.is_some() { size_of::<f32>() } else { self.array.info().dtype.size() }
    }

    /// Returns the bytes of the header.
    pub(crate) fn header_bytes(&self) -> u64 {
        self.header.len() as u64
    }

    /// Returns the bytes of a plane: the samples at one index of the file's first axis.
    pub(crate) fn plane_bytes(&self) -> u64 {
        let shape = self.array.info().shape();
        let first = self.permutation.map_or(shape[0], |permutation| permutation.permute_dims(&shape)[0]);
        (self.tail_start() - self.header_bytes()) / first.max(1)
    }

    /// Returns the slice of `length` bytes from `offset` on. It is shorter at the end of the file.
    pub(crate) fn slice(&self, offset: u64, length: u32) -> FileSlice {
        let size = self.sample_size() as u64;
        let start = offset.min(self.len());
        let end = start.saturating_add(length.into()).min(self.len());
        let header = self.header.len() as u64;
        let tail = self.tail_start();
        let body = start.clamp(header, tail) - header..end.clamp(header, tail) - header;
        let samples = body.start / size..body.end.div_ceil(size);
        let first = samples.start * size;
        FileSlice {
            header: start.min(header) as usize..end.min(header) as usize,
            bytes: if body.is_empty() { 0..0 } else { (body.start - first) as usize..(body.end - first) as usize },
            samples: if body.is_empty() { 0..0 } else { samples },
            tail: start.max(tail) - tail..end.max(tail) - tail,
        }
    }

    /// Returns the bytes of a slice, given its stored samples. Copies nothing if the bytes are the samples themselves.
    pub(crate) fn assemble(
        &self,
        slice: &FileSlice,
        stored: Buffer,
        buffers: &Arc<BufferPool>,
    ) -> Result<Buffer, OutOfMemory> {
        let mut shown = match &self.float32 {
            Some(scaling) => to_float32(self.array.info().dtype, *scaling, &stored, buffers)?,
            None => stored,
        };
        if slice.header.is_empty() && slice.bytes.start == 0 && slice.tail.is_empty() {
            shown.truncate(slice.bytes.end);
            return Ok(shown);
        }
        let of_tail = (slice.tail.end - slice.tail.start) as usize;
        let mut out = buffers.take_reply(slice.header.len() + slice.bytes.len() + of_tail)?;
        let (header, rest) = out.split_at_mut(slice.header.len());
        let (body, tail) = rest.split_at_mut(slice.bytes.len());
        header.copy_from_slice(&self.header[slice.header.clone()]);
        body.copy_from_slice(&shown[slice.bytes.clone()]);
        if let Some(computed) = &self.tail {
            computed.write(slice.tail.start, tail);
        }
        Ok(out)
    }
}

/// Converts stored samples to float32 values.
fn to_float32(dtype: Dtype, scaling: Scaling, stored: &[u8], buffers: &Arc<BufferPool>) -> Result<Buffer, OutOfMemory> {
    let mut out = buffers.take_reply(stored.len() / dtype.size() * size_of::<f32>())?;
    convert::to_float32(dtype, Some(scaling), Form::LITTLE_ENDIAN, stored, &mut out);
    Ok(out)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::{Census, FormatError};
    use crate::source::{Blocking, Source};
    use crate::volume::{Arithmetic, Axis, Brick, BrickGrid, Dims, Element};

    /// An array of zeros without a source.
    pub(crate) struct Zeros(pub ArrayInfo);

    impl Array for Zeros {
        fn info(&self) -> &ArrayInfo {
            &self.0
        }
        fn source(&self) -> &dyn Source {
            unreachable!()
        }
        fn brick(&self, _: &Dims, _: Blocking) -> Result<Brick, FormatError> {
            Ok(Brick::Constant(Element::zero(self.0.dtype.size())))
        }
        fn census(&self) -> Result<Option<Census>, FormatError> {
            Ok(None)
        }
    }

    /// Creates an array of this shape whose axes begin at 10 and have the steps 2, 3, 4, ...
    pub(crate) fn zeros(shape: &[u64], dtype: Dtype) -> Arc<dyn Array> {
        let shape = Dims::from_slice(shape).unwrap();
        let axes = (0..shape.len()).map(|a| Axis {
            name: ["inline", "crossline", "sample"].get(a).unwrap_or(&"more").to_string(),
            unit: None,
            first: 10.0,
            step: 2.0 + a as f64,
            count: shape[a],
            spatial: true,
        });
        Arc::new(Zeros(ArrayInfo {
            axes: axes.collect(),
            ..ArrayInfo::new(
                dtype,
                BrickGrid::aligned(shape, Dims::filled(shape.len(), 64)),
                Dims::filled(shape.len(), 64),
            )
        }))
    }

    /// So many bytes that count up.
    struct Numbers(u64);

    impl Tail for Numbers {
        fn length(&self) -> u64 {
            self.0
        }
        fn write(&self, from: u64, out: &mut [u8]) {
            assert!(from + out.len() as u64 <= self.0);
            out.iter_mut().zip(from..).for_each(|(byte, number)| *byte = number as u8);
        }
    }

    #[test]
    fn values_are_scaled_in_float64() {
        let buffers = BufferPool::new(0);
        let scaling = Scaling::of_codes(0.1, -0.3);
        let got = to_float32(Dtype::Int16, scaling, &[3, 0, 0xff, 0xff], &buffers).unwrap();
        let expected: Vec<u8> =
            [(3.0f64 * 0.1 - 0.3) as f32, (-0.1f64 - 0.3) as f32].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(&*got, expected);
    }

    #[test]
    fn values_are_scaled_in_float32_if_the_scaling_requires_it() {
        let scaling = Scaling {
            arithmetic: Arithmetic::Single,
            no_value: Some(255.0),
            ..Scaling::of_codes(0.1f32.into(), -0.3f32 as f64)
        };
        let got = to_float32(Dtype::UInt8, scaling, &[3, 7, 255], &BufferPool::new(0)).unwrap();
        let got: Vec<f32> = got.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        assert_eq!(got[..2], [3.0f32 * 0.1 - 0.3, 7.0f32 * 0.1 - 0.3]);
        assert!(got[2].is_nan());
    }

    proptest! {
        #[test]
        fn every_slice_of_a_file_equals_that_of_the_whole(
            offset in 0u64..800, length in 0u32..800, header in 0usize..200, float in any::<bool>(), tail in 0u64..100,
        ) {
            let array = zeros(&[5, 6, 7], Dtype::Int16);
            let header: Vec<u8> = (0..header).map(|n| n as u8).collect();
            let stored: Vec<u8> = (0..420).map(|n| (n % 251) as u8).collect();
            let scaling = Scaling::of_codes(1.0, 0.0);
            let buffers = BufferPool::new(0);
            let take = |bytes: &[u8]| {
                let mut buffer = buffers.take(bytes.len());
                buffer.copy_from_slice(bytes);
                buffer
            };
            let file = match float {
                true => ArrayFile::float32(header.clone(), array, scaling),
                false => ArrayFile::stored(header.clone(), array),
            };
            let body = match float {
                true => to_float32(Dtype::Int16, scaling, &stored, &buffers).unwrap().to_vec(),
                false => stored.clone(),
            };
            let file = if tail > 0 { file.with_tail(Arc::new(Numbers(tail))) } else { file };
            let mut behind = vec![0; tail as usize];
            Numbers(tail).write(0, &mut behind);
            let whole = [header, body, behind].concat();
            prop_assert_eq!(file.len(), whole.len() as u64);
            prop_assert_eq!(file.plane_bytes(), if float { 168 } else { 84 });
            let slice = file.slice(offset, length);
            let samples = &stored[2 * slice.samples.start as usize..2 * slice.samples.end as usize];
            let got = file.assemble(&slice, take(samples), &buffers).unwrap();
            let start = (offset as usize).min(whole.len());
            let end = (start + length as usize).min(whole.len());
            prop_assert_eq!(&*got, &whole[start..end]);
        }
    }
}

/// A file whose bytes are computed from samples when they are read.
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

    /// Begins a read of `bytes`, which are not empty and lie within the file.
    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps>;
}

/// A read of a [`ComputedFile`] in progress.
pub(crate) trait ReadSteps: Send {
    /// Takes the samples that were requested last (`None` at first), and returns what is to be done next. The memory of
    /// what is requested at a time is part of the memory of the read: a step should request few MiB.
    fn step(&mut self, samples: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory>;
}

/// What a read has to do next.
pub(crate) enum Step {
    /// Read samples, and go on with them.
    Read(SampleRequest),
    /// Nothing: these are the bytes of the read.
    Done(Buffer),
    /// Nothing: the bytes cannot be computed.
    Failed(FormatError),
}

/// Samples that a read needs.
#[derive(Clone)]
pub(crate) struct SampleRequest {
    /// The array.
    pub array: Arc<dyn Array>,
    /// Which of its samples.
    pub samples: Samples,
}

/// Samples of an array. They are given in C order, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Samples {
    /// Those with these numbers in C order. Sequential readers of such a file are recognised, and bricks are prefetched
    /// for them.
    Range(Range<u64>),
    /// Those of a box that lies within the array.
    Box(Region),
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

    /// Returns the array that the file shows, if it shows one.
    pub(crate) fn array(&self) -> Option<&Arc<dyn Array>> {
        match self {
            Self::Bytes(_) => None,
            Self::Array(file) => Some(file.array()),
            Self::Computed(file) => Some(file.array()),
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes().into())
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

impl ShownArray {
    /// Returns shape and type of the stored array.
    pub(crate) fn stored(info: &ArrayInfo) -> Self {
        Self { shape: info.shape(), dtype: info.dtype }
    }
}
