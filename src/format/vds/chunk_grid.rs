//! How a layer is divided into chunks. Dimensions are numbered as in OpenVDS, dimension 0 (the fastest) first; arrays
//! and their brick grid have the axes in reverse order, slowest first.
//!
//! The arithmetic is that of OpenVDS, so that chunk numbers and sizes agree with those of its writer.

use super::description::{Channel, Description};
use super::layer_name::Group;
use crate::volume::{BrickGrid, Dims, Layout, MAX_AXES, Region};

/// The samples of a chunk have fewer bytes than this.
const CHUNK_BYTES_BOUND: u64 = 1 << 31;

/// One dimension of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GridDimension {
    /// Samples at LOD 0.
    samples: u64,
    /// The distance from one chunk to the next, in samples of LOD 0.
    step: u64,
    /// The number of chunks.
    count: u64,
    /// Samples of LOD 0 that a chunk repeats of the chunk before it, and of the one after it.
    negative: u64,
    positive: u64,
    /// One sample of the layer stands for 2^shift samples of LOD 0.
    shift: u32,
    /// Whether chunks extend along this dimension; else each chunk is at one index of it.
    chunked: bool,
}

impl GridDimension {
    /// Creates a dimension with one chunk for each sample.
    fn unchunked(samples: u64) -> Self {
        Self { samples, step: 1, count: samples, negative: 0, positive: 0, shift: 0, chunked: false }
    }

    /// Returns the number of samples of the layer.
    fn extent(&self) -> u64 {
        self.samples.div_ceil(1 << self.shift)
    }

    /// Returns the samples of the layer that chunk `i` holds, margins included: the index of the first, and their
    /// number.
    fn held(&self, i: u64) -> (u64, u64) {
        let low = i * self.step;
        let high =
            if self.chunked { (low + self.step + self.negative + self.positive).min(self.samples) } else { low + 1 };
        (low >> self.shift, (high - low).div_ceil(1 << self.shift))
    }

    /// Returns the largest number of samples that a chunk holds.
    fn longest(&self) -> u64 {
        self.held(0).1.max(self.held(self.count - 1).1)
    }

    /// Returns the origin of the brick grid: the first sample that the second chunk owns, less a step. The first chunk
    /// also owns the samples before it.
    fn origin(&self) -> u64 {
        if self.count > 1 { self.negative.div_ceil(1 << self.shift) } else { 0 }
    }

    /// Returns the distance from one chunk to the next, in samples of the layer.
    fn layer_step(&self) -> u64 {
        if self.count > 1 { self.step >> self.shift } else { self.extent() }
    }
}

/// The chunks of one layer: one channel, divided along one group of dimensions, at one LOD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkGrid {
    /// The dimensions of the VDS, dimension 0 first.
    dimensions: Vec<GridDimension>,
    components: u64,
    /// Bytes of one component of a sample in the array.
    size: u64,
    /// Samples are stored as single bits.
    bits: bool,
}

impl ChunkGrid {
    /// Creates the chunk grid of a layer.
    pub(super) fn new(description: &Description, channel: &Channel, group: Group, lod: u32) -> Result<Self, String> {
        let layout = &description.layout;
        if group.highest() >= description.axes.len() {
            return Err(format!("{group} is beyond the {} axes that there are", description.axes.len()));
        }
        let has_lods = channel.renderable && (group.len() == 3 || layout.lods_2d);
        if lod > 0 && (lod > layout.lods || !has_lods) {
            return Err(format!("there can be no LOD {lod} of it"));
        }
        let margins = layout.negative_margin + layout.positive_margin;
        let multiplier = if group.len() == 2 { layout.multiplier_2d } else { 1 };
        let inner = layout.brick.saturating_sub(margins).max(1) * multiplier.max(1);
        let dimension = |d: usize, samples: u64| {
            if !group.has(d) {
                return GridDimension::unchunked(samples);
            }
            let shift = if layout.full_resolution == Some(d) { 0 } else { lod };
            let step = samples.min(inner << shift);
            // as in OpenVDS, the margins at the two ends of the layer are not counted
            let count = (samples - 1).saturating_sub(margins) / step + 1;
            let (negative, positive) = (layout.negative_margin, layout.positive_margin);
            GridDimension { samples, step, count, negative, positive, shift, chunked: true }
        };
        let mut dimensions: Vec<_> =
            description.axes.iter().enumerate().map(|(d, axis)| dimension(d, axis.samples)).collect();
        if let Some(values) = channel.per_trace {
            if values > 1 && group.len() == 3 && !group.has(0) {
                return Err(format!("{group} has no room for {values} values for each trace"));
            }
            // a per-trace channel has its mapped values in dimension 0
            let shift = if layout.full_resolution == Some(0) || values == 1 { 0 } else { lod };
            let chunked = values > 1;
            dimensions[0] =
                GridDimension { samples: values, step: values, count: 1, negative: 0, positive: 0, shift, chunked };
        }
        let size = channel.format.dtype().size() as u64;
        let bits = channel.format == super::description::SampleFormat::Bit;
        let grid = Self { dimensions, components: channel.components, size, bits };
        let bytes = grid.dimensions.iter().try_fold(size * channel.components, |n, dim| n.checked_mul(dim.extent()));
        if bytes.is_none_or(|n| n > i64::MAX as u64) || grid.count().is_none() {
            return Err("its samples are beyond counting".into());
        }
        let chunk = grid.dimensions.iter().try_fold(size * channel.components, |n, dim| n.checked_mul(dim.longest()));
        if chunk.is_none_or(|n| n >= CHUNK_BYTES_BOUND) {
            return Err("a single chunk has 2 GiB or more".into());
        }
        Ok(grid)
    }

