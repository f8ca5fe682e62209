//! The chunks of a level: how it is divided, and the file of a chunk, which holds samples in C order with zeros beyond
//! the array's edge. Also the JSON form of a sample.

use std::sync::Arc;

use serde_json::{Number, Value};

use crate::format::Array;
use crate::view::hash_of;
use crate::view::segments::{ComputedFile, NextSegment, Samples, Segment};
use crate::volume::{ArrayInfo, AxisPermutation, Dims, Dtype, Element, Region, half};

/// The file of a chunk. It has the full size of a chunk also where the array ends within it.
pub(crate) struct ChunkFile {
    pub array: Arc<dyn Array>,
    /// The shape of a chunk, in the order of the array's axes.
    pub chunk: Dims,
    /// The samples of the array that it holds, no more than `chunk` along any axis. They are at its beginning.
    pub held: Region,
}

impl ComputedFile for ChunkFile {
    fn len(&self) -> u64 {
        self.chunk.product().unwrap_or(u64::MAX).saturating_mul(self.array.info().dtype.size() as u64)
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }

    fn fingerprint(&self) -> u64 {
        let info = self.array.info();
        hash_of((info.dtype, info.shape(), self.chunk, self.held.start))
    }

    fn segments(self: Arc<Self>) -> NextSegment {
        Box::new(move |bytes| {
            let size = self.array.info().dtype.size() as u64;
            let places = bytes.start / size..bytes.end.div_ceil(size);
            let bytes = places.start * size..places.end * size;
            Segment::Samples(bytes, Samples::padded(&self.array, self.held, self.chunk, places), None)
        })
    }
}

/// Bricks are put together until a chunk has this many bytes: a file costs its reader as much as copying so many.
const ENOUGH: u64 = 256 << 10;

/// Bricks are not put together to chunks of more bytes.
const MOST: u64 = 4 << 20;

/// The most bricks along an axis that are put together.
const MOST_BRICKS: u64 = 4;

/// The chunk grid of a level. The Zarr array has the axes of the level, or, in an image with channels, those with the
/// channels first. A chunk has one channel then, so that its samples are in the order of either: viewers in browsers
/// know no array that is stored in another order than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkGrid {
    shape: Dims,
    /// The shape of a chunk in the level's order of axes.
    pub chunk: Dims,
    /// The order of the Zarr array's axes.
    order: AxisPermutation,
}

impl ChunkGrid {
    /// Divides a level of a layer whose finest level is `info`. Chunks have one shape in all levels, since some programs
    /// know no other pyramids: a brick of the finest level, or 2 or 4 of them along each axis where bricks are small,
    /// and never longer than that level. Where bricks begin at the array's first sample, chunks hold whole bricks.
    pub(crate) fn of(info: &ArrayInfo, level: &ArrayInfo, channels_first: bool) -> Self {
        let shape = info.shape();
        let is_spatial = |axis: usize| info.axes.get(axis).is_none_or(|axis| axis.spatial);
        let bricks = |n: u64| {
            let along = |axis: usize| if is_spatial(axis) { n } else { 1 };
            Dims::from_fn(shape.len(), |a| info.grid.step()[a].saturating_mul(along(a)).min(shape[a]).max(1))
        };
        let bytes = |chunk: &Dims| chunk.product().unwrap_or(u64::MAX).saturating_mul(info.dtype.size() as u64);
        let (mut n, mut chunk) = (1, bricks(1));
        while n < MOST_BRICKS && bytes(&chunk) < ENOUGH && bytes(&bricks(2 * n)) <= MOST {
            n *= 2;
            chunk = bricks(n);
        }
        let mut order = AxisPermutation::IDENTITY;
        if let Some(last) = shape.len().checked_sub(1).filter(|_| channels_first) {
            (chunk[last], order) = (1, AxisPermutation::to_front(last));
        }
        Self { shape: level.shape(), chunk, order }
    }

    /// Returns numbers for the level's axes in the order of the Zarr array's.
    pub(crate) fn in_zarr_order(&self, dims: &Dims) -> Dims {
        self.order.permute_dims(dims)
    }

