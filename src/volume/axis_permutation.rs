//! The axes of an array in another order.

use super::{ArrayInfo, Dims, Layout, MAX_AXES, Region};

/// An order of axes that is not the array's own: one of them first, the others as they were.
///
/// What has the array's own order is *turned* into this one, and *back*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisPermutation {
    /// Which axis of the array stands at each place.
    axes: [u8; MAX_AXES],
}

impl AxisPermutation {
    /// `axis` first, as `np.moveaxis(array, axis, 0)` has it.
    #[must_use]
    pub fn to_front(axis: usize) -> Self {
        let axis = axis.min(MAX_AXES - 1);
        let mut axes: [u8; MAX_AXES] = std::array::from_fn(|place| place as u8);
        axes[..=axis].rotate_right(1);
        Self { axes }
    }

    /// The axis of the array that stands at `place`.
    fn axis(&self, place: usize) -> usize {
        usize::from(self.axes[place])
    }

    /// Numbers of the array's axes (a shape, an index, strides) in this order.
    #[must_use]
    pub fn dims(&self, dims: &Dims) -> Dims {
        Dims::from_fn(dims.len(), |place| dims.get(self.axis(place)).copied().unwrap_or(0))
    }

    /// Numbers that stand in this order in the array's own.
    #[must_use]
    pub fn invert_dims(&self, turned: &Dims) -> Dims {
        let mut dims = *turned;
        for (place, value) in turned.iter().enumerate() {
            if let Some(to) = dims.get_mut(self.axis(place)) {
                *to = *value;
            }
        }
        dims
    }

    fn region(&self, region: &Region) -> Region {
        Region { start: self.dims(&region.start), shape: self.dims(&region.shape) }
    }

    fn invert_region(&self, turned: &Region) -> Region {
        Region { start: self.invert_dims(&turned.start), shape: self.invert_dims(&turned.shape) }
    }

    /// The layout of the same bytes for who counts axes in this order.
    #[must_use]
    pub fn layout(&self, layout: &Layout) -> Layout {
        Layout { held: self.region(&layout.held), first: layout.first, strides: self.dims(&layout.strides) }
    }

    /// The layout of the same bytes for who counts axes in the array's own order.
    #[must_use]
    pub fn invert_layout(&self, turned: &Layout) -> Layout {
        Layout {
            held: self.invert_region(&turned.held),
            first: turned.first,
            strides: self.invert_dims(&turned.strides),
        }
    }

    /// What is known of the bricks of an array, for who counts axes in this order. It is the same array: it keeps its id.
    /// What is for people is left out.
    #[must_use]
    pub fn bricks(&self, info: &ArrayInfo) -> ArrayInfo {
        ArrayInfo {
            id: info.id,
            lod: info.lod,
            dtype: info.dtype,
            grid: info.grid.with_axes(info.shape().len(), |place| self.axis(place)),
            brick_shape: self.dims(&info.brick_shape),
            axes: Vec::new(),
            value_range: info.value_range,
            no_value: info.no_value,
            mag: info.mag,
            scaling: info.scaling,
            codec: info.codec,
            warnings: Vec::new(),
            native: super::NativeJson::new(),
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
        assert_eq!(AxisPermutation::to_front(0).dims(&dims), dims);
        assert_eq!(AxisPermutation::to_front(1).dims(&dims), Dims::from([20, 10, 30, 40]));
        assert_eq!(AxisPermutation::to_front(3).dims(&dims), Dims::from([40, 10, 20, 30]));
        for axis in 0..4 {
            let turn = AxisPermutation::to_front(axis);
            assert_eq!(turn.invert_dims(&turn.dims(&dims)), dims);
        }
        assert_eq!(AxisPermutation::to_front(6).dims(&dims).len(), 4, "an axis that is not there does no harm");
    }

    #[test]
    fn a_turned_grid_owns_the_same_samples() {
        let mut origin = [0; MAX_AXES];
        origin[..3].copy_from_slice(&[-3, 0, 2]);
        let grid = BrickGrid::new([20, 9, 31].into(), origin, [8, 4, 5].into());
        let info = ArrayInfo::new(Dtype::Int8, grid.clone(), [8, 4, 5].into());
        let turn = AxisPermutation::to_front(2);
        let turned = turn.bricks(&info).grid;
        assert_eq!(turned.count(), turn.dims(&grid.count()));
        for number in 0..grid.total() {
            let at = grid.count().index_of(number);
            assert_eq!(turned.region(&turn.dims(&at)), turn.region(&grid.region(&at)));
        }
    }
}
