//! The chunks of one level: boxes of samples, each a file.

use crate::volume::{ArrayInfo, AxisPermutation, Dims, Region};

/// Bricks are put together until a chunk has this many bytes: a file costs its reader as much as copying so many.
const ENOUGH: u64 = 256 << 10;

/// Bricks are not put together to chunks of more bytes.
const MOST: u64 = 4 << 20;

/// The most bricks along an axis that are put together.
const MOST_BRICKS: u64 = 4;

/// The chunk grid of a level. The Zarr array has the axes of the level, or, in an image with channels, those with the
/// channels first; the samples of a chunk are in the level's own order in either case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkGrid {
    shape: Dims,
    chunk: Dims,
    /// The order of the Zarr array's axes, if it differs from the level's.
    order: Option<AxisPermutation>,
}

impl ChunkGrid {
    /// Divides a level. A chunk is a brick where the bricks begin at the array's first sample, and otherwise of the
    /// same size; it is 2 or 4 of them along each axis where bricks are small, and never longer than the array.
    pub(crate) fn of(info: &ArrayInfo, channels_first: bool) -> Self {
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
        let order = channels_first.then(|| AxisPermutation::to_front(shape.len() - 1));
        Self { shape, chunk, order }
    }

    /// Returns numbers for the level's axes in the order of the Zarr array's.
    pub(crate) fn in_zarr_order(&self, dims: &Dims) -> Dims {
        self.order.map_or(*dims, |order| order.permute_dims(dims))
    }

    /// Returns the level's axis at each position of the Zarr array's.
    pub(crate) fn axes(&self) -> Vec<usize> {
        let axes = Dims::from_fn(self.shape.len(), |axis| axis as u64);
        self.in_zarr_order(&axes).iter().map(|axis| *axis as usize).collect()
    }

    /// Returns the shape of a chunk in the level's order of axes, in which its samples are stored.
    pub(crate) fn chunk(&self) -> Dims {
        self.chunk
    }

    /// Returns the number of chunks along each axis of the Zarr array.
    pub(crate) fn count(&self) -> Dims {
        self.in_zarr_order(&Dims::from_fn(self.shape.len(), |a| self.shape[a].div_ceil(self.chunk[a])))
    }

    /// Returns the samples of the level that are in a chunk; `at` is its index in the Zarr array. Chunks at the end of
    /// an axis have fewer samples than [`ChunkGrid::chunk`].
    pub(crate) fn region(&self, at: &Dims) -> Region {
        let at = self.order.map_or(*at, |order| order.invert_dims(at));
        let start = Dims::from_fn(at.len(), |a| at[a].saturating_mul(self.chunk[a]).min(self.shape[a]));
        Region { start, shape: Dims::from_fn(at.len(), |a| self.chunk[a].min(self.shape[a] - start[a])) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::volume::{Axis, BrickGrid, Dtype, MAX_AXES};

    fn info(shape: &[u64], brick: &[u64], dtype: Dtype) -> ArrayInfo {
        let [shape, brick] = [shape, brick].map(|dims| Dims::from_slice(dims).unwrap());
        ArrayInfo::new(dtype, BrickGrid::aligned(shape, brick), brick)
    }

    #[test]
    fn small_bricks_are_put_together() {
        let chunk = |brick: u64, dtype| ChunkGrid::of(&info(&[1000; 3], &[brick; 3], dtype), false).chunk()[0];
        assert_eq!([64, 128, 256].map(|brick| chunk(brick, Dtype::Float32)), [64, 128, 256]);
        assert_eq!([64, 32, 16, 8].map(|brick| chunk(brick, Dtype::UInt8)), [64, 64, 64, 32]);
        assert_eq!([32, 16].map(|brick| chunk(brick, Dtype::UInt16)), [64, 64]);
        let flat = |shape: &[u64], brick: &[u64]| ChunkGrid::of(&info(shape, brick, Dtype::Float32), false).chunk();
        assert_eq!(flat(&[1, 4000, 4000], &[1, 1024, 1024]), Dims::from([1, 1024, 1024]));
        assert_eq!(flat(&[40, 1000, 70], &[32, 32, 32]), Dims::from([40, 64, 64]));
        assert_eq!(flat(&[20, 1000, 70], &[64, 64, 64]), Dims::from([20, 64, 64]));
        // two along each axis would be 8 MiB
        assert_eq!(flat(&[99; 6], &[6; 6]), Dims::filled(6, 6));
    }

    #[test]
    fn channels_come_first_and_are_not_put_together() {
        let mut info = info(&[50, 60, 70, 3], &[32, 32, 32, 3], Dtype::UInt8);
        let axis = |spatial| Axis { name: String::new(), unit: None, first: 0.0, step: 1.0, count: 1, spatial };
        info.axes = [true, true, true, false].map(axis).to_vec();
        let grid = ChunkGrid::of(&info, true);
        assert_eq!((grid.chunk(), grid.count()), ([50, 60, 64, 3].into(), [1, 1, 1, 2].into()));
        assert_eq!((grid.in_zarr_order(&info.shape()), grid.axes()), ([3, 50, 60, 70].into(), vec![3, 0, 1, 2]));
        let region = grid.region(&[0, 0, 0, 1].into());
        assert_eq!(region, Region { start: [0, 0, 64, 0].into(), shape: [50, 60, 6, 3].into() });
    }

    proptest! {
        #[test]
        fn every_sample_is_in_one_chunk(
            dims in prop::collection::vec((1u64..12, 1u64..6), 1..5), origin in -5i64..4, channels_first in any::<bool>(),
        ) {
            let [shape, step] = [|d: &(u64, u64)| d.0, |d: &(u64, u64)| d.1]
                .map(|part| Dims::from_fn(dims.len(), |a| part(&dims[a])));
            let info = ArrayInfo::new(Dtype::UInt8, BrickGrid::new(shape, [origin; MAX_AXES], step), step);
            let grid = ChunkGrid::of(&info, channels_first);
            let mut chunks_of = vec![0u32; shape.product().unwrap() as usize];
            let count = grid.count();
            for chunk in 0..count.product().unwrap() {
                let region = grid.region(&count.index_of(chunk));
                prop_assert!((0..shape.len()).all(|a| region.shape[a] > 0 && region.shape[a] <= grid.chunk()[a]));
                prop_assert!((0..shape.len()).all(|a| region.start[a].is_multiple_of(grid.chunk()[a])));
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
