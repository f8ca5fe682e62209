//! Detection of sequential reading: which read belongs to which reader of a file, and which of them read in order.
//!
//! The kernel does not tell which program a read is for, and it delivers the reads of one program slightly out of
//! order. So each open file has a small table of streams, one for each reader, and a read goes to the stream that it
//! continues. Units are the caller's: bytes or samples.

use std::ops::Range;

use crate::sync::Mutex;

/// Streams in one table: the readers of one open file that are told apart.
const CAPACITY: usize = 4;

/// The streams of one open file, least recently used first. In a full table a new one evicts the least recently used.
#[derive(Debug)]
pub(crate) struct StreamTable<S> {
    streams: Mutex<Vec<S>>,
}

impl<S> Default for StreamTable<S> {
    fn default() -> Self {
        Self { streams: Mutex::new(Vec::with_capacity(CAPACITY)) }
    }
}

impl<S> StreamTable<S> {
    /// Finds the stream that a read continues: the one with the smallest `distance`, and the least recently used of
    /// several at the same distance. `distance` returns `None` if the read cannot belong to the stream. Makes the
    /// stream the most recently used, and returns the result of `found`, which runs under the lock of the table. If no
    /// stream matches, inserts `new` and returns `None`.
    pub(crate) fn find_or_insert<D: Ord, R>(
        &self,
        distance: impl Fn(&S) -> Option<D>,
        found: impl FnOnce(&mut S) -> R,
        new: impl FnOnce() -> S,
    ) -> Option<R> {
        let mut streams = self.streams.lock();
        let matching = streams.iter().enumerate().filter_map(|(at, stream)| Some((distance(stream)?, at)));
        if let Some((_, at)) = matching.min() {
            streams[at..].rotate_left(1);
            return streams.last_mut().map(found);
        }
        if streams.len() >= CAPACITY {
            streams.remove(0);
        }
        streams.push(new());
        None
    }

    /// Whether any stream satisfies `condition`, which runs under the lock of the table.
    pub(crate) fn any(&self, condition: impl FnMut(&S) -> bool) -> bool {
        self.streams.lock().iter().any(condition)
    }
}

/// Bytes that the kernel reads before the wanted ones, at most, for a page fault of a memory map: half its window, and a
/// page.
const READ_AROUND: u64 = 68 << 10;
/// Bytes that the kernel reads beyond the wanted ones by itself, at most: two windows.
const READ_AHEAD: u64 = 256 << 10;

/// How far one reader has come, and how much of that range it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    first: u64,
    next: u64,
    covered: u64,
}

impl Progress {
    /// A reader that begins with `read`.
    pub(crate) const fn new(read: &Range<u64>) -> Self {
        Self { first: read.start, next: read.end, covered: read.end.saturating_sub(read.start) }
    }

    /// The first unit of the range.
    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// One past the last unit that was read.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Units from the first to the last, whether or not all of them were read.
    pub(crate) const fn length(&self) -> u64 {
        self.next.saturating_sub(self.first)
    }

    /// Returns the end of the plane that the reader has begun with, if it may want this one only: it has not read on
    /// further than the kernel does by itself. Planes of `plane` units follow a header of `header`; a unit has `size`
    /// bytes.
    pub(crate) fn end_of_only_plane(&self, header: u64, plane: u64, size: u64) -> Option<u64> {
        let (size, plane) = (size.max(1), plane.max(1));
        let wanted = self.first.saturating_add(READ_AROUND / size).saturating_sub(header);
        let end = (wanted / plane + 1).saturating_mul(plane).saturating_add(header);
        (self.next <= end.saturating_add(READ_AHEAD / size)).then_some(end)
    }

    /// Records a read. Returns whether the reader is sequential: it has come `threshold` units or more and has read
    /// three quarters of them. A reader that has come as far but left out more, such as one that reads the rows of a
    /// box, starts again at the end of the read.
    pub(crate) fn advance(&mut self, read: &Range<u64>, threshold: u64) -> bool {
        self.next = self.next.max(read.end);
        self.covered = self.covered.saturating_add(read.end.saturating_sub(read.start));
        self.is_sequential_or_restart(threshold)
    }

    /// Like [`Progress::advance`], but everything up to the read was prefetched for the reader and counts as read,
    /// since the reader need not ask for it.
    pub(crate) fn advance_prefetched(&mut self, read: &Range<u64>, threshold: u64) -> bool {
        self.next = self.next.max(read.end);
        self.covered = self.length();
        self.is_sequential_or_restart(threshold)
    }

