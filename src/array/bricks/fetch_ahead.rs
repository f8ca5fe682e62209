//! Tells a source that takes long to answer which bytes are about to be read, so that they are requested together.

use std::ops::Range;

use super::access::BrickAccess;
use super::read_strategy::is_loaded_whole;
use crate::format::FormatError;
use crate::source::Blocking;
use crate::volume::{Brick, Dims, ObjectName, Region};

/// Parts of plain bricks that span more than this are not fetched ahead: they may be rows far from each other.
const MAX_SPAN: u64 = 8 << 20;

impl BrickAccess {
    /// Returns whether [`BrickAccess::fetch_ahead`] does anything.
    pub(crate) fn fetches_ahead(&self) -> bool {
        self.array().source().fetches_ahead()
    }

    /// Has the source begin to fetch what is stored of some bricks, each with the region that is needed of it, unless
    /// they are in memory. May wait for tables. Returns whether the source had room for all of them: if not, this is to
    /// be called again when some were read.
    pub(crate) fn fetch_ahead(&self, bricks: impl Iterator<Item = (Dims, Region)>) -> bool {
        self.will_need(bricks, false)
    }

    /// Has the source begin to fetch what is stored of a brick that is loaded next: what is checked about the brick
    /// comes with its bytes, and must not be asked for by itself.
    pub(crate) fn fetch_now(&self, at: &Dims, region: &Region) {
        if self.fetches_ahead() {
            self.will_need(std::iter::once((*at, *region)), true);
        }
    }

    fn will_need(&self, bricks: impl Iterator<Item = (Dims, Region)>, awaited: bool) -> bool {
        let wanted: Vec<_> = bricks.filter_map(|(at, region)| self.stored_range(&at, &region)).collect();
        let ranges: Vec<_> = wanted.iter().map(|(object, range)| (&**object, range.clone())).collect();
        ranges.is_empty() || self.array().source().will_need(&ranges, awaited)
    }

    /// Returns the bytes that are read for a region of a brick; `None` if there are none, or nobody knows. What is wrong
    /// with the brick is told to who reads it.
    fn stored_range(&self, at: &Dims, region: &Region) -> Option<(ObjectName, Range<u64>)> {
        if self.is_in_memory(at, region) {
            return None;
        }
        let known = self.array().brick(at, Blocking::No);
        if !known.as_ref().is_err_and(FormatError::would_block) {
            return self.range_in(known.ok()?, region);
        }
        // what is checked about the brick is read with it
        match self.array().stored_range(at).ok()? {
            Some(range) => Some(range),
            None => self.range_in(self.array().brick(at, Blocking::No).ok()?, region),
        }
    }

    fn range_in(&self, brick: Brick, region: &Region) -> Option<(ObjectName, Range<u64>)> {
        match brick {
            Brick::Constant(_) => None,
            Brick::Coded(coded) => {
                let end = coded.offset.checked_add(coded.length.most())?;
                Some((coded.object, coded.offset..end))
            }
            Brick::Plain(plain) => {
                let region = if is_loaded_whole(&plain, self) { &plain.layout.held } else { region };
                let last = Dims::from_fn(region.shape.len(), |axis| region.end(axis).saturating_sub(1));
                if !plain.layout.held.contains(region) {
                    return None;
                }
                let begin = plain.offset.checked_add(plain.layout.offset_of(&region.start))?;
                let end = plain.offset.checked_add(plain.layout.offset_of(&last))?;
                let end = end.checked_add(self.sample_size() as u64)?;
                (end.saturating_sub(begin) <= MAX_SPAN).then_some((plain.object, begin..end))
            }
        }
    }
}
