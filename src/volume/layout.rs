//! The positions of a brick's samples in its bytes.

use super::dims::Dims;
use super::region::Region;

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
mod tests {
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