    fn is_sequential_or_restart(&mut self, threshold: u64) -> bool {
        let length = self.length();
        if length < threshold {
            return false;
        }
        let sequential = self.covered >= length / 4 * 3;
        if !sequential {
            (self.first, self.covered) = (self.next, 0);
        }
        sequential
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Finds the stream within 10 of a value, and moves it to the value.
    fn record(table: &StreamTable<u64>, value: u64) -> Option<u64> {
        let distance = |stream: &u64| Some(stream.abs_diff(value)).filter(|distance| *distance <= 10);
        table.find_or_insert(distance, |stream| std::mem::replace(stream, value), || value)
    }

    #[test]
    fn a_read_goes_to_the_nearest_stream() {
        let table = StreamTable::default();
        assert_eq!((record(&table, 100), record(&table, 111), record(&table, 106)), (None, None, Some(111)));
        assert_eq!(record(&table, 101), Some(100));
        assert!(table.any(|stream| *stream == 101) && !table.any(|stream| *stream == 100));
    }

    #[test]
    fn of_streams_equally_near_the_least_recently_used_is_found() {
        let table = StreamTable::default();
        for name in ["a", "b", "c"] {
            assert_eq!(table.find_or_insert(|_| None::<()>, |_| (), || name), None);
        }
        let first = || table.find_or_insert(|_| Some(()), |name| *name, || "new");
        assert_eq!([first(), first(), first(), first()], [Some("a"), Some("b"), Some("c"), Some("a")]);
    }

    #[test]
    fn the_least_recently_used_stream_is_evicted() {
        let table = StreamTable::default();
        for value in [0, 1000, 2000, 3000] {
            assert_eq!(record(&table, value), None);
        }
        assert_eq!(record(&table, 1), Some(0));
        assert_eq!(record(&table, 4000), None);
        assert_eq!((record(&table, 2), record(&table, 2001), record(&table, 3001)), (Some(1), Some(2000), Some(3000)));
        assert_eq!(record(&table, 1001), None, "the second was the least recently used");
        assert_eq!(record(&table, 4001), None, "and then the fifth");
    }

    #[test]
    fn a_shared_stream_outlives_the_lock_and_its_eviction() {
        let table = StreamTable::default();
        let find = |wanted: u64| {
            let distance = |stream: &Arc<u64>| (**stream == wanted).then_some(0);
            table.find_or_insert(distance, |stream| Arc::clone(stream), || Arc::new(wanted))
        };
        assert!(find(7).is_none());
        let found = find(7).unwrap();
        for other in 8..8 + CAPACITY as u64 {
            assert!(find(other).is_none());
        }
        assert!(find(7).is_none(), "it was evicted");
        assert_eq!(*found, 7);
    }

    #[test]
    fn a_reader_is_sequential_once_it_has_come_far_enough() {
        let mut progress = Progress::new(&(50..60));
        assert!(!progress.advance(&(60..70), 40));
        // out of order, but nothing is left out
        assert!(progress.advance(&(80..90), 40));
        assert!(progress.advance(&(70..80), 40));
        assert_eq!((progress.first(), progress.next(), progress.length()), (50, 90, 40));
    }

    #[test]
    fn a_reader_that_leaves_out_more_than_a_quarter_begins_anew() {
        let mut progress = Progress::new(&(0..30));
        assert!(progress.advance(&(40..40), 40), "three quarters are enough");
        assert!(!progress.advance(&(44..44), 40));
        assert_eq!(progress, Progress { first: 44, next: 44, covered: 0 });
        assert!(!progress.advance(&(44..83), 40));
        assert!(progress.advance(&(83..84), 40));
    }

    #[test]
    fn a_reader_wants_one_plane_until_it_reads_on_into_others() {
        const PLANE: u64 = 1 << 20;
        // by reads from the beginning of a plane, or by faults of a map
        for first in [5 * PLANE, 5 * PLANE - (64 << 10)] {
            let mut progress = Progress::new(&(first..first + (128 << 10)));
            let mut read_to = |next: u64| {
                progress.advance(&(progress.next()..next), 1 << 18);
                progress.end_of_only_plane(0, PLANE, 1)
            };
            assert_eq!(read_to(6 * PLANE - 4096), Some(6 * PLANE));
            assert_eq!(read_to(6 * PLANE + (128 << 10)), Some(6 * PLANE));
            assert_eq!(read_to(6 * PLANE + (512 << 10)), None);
        }
    }

    #[test]
    fn what_was_prefetched_counts_as_read() {
        let mut progress = Progress::new(&(0..10));
        assert!(progress.advance_prefetched(&(90..91), 40));
        assert_eq!(progress, Progress { first: 0, next: 91, covered: 91 });
        let mut short = Progress::new(&(0..10));
        assert!(!short.advance_prefetched(&(20..21), 40));
    }
}
