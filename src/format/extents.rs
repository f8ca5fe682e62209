//! Finds ranges of a file that overlap, in bounded memory however many there are.
//!
//! The ranges are visited in several passes. Each pass keeps the next million in ascending order, and compares
//! neighbours. A hundred million bricks take about a hundred passes over their table. An overlap becomes a finding of
//! `volfs verify`.

use std::borrow::Cow;

use crate::format::{Finding, FormatError};
use crate::volume::Dims;

/// The ranges that a pass keeps at least. It keeps at most twice this number, of 32 bytes each.
const WINDOW: usize = 1 << 20;

/// A part of a file that is no brick: its name, offset and length.
pub(crate) type Part = (Cow<'static, str>, u64, u64);

/// The owner of a range. Two numbers of the caller say which brick or page it is; of a part it is the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Brick(u32, u64),
    Page(u32, u64),
    Part(u32),
}

/// A range of a file and its owner: no two have the same. Ranges are ordered by where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    pub offset: u64,
    pub length: u64,
    pub owner: Owner,
}

impl Extent {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// Two ranges that have bytes in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// The one that begins first.
    pub first: Extent,
    pub second: Extent,
}

impl Overlap {
    /// Returns whether the two are one range with two owners.
    pub(crate) fn is_shared(&self) -> bool {
        (self.first.offset, self.first.length) == (self.second.offset, self.second.length)
    }

    /// Reports the overlap, of a brick if one of the two is a brick (`kind` in the format's words). `describe` returns
    /// the name of an owner; of a brick also its layer, level and index.
    pub(crate) fn finding<'a>(
        &self,
        kind: &str,
        describe: impl Fn(Owner) -> (String, Option<(&'a str, usize, Dims)>),
    ) -> Finding {
        let [first, second] = [self.first, self.second].map(|one| (one.offset, describe(one.owner)));
        let ((at, (name, brick)), (other_at, (other, _))) =
            if second.1.1.is_some() { (second, first) } else { (first, second) };
        let Some((layer, lod, brick)) = brick else {
            return Finding::damage(format!("{name} overlaps {other} at byte {other_at}"));
        };
        let reason = match self.is_shared() {
            true => format!("{kind} at byte {at} has the place of {other}"),
            false => format!("{kind} at byte {at} overlaps {other} at byte {other_at}"),
        };
        Finding::damage(reason).of_layer(layer).of_lod(lod).of_brick(brick)
    }
}

/// Adds an item to the least ones: all of a sequence, or at least `size` and fewer than twice as many. `last` is the
/// greatest of them once others were left out.
pub(crate) fn keep_least<T: Copy + Ord>(items: &mut Vec<T>, last: &mut Option<T>, size: usize, item: T) {
    if last.is_some_and(|last| item > last) {
        return;
    }
    items.push(item);
    if items.len() >= 2 * size {
        items.select_nth_unstable(size - 1);
        items.truncate(size);
        *last = items.iter().max().copied();
    }
}

/// Reports every range that has bytes in common with one that begins before it. `visit_bricks` visits all ranges but
/// those of `parts` in any order, and is called once for each pass. Empty ranges overlap nothing.
pub(crate) fn find_overlaps(
    parts: &[Part],
    mut visit_bricks: impl FnMut(&mut dyn FnMut(Extent)) -> Result<(), FormatError>,
    found: impl FnMut(Overlap),
) -> Result<(), FormatError> {
    let visit_all = |visit: &mut dyn FnMut(Extent)| {
        for (number, (_, offset, length)) in (0..).zip(parts) {
            visit(Extent { offset: *offset, length: *length, owner: Owner::Part(number) });
        }
        visit_bricks(visit)
    };
    find_in_windows(WINDOW, visit_all, found)
}

fn find_in_windows(
    size: usize,
    mut visit_all: impl FnMut(&mut dyn FnMut(Extent)) -> Result<(), FormatError>,
    mut found: impl FnMut(Overlap),
) -> Result<(), FormatError> {
    let (mut before, mut furthest) = (None::<Extent>, None::<Extent>);
    loop {
        let (mut window, mut last) = (Vec::new(), None);
        visit_all(&mut |extent| {
            if extent.length > 0 && before.is_none_or(|before| extent > before) {
                keep_least(&mut window, &mut last, size, extent);
            }
        })?;
        window.sort_unstable();
        for second in &window {
            if let Some(first) = furthest.filter(|first| second.offset < first.end()) {
                found(Overlap { first, second: *second });
            }
            if furthest.is_none_or(|known| second.end() > known.end()) {
                furthest = Some(*second);
            }
        }
        // without a last one, nothing was left for another pass
        if last.is_none() {
            return Ok(());
        }
        before = window.last().copied();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(extents: &[(u64, u64)], window: usize) -> (Vec<(u64, bool)>, usize) {
        let (mut found, mut passes) = (Vec::new(), 0);
        let visit_all = |visit: &mut dyn FnMut(Extent)| {
            passes += 1;
            for (number, (offset, length)) in extents.iter().enumerate() {
                visit(Extent { offset: *offset, length: *length, owner: Owner::Brick(0, number as u64) });
            }
            Ok(())
        };
        let mut found_one = |overlap: Overlap| {
            let Owner::Brick(_, number) = overlap.second.owner else { unreachable!() };
            found.push((number, overlap.is_shared()));
        };
        find_in_windows(window, visit_all, &mut found_one).unwrap();
        found.sort_unstable();
        (found, passes)
    }

    #[test]
    fn neighbours_do_not_overlap_and_shared_ranges_are_told_apart() {
        assert_eq!(found(&[(0, 10), (10, 10), (30, 0), (15, 0)], 100), (vec![], 1));
        assert_eq!(found(&[(10, 10), (0, 11), (40, 5), (40, 5)], 100).0, [(0, false), (3, true)]);
        // the long one reaches beyond its neighbour
        assert_eq!(found(&[(0, 100), (1, 2), (50, 1)], 100).0, [(1, false), (2, false)]);
        assert_eq!(found(&[(u64::MAX - 9, u64::MAX), (u64::MAX - 3, 1)], 100).0, [(1, false)]);
    }

    #[test]
    fn ranges_that_are_all_the_same_take_no_more_memory() {
        let (found, passes) = found(&[(7, 3); 1000], 10);
        assert_eq!(found.len(), 999);
        assert!(passes <= 1000 / 10 + 1, "{passes}");
    }

    proptest! {
        #[test]
        fn windows_find_what_all_pairs_have(
            extents in prop::collection::vec((0u64..300, 0u64..6), 0..80), window in 1usize..40
        ) {
            let end = |n: usize| extents[n].0 + extents[n].1;
            let key = |n: usize| (extents[n], n);
            let overlaps = |n: &usize| extents[*n].1 > 0
                && (0..extents.len()).any(|m| extents[m].1 > 0 && key(m) < key(*n) && end(m) > extents[*n].0);
            let expected: Vec<u64> = (0..extents.len()).filter(overlaps).map(|n| n as u64).collect();
            let found: Vec<u64> = found(&extents, window).0.into_iter().map(|(number, _)| number).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
