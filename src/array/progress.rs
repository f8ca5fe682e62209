//! How far one reader of a file has come, and whether it reads in order. In samples, in the order of the file.
//!
//! The kernel does not tell which program a read is for, and it delivers the reads of one program slightly out of
//! order. It asks for some bytes by itself, and never again for those that its page cache holds.

use std::ops::Range;

/// The kernel's requests for one reader are out of order by no more than this many bytes.
pub(super) const REORDER_WINDOW: u64 = 1 << 20;
/// Bytes that the kernel reads before the wanted ones, at most, for a page fault of a memory map: half its window, and
/// a page.
const READ_AROUND: u64 = 68 << 10;
/// Bytes that the kernel reads beyond the wanted ones by itself, at most: two windows.
const READ_AHEAD: u64 = 256 << 10;

/// How far one reader has come, by itself and with what is read ahead of it, and how much of that range was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The first sample of the range.
    pub(crate) first: u64,
    /// One past the last sample that the reader has asked for by itself.
    pub(crate) own: u64,
    /// One past the last sample that was read, by the reader or ahead of it.
    pub(super) next: u64,
    /// One past the last sample for which read-ahead was requested.
    pub(crate) requested: u64,
    /// Samples of the range that were read, or are read ahead since that was requested.
    covered: u64,
}

impl Progress {
    /// A reader that begins with `read`.
    pub(super) fn new(read: &Range<u64>) -> Self {
        let covered = read.end.saturating_sub(read.start);
        Self { first: read.start, own: read.end, next: read.end, requested: 0, covered }
    }

    /// Samples from the first to the last that was read, whether or not all of them were.
    pub(super) fn length(&self) -> u64 {
        self.next.saturating_sub(self.first)
    }

    /// Whether three quarters of the range were read, or more.
    pub(crate) fn is_in_order(&self) -> bool {
        self.covered >= self.length() / 4 * 3
    }

    /// Returns the end of the plane that the reader has begun with, if it may want this one only: it has not read on
    /// further than the kernel does by itself. A sample has `size` bytes in the file.
    pub(crate) fn end_of_only_plane(&self, plane: u64, size: u64) -> Option<u64> {
        let (size, plane) = (size.max(1), plane.max(1));
        let end = ((self.first.saturating_add(READ_AROUND / size)) / plane + 1).saturating_mul(plane);
        (self.own <= end.saturating_add(READ_AHEAD / size)).then_some(end)
    }

    /// Returns how far a read is from what is known of the reader, and from its own position, if it may be the
    /// reader's.
    pub(super) fn distance(&self, read: &Range<u64>, plane: u64, size: u64) -> Option<(u64, u64)> {
        let (start, end) = (read.start, self.next.max(self.requested));
        let back = REORDER_WINDOW / size;
        // the rows of a box in the next plane belong to the same reader: they are at the same place in their plane
        let shift = start.abs_diff(self.first) % plane;
        let forward = if shift.min(plane - shift) <= back { back.max(2 * plane) } else { back };
        // a read that is a plane before the reader's first sample is another reader's, or that of one which goes
        // backwards
        let late = back.min((plane / 2).max(read.end.saturating_sub(start) / 2));
        let is_near = (self.own.saturating_sub(back)..=end.saturating_add(forward)).contains(&start)
            && start.saturating_add(late) >= self.first;
        let beyond = self.own.saturating_sub(start) + start.saturating_sub(end);
        is_near.then(|| (beyond, self.own.abs_diff(start)))
    }

    /// Records a read. Returns whether the reader is sequential: it has come `threshold` samples or more and has read
    /// three quarters of them. A reader that has come as far but left out more, such as one that reads the rows of a
    /// box, starts again with this read.
    pub(super) fn record(&mut self, read: &Range<u64>, ahead: bool, threshold: u64) -> bool {
        self.next = self.next.max(read.end);
        if !ahead {
            self.own = self.own.max(read.end);
        }
        self.covered = self.covered.saturating_add(read.end.saturating_sub(read.start.max(self.requested)));
        if self.length() < threshold {
            return false;
        }
        let sequential = self.is_in_order();
        if !sequential && !ahead {
            (self.first, self.covered) = (read.start, read.end.saturating_sub(read.start));
        }
        sequential
    }

