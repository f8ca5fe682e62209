//! Which samples a read selects, and the pieces of bricks that they come from. Arithmetic only.

use std::iter;
use std::ops::Range;
use std::slice::Iter;

use crate::volume::{ArrayInfo, AxisPermutation, BrickGrid, Dims, Region};

/// Samples of an array, and their places in the memory of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The first sample along each axis of the array.
    pub(crate) start: Dims,
    /// The number of samples along each axis.
    pub(crate) shape: Dims,
    /// The distance between neighbouring samples along each axis, 1 or more.
    pub(crate) step: Dims,
    /// Where the first sample goes, in bytes from the beginning of the memory.
    pub(crate) offset: usize,
    /// Bytes between neighbouring samples in the memory, along each axis of the array.
    pub(crate) strides: Dims,
}

impl Selection {
    /// Selects all samples of a region, to be stored from `offset` on in C order; a sample has `size` bytes.
    pub(crate) fn new(region: &Region, offset: usize, size: usize) -> Self {
        let Region { start, shape } = *region;
        Self { start, shape, step: Dims::filled(shape.len(), 1), offset, strides: shape.strides(size as u64) }
    }

    /// Selects the samples with these numbers, which count the array in C order of its permuted axes, to be stored from
    /// `offset` on in the order of their numbers.
    pub(crate) fn from_range(
        info: &ArrayInfo,
        order: &AxisPermutation,
        samples: Range<u64>,
        offset: usize,
    ) -> impl Iterator<Item = Self> + use<> {
        let (shape, size) = (order.permute_dims(&info.shape()), info.dtype.size() as u64);
        let (strides, step) = (order.invert_dims(&shape.strides(size)), Dims::filled(shape.len(), 1));
        let (order, first) = (*order, samples.start);
        let select = move |part: Region| Self {
            start: order.invert_dims(&part.start),
            shape: order.invert_dims(&part.shape),
            step,
            offset: offset + ((shape.linear_of(&part.start) - first) * size) as usize,
            strides,
        };
        boxes(shape, samples).map(select)
    }

    /// Returns the number of samples.
    pub(crate) fn samples(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns whether the samples lie in an array of this shape, and their places in `bytes` bytes of memory.
    pub(crate) fn fits(&self, array: &Dims, size: usize, bytes: usize) -> bool {
        let axes = array.len();
        if [self.start.len(), self.shape.len(), self.step.len(), self.strides.len()] != [axes; 4] {
            return false;
        }
        let last = |a: usize, step: u64| self.shape[a].saturating_sub(1).checked_mul(step);
        let in_array = |a: usize| {
            let end = last(a, self.step[a]).and_then(|last| self.start[a].checked_add(last));
            self.step[a] > 0 && end.is_some_and(|end| end < array[a])
        };
        let add = |at: u64, a: usize| at.checked_add(last(a, self.strides[a])?);
        let end = (self.offset as u64).checked_add(size as u64).and_then(|first| (0..axes).try_fold(first, add));
        self.shape.contains(&0) || (0..axes).all(in_array) && end.is_some_and(|end| end <= bytes as u64)
    }

    /// Returns the bytes of memory that the samples lie in, if no two of them overlap as their strides show.
    fn span(&self, size: usize) -> Option<Range<u64>> {
        let mut axes: Vec<(u64, u64)> = self.strides.iter().copied().zip(self.shape.iter().copied()).collect();
        axes.retain(|(_, count)| *count != 1);
        axes.sort_unstable();
        let inner = size as u64;
        let length = axes.iter().try_fold(inner, |inner, (stride, count)| {
            (*stride >= inner).then(|| stride * count.saturating_sub(1) + inner)
        })?;
        let from = self.offset as u64;
        Some(from..from + length)
    }

    /// Whether all samples between the first and the last are selected.
    pub(crate) fn is_dense(&self) -> bool {
        self.step.iter().all(|step| *step == 1)
    }
}

/// Returns whether all selected samples have places of their own in memory, as far as is simple to tell.
pub(crate) fn are_disjoint(selections: &[Selection], size: usize) -> bool {
    let spans: Option<Vec<_>> = selections.iter().map(|selection| selection.span(size)).collect();
    let Some(mut spans) = spans else { return false };
    spans.sort_unstable_by_key(|span| span.start);
    spans.is_sorted_by(|one, next| one.end <= next.start)
}

/// Splits the samples `range` of a C-ordered array of `shape` into as few boxes as possible, in order: part of a row,
/// rows, planes, ..., rows, part of a row. Returns at most `2 * axes - 1` boxes.
pub(crate) fn boxes(shape: Dims, range: Range<u64>) -> impl Iterator<Item = Region> {
    let (axes, strides, mut at, end) = (shape.len(), shape.strides(1), range.start, range.end);
    iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let start = shape.index_of(at);
        // the slowest axis along which whole slabs begin here and fit
        let fits = |axis: &usize| at % strides[*axis] == 0 && end - at >= strides[*axis];
        let axis = (0..axes).find(fits).unwrap_or(axes - 1);
        let slabs = ((end - at) / strides[axis]).min(shape[axis] - start[axis]);
        let extent = Dims::from_fn(axes, |a| match a {
            a if a < axis => 1,
            a if a == axis => slabs,
            a => shape[a],
        });
        at += slabs * strides[axis];
        Some(Region { start, shape: extent })
    })
}

