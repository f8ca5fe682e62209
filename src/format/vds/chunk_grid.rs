//! How a layer is divided into chunks. Dimensions are numbered as in OpenVDS, dimension 0 (the fastest) first; arrays
//! and their brick grid have the axes in reverse order, slowest first.
//!
//! The arithmetic follows OpenVDS, so that chunk numbers and sizes agree with those of its writer.

use std::fmt;

use super::description::{Channel, Description, MAX_DIMENSIONS, SampleFormat};
use crate::volume::{BrickGrid, Dims, Layout, MAX_AXES, Region};

/// The samples of a chunk have fewer bytes than this.
const CHUNK_BYTES_BOUND: u64 = 1 << 31;

/// A dimension group: the dimensions along which a channel is divided into chunks, two or three of up to six.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group(u8);

impl Group {
    /// Parses a group of ascending digits: `012`.
    pub(super) fn from_digits(digits: &str) -> Option<Self> {
        let mut mask = 0;
        for digit in digits.bytes() {
            let dimension = digit.checked_sub(b'0').filter(|d| usize::from(*d) < MAX_DIMENSIONS)?;
            if mask >> dimension != 0 {
                return None;
            }
            mask |= 1 << dimension;
        }
        matches!(digits.len(), 2 | 3).then_some(Self(mask))
    }

