//! Index tables, which hold where bricks are stored. They are read page by page when they are needed, into a cache with
//! one bound for all datasets.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::{Blocking, Source, SourceError, new_number};
use crate::memory::{LruByWeight, try_zeroed};
use crate::sync::{Mutex, OfProcess};

/// Bytes of a page of a table: 2,048 entries of 8 bytes.
const PAGE: u64 = 16 << 10;

/// Entries that are read at a time by a scan.
const PIECE: u64 = 16 * PAGE / 8;

/// A scan looks for holes only in more bytes of a table than this. Others are read, which is soon done.
const DENSE: u64 = 64 << 20;

/// The key of a part of a table: a number from [`IndexCache::new_id`], and two more that the table chooses.
pub(crate) type PartKey = (u64, u64, u64);

type Part = Arc<dyn Any + Send + Sync>;
/// The parts that a thread keeps.
type LastParts = [Option<(PartKey, Part)>; THREAD_PARTS];

/// The number of parts that each thread keeps. Neighbouring bricks are in the same part, and a request touches a
/// hundred bricks.
const THREAD_PARTS: usize = 4;
/// Threads keep no larger parts, since these are not counted in the bound of the cache.
const THREAD_PART_BYTES: usize = 64 << 10;

thread_local! {
    static LAST_USED: RefCell<OfProcess<LastParts>> =
        const { RefCell::new(OfProcess::new([const { None }; THREAD_PARTS])) };
}

/// Caches parts of all tables, bounded in bytes.
pub(crate) struct IndexCache {
    parts: Mutex<LruByWeight<PartKey, Part>>,
    sorted: Mutex<LruByWeight<u64, Arc<Vec<u64>>>>,
}

impl IndexCache {
    /// Keeps at most `bound` bytes: a fifth of them for parts of tables, the rest for sorted offsets. Offsets that do
    /// not fit are sorted again whenever they are needed.
    pub(crate) fn new(bound: usize) -> Arc<Self> {
        let (parts, sorted) = (LruByWeight::new(bound / 5), LruByWeight::new(bound - bound / 5));
        Arc::new(Self { parts: Mutex::new(parts), sorted: Mutex::new(sorted) })
    }

    /// Returns a number that no table has had before, for the keys of a table's parts.
    pub(crate) fn new_id() -> u64 {
        new_number()
    }

    pub(crate) fn get<T: Any + Send + Sync>(&self, key: PartKey) -> Option<Arc<T>> {
        // the parts of a thread are never stale: a key belongs to one table of the process, and a part never changes
        let part = LAST_USED.with_borrow_mut(|last_used| {
            let slot = &mut last_used.get()[(key.1 ^ key.2) as usize % THREAD_PARTS];
            if let Some((known, part)) = slot
                && *known == key
            {
                return Some(Arc::clone(part));
            }
            let mut parts = self.parts.lock();
            let part = parts.get(&key)?;
            if parts.weight_of(&key) <= THREAD_PART_BYTES {
                *slot = Some((key, Arc::clone(&part)));
            }
            Some(part)
        });
        part?.downcast().ok()
    }

    pub(crate) fn insert<T: Any + Send + Sync>(&self, key: PartKey, part: &Arc<T>, bytes: usize) {
        let dropped = self.parts.lock().insert(key, Arc::clone(part) as Part, bytes);
        drop(dropped);
    }
}

/// A table in one object of a source, from byte `start` on, `length` bytes long.
pub(crate) struct Index {
    id: u64,
    source: Arc<dyn Source>,
    object: Box<str>,
    start: u64,
    length: u64,
    cache: Arc<IndexCache>,
}

