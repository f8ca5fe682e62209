//! Detects scans: tells the readers of one open file apart by their requests, and finds those that read in order.

use std::ops::Range;
use std::sync::Arc;

use super::stream::Stream;
use crate::sequential::StreamTable;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::volume::ArrayInfo;

/// The kernel's requests for one reader are out of order by no more than this many bytes.
pub(crate) const REORDER_WINDOW: u64 = 1 << 20;
/// A reader that has read this many bytes in order is a scan; in an array of small planes a quarter of a plane is
/// enough, or half of one that is smaller still: around the rows of a box in a memory map the kernel reads 32 KiB more.
/// A reader of a box reads less before it jumps to the next plane of the box.
const SEQUENTIAL_AFTER: u64 = 1 << 20;
const SEQUENTIAL_IN_SMALL_PLANE: u64 = 128 << 10;

/// The readers of one open file.
#[derive(Default)]
pub(crate) struct ScanDetector {
    streams: StreamTable<Arc<Stream>>,
    /// How many streams have ever been sequential.
    sequential: Arc<AtomicUsize>,
    /// Decoded bricks are evicted soon after a scan has passed them.
    cache_is_tight: AtomicBool,
}

impl ScanDetector {
    /// Whether requests that come far out of order would find their bricks evicted, and decode them again.
    pub(crate) fn cache_is_tight(&self) -> bool {
        self.cache_is_tight.load(Ordering::Relaxed)
    }

    /// Records whether the cache is tight.
    pub(crate) fn set_cache_is_tight(&self, tight: bool) {
        self.cache_is_tight.store(tight, Ordering::Relaxed);
    }

    /// Records a request, which may be one that reads `ahead` of its reader; returns the scan that it belongs to, if it
    /// belongs to one.
    pub(crate) fn record(&self, info: &ArrayInfo, samples: &Range<u64>, ahead: bool) -> Option<Arc<Stream>> {
        let (size, plane) = (info.dtype.size() as u64, info.shape().strides(1)[0]);
        // the rows of a box in the next plane belong to the same reader
        let (back, forward) = (REORDER_WINDOW / size, (REORDER_WINDOW / size).max(2 * plane));
        let distance = |stream: &Arc<Stream>| stream.distance_to(samples, back, forward, plane);
        let new = || Arc::new(Stream::new(samples, ahead, Arc::clone(&self.sequential)));
        let stream = self.streams.find_or_insert(distance, |stream| Arc::clone(stream), new)?;
        let threshold = (SEQUENTIAL_IN_SMALL_PLANE / size).min(plane / 2).max(plane / 4).min(SEQUENTIAL_AFTER / size);
        stream.advance(samples, threshold, plane, ahead).then_some(stream)
    }

    /// Records that a reader has reached a sample that was read ahead of it.
    pub(crate) fn record_position(&self, sample: u64) {
        self.streams.any(|stream| stream.record_position(sample));
    }

    /// Returns the prefetches in flight for all readers.
    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn prefetches_in_flight(&self) -> usize {
        let mut sum = 0;
        self.streams.any(|stream| {
            sum += stream.prefetches_in_flight();
            false
        });
        sum
    }

    /// Whether any of the readers scans many planes.
    pub(crate) fn has_scans(&self) -> bool {
        self.streams.any(|stream| stream.continues_to_next_plane() && stream.has_been_sequential())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{BrickGrid, Dims, Dtype};

    fn cube() -> ArrayInfo {
        let (shape, brick_shape) = (Dims::filled(3, 512), Dims::filled(3, 64));
        ArrayInfo::new(Dtype::UInt8, BrickGrid::aligned(shape, brick_shape), brick_shape)
    }

    #[test]
    fn sequential_requests_make_a_scan_and_others_do_not() {
        // a plane has 256 KiB, so 128 KiB in order are enough
        let (info, scans) = (&cube(), ScanDetector::default());
        let window = |n: u64| n << 15..(n + 1) << 15;
        // out of order by one window, as the kernel's threads deliver them
        for n in [0, 2, 1] {
            assert!(scans.record(info, &window(n), false).is_none());
        }
        for n in [3, 5, 4, 6, 7] {
            assert!(scans.record(info, &window(n), false).is_some());
        }
        assert_eq!(scans.record(info, &window(8), false).unwrap().position(), 9 << 15);
        // a second reader far away is another scan, and does not disturb the first
        for n in 2500..2503 {
            assert!(scans.record(info, &window(n), false).is_none());
        }
        assert!(scans.record(info, &window(2503), false).is_some());
        assert_eq!(scans.record(info, &window(9), false).unwrap().position(), 10 << 15);
        for n in 1..1000u64 {
            let at = (n * 7_919_777) % (1 << 27);
            assert!(scans.record(info, &(at..at + 4096), false).is_none(), "{n}");
        }
    }

    #[test]
    fn what_is_read_ahead_of_a_reader_is_not_its_own() {
        let (info, scans) = (&cube(), ScanDetector::default());
        scans.record(info, &(0..1 << 18), false);
        let scan = scans.record(info, &(1 << 18..1 << 21), true).unwrap();
        assert_eq!((scan.position(), scan.own_position()), (1 << 21, 1 << 18));
        scans.record_position(1 << 20);
        scans.record_position(1 << 22);
        scans.record_position(5);
        assert_eq!(scan.own_position(), (1 << 20) + 1);
    }

    #[test]
    fn the_rows_of_a_box_are_no_scan() {
        let (info, scans) = (&cube(), ScanDetector::default());
        for plane in 0..100u64 {
            for row in 0..100 {
                let at = (plane << 18) + (row << 9);
                assert!(scans.record(info, &(at..at + 100), false).is_none(), "plane {plane}, row {row}");
            }
        }
    }
}
