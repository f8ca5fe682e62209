//! Which files the cache has, when each was last used, and which have to go. The folder is the truth: a file that the
//! index has may be gone, and one that it has not may be there.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::format::{SHARDS, StoredRange, shard, shard_before};
use crate::sync::Mutex;

/// How many ranges that begin before a byte are looked at to find one that holds it.
const LOOKED_AT: usize = 16;

const RATE: i64 = 32;
/// Files that were last used earlier than this before the process began count as equally old.
const OLDEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// The time of use that a file has on disk is this late at most.
const LATE: u32 = 600 * RATE as u32;
const LATEST: u32 = u32::MAX - 1;
/// The tick of a file that is damaged and cannot be removed: it takes its space, and is never read.
pub(super) const DAMAGED: u32 = u32::MAX;

/// Converts times into ticks of 1/32 s, which last for three years.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastUsed {
    /// Seconds since 1970 at tick 0.
    start: i64,
}

impl LastUsed {
    fn new() -> Self {
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(OLDEST);
        Self { start: i64::try_from(start.as_secs()).unwrap_or(0) }
    }

    pub(super) fn tick(self, (seconds, nanoseconds): (i64, i64)) -> u32 {
        let part = nanoseconds / (1_000_000_000 / RATE);
        let ticks = seconds.saturating_sub(self.start).saturating_mul(RATE).saturating_add(part);
        u32::try_from(ticks.max(0)).unwrap_or(LATEST).min(LATEST)
    }

    pub(super) fn now(self) -> u32 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.tick((i64::try_from(now.as_secs()).unwrap_or(0), i64::from(now.subsec_nanos())))
    }

    /// Returns whether the time of use that a file has on disk is to be renewed.
    pub(super) fn is_late(now: u32, used: u32) -> bool {
        now.saturating_sub(used) > LATE
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Amount {
    pub(super) fn one(range: &StoredRange) -> Self {
        Self { bytes: range.weight(), files: 1 }
    }

    /// Returns whether neither is less than that of `other`.
    pub(super) fn covers(self, other: Self) -> bool {
        self.bytes >= other.bytes && self.files >= other.files
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), files: self.files.saturating_add(other.files) }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), files: self.files.saturating_sub(other.files) }
    }
}

/// The files of all folders. An entry takes 24 bytes, and the spare room of the lists an eighth of that.
pub(super) struct Index {
    shards: Box<[Mutex<Shard>]>,
    bytes: AtomicU64,
    files: AtomicU64,
    pub(super) clock: LastUsed,
}

#[derive(Default)]
struct Shard {
    /// In the order of objects and offsets.
    entries: Vec<Entry>,
    /// When the folder had last changed as its files were last read, in seconds and nanoseconds since 1970.
    listed: Option<(i64, i64)>,
}

#[derive(Clone, Copy)]
struct Entry {
    object: u64,
    offset: u64,
    length: u32,
    used: u32,
}

impl Entry {
    fn range(self) -> StoredRange {
        StoredRange { object: self.object, offset: self.offset, length: self.length }
    }
}

impl Shard {
    fn position(&self, range: &StoredRange) -> Result<usize, usize> {
        self.entries.binary_search_by_key(range, |entry| entry.range())
    }

    /// Returns the range that holds the byte at `offset` and ends last.
    fn holding(&self, object: u64, offset: u64) -> Option<StoredRange> {
        let after = self.entries.partition_point(|entry| (entry.object, entry.offset) <= (object, offset));
        let before = self.entries[..after].iter().rev().take(LOOKED_AT);
        let before = before.filter(|entry| entry.used != DAMAGED).map(|entry| entry.range());
        before.filter(|range| range.object == object && range.end() > offset).max_by_key(StoredRange::end)
    }
}

