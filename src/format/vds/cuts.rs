//! How a layer is cut into chunks: the arithmetic of section 2. Everything here counts dimensions as the format does,
//! dimension 0 first; only [`Cuts::grid`] and what speaks of arrays turns them round.

use super::description::{Channel, Description};
use super::layer_name::Group;
use crate::volume::{BrickGrid, Dims, Layout, MAX_AXES, Region};

/// Bytes of samples that a chunk may have.
const MOST_BYTES: u64 = 1 << 31;

/// One dimension of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// Samples at LOD 0.
    samples: u64,
    /// From one chunk to the next, in samples of LOD 0.
    step: u64,
    /// Chunks.
    count: u64,
    /// Margins in samples of LOD 0.
    negative: u64,
    positive: u64,
    /// A sample of the layer is 2^shift samples of LOD 0.
    shift: u32,
    /// Whether a chunk extends along it; else it holds one place.
    cut: bool,
}

impl Cut {
    /// One chunk for each place.
    fn places(samples: u64) -> Self {
        Self { samples, step: 1, count: samples, negative: 0, positive: 0, shift: 0, cut: false }
    }

    /// Samples of the layer.
    fn extent(&self) -> u64 {
        self.samples.div_ceil(1 << self.shift)
    }

    /// The samples of the layer that chunk `i` holds, margins included: the first, and how many.
    fn held(&self, i: u64) -> (u64, u64) {
        let low = i * self.step;
        let high = if self.cut { (low + self.step + self.negative + self.positive).min(self.samples) } else { low + 1 };
        (low >> self.shift, (high - low).div_ceil(1 << self.shift))
    }

    /// The most samples that a chunk holds.
    fn longest(&self) -> u64 {
        self.held(0).1.max(self.held(self.count - 1).1)
    }

    /// Where the second chunk begins to own samples of the layer, less a step: where the first would if it were like others.
    fn origin(&self) -> u64 {
        if self.count > 1 { self.negative.div_ceil(1 << self.shift) } else { 0 }
    }

    /// From one chunk to the next, in samples of the layer.
    fn own_step(&self) -> u64 {
        if self.count > 1 { self.step >> self.shift } else { self.extent() }
    }
}

/// How one channel is cut along one group of dimensions at one LOD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cuts {
    /// One for each axis of the VDS, dimension 0 first.
    cuts: Vec<Cut>,
    components: u64,
    /// Bytes of a sample as it is shown, one component.
    size: u64,
    /// Samples are single bits in a chunk.
    bits: bool,
}

impl Cuts {
    /// The cuts of a layer; an error says why there can be no such layer.
    pub(super) fn new(whole: &Description, channel: &Channel, group: Group, lod: u32) -> Result<Self, String> {
        let layout = &whole.layout;
        if group.highest() >= whole.axes.len() {
            return Err(format!("{group} is beyond the {} axes that there are", whole.axes.len()));
        }
        let has_lods = channel.renderable && (group.len() == 3 || layout.lods_2d);
        if lod > 0 && (lod > layout.lods || !has_lods) {
            return Err(format!("there can be no LOD {lod} of it"));
        }
        let margins = layout.negative_margin + layout.positive_margin;
        let multiplier = if group.len() == 2 { layout.multiplier_2d } else { 1 };
        let inner = layout.brick.saturating_sub(margins).max(1) * multiplier.max(1);
        let cut = |d: usize, samples: u64| {
            if !group.has(d) {
                return Cut::places(samples);
            }
            let shift = if layout.full_resolution == Some(d) { 0 } else { lod };
            let step = samples.min(inner << shift);
            // the margins are taken off before chunks are counted (section 2.2)
            let count = (samples - 1).saturating_sub(margins) / step + 1;
            let (negative, positive) = (layout.negative_margin, layout.positive_margin);
            Cut { samples, step, count, negative, positive, shift, cut: true }
        };
        let mut cuts: Vec<Cut> = whole.axes.iter().enumerate().map(|(d, axis)| cut(d, axis.samples)).collect();
        if let Some(values) = channel.per_trace {
            if values > 1 && group.len() == 3 && !group.has(0) {
                return Err(format!("{group} has no room for {values} values for each trace"));
            }
            // values for each trace take the place of dimension 0 (section 2.6)
            let shift = if layout.full_resolution == Some(0) || values == 1 { 0 } else { lod };
            cuts[0] = Cut { samples: values, step: values, count: 1, negative: 0, positive: 0, shift, cut: values > 1 };
        }
        let size = channel.format.dtype().size() as u64;
        let bits = channel.format == super::description::Format::Bit;
        let cuts = Self { cuts, components: channel.components, size, bits };
        let bytes = cuts.cuts.iter().try_fold(size * channel.components, |n, cut| n.checked_mul(cut.extent()));
        if bytes.is_none_or(|n| n > i64::MAX as u64) || cuts.chunks().is_none() {
            return Err("its samples are beyond counting".into());
        }
        let chunk = cuts.cuts.iter().try_fold(size * channel.components, |n, cut| n.checked_mul(cut.longest()));
        if chunk.is_none_or(|n| n >= MOST_BYTES) {
            return Err("a single chunk has 2 GiB or more".into());
        }
        Ok(cuts)
    }