    pub(super) fn has(self, d: usize) -> bool {
        self.0 >> d & 1 == 1
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(super) fn highest(self) -> usize {
        self.0.checked_ilog2().unwrap_or(0) as usize
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dimensions_")?;
        (0..MAX_DIMENSIONS).filter(|d| self.has(*d)).try_for_each(|d| write!(f, "{d}"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GridDimension {
    /// Samples at LOD 0.
    samples: u64,
    /// The distance from one chunk to the next, in samples of LOD 0.
    step: u64,
    count: u64,
    /// Samples of LOD 0 that a chunk repeats of the chunk before it, and of the one after it.
    negative: u64,
    positive: u64,
    /// One sample of the layer covers 2^shift samples of LOD 0.
    shift: u32,
    /// Whether chunks extend along this dimension; else each chunk is at one index of it.
    chunked: bool,
}

impl GridDimension {
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
}

/// The chunks of one layer: one channel, divided along one group of dimensions, at one LOD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkGrid {
    /// The dimensions of the VDS, dimension 0 first.
    dimensions: Vec<GridDimension>,
    /// The number of components of a sample.
    pub(super) components: u64,
    /// Bytes of one component of a sample in the array.
    size: u64,
    /// Samples are stored as single bits.
    bits: bool,
}

impl ChunkGrid {
    pub(super) fn new(description: &Description, channel: &Channel, group: Group, lod: u32) -> Result<Self, String> {
        let layout = &description.layout;
        if group.highest() >= description.axes.len() {
            return Err(format!("{group} is beyond the {} axes that there are", description.axes.len()));
        }
        let has_lods = channel.renderable && (group.len() == 3 || layout.lods_2d);
        if lod > 0 && (u64::from(lod) > layout.lods || !has_lods) {
            return Err(format!("there can be no LOD {lod} of it"));
        }
        let margins = layout.negative_margin + layout.positive_margin;
        let multiplier = if group.len() == 2 { layout.multiplier_2d } else { 1 };
        let inner = layout.brick.saturating_sub(margins).max(1) * multiplier.max(1);
        let dimension = |d: usize, samples: u64| {
            if !group.has(d) {
                let (step, count) = (1, samples);
                return GridDimension { samples, step, count, negative: 0, positive: 0, shift: 0, chunked: false };
            }
            let shift = if layout.full_resolution == Some(d as u64) { 0 } else { lod };
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
        let bits = channel.format == SampleFormat::Bit;
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

    pub(super) fn total(&self) -> u64 {
        self.count().unwrap_or(u64::MAX)
    }

    /// Calls `of` for each axis of the array, with its dimension and its number: all dimensions in reverse. If there
    /// are several components, they are the last axis, which gets `last`.
    fn by_axis(&self, last: u64, of: impl Fn(&GridDimension, usize) -> u64) -> Dims {
        let n = self.dimensions.len();
        Dims::from_fn(n + usize::from(self.components > 1), |axis| match n.checked_sub(axis + 1) {
            Some(d) => of(&self.dimensions[d], axis),
            None => last,
        })
    }

    /// Returns the number of chunks along each axis of the array.
    fn counts(&self) -> Dims {
        self.by_axis(1, |dim, _| dim.count)
    }

    pub(super) fn brick_grid(&self) -> BrickGrid {
        let shape = self.by_axis(self.components, |dim, _| dim.extent());
        let mut origin = [0; MAX_AXES];
        for (axis, dim) in self.dimensions.iter().rev().enumerate() {
            // the first sample that the second chunk owns, less a step: the first chunk also owns the samples before it
            let first = if dim.count > 1 { dim.negative.div_ceil(1 << dim.shift) } else { 0 };
            origin[axis] = first as i64; // half a brick at most
        }
        let step = self.brick_shape();
        BrickGrid::with_count(shape, origin, step, self.counts())
    }

    /// Returns the samples that a chunk owns along each axis of the array; the first and the last chunk may own more or
    /// fewer.
    pub(super) fn brick_shape(&self) -> Dims {
        self.by_axis(self.components, |dim, _| if dim.count > 1 { dim.step >> dim.shift } else { dim.extent() })
    }

    /// Returns the number of the chunk at a position of the brick grid: chunks are numbered with dimension 0 fastest.
    pub(super) fn number_of(&self, at: &Dims) -> Option<u64> {
        let count = self.counts();
        let within = at.len() == count.len() && at.iter().zip(count.iter()).all(|(at, count)| at < count);
        within.then(|| count.linear_of(at))
    }

    pub(super) fn position_of(&self, number: u64) -> Dims {
        self.counts().index_of(number)
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

    /// Returns the distance between two samples of the layer along dimension `d`, in samples of LOD 0.
    pub(super) fn spacing(&self, d: usize) -> u64 {
        self.dimensions.get(d).map_or(1, |dim| 1 << dim.shift)
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
mod tests {
    use proptest::prelude::*;

    use super::super::description::{AxisDescriptor, LayoutDescriptor, SampleFormat};
    use super::*;

    fn described(sizes: &[u64], layout: LayoutDescriptor) -> Description {
        let axes = sizes.iter().map(|n| AxisDescriptor { samples: *n, ..AxisDescriptor::default() }).collect();
        Description { layout, axes, ..Description::default() }
    }

    fn layout_descriptor(brick: u64, margins: (u64, u64), lods: u32) -> LayoutDescriptor {
        let (negative_margin, positive_margin) = margins;
        LayoutDescriptor {
            brick,
            negative_margin,
            positive_margin,
            multiplier_2d: 4,
            lods: lods.into(),
            lods_2d: true,
            full_resolution: None,
        }
    }

    fn direct() -> Channel {
        Channel { components: 1, renderable: true, ..Channel::default() }
    }

    fn chunk_grid(description: &Description, channel: &Channel, digits: &str, lod: u32) -> ChunkGrid {
        ChunkGrid::new(description, channel, Group::from_digits(digits).unwrap(), lod).unwrap()
    }

    /// Chunks along each dimension, dimension 0 first.
    fn counts(grid: &ChunkGrid) -> Vec<u64> {
        grid.brick_grid().count().iter().rev().copied().collect()
    }

    fn extent(grid: &ChunkGrid) -> Vec<u64> {
        grid.brick_grid().shape().iter().rev().copied().collect()
    }

    /// Returns the number of dimensions in which chunks extend: 1 to 3.
    fn chunked_dimensions(grid: &ChunkGrid) -> usize {
        grid.dimensions.iter().filter(|dim| dim.chunked).count()
    }

    #[test]
    fn a_survey_with_margins() {
        let description = described(&[1126, 605, 385], layout_descriptor(128, (4, 4), 2));
        assert_eq!(
            [0, 1, 2].map(|lod| counts(&chunk_grid(&description, &direct(), "012", lod))),
            [[10, 5, 4], [5, 3, 2], [3, 2, 1]]
        );
        for values in [1, 240] {
            let channel = Channel { per_trace: Some(values), ..direct() };
            assert_eq!([0, 1, 2].map(|lod| chunk_grid(&description, &channel, "012", lod).total()), [20, 6, 2]);
        }
    }

    #[test]
    fn sizes_of_chunks_at_the_edge() {
        let description = described(&[70, 50, 40], layout_descriptor(32, (0, 0), 2));
        let finest = chunk_grid(&description, &direct(), "012", 0);
        assert_eq!(finest.total(), 12);
        assert_eq!(finest.sizes(&finest.position_of(2)), [6, 32, 32]);
        assert_eq!(finest.sizes(&finest.position_of(11)), [6, 18, 8]);
        let half = chunk_grid(&description, &direct(), "012", 1);
        assert_eq!([0, 1].map(|n| half.sizes(&half.position_of(n))), [[32, 25, 20], [3, 25, 20]]);
        let quarter = chunk_grid(&description, &direct(), "012", 2);
        assert_eq!((quarter.total(), quarter.sizes(&quarter.position_of(0))), (1, [18, 13, 10]));

        let description = described(&[70, 50, 40], layout_descriptor(32, (4, 4), 1));
        assert_eq!(chunk_grid(&description, &direct(), "012", 0).total(), 12);
        let half = chunk_grid(&description, &direct(), "012", 1);
        assert_eq!((half.total(), half.sizes(&half.position_of(0))), (2, [28, 25, 20]));
    }

    #[test]
    fn tiles_and_a_dimension_of_full_resolution() {
        let description =
            described(&[70, 50, 40], LayoutDescriptor { multiplier_2d: 2, ..layout_descriptor(32, (2, 3), 0) });
        let tiles = chunk_grid(&description, &direct(), "12", 0);
        assert_eq!(
            (tiles.total(), tiles.sizes(&tiles.position_of(69)), chunked_dimensions(&tiles)),
            (70, [50, 40, 1], 2)
        );

        let description =
            described(&[70, 50, 40], LayoutDescriptor { full_resolution: Some(0), ..layout_descriptor(32, (0, 0), 1) });
        let half = chunk_grid(&description, &direct(), "012", 1);
        assert_eq!((counts(&half), extent(&half)), (vec![3, 1, 1], vec![70, 25, 20]));
        assert_eq!([0, 1, 2].map(|n| half.sizes(&half.position_of(n))[0]), [32, 32, 6]);
    }

    #[test]
    fn more_axes_than_a_chunk_has() {
        let description = described(&[37, 20, 10, 3], layout_descriptor(32, (0, 0), 1));
        assert_eq!(chunk_grid(&description, &direct(), "013", 0).total(), 20);
        let half = chunk_grid(&description, &direct(), "013", 1);
        assert_eq!(
            (half.total(), half.sizes(&half.position_of(9)), extent(&half)),
            (10, [19, 10, 2], vec![19, 10, 10, 2])
        );

        let description = described(&[9, 8, 7, 3, 4, 5], layout_descriptor(32, (0, 0), 2));
        let sizes = [0, 1, 2].map(|lod| {
            let grid = chunk_grid(&description, &direct(), "245", lod);
            (grid.total(), grid.sizes(&grid.position_of(0)))
        });
        assert_eq!(sizes, [(216, [7, 4, 5]), (216, [4, 2, 3]), (216, [2, 1, 2])]);
    }

    #[test]
    fn values_for_each_trace_take_the_place_of_dimension_0() {
        let description = described(&[70, 50, 40], layout_descriptor(32, (0, 0), 2));
        let header = chunk_grid(&description, &Channel { per_trace: Some(240), ..direct() }, "012", 1);
        assert_eq!((extent(&header), header.sizes(&header.position_of(0))), (vec![120, 25, 20], [120, 25, 20]));
        let live = chunk_grid(&description, &Channel { per_trace: Some(1), ..direct() }, "012", 1);
        assert_eq!(
            (extent(&live), live.sizes(&live.position_of(0)), chunked_dimensions(&live)),
            (vec![1, 25, 20], [25, 20, 1], 2)
        );
        // in a pair the chunk may be a line
        let line = chunk_grid(&description, &Channel { per_trace: Some(1), ..direct() }, "01", 0);
        assert_eq!((line.total(), line.sizes(&line.position_of(0)), chunked_dimensions(&line)), (40, [50, 1, 1], 1));
    }

    #[test]
    fn components_are_the_fastest_axis_and_bits_fill_bytes() {
        let description = described(&[70, 50, 40], layout_descriptor(32, (0, 0), 0));
        let pair =
            chunk_grid(&description, &Channel { components: 2, format: SampleFormat::U16, ..direct() }, "012", 0);
        assert_eq!(pair.brick_grid().shape(), Dims::from([40, 50, 70, 2]));
        assert_eq!(pair.layout(&pair.position_of(2), 0).strides, Dims::from([32 * 6 * 4, 6 * 4, 4, 2]));
        let bits = chunk_grid(&description, &Channel { format: SampleFormat::Bit, ..direct() }, "12", 0);
        assert_eq!(
            (bits.uncompressed_bytes(&bits.position_of(0)), bits.decoded_bytes(&bits.position_of(0))),
            (7 * 40, 2000)
        );
    }

    #[test]
    fn impossible_layers_are_refused() {
        let description =
            described(&[70, 50, 40], LayoutDescriptor { lods_2d: false, ..layout_descriptor(32, (0, 0), 1) });
        let new = |channel: &Channel, digits: &str, lod| {
            ChunkGrid::new(&description, channel, Group::from_digits(digits).unwrap(), lod)
        };
        assert!(new(&direct(), "013", 0).unwrap_err().contains("3 axes"));
        assert!(new(&direct(), "012", 2).unwrap_err().contains("LOD 2"));
        assert!(new(&direct(), "12", 1).unwrap_err().contains("LOD 1"));
        assert!(new(&Channel { renderable: false, ..direct() }, "012", 1).is_err());
        let description = described(&[70, 50, 40, 30], layout_descriptor(32, (0, 0), 1));
        let header = Channel { per_trace: Some(240), ..direct() };
        assert!(
            ChunkGrid::new(&description, &header, Group::from_digits("123").unwrap(), 0)
                .unwrap_err()
                .contains("no room")
        );
        let huge = described(&[i32::MAX as u64; 6], layout_descriptor(32, (0, 0), 0));
        assert!(
            ChunkGrid::new(&huge, &direct(), Group::from_digits("012").unwrap(), 0).unwrap_err().contains("counting")
        );
        let large = described(&[4096; 3], layout_descriptor(4096, (0, 0), 0));
        assert!(
            ChunkGrid::new(&large, &direct(), Group::from_digits("012").unwrap(), 0).unwrap_err().contains("2 GiB")
        );
    }

    fn any_layer() -> impl Strategy<Value = (Description, Channel, String, u32)> {
        let layout = (5u32..8, 0u64..15, 0u64..15, 0u32..4, prop::option::of(0u64..4));
        let trace = prop::option::of(1u64..300);
        (
            prop::collection::vec(1u64..300, 4),
            layout,
            trace,
            prop::sample::select(vec!["012", "123", "013", "01", "13", "23"]),
        )
            .prop_map(|(sizes, (log, negative, positive, lod, full), per_trace, digits)| {
                let layout =
                    LayoutDescriptor { full_resolution: full, ..layout_descriptor(1 << log, (negative, positive), 3) };
                let per_trace = per_trace.map(|n| if digits == "123" { 1 } else { n });
                (described(&sizes, layout), Channel { per_trace, ..direct() }, digits.to_owned(), lod)
            })
    }

    proptest! {
        #[test]
        fn owned_ranges_tile_every_layer_as_in_openvds((description, channel, digits, lod) in any_layer()) {
            let grid = chunk_grid(&description, &channel, &digits, lod);
            let bricks = grid.brick_grid();
            for (axis, dim) in grid.dimensions.iter().rev().enumerate() {
                let (mut next, round) = (0, |x: u64| x.div_ceil(1 << dim.shift));
                for i in 0..dim.count {
                    // the ranges by which OpenVDS divides a layer: each chunk owns what its margins do not repeat
                    let (low, margins) = (i * dim.step, dim.negative + dim.positive);
                    let high = if dim.chunked { ((i + 1) * dim.step + margins).min(dim.samples) } else { i + 1 };
                    let first = if i == 0 { 0 } else { low + dim.negative };
                    let last = if i + 1 == dim.count { high } else { ((i + 1) * dim.step + dim.negative).min(dim.samples) };
                    prop_assert_eq!(bricks.owned(axis, i), (round(first), round(last)));
                    prop_assert_eq!(round(first), next);
                    next = round(last);
                    let (start, held) = dim.held(i);
                    prop_assert!(start <= round(first) && round(last) <= start + held);
                    prop_assert!(start + held <= dim.extent());
                    prop_assert!((round(first)..round(last)).all(|x| bricks.brick_of(axis, x) == i));
                }
                prop_assert_eq!(next, bricks.shape()[axis]);
            }
        }

        #[test]
        fn numbers_and_positions_of_chunks_agree((description, channel, digits, lod) in any_layer(), n in any::<u64>()) {
            let grid = chunk_grid(&description, &channel, &digits, lod);
            let n = n % grid.total();
            prop_assert_eq!(grid.number_of(&grid.position_of(n)), Some(n));
            // dimension 0 counts fastest
            let position = grid.position_of(n);
            let slowest_first = counts(&grid).into_iter().zip(position.iter().rev()).rev();
            let number = slowest_first.fold(0, |number, (count, at)| number * count + at);
            prop_assert_eq!(number, n);
        }
    }
}
