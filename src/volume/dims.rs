//! One number for each axis of an array: a shape, an index, strides.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// The most axes that an array may have.
pub(crate) const MAX_AXES: usize = 7;

/// One unsigned number for each axis, slowest axis first. Stored inline, so creating one does not allocate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Dims {
    axes: u8,
    values: [u64; MAX_AXES],
}

impl Dims {
    /// Copies `values`. Returns `None` if it is empty or has more than [`MAX_AXES`] numbers.
    pub(crate) fn from_slice(values: &[u64]) -> Option<Self> {
        (1..=MAX_AXES).contains(&values.len()).then(|| Self::from_fn(values.len(), |axis| values[axis]))
    }

    /// Repeats `value` for each of `axes` axes; `axes` is clamped to 1 to [`MAX_AXES`].
    pub(crate) fn filled(axes: usize, value: u64) -> Self {
        let axes = axes.clamp(1, MAX_AXES);
        let mut values = [0; MAX_AXES];
        values[..axes].fill(value);
        Self { axes: axes as u8, values }
    }

    /// Calls `f` for each of `axes` axes.
    pub(crate) fn from_fn(axes: usize, f: impl FnMut(usize) -> u64) -> Self {
        let mut dims = Self::filled(axes, 0);
        dims.iter_mut().zip((0..axes).map(f)).for_each(|(to, value)| *to = value);
        dims
    }

    /// Returns the product of all numbers, or `None` if it exceeds 64 bits.
    pub(crate) fn product(&self) -> Option<u64> {
        self.iter().try_fold(1u64, |acc, &n| acc.checked_mul(n))
    }

    /// Returns the strides of a C-ordered array of this shape whose innermost stride is `unit` (1 for strides in
    /// samples, the sample's size for strides in bytes). The product must fit 64 bits.
    pub(crate) fn strides(&self, unit: u64) -> Self {
        let mut strides = *self;
        let mut step = unit;
        for (stride, n) in strides.iter_mut().zip(self.iter()).rev() {
            *stride = step;
            step = step.saturating_mul(*n);
        }
        strides
    }

    /// Returns the index of the element with the linear index `linear` in a C-ordered array of this shape.
    pub(crate) fn index_of(&self, linear: u64) -> Self {
        let mut index = *self;
        let mut rest = linear;
        for (at, n) in index.iter_mut().zip(self.iter()).rev() {
            let n = (*n).max(1);
            *at = rest % n;
            rest /= n;
        }
        index
    }

    /// Returns the linear index of the element at `index` in a C-ordered array of this shape.
    pub(crate) fn linear_of(&self, index: &[u64]) -> u64 {
        self.iter().zip(index).fold(0, |acc, (n, at)| acc * n + at)
    }
}

impl<const N: usize> From<[u64; N]> for Dims {
    fn from(values: [u64; N]) -> Self {
        const { assert!(N >= 1 && N <= MAX_AXES) };
        Self::from_fn(N, |axis| values[axis])
    }
}

impl Deref for Dims {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.values[..usize::from(self.axes)]
    }
}

impl DerefMut for Dims {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.values[..usize::from(self.axes)]
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// A box in an array: the samples `start[axis] .. start[axis] + shape[axis]` along each axis, slowest axis first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub start: Dims,
    /// Samples along each axis.
    pub shape: Dims,
}

impl Region {
    /// Returns the region of a whole array of this shape.
    pub(crate) fn whole(shape: Dims) -> Self {
        Self { start: Dims::filled(shape.len(), 0), shape }
    }

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

/// A box of samples with the offset and strides at which a byte slice holds them.
///
/// A format uses it to hide margins, padding beyond the array's edge, and the part of a brick before the array's start:
/// `held` covers only samples of the array, and `first` skips the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The samples that can be read, in coordinates of the array.
    pub held: Region,
    /// Byte offset of the sample at `held.start`.
    pub first: u64,
    /// Bytes between neighbouring samples along each axis.
    pub strides: Dims,
}

impl Layout {
    /// Returns the layout of a C-ordered brick of shape `brick` whose first sample is `start`, in an array of shape
    /// `array`. The part of the brick beyond the array's edge is not held.
    pub(crate) fn c_order(start: Dims, brick: Dims, array: Dims, sample_size: usize) -> Self {
        let shape = Dims::from_fn(start.len(), |a| brick[a].min(array[a].saturating_sub(start[a])));
        Self { held: Region { start, shape }, first: 0, strides: brick.strides(sample_size as u64) }
    }

    /// Returns the byte offset of the sample at `index`, which must be held.
    pub(crate) fn offset_of(&self, index: &Dims) -> u64 {
        (0..index.len()).fold(self.first, |at, a| at + (index[a] - self.held.start[a]) * self.strides[a])
    }

    /// Returns the offset after the last byte of the held samples, or `None` if it exceeds 64 bits.
    pub(crate) fn end(&self, sample_size: usize) -> Option<u64> {
        if self.held.shape.contains(&0) {
            return Some(self.first);
        }
        (0..self.held.axes()).try_fold(self.first.checked_add(sample_size as u64)?, |at, a| {
            at.checked_add((self.held.shape[a] - 1).checked_mul(self.strides[a])?)
        })
    }
}

#[cfg(test)]
mod dims_tests {
    use super::*;

    #[test]
    fn strides_and_indexes_agree() {
        let shape = Dims::from([3, 4, 5]);
        assert_eq!(shape.strides(2), Dims::from([40, 10, 2]));
        for n in 0..60 {
            assert_eq!(shape.linear_of(&shape.index_of(n)), n);
        }
        assert_eq!(shape.index_of(27), Dims::from([1, 1, 2]));
    }

    #[test]
    fn a_product_beyond_64_bits_is_none() {
        assert_eq!(Dims::from([1 << 40, 1 << 30]).product(), None);
        assert_eq!(Dims::from([7]).product(), Some(7));
        assert_eq!(Dims::from_slice(&[0; 8]), None);
        assert_eq!(Dims::from_slice(&[]), None);
    }
}

#[cfg(test)]
mod layout_tests {
    use super::*;

    #[test]
    fn an_edge_brick_holds_only_samples_of_the_array() {
        let at = Layout::c_order([64, 0, 64].into(), [64, 64, 64].into(), [70, 100, 66].into(), 2);
        assert_eq!(at.held.shape, Dims::from([6, 64, 2]));
        assert_eq!(at.strides, Dims::from([8192, 128, 2]));
        assert_eq!(at.offset_of(&[65, 3, 65].into()), 8192 + 3 * 128 + 2);
        assert_eq!(at.end(2), Some(5 * 8192 + 63 * 128 + 2 + 2));
    }
}
