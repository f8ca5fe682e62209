//! The file of a chunk: the samples of a box in C order, with zeros beyond the array's edge.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::array::boxes;
use crate::format::Array;
use crate::memory::{Buffer, BufferPool, OutOfMemory};
use crate::view::computed_file::{ComputedFile, ReadSteps, SampleRequest, Samples, Step};
use crate::volume::{Dims, Region};

/// The file of a chunk. It has the full size of a chunk also where the array ends within it.
pub(crate) struct ChunkFile {
    array: Arc<dyn Array>,
    /// The shape of a chunk, in the order of the array's axes.
    chunk: Dims,
    /// The samples of the array that it holds: they are at the chunk's beginning along each axis.
    held: Region,
}

impl ChunkFile {
    /// Creates the file of a chunk of shape `chunk` with the samples `held`, which are no more along any axis.
    pub(crate) fn new(array: Arc<dyn Array>, chunk: Dims, held: Region) -> Self {
        Self { array, chunk, held }
    }

    fn sample_size(&self) -> u64 {
        self.array.info().dtype.size() as u64
    }
}

impl ComputedFile for ChunkFile {
    fn len(&self) -> u64 {
        self.chunk.product().unwrap_or(u64::MAX).saturating_mul(self.sample_size())
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }

    fn fingerprint(&self) -> u64 {
        let (info, mut hasher) = (self.array.info(), DefaultHasher::new());
        (info.dtype, info.shape(), self.chunk, self.held.start).hash(&mut hasher);
        hasher.finish()
    }

    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps> {
        let size = self.sample_size();
        let samples = bytes.start / size..bytes.end.div_ceil(size);
        let held = Region::whole(self.held.shape);
        // from the last, since they are taken from the end
        let parts = boxes(&self.chunk, samples).into_iter().rev().filter_map(|part| part.intersection(&held));
        Box::new(ChunkSteps { parts: parts.collect(), file: self, bytes, requested: None, out: None })
    }
}

/// A read of some bytes of a chunk: box after box.
struct ChunkSteps {
    file: Arc<ChunkFile>,
    bytes: Range<u64>,
    /// The boxes that have not been requested, the next one last, in coordinates of the chunk.
    parts: Vec<Region>,
    /// The box that was requested last.
    requested: Option<Region>,
    out: Option<Buffer>,
}

impl ChunkSteps {
    fn length(&self) -> usize {
        (self.bytes.end - self.bytes.start) as usize
    }

    /// Whether the samples of a box are the bytes of the read.
    fn is_all(&self, part: &Region) -> bool {
        let size = self.file.sample_size();
        let begin = self.file.chunk.linear_of(&part.start) * size;
        // a box whose first and last bytes are those of the read has no gaps if it has as many
        begin == self.bytes.start && part.samples() * size == self.bytes.end - self.bytes.start
    }

    /// Copies the samples of a box to their places in the reply: run after run of samples that are neighbours in the
    /// chunk as well.
    fn copy(&self, part: &Region, samples: &[u8], out: &mut [u8]) {
        let (chunk, size) = (&self.file.chunk, self.file.sample_size());
        let axes = part.axes();
        // the slowest axis such that the box has all of the chunk along the faster ones
        let axis = (1..axes).rev().take_while(|a| part.shape[*a] == chunk[*a]).last().map_or(axes - 1, |a| a - 1);
        let run = part.shape[axis..].iter().product::<u64>() * size;
        let (strides, runs) = (chunk.strides(size), Dims::from_fn(axes, |a| if a < axis { part.shape[a] } else { 1 }));
        let first = part.start.iter().zip(strides.iter()).map(|(at, stride)| at * stride).sum::<u64>();
        for (number, samples) in (0..).zip(samples.chunks_exact(run as usize)) {
            let at = runs.index_of(number);
            let begin = first + at.iter().zip(strides.iter()).map(|(at, stride)| at * stride).sum::<u64>();
            let (from, to) = (begin.max(self.bytes.start), (begin + run).min(self.bytes.end));
            if from < to {
                let to_out = (from - self.bytes.start) as usize..(to - self.bytes.start) as usize;
                out[to_out].copy_from_slice(&samples[(from - begin) as usize..(to - begin) as usize]);
            }
        }
    }

    /// Returns the reply, made at the first call: zeros.
    fn take_out(&mut self, buffers: &Arc<BufferPool>) -> Result<Buffer, OutOfMemory> {
        if let Some(out) = self.out.take() {
            return Ok(out);
        }
        let mut out = buffers.take_reply(self.length())?;
        out.fill(0);
        Ok(out)
    }
}

