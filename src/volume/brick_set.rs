//! Some of the bricks of a grid.

use std::ops::Range;

use super::dims::Dims;
use super::region::Region;

/// Some of the bricks of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BrickSet {
    /// A box of the grid.
    Box(Region),
    /// The bricks with these numbers, which count the grid in C order.
    Run(Range<u64>),
}

impl BrickSet {
    /// Returns the number of bricks.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Box(region) => region.shape.product().unwrap_or(u64::MAX),
            Self::Run(numbers) => numbers.end.saturating_sub(numbers.start),
        }
    }

    /// Returns the index in the grid of brick `n` of the set; `count` is the number of bricks along each axis.
    pub(crate) fn nth(&self, n: u64, count: &Dims) -> Dims {
        match self {
            Self::Box(region) => {
                let within = region.shape.index_of(n);
                Dims::from_fn(count.len(), |axis| region.start[axis] + within[axis])
            }
            Self::Run(numbers) => count.index_of(numbers.start + n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_and_runs_count_in_c_order() {
        let count = Dims::from([3, 4, 5]);
        let whole = BrickSet::Box(Region::whole(count));
        let part = BrickSet::Box(Region { start: [1, 2, 3].into(), shape: [1, 2, 2].into() });
        assert_eq!((whole.len(), part.len()), (60, 4));
        assert!((0..60).all(|n| whole.nth(n, &count) == BrickSet::Run(0..60).nth(n, &count)));
        assert_eq!(part.nth(3, &count), Dims::from([1, 3, 4]));
        assert_eq!(BrickSet::Run(20..60).nth(2, &count), Dims::from([1, 0, 2]));
        assert_eq!(BrickSet::Run(5..5).len(), 0);
    }
}
