//! The brick table: one 64-bit entry for each brick of each level. The top byte of an entry is its kind.
//!
//! Each level has half the bricks of the previous one along each axis, rounded up, until one brick is left. The table
//! begins with the coarsest level and ends with LOD 0. The alpha table, which is only checked, has the same entries.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use crate::format::FormatError;
use crate::memory::try_with_capacity;
use crate::source::{Blocking, Index, IndexCache, Source, SourceError, WHOLE};
use crate::volume::Region;

/// The offsets of larger tables (in bytes) are not sorted.
const MAX_SORTED_BYTES: u64 = 32 << 20;
/// The most entries of LOD 0 that are read to find out whether one of its bricks was written: 64 MiB of them.
const MAX_TRIED: u64 = 8 << 20;
/// Mask of the bits below the top byte.
const LOW: u64 = (1 << 56) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Missing,
    /// All samples have the storage value in the low bytes of the entry.
    Constant(u64),
    /// The samples are at this offset in the file.
    Stored(u64),
    /// A compressed brick is at this offset in the file.
    Compressed(u64),
    Unknown,
}

impl Entry {
    /// Decodes an entry. The order of the tests matters: the values 0 and 1 are special.
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

    /// Returns the offset of the bytes of the brick, if it has any.
    pub(super) fn offset(self) -> Option<u64> {
        match self {
            Self::Stored(offset) | Self::Compressed(offset) => Some(offset),
            _ => None,
        }
    }
}

/// The brick table of one file.
pub(super) struct Table {
    index: Index,
    swapped: bool,
    pub file_bytes: u64,
}

impl Table {
    /// Creates the table of `entries` entries at offset `start`, which must lie within the file. The entries of version
    /// 1 have their 32-bit halves swapped.
    pub(super) fn new(
        source: Arc<dyn Source>,
        cache: Arc<IndexCache>,
        (start, entries): (u64, u64),
        version: u32,
        file_bytes: u64,
    ) -> Self {
        Self {
            index: Index::new(source, WHOLE, start, entries.saturating_mul(8), cache),
            swapped: version == 1,
            file_bytes,
        }
    }

    /// Returns the bytes of the table.
    pub(super) fn length(&self) -> u64 {
        self.index.length()
    }

    /// Reads entry `number` and undoes the swap.
    pub(super) fn entry(&self, number: u64, blocking: Blocking) -> Result<u64, SourceError> {
        self.index.u64_at(number.saturating_mul(8), blocking).map(|raw| self.unswapped(raw))
    }

    fn unswapped(&self, raw: u64) -> u64 {
        if self.swapped { swap_halves(raw) } else { raw }
    }

    /// Calls `visit` for each of `count` entries from `start` on that may be other than 0, with its number among them,
    /// until it returns `false`.
    pub(super) fn scan_stored(
        &self,
        start: u64,
        count: u64,
        mut visit: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), SourceError> {
        self.index.scan_stored(start, count, |number, raw| visit(number - start, self.unswapped(raw)))
    }

    /// Calls `visit` for ranges of the entries of `level` that may be other than 0, as numbers in the level, until it
    /// returns `false`.
    pub(super) fn visit_stored(
        &self,
        level: &Level,
        mut visit: impl FnMut(Range<u64>) -> bool,
    ) -> Result<(), SourceError> {
        self.index.visit_stored(level.start, level.count, |numbers| {
            Ok(visit(numbers.start - level.start..numbers.end - level.start))
        })
    }

    /// Returns how many levels have data. Writers may leave out all levels but the finest; a sign of that is that the
    /// single brick of the last level is missing. If no brick of LOD 0 was written either, all levels are usable, as in
    /// OpenZGY's C++ library. After [`MAX_TRIED`] missing ones the others count as written: a small file may claim more
    /// than can ever be read.
    pub(super) fn usable(&self, levels: &[Level]) -> Result<usize, FormatError> {
        let ([finest, .., _], Entry::Missing) = (levels, Entry::of(self.entry(0, Blocking::Yes)?)) else {
            return Ok(levels.len());
        };
        let (mut written, mut tried) = (false, 0);
        self.scan_stored(finest.start, finest.count, |_, entry| {
            tried += 1;
            written = entry != 0 || tried > MAX_TRIED;
            !written
        })?;
        Ok(if written { 1 } else { levels.len() })
    }

    /// Returns an upper bound of the end of the compressed brick at `offset`, since its length is not stored: the next
    /// brick in the file, the end of the file, or `plain` bytes (those of its samples), whichever comes first.
    pub(super) fn limit(&self, offset: u64, plain: u64, blocking: Blocking) -> Result<u64, SourceError> {
        let most = offset.saturating_add(plain).min(self.file_bytes);
        if self.index.length() > MAX_SORTED_BYTES {
            return Ok(most);
        }
        let sorted = self.index.sorted(blocking, || {
            let entries = self.index.length() / 8;
            // a vector that grows would take twice as much; unused capacity is never touched and so takes no memory
            let mut offsets = try_with_capacity(usize::try_from(entries).unwrap_or(0))?;
            self.index.scan(0, entries, |raw| {
                offsets.extend(Entry::of(self.unswapped(raw)).offset());
                true
            })?;
            offsets.sort_unstable();
            Ok(offsets)
        })?;
        let next = sorted.get(sorted.partition_point(|other| *other <= offset));
        Ok(next.map_or(most, |next| most.min(*next)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Samples along each axis.
    pub shape: [u64; 3],
    /// Bricks along each axis.
    pub bricks: [u64; 3],
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

/// Returns a 64-bit number of version 1, whose halves are exchanged; the exchange is its own inverse.
pub(super) fn swap_halves(number: u64) -> u64 {
    number.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// A file of zeros that knows no holes, as large as its table says; counts what is read.
    struct Zeros(AtomicU64);

    impl Source for Zeros {
        fn len(&self, _: &str) -> Result<Option<u64>, SourceError> {
            Ok(Some(u64::MAX))
        }

        fn read_at(&self, _: &str, _: u64, out: &mut [u8], _: Blocking) -> Result<bool, SourceError> {
            out.fill(0);
            self.0.fetch_add(out.len() as u64, Ordering::Relaxed);
            Ok(true)
        }

        fn check_unchanged(&self) -> Result<(), SourceError> {
            Ok(())
        }
    }

    #[test]
    fn a_table_that_nobody_can_read_is_not_read() {
        let zeros = Arc::new(Zeros(AtomicU64::new(0)));
        for (size, usable) in [([1u64 << 21, 1 << 21, 1024], 1), ([512, 512, 512], 6)] {
            let levels = Levels::new(size, [16; 3]).unwrap();
            let source = Arc::clone(&zeros) as Arc<dyn Source>;
            let table = Table::new(source, IndexCache::new(1 << 20), (0, levels.entries), 3, u64::MAX);
            assert_eq!(table.usable(&levels.all).unwrap(), usable);
            let read = zeros.0.swap(0, Ordering::Relaxed);
            assert!(read < 80 << 20, "{read} bytes");
        }
    }

    #[test]
    fn special_entries_are_tested_before_their_kind() {
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