/// The samples that a selection takes from one brick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The brick's index in the grid.
    pub(super) brick: Dims,
    /// The region from the first to the last sample, all owned by the brick.
    pub(super) region: Region,
    /// Where the first sample goes, in bytes.
    pub(super) to: usize,
    /// The number of the selection.
    pub(super) selection: u32,
}

/// Iterates over the pieces of selections, bricks in C order. A piece takes 200 bytes, and a request may have hundreds:
/// [`Pieces::fill`] copies each once.
pub(super) struct Pieces<'a> {
    grid: &'a BrickGrid,
    selections: Iter<'a, Selection>,
    current: Option<Bricks<'a>>,
    next: u32,
}

/// The bricks of a selection in C order. From one brick to the next mostly one axis changes, and only that axis is
/// clipped again.
struct Bricks<'a> {
    selection: &'a Selection,
    /// The bricks, as a box in the grid.
    touched: Region,
    /// The piece that comes next. Its region is empty if the brick owns no samples.
    piece: Piece,
    /// What each axis adds to the place of the first sample.
    to: Dims,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(grid: &'a BrickGrid, selections: &'a [Selection]) -> Self {
        Self { grid, selections: selections.iter(), current: None, next: 0 }
    }

    /// Adds the next pieces to `pieces`, `at_most` of them.
    pub(super) fn fill(&mut self, pieces: &mut Vec<Piece>, at_most: usize) {
        for _ in 0..at_most {
            let Some(piece) = self.peek() else { return };
            pieces.push(*piece);
            self.advance();
        }
    }

    fn peek(&mut self) -> Option<&Piece> {
        while self.current.as_ref().is_none_or(|current| current.piece.region.shape.contains(&0)) {
            if self.current.is_some() {
                self.advance();
            } else {
                self.current = Bricks::new(self.grid, self.selections.next()?, self.next);
                self.next += 1;
            }
        }
        self.current.as_ref().map(|current| &current.piece)
    }

    fn advance(&mut self) {
        if self.current.as_mut().is_some_and(|current| !current.advance(self.grid)) {
            self.current = None;
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let piece = *self.peek()?;
        self.advance();
        Some(piece)
    }
}

impl<'a> Bricks<'a> {
    /// Returns `None` if nothing is selected.
    fn new(grid: &BrickGrid, selection: &'a Selection, number: u32) -> Option<Self> {
        if selection.shape.contains(&0) {
            return None;
        }
        let shape = Dims::from_fn(selection.shape.len(), |a| (selection.shape[a] - 1) * selection.step[a] + 1);
        let region = Region { start: selection.start, shape };
        let touched = grid.touched(&region);
        let piece = Piece { brick: touched.start, region, to: selection.offset, selection: number };
        let mut bricks = Self { selection, touched, piece, to: Dims::filled(shape.len(), 0) };
        (0..shape.len()).for_each(|axis| bricks.clip(grid, axis));
        Some(bricks)
    }

    /// Clips the next piece to the samples that its brick owns along an axis.
    fn clip(&mut self, grid: &BrickGrid, axis: usize) {
        let Selection { start, shape, step, strides, .. } = self.selection;
        let (start, shape, step) = (start[axis], shape[axis], step[axis]);
        let (low, high) = grid.owned(axis, self.piece.brick[axis]);
        // the numbers of the selected samples: the first, and one past the last
        let (low, high) = (low.saturating_sub(start), high.saturating_sub(start));
        let (first, end) = if step == 1 { (low, high) } else { (low.div_ceil(step), high.div_ceil(step)) };
        let count = end.min(shape).saturating_sub(first);
        let region = &mut self.piece.region;
        region.start[axis] = start + first * step;
        region.shape[axis] = if step == 1 || count == 0 { count } else { (count - 1) * step + 1 };
        let to = first * strides[axis];
        self.piece.to = self.piece.to.wrapping_add(to.wrapping_sub(self.to[axis]) as usize);
        self.to[axis] = to;
    }