    /// Returns the level's axis at each position of the Zarr array's.
    pub(crate) fn axes(&self) -> Vec<usize> {
        let axes = Dims::from_fn(self.shape.len(), |axis| axis as u64);
        self.in_zarr_order(&axes).iter().map(|axis| *axis as usize).collect()
    }

    /// Returns the number of chunks along each axis of the Zarr array.
    pub(crate) fn count(&self) -> Dims {
        self.in_zarr_order(&Dims::from_fn(self.shape.len(), |a| self.shape[a].div_ceil(self.chunk[a])))
    }

    /// Returns the samples of the level that are in a chunk; `at` is its index in the Zarr array. Chunks at the end of
    /// an axis have fewer samples than [`ChunkGrid::chunk`].
    pub(crate) fn region(&self, at: &Dims) -> Region {
        let at = self.order.invert_dims(at);
        let start = Dims::from_fn(at.len(), |a| at[a].saturating_mul(self.chunk[a]).min(self.shape[a]));
        Region { start, shape: Dims::from_fn(at.len(), |a| self.chunk[a].min(self.shape[a] - start[a])) }
    }
}

const USUAL_NAN_OF_16_BITS: u64 = 0x7e00;

/// Returns the JSON form of a sample (Zarr v3, section "fill value"); `None` for a NaN that is not the usual one.
pub(crate) fn number(dtype: Dtype, sample: &Element) -> Option<Value> {
    let bits = sample.bytes().iter().rev().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
    let (bits, upper, unused) = (bits as u64, (bits >> 64) as u64, 64u32.saturating_sub(8 * dtype.size() as u32));
    let single = |bits: u64| {
        let value = f32::from_bits(bits as u32);
        float(value.into(), value.to_bits() == f32::NAN.to_bits())
    };
    let double = |bits: u64| float(f64::from_bits(bits), bits == f64::NAN.to_bits());
    Some(match dtype {
        // the sign of the sample becomes that of the wide number
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => ((bits << unused) as i64 >> unused).into(),
        Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64 => bits.into(),
        Dtype::Float16 => float(half((bits as u16).to_le_bytes()).into(), bits == USUAL_NAN_OF_16_BITS)?,
        Dtype::Float32 => single(bits)?,
        Dtype::Float64 => double(bits)?,
        Dtype::Complex64 => [single(bits)?, single(bits >> 32)?].into_iter().collect(),
        Dtype::Complex128 => [double(bits)?, double(upper)?].into_iter().collect(),
    })
}

fn float(value: f64, is_usual_nan: bool) -> Option<Value> {
    match value {
        _ if value.is_nan() => is_usual_nan.then(|| "NaN".into()),
        f64::INFINITY => Some("Infinity".into()),
        f64::NEG_INFINITY => Some("-Infinity".into()),
        _ => Number::from_f64(value).map(Value::Number),
    }
}

