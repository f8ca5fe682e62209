//! Finds ranges of a file that overlap, in bounded memory however many there are.
//!
//! The ranges are visited in several passes. Each pass keeps the next million in ascending order, and compares neighbours.
//! A hundred million bricks take about a hundred passes over their table. An overlap becomes a finding of `volfs verify`.

use crate::format::{Finding, FormatError};
use crate::volume::Dims;

/// The ranges that a pass keeps at least. It keeps at most twice this number, of 32 bytes each.
const WINDOW: usize = 1 << 20;

/// A range of a file and its owner. Ranges are ordered by where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
    /// Two numbers that the caller chooses. No two ranges have the same owner.
    pub owner: (u32, u64),
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
    /// The other one.
    pub second: Extent,
}

impl Overlap {
    /// Returns whether the two are one range with two owners.
    pub(crate) fn is_shared(&self) -> bool {
        (self.first.offset, self.first.length) == (self.second.offset, self.second.length)
    }

    /// Reports the overlap, of a brick if one of the two is a brick (`kind` in the format's words): `brick_of` returns its
    /// layer, level and index. `name_of` names ranges of every owner.
    pub(crate) fn finding<'a>(
        &self,
        kind: &str,
        brick_of: impl Fn(&Extent) -> Option<(&'a str, usize, Dims)>,
        name_of: impl Fn(&Extent) -> String,
    ) -> Finding {
        let Self { first, second } = self;
        let (named, against) = if brick_of(second).is_some() { (second, first) } else { (first, second) };
        let (other, at) = (name_of(against), against.offset);
        let Some((layer, lod, brick)) = brick_of(named) else {
            return Finding::damage(format!("{} overlaps {other} at byte {at}", name_of(named)));
        };
        let reason = match self.is_shared() {
            true => format!("{kind} at byte {} has the place of {other}", named.offset),
            false => format!("{kind} at byte {} overlaps {other} at byte {at}", named.offset),
        };
        Finding::damage(reason).of_layer(layer).of_lod(lod).of_brick(brick)
    }
}

/// Adds an item to the least ones: all of a sequence, or at least `size` and fewer than twice as many. `last` is the greatest
/// of them once others were left out.
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

/// Reports every range that has bytes in common with one that begins before it. `visit_all` visits all ranges in any
/// order, and is called once for each pass. Empty ranges overlap nothing.
pub(crate) fn find_overlaps(
    visit_all: impl FnMut(&mut dyn FnMut(Extent)) -> Result<(), FormatError>,
    found: impl FnMut(Overlap),
) -> Result<(), FormatError> {
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
                visit(Extent { offset: *offset, length: *length, owner: (0, number as u64) });
            }
            Ok(())
        };
        find_in_windows(window, visit_all, |overlap| found.push((overlap.second.owner.1, overlap.is_shared())))
            .unwrap();
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
