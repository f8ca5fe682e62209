//! Checks the tables as a whole: bricks that overlap each other or the header, levels with holes, alpha tiles.

use std::sync::Arc;

use super::bricks::Bricks;
use super::table::{Entry, Level, Table};
use crate::codec::zfp;
use crate::format::extents::{Extent, Overlap, Owner, Part, find_overlaps};
use crate::format::{Finding, FormatError};
use crate::source::{Blocking, SourceError};

/// The name of the only layer.
pub(super) const LAYER: &str = "data";

/// The tables of an open file.
pub(super) struct Checked {
    pub bricks: Arc<Bricks>,
    /// The levels that have data. Entries of other levels may be stale.
    pub levels: Vec<Level>,
    pub alpha: Table,
    /// The parts of the header.
    pub parts: Vec<Part>,
}

impl Checked {
    /// Reports the faults of the tables as a whole.
    pub(super) fn check(&self, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        // no writer stores two bricks at one place, and the C++ library refuses such files
        let describe = |owner| match owner {
            Owner::Brick(lod, number) => {
                let brick = self.levels[lod as usize].position_of(number);
                (format!("brick {brick:?} of lod {lod}"), Some((LAYER, lod as usize, brick.into())))
            }
            Owner::Page(_, _) => (String::new(), None),
            Owner::Part(number) => (self.parts[number as usize].0.to_string(), None),
        };
        let found = |overlap: Overlap| report(overlap.finding("brick", describe));
        find_overlaps(&self.parts, |visit| self.visit_bricks(visit), found)?;
        for lod in 1..self.levels.len() {
            self.check_holes(lod, report)?;
        }
        self.check_alpha(report)
    }

    /// Visits the places of all stored bricks. A compressed brick, whose length is not stored, counts as long as it
    /// must be at least.
    fn visit_bricks(&self, visit: &mut dyn FnMut(Extent)) -> Result<(), FormatError> {
        let (plain, shortest) = (self.bricks.bytes as u64, zfp::shortest(self.bricks.shape));
        for (lod, level) in (0..).zip(&self.levels) {
            self.bricks.table.scan_stored(level.start, level.count, |number, entry| {
                let owner = Owner::Brick(lod, number);
                match Entry::of(entry) {
                    _ if self.bricks.fault(entry).is_some() => {}
                    Entry::Stored(offset) => visit(Extent { offset, length: plain, owner }),
                    Entry::Compressed(offset) => visit(Extent { offset, length: shortest, owner }),
                    _ => {}
                }
                true
            })?;
        }
        Ok(())
    }

    /// Notes bricks of a level that were never written, although the finer level has data there.
    fn check_holes(&self, lod: usize, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        let (Some(level), Some(finer)) = (self.levels.get(lod), self.levels.get(lod - 1)) else { return Ok(()) };
        let (mut holes, mut failed) = (0u64, None);
        // from the finer level: a small file may claim more missing bricks than can ever be visited
        self.bricks.table.scan_stored(finer.start, finer.count, |number, entry| {
            if Entry::of(entry).offset().is_some() {
                match self.is_first_below_hole(level, finer, number) {
                    Ok(is_first) => holes += u64::from(is_first),
                    Err(error) => failed = Some(error),
                }
            }
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        if holes > 0 {
            let text = format!("{holes} bricks were never written, although the finer level has data there");
            report(Finding::note(text).of_layer(LAYER).of_lod(lod));
        }
        Ok(())
    }

    /// Returns whether a brick of `level` was never written, and brick `number` of the level `finer` is the first with
    /// data of the eight that it covers.
    fn is_first_below_hole(&self, level: &Level, finer: &Level, number: u64) -> Result<bool, SourceError> {
        let (table, at) = (&self.bricks.table, finer.position_of(number));
        let above = at.map(|n| n / 2);
        let Some(entry) = level.entry(above) else { return Ok(false) };
        if table.entry(entry, Blocking::Yes)? != 0 {
            return Ok(false);
        }
        let siblings = (0..8u64).map(|n| [0, 1, 2].map(|axis| 2 * above[axis] + (n >> axis & 1)));
        for sibling in siblings.take_while(|sibling| *sibling != at).filter_map(|sibling| finer.entry(sibling)) {
            if Entry::of(table.entry(sibling, Blocking::Yes)?).offset().is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes alpha tiles that are not within the file. They are not shown, and may be anything.
    fn check_alpha(&self, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        let [i, j, _] = self.bricks.shape;
        let mut outside = 0u64;
        self.alpha.scan_stored(0, self.alpha.length() / 8, |_, entry| {
            let end = Entry::of(entry).offset().map(|offset| offset.saturating_add(i * j));
            outside += u64::from(end.is_some_and(|end| end > self.alpha.file_bytes));
            true
        })?;
        if outside > 0 {
            report(Finding::note(format!("{outside} alpha tiles lie beyond the end of the file (they are not shown)")));
        }
        Ok(())
    }
}
