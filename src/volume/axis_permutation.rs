//! A permutation of an array's axes.

use super::array::{ArrayInfo, NativeJson};
use super::dims::{Dims, MAX_AXES};
use super::layout::Layout;
use super::region::Region;

/// A permutation that moves one axis to the front and keeps the order of the others.
///
/// `permute_` methods convert from the array's own order of axes to the permuted one, `invert_` methods convert back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisPermutation {
    /// The array's axis at each position of the permuted order.
    axes: [u8; MAX_AXES],
}

impl AxisPermutation {
    /// Moves `axis` to the front, like `np.moveaxis(array, axis, 0)`.
    pub(crate) fn to_front(axis: usize) -> Self {
        let axis = axis.min(MAX_AXES - 1);
        let mut axes: [u8; MAX_AXES] = std::array::from_fn(|position| position as u8);
        axes[..=axis].rotate_right(1);
        Self { axes }
    }

    /// Returns the array's axis at `position` of the permuted order.
    fn axis(&self, position: usize) -> usize {
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

    fn permute_region(&self, region: &Region) -> Region {
        Region { start: self.permute_dims(&region.start), shape: self.permute_dims(&region.shape) }
    }

    fn invert_region(&self, permuted: &Region) -> Region {
        Region { start: self.invert_dims(&permuted.start), shape: self.invert_dims(&permuted.shape) }
    }

    /// Permutes the axes of a layout. The bytes that it describes are the same.
    pub(crate) fn permute_layout(&self, layout: &Layout) -> Layout {
        Layout {
            held: self.permute_region(&layout.held),
            first: layout.first,
            strides: self.permute_dims(&layout.strides),
        }
    }

    /// Reorders a permuted layout to the array's own order of axes. The bytes that it describes are the same.
    pub(crate) fn invert_layout(&self, permuted: &Layout) -> Layout {
        Layout {
            held: self.invert_region(&permuted.held),
            first: permuted.first,
            strides: self.invert_dims(&permuted.strides),
        }
    }

    /// Permutes the axes of an array's metadata. The permuted array keeps its id, since its bricks are the same. Axis
    /// names, warnings and native keys are left out.
    pub(crate) fn permute_info(&self, info: &ArrayInfo) -> ArrayInfo {
        ArrayInfo {
            id: info.id,
            lod: info.lod,
            dtype: info.dtype,
            grid: info.grid.with_axes(info.shape().len(), |position| self.axis(position)),
            brick_shape: self.permute_dims(&info.brick_shape),
            axes: Vec::new(),
            value_range: info.value_range,
            no_value: info.no_value,
            mag: info.mag,
            scaling: info.scaling,
            codec: info.codec,
            warnings: Vec::new(),
            native: NativeJson::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{BrickGrid, Dtype};

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

    #[test]
    fn a_permuted_grid_owns_the_same_samples() {
        let mut origin = [0; MAX_AXES];
        origin[..3].copy_from_slice(&[-3, 0, 2]);
        let grid = BrickGrid::new([20, 9, 31].into(), origin, [8, 4, 5].into());
        let info = ArrayInfo::new(Dtype::Int8, grid.clone(), [8, 4, 5].into());
        let permutation = AxisPermutation::to_front(2);
        let permuted = permutation.permute_info(&info).grid;
        assert_eq!(permuted.count(), permutation.permute_dims(&grid.count()));
        for number in 0..grid.total() {
            let at = grid.count().index_of(number);
            assert_eq!(permuted.region(&permutation.permute_dims(&at)), permutation.permute_region(&grid.region(&at)));
        }
    }
}