#[cfg(test)]
mod chunk_file_tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;
    use crate::memory::BufferPool;
    use crate::view::tests::{self, zeros};
    use crate::view::{Content, Step};

    /// The sample at an index: its number in C order of the array.
    fn sample(shape: &Dims, at: &Dims) -> [u8; 2] {
        (shape.linear_of(at) as u16 + 1).to_le_bytes()
    }

    /// Reads bytes of a file; returns them and the number of samples that were requested.
    fn run(file: &Arc<ChunkFile>, bytes: Range<u64>) -> (Vec<u8>, u64) {
        let (shape, mut requested) = (file.array.info().shape(), 0);
        let read = tests::read(&Content::Computed(file.clone()), bytes, &mut |_, at| {
            requested += 1;
            sample(&shape, at).to_vec()
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
            let chunk = Dims::from_fn(axes, |a| dims[a].1);
            let at = Dims::from_fn(axes, |a| (shape[a].div_ceil(chunk[a]) as f64 * dims[a].2) as u64);
            let start = Dims::from_fn(axes, |a| at[a] * chunk[a]);
            let held = Region { start, shape: Dims::from_fn(axes, |a| chunk[a].min(shape[a] - start[a])) };
            let whole: Vec<u8> = (0..chunk.product().unwrap())
                .map(|n| chunk.index_of(n))
                .map(|within| Dims::from_fn(axes, |a| start[a] + within[a]))
                .flat_map(|at| if (0..axes).all(|a| at[a] < shape[a]) { sample(&shape, &at) } else { [0, 0] })
                .collect();
            let file = Arc::new(ChunkFile { array, chunk, held });
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
    fn samples_of_a_chunk_are_read_straight_to_the_reply() {
        let held = Region { start: [4, 0].into(), shape: [4, 8].into() };
        let chunk = ChunkFile { array: zeros(&[8, 8], Dtype::Int16), chunk: [4, 8].into(), held };
        let file = Content::Computed(Arc::new(chunk));
        let buffers = BufferPool::new(0);
        for bytes in [0..64, 16..48] {
            let mut read = file.read(bytes.clone(), &buffers).unwrap();
            let Ok(Step::Read { samples, is_last }) = read.step(None, &buffers) else { panic!("it has samples") };
            assert_eq!((is_last, samples.memory.len()), (true, 32.max((bytes.end - bytes.start) as usize)));
        }
    }
}

#[cfg(test)]
mod grid_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::volume::Axis;
    use crate::volume::BrickGrid;
    use crate::volume::Dtype;
    use crate::volume::MAX_AXES;

    fn info(shape: &[u64], brick: &[u64], dtype: Dtype) -> ArrayInfo {
        let [shape, brick] = [shape, brick].map(|dims| Dims::from_slice(dims).unwrap());
        ArrayInfo::new(dtype, BrickGrid::aligned(shape, brick), brick)
    }

    #[test]
    fn small_bricks_are_put_together() {
        let of = |info: ArrayInfo| ChunkGrid::of(&info, &info, false).chunk;
        let chunk = |brick: u64, dtype| of(info(&[1000; 3], &[brick; 3], dtype))[0];
        assert_eq!([64, 128, 256].map(|brick| chunk(brick, Dtype::Float32)), [64, 128, 256]);
        assert_eq!([64, 32, 16, 8].map(|brick| chunk(brick, Dtype::UInt8)), [64, 64, 64, 32]);
        assert_eq!([32, 16].map(|brick| chunk(brick, Dtype::UInt16)), [64, 64]);
        let flat = |shape: &[u64], brick: &[u64]| of(info(shape, brick, Dtype::Float32));
        assert_eq!(flat(&[1, 4000, 4000], &[1, 1024, 1024]), Dims::from([1, 1024, 1024]));
        assert_eq!(flat(&[40, 1000, 70], &[32, 32, 32]), Dims::from([40, 64, 64]));
        assert_eq!(flat(&[20, 1000, 70], &[64, 64, 64]), Dims::from([20, 64, 64]));
        // two along each axis would be 8 MiB
        assert_eq!(flat(&[99; 6], &[6; 6]), Dims::filled(6, 6));
    }

    #[test]
    fn all_levels_have_chunks_of_one_shape() {
        let [finest, coarse] = [[200, 100, 1], [25, 13, 1]].map(|shape| info(&shape, &[64; 3], Dtype::UInt8));
        let grid = ChunkGrid::of(&finest, &coarse, false);
        assert_eq!((grid.chunk, grid.count()), ([200, 100, 1].into(), [1, 1, 1].into()));
        assert_eq!(grid.chunk, ChunkGrid::of(&finest, &finest, false).chunk);
        assert_eq!(grid.region(&[0, 0, 0].into()), Region::whole(coarse.shape()));
    }

    #[test]
    fn channels_come_first_and_are_not_put_together() {
        let mut info = info(&[50, 60, 70, 3], &[32, 32, 32, 3], Dtype::UInt8);
        let axis = |spatial| Axis { name: String::new(), unit: None, first: 0.0, step: 1.0, count: 1, spatial };
        info.axes = [true, true, true, false].map(axis).to_vec();
        let grid = ChunkGrid::of(&info, &info, true);
        assert_eq!((grid.chunk, grid.count()), ([50, 60, 64, 1].into(), [3, 1, 1, 2].into()));
        assert_eq!((grid.in_zarr_order(&info.shape()), grid.axes()), ([3, 50, 60, 70].into(), vec![3, 0, 1, 2]));
        let region = grid.region(&[2, 0, 0, 1].into());
        assert_eq!(region, Region { start: [0, 0, 64, 2].into(), shape: [50, 60, 6, 1].into() });
    }

    proptest! {
        #[test]
        fn every_sample_is_in_one_chunk(
            dims in prop::collection::vec((1u64..12, 1u64..6), 1..5), origin in -5i64..4, channels_first in any::<bool>(),
        ) {
            let [shape, step] = [|d: &(u64, u64)| d.0, |d: &(u64, u64)| d.1]
                .map(|part| Dims::from_fn(dims.len(), |a| part(&dims[a])));
            let info = ArrayInfo::new(Dtype::UInt8, BrickGrid::new(shape, [origin; MAX_AXES], step), step);
            let grid = ChunkGrid::of(&info, &info, channels_first);
            let mut chunks_of = vec![0u32; shape.product().unwrap() as usize];
            let count = grid.count();
            for chunk in 0..count.product().unwrap() {
                let region = grid.region(&count.index_of(chunk));
                prop_assert!((0..shape.len()).all(|a| region.shape[a] > 0 && region.shape[a] <= grid.chunk[a]));
                prop_assert!((0..shape.len()).all(|a| region.start[a].is_multiple_of(grid.chunk[a])));
                for n in 0..region.samples() {
                    let within = region.shape.index_of(n);
                    let at = Dims::from_fn(within.len(), |a| region.start[a] + within[a]);
                    chunks_of[shape.linear_of(&at) as usize] += 1;
                }
            }
            prop_assert!(chunks_of.iter().all(|chunks| *chunks == 1));
        }
    }
}

#[cfg(test)]
mod fill_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_are_numbers_or_names() {
        let of = |dtype, bytes: &[u8]| number(dtype, &Element::new(bytes));
        assert_eq!(of(Dtype::Int8, &[0xff]), Some(json!(-1)));
        assert_eq!(of(Dtype::UInt16, &[0xff, 0xff]), Some(json!(65535)));
        assert_eq!(of(Dtype::UInt64, &[0xff; 8]), Some(json!(u64::MAX)));
        assert_eq!(of(Dtype::Float64, &[0; 8]).unwrap().to_string(), "0.0");
        let float = |value: f32| of(Dtype::Float32, &value.to_le_bytes());
        assert_eq!(float(-999.25), Some(json!(-999.25)));
        assert_eq!((float(f32::NAN), float(f32::INFINITY)), (Some(json!("NaN")), Some(json!("Infinity"))));
        assert_eq!(float(f32::from_bits(0x7fc0_0001)), None);
        let half = |bits: u16| of(Dtype::Float16, &bits.to_le_bytes());
        assert_eq!([0xc000, 0x7e00, 0xfc00].map(half), [json!(-2.0), json!("NaN"), json!("-Infinity")].map(Some));
        assert_eq!([0x7e01, 0xfe00].map(half), [None, None]);
        let parts = [1.5f32, -0.0].map(f32::to_le_bytes).concat();
        assert_eq!(of(Dtype::Complex64, &parts).unwrap().to_string(), "[1.5,-0.0]");
        let parts = [f64::NAN, f64::NEG_INFINITY].map(f64::to_le_bytes).concat();
        assert_eq!(of(Dtype::Complex128, &parts), Some(json!(["NaN", "-Infinity"])));
        let parts = [0, u64::MAX].map(u64::to_le_bytes).concat();
        assert_eq!(of(Dtype::Complex128, &parts), None);
        // what is written reads back to the same float32
        for value in [1e30f32, f32::MIN_POSITIVE, -0.1, -0.0] {
            let read = float(value).unwrap().as_f64().unwrap() as f32;
            assert_eq!(read.to_bits(), value.to_bits());
        }
    }
}
