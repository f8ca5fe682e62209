//! Splits a request into pieces: one for each brick that it touches.

use std::ops::Range;

use super::boxes::boxes;
use crate::format::Array;
use crate::volume::{BrickGrid, Dims, Region};

/// Part of a brick that a read asks for.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The brick's index in the grid.
    pub brick: Dims,
    /// The samples, all owned by the brick.
    pub region: Region,
}

/// Returns the pieces of the samples `range`, box by box, bricks in C order.
pub fn pieces(array: &dyn Array, range: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
    boxes(&array.info().shape(), range).into_iter().flat_map(move |region| pieces_of_box(array, region))
}

/// Returns the pieces of a box, bricks in C order.
pub fn pieces_of_box(array: &dyn Array, region: Region) -> impl Iterator<Item = Piece> + '_ {
    Pieces::new(&array.info().grid, region).filter(|piece| !piece.region.shape.contains(&0))
}

/// Iterates over the bricks of a box in C order. From one brick to the next mostly one axis changes, and only that axis
/// is clipped again.
struct Pieces<'a> {
    grid: &'a BrickGrid,
    region: Region,
    /// The bricks, as a box in the grid.
    touched: Region,
    next: Option<Piece>,
}

impl<'a> Pieces<'a> {
    fn new(grid: &'a BrickGrid, region: Region) -> Self {
        let touched = grid.touched(&region);
        let mut pieces = Self { grid, region, touched, next: None };
        if !touched.shape.contains(&0) {
            let mut first = Piece { brick: touched.start, region };
            (0..region.axes()).for_each(|axis| pieces.clip(&mut first, axis));
            pieces.next = Some(first);
        }
        pieces
    }

    /// Clips a piece to the samples that its brick owns along an axis.
    fn clip(&self, piece: &mut Piece, axis: usize) {
        let (low, high) = self.grid.owned(axis, piece.brick[axis]);
        let start = low.max(self.region.start[axis]);
        piece.region.start[axis] = start;
        piece.region.shape[axis] = high.min(self.region.end(axis)).saturating_sub(start);
    }

    fn after(&self, mut piece: Piece) -> Option<Piece> {
        for axis in (0..self.region.axes()).rev() {
            let next = piece.brick[axis] + 1;
            let wraps = next >= self.touched.end(axis);
            piece.brick[axis] = if wraps { self.touched.start[axis] } else { next };
            self.clip(&mut piece, axis);
            if !wraps {
                return Some(piece);
            }
        }
        None
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let piece = self.next.take()?;
        self.next = self.after(piece);
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::volume::MAX_AXES;

    proptest! {
        #[test]
        fn pieces_are_what_each_brick_owns_of_the_box(
            axes in prop::collection::vec((1u64..40, 1u64..16, 0.0f64..1.0, 0.0f64..1.0), 1..5), origin in -20i64..6,
        ) {
            let dims = |f: &dyn Fn(usize) -> u64| Dims::from_fn(axes.len(), f);
            let grid = BrickGrid::new(dims(&|a| axes[a].0), [origin; MAX_AXES], dims(&|a| axes[a].1));
            let start = dims(&|a| (axes[a].0 as f64 * axes[a].2) as u64);
            let part = Region { start, shape: dims(&|a| ((axes[a].0 - start[a]) as f64 * axes[a].3) as u64) };
            let got: Vec<(Dims, Region)> = Pieces::new(&grid, part)
                .filter(|piece| !piece.region.shape.contains(&0))
                .map(|piece| (piece.brick, piece.region))
                .collect();
            let expected: Vec<(Dims, Region)> = (0..grid.total())
                .map(|n| grid.count().index_of(n))
                .filter_map(|brick| Some((brick, grid.region(&brick).intersection(&part)?)))
                .collect();
            prop_assert_eq!(got, expected);
        }
    }
}
