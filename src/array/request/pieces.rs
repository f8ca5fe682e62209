//! Splits a request into pieces: one for each brick that it touches.

use std::ops::Range;
use std::vec::IntoIter;

use super::boxes::boxes;
use crate::format::Array;
use crate::volume::{BrickGrid, Dims, Region};

/// Part of a brick that a read asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The brick's index in the grid.
    pub brick: Dims,
    /// The samples, all owned by the brick.
    pub region: Region,
}

/// Returns the pieces of the samples `range`, box by box, bricks in C order.
pub(crate) fn pieces(array: &dyn Array, range: Range<u64>) -> Pieces<'_> {
    Pieces::new(&array.info().grid, boxes(&array.info().shape(), range))
}

/// Returns the pieces of a box, bricks in C order.
pub(crate) fn pieces_of_box(array: &dyn Array, region: Region) -> Pieces<'_> {
    Pieces::new(&array.info().grid, vec![region])
}

/// Iterates over the bricks of boxes. A piece takes 200 bytes, and a request may have hundreds: [`Pieces::fill`] copies
/// each once.
pub(crate) struct Pieces<'a> {
    grid: &'a BrickGrid,
    boxes: IntoIter<Region>,
    current: Option<PiecesOfBox>,
}

/// The bricks of a box in C order. From one brick to the next mostly one axis changes, and only that axis is clipped
/// again.
struct PiecesOfBox {
    region: Region,
    /// The bricks, as a box in the grid.
    touched: Region,
    /// The piece that comes next.
    next: Piece,
}

impl<'a> Pieces<'a> {
    fn new(grid: &'a BrickGrid, boxes: Vec<Region>) -> Self {
        Self { grid, boxes: boxes.into_iter(), current: None }
    }

    /// Adds the next pieces to `pieces`, `at_most` of them.
    pub(crate) fn fill(&mut self, pieces: &mut Vec<Piece>, at_most: usize) {
        for _ in 0..at_most {
            let Some(piece) = self.peek() else { return };
            pieces.push(*piece);
            self.advance();
        }
    }

    /// Returns the next piece.
    fn peek(&mut self) -> Option<&Piece> {
        while self.current.as_ref().is_none_or(|current| current.next.region.shape.contains(&0)) {
            if self.current.is_some() {
                self.advance();
            } else {
                self.current = PiecesOfBox::new(self.grid, self.boxes.next()?);
            }
        }
        self.current.as_ref().map(|current| &current.next)
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

impl PiecesOfBox {
    /// Returns `None` if the box touches no brick.
    fn new(grid: &BrickGrid, region: Region) -> Option<Self> {
        let touched = grid.touched(&region);
        let mut pieces = Self { region, touched, next: Piece { brick: touched.start, region } };
        (0..region.axes()).for_each(|axis| pieces.clip(grid, axis));
        (!touched.shape.contains(&0)).then_some(pieces)
    }

    /// Clips the next piece to the samples that its brick owns along an axis.
    fn clip(&mut self, grid: &BrickGrid, axis: usize) {
        let (low, high) = grid.owned(axis, self.next.brick[axis]);
        let start = low.max(self.region.start[axis]);
        self.next.region.start[axis] = start;
        self.next.region.shape[axis] = high.min(self.region.end(axis)).saturating_sub(start);
    }

    /// Goes on to the next brick; returns whether there is one.
    fn advance(&mut self, grid: &BrickGrid) -> bool {
        for axis in (0..self.region.axes()).rev() {
            let next = self.next.brick[axis] + 1;
            let wraps = next >= self.touched.end(axis);
            self.next.brick[axis] = if wraps { self.touched.start[axis] } else { next };
            self.clip(grid, axis);
            if !wraps {
                return true;
            }
        }
        false
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
            let of_box = || Pieces::new(&grid, vec![part, part]);
            let got: Vec<(Dims, Region)> = of_box().map(|piece| (piece.brick, piece.region)).collect();
            let mut filled = Vec::new();
            let mut pieces = of_box();
            for at_most in (0..9).cycle() {
                let before = filled.len();
                pieces.fill(&mut filled, at_most);
                if filled.len() < before + at_most {
                    break;
                }
            }
            prop_assert!(filled.iter().map(|piece| (piece.brick, piece.region)).eq(got.iter().copied()));
            let expected: Vec<(Dims, Region)> = (0..grid.total())
                .map(|n| grid.count().index_of(n))
                .filter_map(|brick| Some((brick, grid.region(&brick).intersection(&part)?)))
                .collect();
            prop_assert_eq!(got, expected.repeat(2));
        }
    }
}