impl Index {
    pub(super) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, bytes: AtomicU64::new(0), files: AtomicU64::new(0), clock: LastUsed::new() }
    }

    pub(super) fn amount(&self) -> Amount {
        Amount { bytes: self.bytes.load(Relaxed), files: self.files.load(Relaxed) }
    }

    fn discount(&self, range: &StoredRange) {
        self.bytes.fetch_sub(range.weight(), Relaxed);
        self.files.fetch_sub(1, Relaxed);
    }

    pub(super) fn insert(&self, range: StoredRange, used: u32) -> bool {
        let mut shard = self.shards[range.shard()].lock();
        let Err(at) = shard.position(&range) else { return false };
        if shard.entries.len() == shard.entries.capacity() {
            let spare = shard.entries.len() / 8 + 4;
            shard.entries.reserve_exact(spare);
        }
        shard.entries.insert(at, Entry { object: range.object, offset: range.offset, length: range.length, used });
        self.bytes.fetch_add(range.weight(), Relaxed);
        self.files.fetch_add(1, Relaxed);
        true
    }

    pub(super) fn remove(&self, range: StoredRange) -> bool {
        let mut shard = self.shards[range.shard()].lock();
        let Ok(at) = shard.position(&range) else { return false };
        shard.entries.remove(at);
        self.discount(&range);
        true
    }

    /// Notes that a file is used now, or is [`DAMAGED`], and returns when it was used before.
    pub(super) fn touch(&self, range: StoredRange, now: u32) -> Option<u32> {
        let mut shard = self.shards[range.shard()].lock();
        let at = shard.position(&range).ok()?;
        let used = shard.entries[at].used;
        if used != DAMAGED {
            shard.entries[at].used = now;
        }
        Some(used)
    }

    /// Returns ranges that together hold the bytes from `offset` to `end`, in order; `None` if there are none.
    pub(super) fn cover(&self, object: u64, offset: u64, end: u64) -> Option<Vec<StoredRange>> {
        let mut found = Vec::new();
        let mut at = offset;
        while at < end {
            let holding = |shard: usize| self.shards[shard].lock().holding(object, at);
            let range = holding(shard(object, at)).or_else(|| holding(shard_before(object, at)?))?;
            at = range.end();
            found.push(range);
        }
        Some(found)
    }

    /// Returns when a folder had last changed as its files were last read.
    pub(super) fn listed(&self, shard: usize) -> Option<(i64, i64)> {
        self.shards[shard].lock().listed
    }

    /// Adds files that a folder was seen to have; `true` if one was new.
    pub(super) fn add(&self, shard: usize, files: &[(StoredRange, u32)], listed: Option<(i64, i64)>) -> bool {
        let new = files.iter().filter(|(range, used)| self.insert(*range, *used)).count();
        self.shards[shard].lock().listed = listed;
        new > 0
    }

    /// Returns which files of a folder the index does not have.
    pub(super) fn unknown(&self, shard: usize, files: Vec<StoredRange>) -> Vec<StoredRange> {
        let shard = self.shards[shard].lock();
        files.into_iter().filter(|range| shard.position(range).is_err()).collect()
    }

    /// Removes all files of a folder but those that it was seen to have, which are in order.
    pub(super) fn retain(&self, shard: usize, files: &[StoredRange]) {
        self.shards[shard].lock().entries.retain(|entry| {
            let stays = files.binary_search(&entry.range()).is_ok();
            if !stays {
                self.discount(&entry.range());
            }
            stays
        });
    }

    /// Returns the earliest tick for which the files that were not used after it amount to `excess`.
    pub(super) fn tick_of_excess(&self, excess: Amount) -> u32 {
        let (mut tick, mut before) = (0_u32, Amount::default());
        // a digit of eight bits after the other, so that no list of all files is needed
        for shift in [24, 16, 8, 0] {
            let above = |used: u32| used.checked_shr(shift + 8).unwrap_or(0);
            let mut digits = [Amount::default(); 256];
            for shard in &self.shards {
                for entry in shard.lock().entries.iter().filter(|entry| above(entry.used) == above(tick)) {
                    let digit = &mut digits[(entry.used >> shift) as usize & 255];
                    *digit = digit.plus(Amount::one(&entry.range()));
                }
            }
            let mut digit = 0;
            while digit < 255 && !before.plus(digits[digit]).covers(excess) {
                before = before.plus(digits[digit]);
                digit += 1;
            }
            tick |= (digit as u32) << shift;
        }
        tick
    }

    /// Returns the files of a folder whose tick of last use is one of `used`.
    pub(super) fn used(&self, shard: usize, used: impl Fn(u32) -> bool) -> Vec<StoredRange> {
        let shard = self.shards[shard].lock();
        shard.entries.iter().filter(|entry| used(entry.used)).map(|entry| entry.range()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(object: u64, offset: u64, length: u32) -> StoredRange {
        StoredRange { object, offset, length }
    }

    #[test]
    fn ticks_follow_time_and_are_bounded() {
        let clock = LastUsed { start: 1000 };
        assert_eq!([(1000, 0), (1001, 0), (1001, 999_999_999)].map(|time| clock.tick(time)), [0, 32, 63]);
        assert_eq!([-5, i64::MIN, i64::MAX].map(|seconds| clock.tick((seconds, 0))), [0, 0, LATEST]);
        let now = LastUsed::new().now();
        assert!(now > 364 * 24 * 3600 * 32 && now < u32::MAX / 2);
        assert!(!LastUsed::is_late(now, now + 1) && LastUsed::is_late(now, now - LATE - 1));
    }

    #[test]
    fn ranges_are_found_that_hold_a_part_or_do_so_together() {
        let index = Index::new();
        let (a, b, c) = (range(1, 0, 100), range(1, 100, 50), range(1, 120, 80));
        for stored in [b, a, c] {
            assert!(index.insert(stored, 0));
            assert!(!index.insert(stored, 0));
        }
        assert_eq!(index.cover(1, 10, 90), Some(vec![a]));
        assert_eq!(index.cover(1, 0, 150), Some(vec![a, b]));
        assert_eq!(index.cover(1, 90, 200), Some(vec![a, b, c]));
        assert_eq!(index.cover(1, 90, 201), None);
        assert_eq!(index.cover(2, 0, 1), None);
        // the one that reaches farther is taken
        let all = range(1, 0, 1000);
        index.insert(all, 0);
        assert_eq!(index.cover(1, 5, 999), Some(vec![all]));
        assert_eq!(index.cover(1, 150, 999), Some(vec![all]));
        assert!(index.remove(all) && !index.remove(all));
        assert_eq!(index.cover(1, 5, 999), None);
        assert_eq!(index.amount(), Amount { bytes: 3 * 8192, files: 3 });
    }

    #[test]
    fn a_range_over_the_end_of_a_region_is_found_from_both_sides() {
        let index = Index::new();
        let edge = 1 << 26;
        let stored = range(9, edge - 10, 20);
        index.insert(stored, 0);
        assert_ne!(shard(9, edge - 1), shard(9, edge), "choose another object");
        assert_eq!(index.cover(9, edge - 5, edge + 5), Some(vec![stored]));
        assert_eq!(index.cover(9, edge + 5, edge + 10), Some(vec![stored]));
    }

    #[test]
    fn the_least_recently_used_are_found() {
        let index = Index::new();
        for n in 0..1000_u32 {
            index.insert(range(u64::from(n) << 52 | u64::from(n), 0, 4096), n * 70_000);
        }
        index.touch(range(3 << 52 | 3, 0, 4096), 5_000_000);
        let tick = index.tick_of_excess(Amount { bytes: 1, files: 10 });
        assert_eq!(tick, 10 * 70_000, "without number 3");
        let old: usize = (0..SHARDS).map(|shard| index.used(shard, |used| used <= tick).len()).sum();
        assert_eq!(old, 10);
        let weight = range(0, 0, 4096).weight();
        assert_eq!(index.tick_of_excess(Amount { bytes: 2 * weight, files: 0 }), 70_000);
        assert_eq!(index.tick_of_excess(Amount { bytes: 2 * weight + 1, files: 0 }), 140_000);
        assert_eq!(index.tick_of_excess(Amount { bytes: u64::MAX, files: 0 }), u32::MAX);
        assert_eq!(index.touch(range(1, 0, 1), 0), None);
    }

    #[test]
    fn a_listing_adds_files_and_a_scan_removes_what_is_gone() {
        let index = Index::new();
        let (a, b) = (range(1, 0, 10), range(1, 10, 10));
        let shard = a.shard();
        assert!(index.add(shard, &[(a, 1)], Some((1, 2))));
        assert!(!index.add(shard, &[(a, 5)], Some((1, 3))));
        assert_eq!(index.listed(shard), Some((1, 3)));
        assert_eq!(index.unknown(shard, vec![a, b]), [b]);
        index.insert(b, 1);
        index.retain(shard, &[b]);
        assert_eq!((index.cover(1, 0, 5), index.amount().files), (None, 1));
        assert_eq!(size_of::<Entry>(), 24);
    }
}