impl ReadSteps for ChunkSteps {
    fn step(&mut self, samples: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory> {
        if let (Some(part), Some(samples)) = (self.requested.take(), samples) {
            if self.is_all(&part) {
                return Ok(Step::Done(samples));
            }
            let mut out = self.take_out(buffers)?;
            self.copy(&part, &samples, &mut out);
            self.out = Some(out);
        }
        let Some(part) = self.parts.pop() else { return Ok(Step::Done(self.take_out(buffers)?)) };
        self.requested = Some(part);
        let start = Dims::from_fn(part.axes(), |a| self.file.held.start[a] + part.start[a]);
        let (array, samples) = (Arc::clone(&self.file.array), Samples::Box(Region { start, shape: part.shape }));
        Ok(Step::Read(SampleRequest { array, samples }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::view::array_file::tests::zeros;
    use crate::view::fixture;
    use crate::volume::Dtype;

    /// The sample at an index: its number in C order of the array.
    fn sample(shape: &Dims, at: &Dims) -> [u8; 2] {
        (shape.linear_of(at) as u16 + 1).to_le_bytes()
    }

    /// Runs a read; returns its bytes and the number of samples that were requested.
    fn run(file: &Arc<ChunkFile>, bytes: Range<u64>) -> (Vec<u8>, u64) {
        let (shape, mut requested) = (file.array.info().shape(), 0);
        let read = fixture::read(file.clone(), bytes, &mut |request| {
            let Samples::Box(region) = &request.samples else { panic!("chunks are boxes") };
            assert!(Region::whole(shape).contains(region));
            requested += region.samples();
            let at = |within: Dims| Dims::from_fn(within.len(), |a| region.start[a] + within[a]);
            (0..region.samples()).flat_map(|n| sample(&shape, &at(region.shape.index_of(n)))).collect()
        });
        (read.unwrap(), requested)
    }

    proptest! {
        #[test]
        fn every_range_of_a_chunk_equals_that_of_the_whole(
            dims in prop::collection::vec((1u64..9, 1u64..6, 0.0f64..1.0), 1..5), a in 0.0f64..1.0, b in 0.0f64..1.0,
        ) {
            let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
            let array = zeros(&shape, Dtype::Int16);
            let (shape, axes) = (array.info().shape(), dims.len());
            let chunk = Dims::from_fn(axes, |a| dims[a].1.min(shape[a]));
            let at = Dims::from_fn(axes, |a| (shape[a].div_ceil(chunk[a]) as f64 * dims[a].2) as u64);
            let start = Dims::from_fn(axes, |a| at[a] * chunk[a]);
            let held = Region { start, shape: Dims::from_fn(axes, |a| chunk[a].min(shape[a] - start[a])) };
            let whole: Vec<u8> = (0..chunk.product().unwrap())
                .map(|n| chunk.index_of(n))
                .map(|within| Dims::from_fn(axes, |a| start[a] + within[a]))
                .flat_map(|at| if (0..axes).all(|a| at[a] < shape[a]) { sample(&shape, &at) } else { [0, 0] })
                .collect();
            let file = Arc::new(ChunkFile::new(array, chunk, held));
            prop_assert_eq!(file.len(), whole.len() as u64);
            let n = whole.len() as f64;
            let (from, to) = ((n * a.min(b)) as u64, (n * a.max(b)).ceil().max(1.0) as u64);
            if from < to {
                let (got, requested) = run(&file, from..to);
                prop_assert_eq!(&got[..], &whole[from as usize..to as usize]);
                prop_assert!(requested <= (to - from) / 2 + 2, "no samples are read but those asked for");
            }
        }
    }

    #[test]
    fn a_whole_chunk_is_one_box_that_is_not_copied() {
        let file = ChunkFile::new(
            zeros(&[8, 8], Dtype::Int16),
            [4, 8].into(),
            Region { start: [4, 0].into(), shape: [4, 8].into() },
        );
        let buffers = BufferPool::new(0);
        for bytes in [0..64, 16..48] {
            let steps = Arc::new(ChunkFile { array: Arc::clone(&file.array), ..file });
            let mut steps = steps.read(bytes.clone());
            assert!(matches!(steps.step(None, &buffers), Ok(Step::Read(_))));
            let samples = buffers.take((bytes.end - bytes.start) as usize);
            let place = samples.as_ptr();
            let Ok(Step::Done(done)) = steps.step(Some(samples), &buffers) else { panic!("there is nothing else") };
            assert_eq!(done.as_ptr(), place);
        }
    }
}