    fn count(&self) -> Option<u64> {
        self.dimensions.iter().try_fold(1u64, |n, dim| n.checked_mul(dim.count))
    }

    /// Returns the number of chunks.
    pub(super) fn total(&self) -> u64 {
        self.count().unwrap_or(u64::MAX)
    }

    /// Returns the number of axes of the array: all dimensions in reverse, and the components last if there are
    /// several.
    fn array_axes(&self) -> usize {
        self.dimensions.len() + usize::from(self.components > 1)
    }

    /// Calls `of` for each axis of the array, with its dimension and its number. The axis of the components gets
    /// `last`.
    fn by_axis(&self, last: u64, of: impl Fn(&GridDimension, usize) -> u64) -> Dims {
        let n = self.dimensions.len();
        Dims::from_fn(self.array_axes(), |axis| match n.checked_sub(axis + 1) {
            Some(d) => of(&self.dimensions[d], axis),
            None => last,
        })
    }

    /// Returns the brick grid of the array.
    pub(super) fn brick_grid(&self) -> BrickGrid {
        let shape = self.by_axis(self.components, |dim, _| dim.extent());
        let mut origin = [0; MAX_AXES];
        for (axis, dim) in self.dimensions.iter().rev().enumerate() {
            origin[axis] = dim.origin() as i64; // half a brick at most
        }
        let step = self.by_axis(self.components, |dim, _| dim.layer_step());
        BrickGrid::with_count(shape, origin, step, self.by_axis(1, |dim, _| dim.count))
    }

    /// Returns the samples that a chunk owns along each axis of the array; the first and the last chunk may own more or
    /// fewer.
    pub(super) fn brick_shape(&self) -> Dims {
        self.by_axis(self.components, |dim, _| dim.layer_step())
    }

    /// Returns the number of the chunk at a position of the brick grid: chunks are numbered with dimension 0 fastest.
    pub(super) fn number_of(&self, at: &Dims) -> Option<u64> {
        let count = self.by_axis(1, |dim, _| dim.count);
        let within = at.len() == count.len() && at.iter().zip(count.iter()).all(|(at, count)| at < count);
        within.then(|| count.linear_of(at))
    }

    /// Returns the position of a chunk in the brick grid.
    pub(super) fn position_of(&self, number: u64) -> Dims {
        self.by_axis(1, |dim, _| dim.count).index_of(number)
    }

    /// Returns the box that a chunk holds, and its strides in the decompressed samples, which begin at byte `first`.
    pub(super) fn layout(&self, at: &Dims, first: u64) -> Layout {
        let held = Region {
            start: self.by_axis(0, |dim, axis| dim.held(at[axis]).0),
            shape: self.by_axis(self.components, |dim, axis| dim.held(at[axis]).1),
        };
        Layout { held, first, strides: held.shape.strides(self.size) }
    }

    /// Returns the samples along X, Y and Z of a chunk, as its own header has them: the dimensions along which it
    /// extends, lowest first.
    pub(super) fn sizes(&self, at: &Dims) -> [u64; 3] {
        let mut sizes = [1; 3];
        let held = self.layout(at, 0).held.shape;
        let n = self.dimensions.len();
        let along = (0..n).filter(|d| self.dimensions[*d].chunked).map(|d| held[n - 1 - d]);
        for (size, samples) in sizes.iter_mut().zip(along) {
            *size = samples;
        }
        sizes
    }

    /// Returns the largest number of samples of a chunk along each dimension in which chunks extend.
    pub(super) fn longest(&self) -> Vec<u64> {
        self.dimensions.iter().filter(|dim| dim.chunked).map(GridDimension::longest).collect()
    }

    /// Returns the number of dimensions in which chunks extend: 1 to 3.
    #[cfg(test)]
    pub(super) fn chunked_dimensions(&self) -> usize {
        self.dimensions.iter().filter(|dim| dim.chunked).count()
    }

    /// Returns the distance between two samples of the layer along dimension `d`, in samples of LOD 0.
    pub(super) fn spacing(&self, d: usize) -> u64 {
        self.dimensions.get(d).map_or(1, |dim| 1 << dim.shift)
    }

    /// Returns the number of components of a sample.
    pub(super) fn components(&self) -> u64 {
        self.components
    }

    /// Returns the bytes of a chunk's samples in the array, less than 2^31.
    pub(super) fn decoded_bytes(&self, at: &Dims) -> usize {
        (self.sizes(at).iter().product::<u64>() * self.components * self.size) as usize
    }

    /// Returns the bytes of a chunk's samples as they are stored without compression: each row of single bits fills
    /// whole bytes.
    pub(super) fn uncompressed_bytes(&self, at: &Dims) -> usize {
        if !self.bits {
            return self.decoded_bytes(at);
        }
        let [x, y, z] = self.sizes(at);
        ((x * self.components).div_ceil(8) * y * z) as usize
    }
}

#[cfg(test)]
#[path = "chunk_grid_tests.rs"]
mod tests;