    /// Records that everything up to `end` is read ahead. It counts as read, since the reader need not ask for it.
    pub(crate) fn request(&mut self, end: u64) {
        self.covered = self.covered.saturating_add(end.saturating_sub(self.own.max(self.requested)));
        self.requested = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_sequential_once_it_has_come_far_enough() {
        let mut progress = Progress::new(&(50..60));
        assert!(!progress.record(&(60..70), false, 40));
        // out of order, but nothing is left out
        assert!(progress.record(&(80..90), false, 40));
        assert!(progress.record(&(70..80), false, 40));
        assert_eq!((progress.first, progress.next, progress.length()), (50, 90, 40));
    }

    #[test]
    fn a_reader_that_leaves_out_more_than_a_quarter_begins_anew() {
        let mut progress = Progress::new(&(0..30));
        assert!(progress.record(&(40..40), false, 40), "three quarters are enough");
        assert!(!progress.record(&(44..44), false, 40));
        assert_eq!(progress, Progress { first: 44, own: 44, next: 44, requested: 0, covered: 0 });
        assert!(!progress.record(&(44..83), false, 40));
        assert!(progress.record(&(83..84), false, 40));
    }

    #[test]
    fn a_reader_wants_one_plane_until_it_reads_on_into_others() {
        const PLANE: u64 = 1 << 20;
        // by reads from the beginning of a plane, or by faults of a map
        for first in [5 * PLANE, 5 * PLANE - (64 << 10)] {
            let mut progress = Progress::new(&(first..first + (128 << 10)));
            let mut read_to = |next: u64| {
                progress.record(&(progress.next..next), false, 1 << 18);
                progress.end_of_only_plane(PLANE, 1)
            };
            assert_eq!(read_to(6 * PLANE - 4096), Some(6 * PLANE));
            assert_eq!(read_to(6 * PLANE + (128 << 10)), Some(6 * PLANE));
            assert_eq!(read_to(6 * PLANE + (512 << 10)), None);
        }
    }

    #[test]
    fn what_was_prefetched_counts_as_read() {
        let mut progress = Progress::new(&(0..10));
        progress.request(90);
        assert!(progress.record(&(90..91), false, 40));
        assert_eq!(progress, Progress { first: 0, own: 91, next: 91, requested: 90, covered: 91 });
        let mut short = Progress::new(&(0..10));
        short.request(20);
        assert!(!short.record(&(20..21), false, 40));
    }

    #[test]
    fn what_is_read_ahead_counts_once_in_any_order_and_moves_the_reader_only_when_it_comes_there() {
        let mut progress = Progress::new(&(0..40));
        progress.request(200);
        for read in [160..200, 80..120, 120..160, 40..80] {
            assert!(progress.record(&read, true, 40), "{read:?}");
        }
        assert_eq!(progress, Progress { first: 0, own: 40, next: 200, requested: 200, covered: 200 });
        assert!(progress.record(&(100..101), false, 40));
        assert_eq!(progress, Progress { first: 0, own: 101, next: 200, requested: 200, covered: 200 });
    }

    #[test]
    fn a_reader_jumps_to_the_same_place_in_the_next_plane_and_only_there() {
        const PLANE: u64 = 16 << 20;
        let progress = Progress::new(&(PLANE..PLANE + 4096));
        let distance = |start| progress.distance(&(start..start + 4096), PLANE, 1).map(|(beyond, _)| beyond);
        assert_eq!(distance(PLANE + 4096), Some(0));
        assert_eq!(distance(2 * PLANE), Some(PLANE - 4096));
        assert_eq!((distance(PLANE + PLANE / 2), distance(4 * PLANE), distance(0)), (None, None, None));
        assert_eq!(distance(PLANE + (1 << 20)), Some((1 << 20) - 4096));
    }
}
