//! The grid of bricks into which an array is divided.

use super::dims::{Dims, MAX_AXES, Region};

/// The bricks of an array. Each sample belongs to exactly one brick, its owner.
///
/// Along each axis brick `k` owns the samples `x` with `clamp(floor((x - origin) / step), 0, count - 1) = k`. The
/// origin is negative for an array that begins inside a brick, and positive for bricks with margins, of which the first
/// and the last own more than a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrickGrid {
    shape: Dims,
    origin: [i64; MAX_AXES],
    step: Dims,
    count: Dims,
}

impl BrickGrid {
    /// Creates a grid of bricks of shape `step` that begins at the array's first sample.
    pub(crate) fn aligned(shape: Dims, step: Dims) -> Self {
        Self::new(shape, [0; MAX_AXES], step)
    }

    /// Creates a grid of bricks of shape `step`, the first of which begins at `origin`, that covers the array to its
    /// end.
    pub(crate) fn new(shape: Dims, origin: [i64; MAX_AXES], step: Dims) -> Self {
        let count = Dims::from_fn(shape.len(), |a| {
            let reach = i128::from(shape[a]) - i128::from(origin[a]);
            let step = i128::from(step[a].max(1));
            u64::try_from((reach + step - 1) / step).unwrap_or(1).max(1)
        });
        Self::with_count(shape, origin, step, count)
    }

    /// Like [`BrickGrid::new`], but with `count` bricks along each axis: the last one owns all remaining samples.
    pub(crate) fn with_count(shape: Dims, origin: [i64; MAX_AXES], step: Dims, count: Dims) -> Self {
        let step = Dims::from_fn(step.len(), |a| step[a].max(1));
        Self { shape, origin, step, count }
    }

    pub(crate) fn shape(&self) -> Dims {
        self.shape
    }

    /// Returns the distance in samples between neighbouring bricks along each axis.
    pub(crate) fn step(&self) -> Dims {
        self.step
    }

    /// Returns the number of bricks along each axis.
    pub(crate) fn count(&self) -> Dims {
        self.count
    }

    pub(crate) fn total(&self) -> u64 {
        self.count.product().unwrap_or(u64::MAX)
    }

    /// Returns the brick that owns sample `x` along `axis`.
    pub(crate) fn brick_of(&self, axis: usize, x: u64) -> u64 {
        let from_origin = i128::from(x) - i128::from(self.origin[axis]);
        let brick = from_origin.div_euclid(i128::from(self.step[axis]));
        u64::try_from(brick).unwrap_or(0).min(self.count[axis].saturating_sub(1))
    }

    /// Returns the samples that brick `k` owns along `axis`: the first, and one past the last.
    pub(crate) fn owned(&self, axis: usize, k: u64) -> (u64, u64) {
        let edge = |k: u64| {
            let at = i128::from(self.origin[axis]) + i128::from(k) * i128::from(self.step[axis]);
            u64::try_from(at.clamp(0, i128::from(self.shape[axis]))).unwrap_or(0)
        };
        let lo = if k == 0 { 0 } else { edge(k) };
        let hi = if k + 1 >= self.count[axis] { self.shape[axis] } else { edge(k + 1) };
        (lo, hi)
    }

    /// Returns the samples that a brick owns; `brick` is its index in the grid.
    pub(crate) fn region(&self, brick: &Dims) -> Region {
        let mut region = Region::whole(self.shape);
        for axis in 0..self.shape.len() {
            let (lo, hi) = self.owned(axis, brick[axis]);
            region.start[axis] = lo;
            region.shape[axis] = hi.saturating_sub(lo);
        }
        region
    }

    /// Returns the bricks that own at least one sample of `region`, as a box of indexes in the grid.
    pub(crate) fn touched(&self, region: &Region) -> Region {
        let start = Dims::from_fn(region.axes(), |a| self.brick_of(a, region.start[a]));
        let shape = Dims::from_fn(region.axes(), |a| {
            if region.shape[a] == 0 { 0 } else { self.brick_of(a, region.end(a) - 1) - start[a] + 1 }
        });
        Region { start, shape }
    }
}

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

    /// Returns the strides of an array of this shape that is C-ordered in the permuted order, as [`Dims::strides`]
    /// does.
    pub(crate) fn strides(&self, shape: &Dims, unit: u64) -> Dims {
        self.invert_dims(&self.permute_dims(shape).strides(unit))
    }
}

/// Samples of a slab at most: a megabyte of the larger types.
const SLAB: u64 = 1 << 17;

/// Returns the shape of the bricks of an array that is stored in one piece, each of which is a piece again.
pub(crate) fn slab(shape: &Dims) -> Dims {
    let mut brick = Dims::from_fn(shape.len(), |axis| shape[axis].max(1));
    let mut samples = shape.product().unwrap_or(u64::MAX);
    for (axis, extent) in brick.iter_mut().enumerate() {
        if samples <= SLAB {
            break;
        }
        samples = shape.get(axis + 1..).map_or(1, |inner| inner.iter().product::<u64>());
        *extent = (SLAB / samples.max(1)).clamp(1, *extent);
        samples = samples.saturating_mul(*extent);
    }
    brick
}

#[cfg(test)]
mod grid_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_brick_owns_the_remaining_samples() {
        let grid = BrickGrid::aligned([112, 64, 176].into(), [64, 64, 64].into());
        assert_eq!(grid.count(), Dims::from([2, 1, 3]));
        assert_eq!(grid.region(&[1, 0, 2].into()), Region { start: [64, 0, 128].into(), shape: [48, 64, 48].into() });
    }

    #[test]
    fn bricks_with_margins_own_a_longer_first_and_last_range() {
        // 70 samples in bricks of 32 with margins 4 and 4: step 24, the first brick owns 28
        let grid = BrickGrid::with_count([70].into(), [4; MAX_AXES], [24].into(), [3].into());
        assert_eq!(grid.owned(0, 0), (0, 28));
        assert_eq!(grid.owned(0, 1), (28, 52));
        assert_eq!(grid.owned(0, 2), (52, 70));
        assert_eq!(grid.brick_of(0, 2), 0);
        assert_eq!(grid.brick_of(0, 69), 2);
    }

    proptest! {
        #[test]
        fn owned_ranges_tile_every_axis(n in 1u64..500, origin in -100i64..100, step in 1u64..80) {
            let grid = BrickGrid::new([n].into(), [origin; MAX_AXES], [step].into());
            let mut next = 0;
            for k in 0..grid.total() {
                let (lo, hi) = grid.owned(0, k);
                prop_assert_eq!(lo, next);
                prop_assert!((lo..hi).all(|x| grid.brick_of(0, x) == k));
                next = hi;
            }
            prop_assert_eq!(next, n);
        }
    }
}

#[cfg(test)]
mod axis_permutation_tests {
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

    #[test]
    fn slabs_are_pieces_of_about_a_megabyte() {
        let of = |shape: &[u64]| slab(&Dims::from_slice(shape).unwrap()).to_vec();
        assert_eq!(of(&[10, 10]), [10, 10]);
        assert_eq!(of(&[1000, 512, 512]), [1, 256, 512]);
        assert_eq!(of(&[1000, 100, 100]), [13, 100, 100]);
        assert_eq!(of(&[5, 1 << 40]), [1, 1 << 17]);
        assert_eq!(of(&[1 << 40]), [1 << 17]);
        assert_eq!(of(&[3, 1 << 17, 1]), [1, 1 << 17, 1]);
    }
}
