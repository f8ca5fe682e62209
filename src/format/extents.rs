//! Finds ranges of a file that overlap, in bounded memory however many there are.
//!
//! The ranges are visited in several passes. Each pass keeps the next ones in ascending order, as many as the memory
//! holds, and compares neighbours. A hundred million bricks take about a hundred passes over their table.

use crate::format::FormatError;

/// Ranges that a pass keeps at least; it never keeps more than twice as many, of 32 bytes each.
const WINDOW: usize = 1 << 20;

/// A range of a file and its owner. Ranges are ordered by where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
    /// Opaque: who owns it. No two ranges have the same owner.
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
        let (mut window, mut last) = (Vec::new(), None::<Extent>);
        visit_all(&mut |extent| {
            let is_next = before.is_none_or(|before| extent > before) && last.is_none_or(|last| extent <= last);
            if extent.length == 0 || !is_next {
                return;
            }
            window.push(extent);
            if window.len() >= 2 * size {
                window.select_nth_unstable(size - 1);
                window.truncate(size);
                last = window.iter().max().copied();
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
