//! A permutation of an array's axes.

use super::dims::{Dims, MAX_AXES};

/// A permutation that moves one axis to the front and keeps the order of the others.
///
/// `permute_` methods convert from the array's own order of axes to the permuted one, `invert_` methods convert back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisPermutation {
    /// The array's axis at each position of the permuted order.
    axes: [u8; MAX_AXES],
}

impl AxisPermutation {
    /// The array's own order.
    pub(crate) const IDENTITY: Self = Self { axes: [0, 1, 2, 3, 4, 5, 6] };

    /// Moves `axis` to the front, like `np.moveaxis(array, axis, 0)`.
    pub(crate) fn to_front(axis: usize) -> Self {
        let axis = axis.min(MAX_AXES - 1);
        let mut axes: [u8; MAX_AXES] = std::array::from_fn(|position| position as u8);
        axes[..=axis].rotate_right(1);
        Self { axes }
    }

    /// Returns whether the order is the array's own.
    pub(crate) fn is_identity(&self) -> bool {
        *self == Self::IDENTITY
    }

    /// Returns the array's axis at `position` of the permuted order.
    pub(crate) fn axis(&self, position: usize) -> usize {
        usize::from(self.axes[position])
    }

    /// Permutes numbers that stand for axes: a shape, an index, strides.
    pub(crate) fn permute_dims(&self, dims: &Dims) -> Dims {
        Dims::from_fn(dims.len(), |position| dims.get(self.axis(position)).copied().unwrap_or(0))
    }

    /// Reorders permuted numbers to the array's own order of axes.
    pub(crate) fn invert_dims(&self, permuted: &Dims) -> Dims {
        let mut dims = *permuted;
        for (position, value) in permuted.iter().enumerate() {
            if let Some(to) = dims.get_mut(self.axis(position)) {
                *to = *value;
            }
        }
        dims
    }

    /// Returns the strides of an array of this shape that is C-ordered in the permuted order, as [`Dims::strides`] does.
    pub(crate) fn strides(&self, shape: &Dims, unit: u64) -> Dims {
        self.invert_dims(&self.permute_dims(shape).strides(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_axis_comes_first_and_the_others_keep_their_order() {
        let dims = Dims::from([10, 20, 30, 40]);
        assert_eq!(AxisPermutation::to_front(0).permute_dims(&dims), dims);
        assert_eq!(AxisPermutation::to_front(1).permute_dims(&dims), Dims::from([20, 10, 30, 40]));
        assert_eq!(AxisPermutation::to_front(3).permute_dims(&dims), Dims::from([40, 10, 20, 30]));
        for axis in 0..4 {
            let permutation = AxisPermutation::to_front(axis);
            assert_eq!(permutation.invert_dims(&permutation.permute_dims(&dims)), dims);
        }
        assert_eq!(
            AxisPermutation::to_front(6).permute_dims(&dims).len(),
            4,
            "an axis beyond the last one is harmless"
        );
    }
}
