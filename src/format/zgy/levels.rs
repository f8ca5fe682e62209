//! The levels of detail and the positions of their bricks in the tables.
//!
//! Each level has half the bricks of the previous one along each axis, rounded up, until one brick is left. The tables
//! begin with the coarsest level and end with LOD 0.

use std::iter;
use std::ops::Range;

use crate::volume::Region;

/// One level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Samples along each axis.
    pub shape: [u64; 3],
    /// Bricks along each axis.
    pub bricks: [u64; 3],
    /// Number of bricks.
    pub count: u64,
    /// Index of the level's first entry in the brick table.
    pub start: u64,
}

impl Level {
    /// Returns the index of a brick's entry in the brick table, or `None` if there is no such brick. In the table the
    /// inline axis is the fastest, opposite to the samples of a brick.
    pub(super) fn entry(&self, at: [u64; 3]) -> Option<u64> {
        let [i, j, k] = at;
        let [ni, nj, nk] = self.bricks;
        (i < ni && j < nj && k < nk).then(|| self.start + i + ni * (j + nj * k))
    }

    /// Returns the brick whose entry has this number among those of the level.
    pub(super) fn position_of(&self, number: u64) -> [u64; 3] {
        let [ni, nj, _] = self.bricks.map(|n| n.max(1));
        [number % ni, number / ni % nj, number / ni / nj]
    }
}

impl Level {
    /// Returns the bricks whose entries have these numbers among those of the level, as boxes of the grid, in order.
    pub(super) fn boxes(&self, numbers: Range<u64>) -> impl Iterator<Item = Region> {
        let [ni, nj, _] = self.bricks.map(|n| n.max(1));
        let (mut from, level) = (numbers.start, *self);
        iter::from_fn(move || {
            let left = numbers.end.checked_sub(from).filter(|left| *left > 0)?;
            let start = level.position_of(from);
            let [i, j, _] = start;
            let shape = match (i, j) {
                (0, 0) if left >= ni * nj => [ni, nj, left / (ni * nj)],
                (0, _) if left >= ni => [ni, (left / ni).min(nj - j), 1],
                _ => [left.min(ni - i), 1, 1],
            };
            from += shape.iter().product::<u64>();
            Some(Region { start: start.into(), shape: shape.into() })
        })
    }
}

/// All levels that the header announces, the finest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    /// The levels, at least one.
    pub all: Vec<Level>,
    /// Number of entries of the brick table.
    pub entries: u64,
    /// Number of entries of the alpha table, which has one for each brick column of each level.
    pub alpha_entries: u64,
}

impl Levels {
    /// Computes the levels of a survey of `size` samples in bricks of `brick` samples, none of them 0. Returns `None`
    /// if the size of a table overflows.
    pub(super) fn new(size: [u64; 3], brick: [u64; 3]) -> Option<Self> {
        let mut all = Vec::new();
        let (mut shape, mut bricks) = (size, [0, 1, 2].map(|axis: usize| size[axis].div_ceil(brick[axis])));
        let mut alpha_entries = 0u64;
        loop {
            let [ni, nj, nk] = bricks;
            let tiles = ni.checked_mul(nj)?;
            alpha_entries = alpha_entries.checked_add(tiles)?;
            all.push(Level { shape, bricks, count: tiles.checked_mul(nk)?, start: 0 });
            if bricks == [1; 3] {
                break;
            }
            bricks = bricks.map(|n| n.div_ceil(2));
            shape = shape.map(|n| n.div_ceil(2));
        }
        let mut entries = 0u64;
        for level in all.iter_mut().rev() {
            level.start = entries;
            entries = entries.checked_add(level.count)?;
        }
        // the size of the tables in bytes must not overflow either
        entries.max(alpha_entries).checked_mul(8)?;
        Some(Self { all, entries, alpha_entries })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn levels_and_entries_of_a_small_survey() {
        let levels = Levels::new([112, 64, 176], [64; 3]).unwrap();
        assert_eq!((levels.entries, levels.alpha_entries), (9, 4));
        let found: Vec<_> = levels.all.iter().map(|l| (l.shape, l.bricks, l.start)).collect();
        assert_eq!(found, [([112, 64, 176], [2, 1, 3], 3), ([56, 32, 88], [1, 1, 2], 1), ([28, 16, 44], [1, 1, 1], 0)]);
        assert_eq!(levels.all[0].entry([1, 0, 0]), Some(4));
        assert_eq!(levels.all[0].entry([1, 0, 2]), Some(8));
        assert_eq!(levels.all[0].entry([0, 1, 0]), None);
    }

    #[test]
    fn ranges_of_entries_are_boxes() {
        let level = Levels::new([40, 24, 56], [8; 3]).unwrap().all[0];
        assert_eq!(level.bricks, [5, 3, 7]);
        for from in 0..level.count {
            for to in from..=level.count {
                let boxes: Vec<_> = level.boxes(from..to).collect();
                assert!(boxes.len() <= 5);
                let mut seen = Vec::new();
                for region in boxes {
                    let (start, shape) = (&region.start, &region.shape);
                    for k in 0..shape[2] {
                        for j in 0..shape[1] {
                            for i in 0..shape[0] {
                                let entry = level.entry([start[0] + i, start[1] + j, start[2] + k]).unwrap();
                                seen.push(entry - level.start);
                            }
                        }
                    }
                }
                assert!(seen.into_iter().eq(from..to));
            }
        }
    }

    #[test]
    fn one_brick_is_one_level() {
        assert_eq!(Levels::new([1, 64, 3], [64; 3]).unwrap().all.len(), 1);
    }

    #[test]
    fn tables_whose_size_overflows_are_none() {
        assert_eq!(Levels::new([(1 << 31) - 1; 3], [4; 3]), None);
        assert!(Levels::new([(1 << 31) - 1; 3], [1 << 12; 3]).is_some());
    }

    proptest! {
        #[test]
        fn every_entry_belongs_to_one_brick(
            size in [1u64..90, 1u64..90, 1u64..90], log in [2u32..5, 2u32..5, 2u32..5]
        ) {
            let brick = log.map(|n| 1 << n);
            let levels = Levels::new(size, brick).unwrap();
            let mut seen = vec![0; levels.entries as usize];
            for (lod, level) in levels.all.iter().enumerate() {
                for axis in 0..3 {
                    prop_assert_eq!(level.shape[axis], (size[axis] + (1 << lod) - 1) >> lod);
                    prop_assert_eq!(level.bricks[axis], level.shape[axis].div_ceil(brick[axis]));
                }
                let [ni, nj, nk] = level.bricks;
                for n in 0..level.count {
                    let at = [n / (nj * nk), n / nk % nj, n % nk];
                    prop_assert!(at[0] < ni);
                    prop_assert_eq!(level.position_of(level.entry(at).unwrap() - level.start), at);
                    seen[level.entry(at).unwrap() as usize] += 1;
                }
            }
            prop_assert!(seen.iter().all(|n| *n == 1));
        }
    }
}
