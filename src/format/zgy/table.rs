//! The brick table: one 64-bit entry for each brick of each level (section 6).

use std::sync::Arc;

use super::levels::Level;
use super::swapped::swap_halves;
use crate::format::FormatError;
use crate::source::{Index, IndexCache, Source, SourceError, WHOLE, Wait};

/// Larger tables are not put in order of their offsets.
const SORTED: u64 = 32 << 20;
/// What is below the top byte.
const LOW: u64 = (1 << 56) - 1;

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Never written.
    Missing,
    /// All samples have the storage value in the low bytes.
    Constant(u64),
    /// The samples are at this place in the file.
    Stored(u64),
    /// A compressed brick is at this place in the file.
    Compressed(u64),
    /// None of these.
    Unknown,
}

impl Entry {
    /// The order of the tests is the format's.
    pub(super) fn of(entry: u64) -> Self {
        match (entry, entry >> 56) {
            (0, _) => Self::Missing,
            (1, _) => Self::Constant(0),
            (_, 0x80) => Self::Constant(entry),
            (_, 0xc0) => Self::Compressed(entry & LOW),
            (_, 0x81..) => Self::Unknown,
            _ => Self::Stored(entry),
        }
    }

    /// Where its bytes are, if it has any.
    pub(super) fn offset(self) -> Option<u64> {
        match self {
            Self::Stored(offset) | Self::Compressed(offset) => Some(offset),
            _ => None,
        }
    }
}

/// The table of one file.
pub(super) struct Table {
    index: Index,
    swapped: bool,
    /// Bytes of the file.
    pub file: u64,
}

impl Table {
    /// The table of `entries` entries at `start`, which must lie within the file. Version 1 has half-swapped entries.
    pub(super) fn new(
        source: Arc<dyn Source>,
        cache: Arc<IndexCache>,
        (start, entries): (u64, u64),
        version: u32,
        file: u64,
    ) -> Self {
        Self { index: Index::new(source, WHOLE, start, entries.saturating_mul(8), cache), swapped: version == 1, file }
    }

    /// Entry `number` as it is meant.
    pub(super) fn entry(&self, number: u64, wait: Wait) -> Result<u64, SourceError> {
        self.index.u64_at(number.saturating_mul(8), wait).map(|raw| self.meant(raw))
    }

    fn meant(&self, raw: u64) -> u64 {
        if self.swapped { swap_halves(raw) } else { raw }
    }

    /// Hands all entries of `level` to `visit` until it says `false`.
    pub(super) fn scan(&self, level: &Level, mut visit: impl FnMut(u64) -> bool) -> Result<(), SourceError> {
        self.index.scan(level.start, level.count, |raw| visit(self.meant(raw)))
    }

    /// How many levels have data (section 5): writers may leave out all but the finest, and then the last one, which is a
    /// single brick, is missing. Where nothing was ever written all of them are equally good.
    pub(super) fn usable(&self, levels: &[Level]) -> Result<usize, FormatError> {
        let ([finest, .., _], Entry::Missing) = (levels, Entry::of(self.entry(0, Wait::Yes)?)) else {
            return Ok(levels.len());
        };
        let mut written = false;
        self.scan(finest, |entry| {
            written = entry != 0;
            !written
        })?;
        Ok(if written { 1 } else { levels.len() })
    }

    /// Where a compressed brick at `offset` ends at the latest (section 7); `plain` are the bytes of its samples.
    pub(super) fn limit(&self, offset: u64, plain: u64, wait: Wait) -> Result<u64, SourceError> {
        let most = offset.saturating_add(plain).min(self.file);
        if self.index.length() > SORTED {
            return Ok(most);
        }
        let sorted = self.index.sorted(wait, || self.offsets())?;
        let next = sorted.get(sorted.partition_point(|other| *other <= offset));
        Ok(next.map_or(most, |next| most.min(*next)))
    }

    /// All places where bricks begin, in ascending order.
    fn offsets(&self) -> Result<Vec<u64>, SourceError> {
        let entries = self.index.length() / 8;
        // grown step by step it would take twice as much; what is not used of this is never touched
        let mut offsets = Vec::with_capacity(usize::try_from(entries).unwrap_or(0));
        self.index.scan(0, entries, |raw| {
            offsets.extend(Entry::of(self.meant(raw)).offset());
            true
        })?;
        offsets.sort_unstable();
        offsets.dedup();
        Ok(offsets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_tested_in_the_formats_order() {
        assert_eq!(Entry::of(0), Entry::Missing);
        assert_eq!(Entry::of(1), Entry::Constant(0));
        assert_eq!(Entry::of(2), Entry::Stored(2));
        assert_eq!(Entry::of(0x7fff_ffff_ffff_ffff), Entry::Stored(0x7fff_ffff_ffff_ffff));
        assert_eq!(Entry::of(0x8000_0000_0000_0001), Entry::Constant(0x8000_0000_0000_0001));
        assert_eq!(Entry::of(0xc000_0000_0000_1000), Entry::Compressed(0x1000));
        for top in (0x81..=0xff).filter(|top| *top != 0xc0) {
            assert_eq!(Entry::of(top << 56 | 0x1000), Entry::Unknown);
        }
    }
}