    /// Goes on to the next brick, beyond those that steps pass over; returns whether there is one.
    fn advance(&mut self, grid: &BrickGrid) -> bool {
        for axis in (0..self.to.len()).rev() {
            let next = match self.selection.step[axis] {
                1 => self.piece.brick[axis] + 1,
                step => {
                    let last = self.piece.region.end(axis).saturating_sub(1);
                    let ends = last.saturating_add(step) > self.last_sample(axis);
                    if ends { u64::MAX } else { grid.brick_of(axis, last + step) }
                }
            };
            let wraps = next >= self.touched.end(axis);
            self.piece.brick[axis] = if wraps { self.touched.start[axis] } else { next };
            self.clip(grid, axis);
            if !wraps {
                return true;
            }
        }
        false
    }

    /// The last sample that is selected along an axis.
    fn last_sample(&self, axis: usize) -> u64 {
        let Selection { start, shape, step, .. } = self.selection;
        start[axis] + (shape[axis] - 1) * step[axis]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::volume::{Dtype, MAX_AXES};

    #[test]
    fn a_range_is_rows_planes_and_rows() {
        let shape = Dims::from([10, 10, 10]);
        let shapes: Vec<Dims> = boxes(shape, 95..512).map(|b| b.shape).collect();
        assert_eq!(shapes, [[1, 1, 5], [4, 10, 10], [1, 1, 10], [1, 1, 2]].map(Dims::from));
        assert!(boxes(shape, 0..1000).eq([Region::whole(shape)]));
        assert_eq!(boxes(shape, 7..7).count(), 0);
    }

    #[test]
    fn bricks_that_steps_pass_over_are_not_visited() {
        let count = 1 << 20;
        let grid = BrickGrid::aligned([count; 3].into(), [32; 3].into());
        let corners = Selection {
            shape: [2; 3].into(),
            step: [count - 1; 3].into(),
            ..Selection::new(&Region::whole([1; 3].into()), 0, 1)
        };
        let bricks: Vec<Dims> = Pieces::new(&grid, &[corners]).map(|piece| piece.brick).collect();
        let last = (count - 1) / 32;
        let expected = (0..8).map(|n| Dims::from_fn(3, |axis| if n >> (2 - axis) & 1 == 1 { last } else { 0 }));
        assert!(bricks.into_iter().eq(expected));
        // no sample follows the only one, however far the next would be
        let one = Selection { step: [u64::MAX; 3].into(), ..Selection::new(&Region::whole([1; 3].into()), 0, 1) };
        assert_eq!(Pieces::new(&grid, &[one]).count(), 1);
    }

    #[test]
    fn only_selections_within_array_and_memory_fit() {
        let (array, whole) = (Dims::from([4, 10]), Region::whole([4, 10].into()));
        let selection = Selection::new(&whole, 8, 2);
        assert!(
            selection.fits(&array, 2, 88) && !selection.fits(&array, 2, 87) && !selection.fits(&[4, 9].into(), 2, 88)
        );
        assert!(!selection.fits(&[4, 10, 1].into(), 2, 88));
        let every_third = Selection { shape: [2, 4].into(), step: [3, 3].into(), ..selection };
        assert!(every_third.fits(&array, 2, 36) && !every_third.fits(&array, 2, 35));
        assert!(!Selection { step: [3, 4].into(), ..every_third }.fits(&array, 2, 36));
        assert!(!Selection { step: [0, 3].into(), ..every_third }.fits(&array, 2, 36));
        for far in [u64::MAX, u64::MAX / 2] {
            assert!(!Selection { step: [3, far].into(), ..every_third }.fits(&array, 2, 36));
            assert!(!Selection { strides: [far, 2].into(), ..every_third }.fits(&array, 2, 36));
        }
        assert!(Selection { shape: [2, 0].into(), ..every_third }.fits(&array, 2, 0), "nothing is selected");
    }

    #[test]
    fn selections_that_overlap_in_memory_are_told_from_others() {
        let one = Selection::new(&Region::whole([4, 10].into()), 0, 2);
        assert!(are_disjoint(&[one], 2) && are_disjoint(&[], 2));
        assert!(are_disjoint(&[Selection { offset: 80, ..one }, one], 2));
        assert!(!are_disjoint(&[one, Selection { offset: 79, ..one }], 2));
        assert!(!are_disjoint(&[Selection { strides: [19, 2].into(), ..one }], 2));
        assert!(!are_disjoint(&[Selection { strides: [0, 2].into(), ..one }], 2));
        assert!(are_disjoint(&[Selection { strides: [2, 8].into(), ..one }], 2), "in another order of axes");
    }

    proptest! {
        #[test]
        fn boxes_cover_the_range_in_order(
            shape in prop::collection::vec(1u64..7, 1..6), from in 0.0f64..1.0, to in 0.0f64..1.0,
        ) {
            let shape = Dims::from_slice(&shape).unwrap();
            let n = shape.product().unwrap() as f64;
            let range = ((n * from.min(to)) as u64)..((n * from.max(to)) as u64);
            let mut seen = Vec::new();
            let all: Vec<Region> = boxes(shape, range.clone()).collect();
            prop_assert!(all.len() < 2 * shape.len());
            for part in all {
                for n in 0..part.samples() {
                    let within = part.shape.index_of(n);
                    seen.push(shape.linear_of(&Dims::from_fn(shape.len(), |a| part.start[a] + within[a])));
                }
            }
            prop_assert!(seen.into_iter().eq(range));
        }

        #[test]
        fn a_range_goes_to_one_run_of_memory(
            shape in prop::collection::vec(1u64..7, 1..5), axis in 0usize..4, from in 0.0f64..1.0, to in 0.0f64..1.0,
        ) {
            let shape = Dims::from_slice(&shape).unwrap();
            let info = ArrayInfo::new(Dtype::Int16, BrickGrid::aligned(shape, shape), shape);
            let order = AxisPermutation::to_front(axis % shape.len());
            let n = shape.product().unwrap() as f64;
            let range = ((n * from.min(to)) as u64)..((n * from.max(to)) as u64);
            let permuted = order.permute_dims(&shape);
            let mut seen = Vec::new();
            for selection in Selection::from_range(&info, &order, range.clone(), 10) {
                for n in 0..selection.samples() {
                    let within = selection.shape.index_of(n);
                    let at = Dims::from_fn(shape.len(), |a| selection.start[a] + within[a]);
                    let to = selection.offset as u64 + (0..shape.len()).map(|a| within[a] * selection.strides[a]).sum::<u64>();
                    seen.push((to, permuted.linear_of(&order.permute_dims(&at))));
                }
            }
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(range.clone().map(|n| (10 + 2 * (n - range.start), n))));
        }

        #[test]
        fn pieces_are_what_each_brick_owns_of_the_selections(
            axes in prop::collection::vec((1u64..40, 1u64..16, 0.0f64..1.0, 0.0f64..1.0, 1u64..9), 1..5), origin in -20i64..6,
            dense in any::<bool>(),
        ) {
            let dims = |f: &dyn Fn(usize) -> u64| Dims::from_fn(axes.len(), f);
            let grid = BrickGrid::new(dims(&|a| axes[a].0), [origin; MAX_AXES], dims(&|a| axes[a].1));
            let start = dims(&|a| (axes[a].0 as f64 * axes[a].2) as u64);
            let step = dims(&|a| if dense { 1 } else { axes[a].4 });
            let shape = dims(&|a| ((axes[a].0 - start[a]) as f64 * axes[a].3 / step[a] as f64) as u64);
            let selection = Selection { start, shape, step, offset: 3, strides: shape.strides(2) };
            let two = [selection, Selection { offset: 1 << 20, ..selection }];
            let got: Vec<Piece> = Pieces::new(&grid, &two).collect();
            let mut filled = Vec::new();
            let mut pieces = Pieces::new(&grid, &two);
            for at_most in (0..9).cycle() {
                let before = filled.len();
                pieces.fill(&mut filled, at_most);
                if filled.len() < before + at_most {
                    break;
                }
            }
            let same = |a: &Piece, b: &Piece| (a.brick, a.region, a.to, a.selection) == (b.brick, b.region, b.to, b.selection);
            prop_assert!(filled.len() == got.len() && filled.iter().zip(&got).all(|(a, b)| same(a, b)));
            // each sample by itself: its place in memory, and its brick
            let mut expected = Vec::new();
            for selection in &two {
                for n in 0..selection.samples() {
                    let within = shape.index_of(n);
                    let at = dims(&|a| start[a] + within[a] * step[a]);
                    expected.push((selection.offset as u64 + 2 * n, at, dims(&|a| grid.brick_of(a, at[a]))));
                }
            }
            let mut seen = Vec::new();
            for piece in &got {
                let count = dims(&|a| (piece.region.shape[a] - 1) / step[a] + 1);
                for n in 0..count.product().unwrap() {
                    let within = count.index_of(n);
                    let to = piece.to as u64 + (0..axes.len()).map(|a| within[a] * selection.strides[a]).sum::<u64>();
                    seen.push((to, dims(&|a| piece.region.start[a] + within[a] * step[a]), piece.brick));
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, expected);
            let touched: Vec<Dims> = got.iter().filter(|piece| piece.selection == 0).map(|piece| piece.brick).collect();
            prop_assert!(touched.is_sorted(), "bricks are in C order");
        }
    }
}
