//! A box of samples.

use super::dims::Dims;

/// A box in an array: the samples `start[axis] .. start[axis] + shape[axis]` along each axis, slowest axis first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// The first sample along each axis.
    pub start: Dims,
    /// Samples along each axis.
    pub shape: Dims,
}

impl Region {
    /// Returns the region of a whole array of this shape.
    pub(crate) fn whole(shape: Dims) -> Self {
        Self { start: Dims::filled(shape.len(), 0), shape }
    }

    /// Returns the number of axes.
    pub(crate) fn axes(&self) -> usize {
        self.shape.len()
    }

    /// Returns the index after the last sample along `axis`.
    pub(crate) fn end(&self, axis: usize) -> u64 {
        self.start[axis] + self.shape[axis]
    }

    /// Returns the number of samples. It must fit 64 bits, as it does for regions of an array.
    pub(crate) fn samples(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns whether all samples of `other` are in this region.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        self.axes() == other.axes()
            && (0..self.axes()).all(|a| self.start[a] <= other.start[a] && other.end(a) <= self.end(a))
    }

    /// Returns the samples that both regions have, or `None` if there are none.
    pub(crate) fn intersection(&self, other: &Self) -> Option<Self> {
        let axes = self.axes().min(other.axes());
        let start = Dims::from_fn(axes, |a| self.start[a].max(other.start[a]));
        let shape = Dims::from_fn(axes, |a| self.end(a).min(other.end(a)).saturating_sub(start[a]));
        (!shape.contains(&0)).then_some(Self { start, shape })
    }
}