    fn chunks(&self) -> Option<u64> {
        self.cuts.iter().try_fold(1u64, |n, cut| n.checked_mul(cut.count))
    }

    /// Chunks in all.
    pub(super) fn total(&self) -> u64 {
        self.chunks().unwrap_or(u64::MAX)
    }

    /// Axes of the array: dimensions in reverse, and the components last where there are several.
    fn axes(&self) -> usize {
        self.cuts.len() + usize::from(self.components > 1)
    }

    /// For each axis of the array what `of` gives for its dimension; `last` for the components.
    fn by_axis(&self, last: u64, of: impl Fn(&Cut, usize) -> u64) -> Dims {
        let n = self.cuts.len();
        Dims::from_fn(self.axes(), |axis| match n.checked_sub(axis + 1) {
            Some(d) => of(&self.cuts[d], axis),
            None => last,
        })
    }

    /// The brick grid of the array.
    pub(super) fn grid(&self) -> BrickGrid {
        let shape = self.by_axis(self.components, |cut, _| cut.extent());
        let mut origin = [0; MAX_AXES];
        for (axis, cut) in self.cuts.iter().rev().enumerate() {
            origin[axis] = cut.origin() as i64; // half a brick at most
        }
        let step = self.by_axis(self.components, |cut, _| cut.own_step());
        BrickGrid::with_count(shape, origin, step, self.by_axis(1, |cut, _| cut.count))
    }

    /// What a whole chunk owns along each axis of the array.
    pub(super) fn brick_shape(&self) -> Dims {
        self.by_axis(self.components, |cut, _| cut.own_step())
    }

    /// The number of the chunk at a place of the brick grid (section 2.3).
    pub(super) fn number(&self, at: &Dims) -> Option<u64> {
        let count = self.by_axis(1, |cut, _| cut.count);
        let within = at.len() == count.len() && at.iter().zip(count.iter()).all(|(at, count)| at < count);
        within.then(|| count.linear_of(at))
    }

    /// The place in the brick grid of a chunk.
    pub(super) fn place(&self, number: u64) -> Dims {
        self.by_axis(1, |cut, _| cut.count).index_of(number)
    }

    /// What a chunk holds: where its samples stand once they are unpacked, `first` bytes from their beginning.
    pub(super) fn layout(&self, at: &Dims, first: u64) -> Layout {
        let held = Region {
            start: self.by_axis(0, |cut, axis| cut.held(at[axis]).0),
            shape: self.by_axis(self.components, |cut, axis| cut.held(at[axis]).1),
        };
        Layout { held, first, strides: held.shape.strides(self.size) }
    }

    /// Samples along X, Y and Z of a chunk, as its own header has them.
    pub(super) fn sizes(&self, at: &Dims) -> [u64; 3] {
        let mut sizes = [1; 3];
        let held = self.layout(at, 0).held.shape;
        let along = (0..self.cuts.len()).filter(|d| self.cuts[*d].cut).map(|d| held[self.cuts.len() - 1 - d]);
        for (size, samples) in sizes.iter_mut().zip(along) {
            *size = samples;
        }
        sizes
    }

    /// The most samples that a chunk has along each dimension of the VDS.
    pub(super) fn longest(&self) -> Vec<u64> {
        self.cuts.iter().filter(|cut| cut.cut).map(Cut::longest).collect()
    }

    /// Dimensions that a chunk extends along: 1 to 3.
    #[cfg(test)]
    pub(super) fn dimensions(&self) -> usize {
        self.cuts.iter().filter(|cut| cut.cut).count()
    }

    /// Samples of LOD 0 from one sample of the layer to the next along dimension `d`.
    pub(super) fn spacing(&self, d: usize) -> u64 {
        self.cuts.get(d).map_or(1, |cut| 1 << cut.shift)
    }

    /// Values of a sample.
    pub(super) fn components(&self) -> u64 {
        self.components
    }

    /// Bytes of a chunk's samples as they are shown; below 2^31.
    pub(super) fn shown_bytes(&self, at: &Dims) -> usize {
        (self.sizes(at).iter().product::<u64>() * self.components * self.size) as usize
    }

    /// Bytes of a chunk's samples as they are stored when nothing is packed: bits fill whole bytes row by row (section 5).
    pub(super) fn stored_bytes(&self, at: &Dims) -> usize {
        if !self.bits {
            return self.shown_bytes(at);
        }
        let [x, y, z] = self.sizes(at);
        ((x * self.components).div_ceil(8) * y * z) as usize
    }
}

#[cfg(test)]
#[path = "cuts_tests.rs"]
mod tests;
