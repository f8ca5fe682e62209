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
        if values.is_empty() || values.len() > MAX_AXES {
            return None;
        }
        let mut dims = Self::filled(values.len(), 0);
        dims.copy_from_slice(values);
        Some(dims)
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

#[cfg(test)]
mod tests {
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