impl Index {
    /// Creates the table at `start .. start + length` of `object`, which must lie within the object.
    pub(crate) fn new(source: Arc<dyn Source>, object: &str, start: u64, length: u64, cache: Arc<IndexCache>) -> Self {
        Self { id: IndexCache::new_id(), source, object: object.into(), start, length, cache }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn u64_at(&self, at: u64, blocking: Blocking) -> Result<u64, SourceError> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes, blocking)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn read(&self, at: u64, out: &mut [u8], blocking: Blocking) -> Result<(), SourceError> {
        let length = out.len() as u64;
        if at.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(SourceError::TooShort { offset: at, length, size: self.length });
        }
        let (mut at, mut out) = (at, out);
        while !out.is_empty() {
            let page = self.page(at / PAGE, blocking)?;
            let within = (at % PAGE) as usize;
            let n = out.len().min(page.len() - within);
            let (head, rest) = out.split_at_mut(n);
            head.copy_from_slice(&page[within..within + n]);
            out = rest;
            at += n as u64;
        }
        Ok(())
    }

    /// Reads the pages that have a byte of a part of the table, in one request.
    pub(crate) fn load(&self, part: Range<u64>) -> Result<(), SourceError> {
        let first = part.start / PAGE;
        let length = part.end.min(self.length).saturating_sub(first * PAGE);
        let bytes = self.fetch(first * PAGE, length.next_multiple_of(PAGE), Blocking::Yes)?;
        for (number, page) in (first..).zip(bytes.chunks(PAGE as usize)) {
            let page = Arc::new(page.to_vec());
            self.cache.insert((self.id, number, 0), &page, page.capacity());
        }
        Ok(())
    }

    fn page(&self, number: u64, blocking: Blocking) -> Result<Arc<Vec<u8>>, SourceError> {
        let key = (self.id, number, 0);
        if let Some(page) = self.cache.get(key) {
            return Ok(page);
        }
        let page = Arc::new(self.fetch(number * PAGE, PAGE, blocking)?);
        self.cache.insert(key, &page, page.capacity());
        Ok(page)
    }

    fn fetch(&self, at: u64, length: u64, blocking: Blocking) -> Result<Vec<u8>, SourceError> {
        let mut bytes = try_zeroed(length.min(self.length.saturating_sub(at)) as usize)?;
        // the object was there when its length was found out
        if !self.source.read_at(&self.object, self.start + at, &mut bytes, blocking)? {
            return Err(SourceError::Changed);
        }
        self.source.check_unchanged_or(blocking)?;
        Ok(bytes)
    }

    /// Visits the 64-bit numbers of `count` entries from entry `first` on, in order, until `visit` returns `false`.
    /// Uses little memory and bypasses the cache.
    pub(crate) fn scan(&self, first: u64, count: u64, mut visit: impl FnMut(u64) -> bool) -> Result<(), SourceError> {
        let (mut at, end) = (first.saturating_mul(8), first.saturating_add(count).saturating_mul(8));
        if end > self.length {
            return Err(SourceError::TooShort { offset: at, length: end - at, size: self.length });
        }
        while at < end {
            let bytes = self.fetch(at, (end - at).min(8 * PIECE), Blocking::Yes)?;
            at += bytes.len() as u64;
            let (entries, _) = bytes.as_chunks::<8>();
            if !entries.iter().copied().map(u64::from_le_bytes).all(&mut visit) {
                break;
            }
        }
        Ok(())
    }

    /// Visits the numbers of the entries among `count` from entry `first` on that may be other than 0, in order and in
    /// ranges of a few thousand, until `visit` returns `false`. The holes of the file are left out: a small file may
    /// have larger ones than anybody can read.
    pub(crate) fn visit_stored(
        &self,
        first: u64,
        count: u64,
        mut visit: impl FnMut(Range<u64>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        let (mut at, end) = (first, first.saturating_add(count).min(self.length / 8));
        while at < end {
            let stored = self.source.next_stored(&self.object, self.start.saturating_add(at.saturating_mul(8)))?;
            self.source.check_unchanged()?;
            at = at.max(stored.saturating_sub(self.start) / 8);
            let to = end.min(at.saturating_add(PIECE));
            if at >= to || !visit(at..to)? {
                break;
            }
            at = to;
        }
        Ok(())
    }

    /// Visits the entries among `count` from entry `first` on that may be other than 0: each one's number and the
    /// entry, in order, until `visit` returns `false`. Others are left out if they lie in the holes of a long part.
    pub(crate) fn scan_stored(
        &self,
        first: u64,
        count: u64,
        mut visit: impl FnMut(u64, u64) -> bool,
    ) -> Result<(), SourceError> {
        let mut scan = |part: Range<u64>| {
            let (mut number, mut goes_on) = (part.start, true);
            self.scan(part.start, part.end - part.start, |raw| {
                goes_on = visit(number, raw);
                number += 1;
                goes_on
            })?;
            Ok(goes_on)
        };
        match count <= DENSE / 8 {
            true => scan(first..first.saturating_add(count)).map(drop),
            false => self.visit_stored(first, count, scan),
        }
    }

    /// Returns the sorted numbers of this table from the cache, or else those that `make` returns.
    pub(crate) fn sorted(
        &self,
        blocking: Blocking,
        make: impl FnOnce() -> Result<Vec<u64>, SourceError>,
    ) -> Result<Arc<Vec<u64>>, SourceError> {
        let sorted = || self.cache.sorted.lock();
        if let Some(numbers) = sorted().get(&self.id) {
            return Ok(numbers);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        let mut numbers = make()?;
        numbers.shrink_to_fit();
        let numbers = Arc::new(numbers);
        let dropped = sorted().insert(self.id, Arc::clone(&numbers), 8 * numbers.len());
        drop(dropped);
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(u64);

    impl Source for Numbers {
        fn len(&self, _: &str) -> Result<Option<u64>, SourceError> {
            Ok(Some(self.0 * 8))
        }

        fn read_at(&self, _: &str, offset: u64, out: &mut [u8], _: Blocking) -> Result<bool, SourceError> {
            for (to, at) in out.iter_mut().zip(offset..) {
                *to = (at / 8).to_le_bytes()[(at % 8) as usize];
            }
            Ok(true)
        }

        fn check_unchanged(&self) -> Result<(), SourceError> {
            Ok(())
        }
    }

    #[test]
    fn a_thread_keeps_the_small_parts_that_it_has_just_used_and_no_large_ones() {
        let (cache, id) = (IndexCache::new(1 << 20), IndexCache::new_id());
        for (number, bytes) in [(0, 100), (1, THREAD_PART_BYTES + 1)] {
            let (key, part) = ((id, number, 0), Arc::new(number));
            cache.insert(key, &part, bytes);
            assert_eq!(cache.get::<u64>(key).as_deref(), Some(&number));
            assert_eq!(
                Arc::strong_count(&part),
                if number == 0 { 3 } else { 2 },
                "here, in the cache, with the thread"
            );
        }
        assert_eq!(cache.get::<u64>((id, 2, 0)), None);
        assert_eq!(cache.get::<u64>((IndexCache::new_id(), 0, 0)), None, "of another table");
    }

    #[test]
    fn entries_come_from_pages_and_scans_alike() {
        let index = Index::new(Arc::new(Numbers(10_000)), "", 80, 8 * 9_000, IndexCache::new(1 << 20));
        for n in [0, 1, 2047, 2048, 4096, 8999] {
            assert_eq!(index.u64_at(8 * n, Blocking::Yes), Ok(n + 10));
        }
        assert!(matches!(index.u64_at(8 * 9_000, Blocking::Yes), Err(SourceError::TooShort { .. })));
        let mut seen = Vec::new();
        index
            .scan(5, 8_000, |n| {
                seen.push(n);
                true
            })
            .unwrap();
        assert!(seen.iter().copied().eq(15..8_015));
        assert!(index.scan(1, 9_000, |_| true).is_err());
    }
}
