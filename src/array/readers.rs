//! The readers of one open file: which of them a read belongs to, and which of them read in order.

use std::ops::Range;
use std::sync::Arc;

use super::progress::Progress;
use super::scan::{BrickOrder, Scan, Shared};
use crate::sync::Mutex;
use crate::volume::{ArrayInfo, AxisPermutation};

/// The readers of one open file that are told apart.
const CAPACITY: usize = 4;

/// The readers of one open file. Each read is recorded once, before its samples are read. From what is known of its
/// reader follow the pages that the kernel is asked to read ahead, and the bricks that are prefetched.
pub(crate) struct Readers {
    bricks: Arc<BrickOrder>,
    shared: Arc<Shared>,
    /// Least recently used first. In a full table a new reader replaces the least recently used one.
    readers: Mutex<Vec<Arc<Scan>>>,
}

/// What is known about the reader of a read.
pub(crate) struct Recorded {
    /// The reader, unless it has just begun.
    pub(crate) reader: Option<Arc<Scan>>,
    /// The reader, if it is, or was, sequential.
    pub(super) scan: Option<Arc<Scan>>,
    /// A reader of the file scans many planes.
    pub(super) has_scans: bool,
    /// The reader is in the plane that it began with, and may want no other: it did not begin at the start of the file.
    pub(super) may_want_one_plane: bool,
}

impl Readers {
    /// For a file that shows an array with permuted axes.
    pub(crate) fn new(info: &ArrayInfo, order: AxisPermutation) -> Self {
        Self { bricks: Arc::new(BrickOrder::new(info, order)), shared: Arc::default(), readers: Mutex::default() }
    }

    /// Records a read of samples by a client, or `ahead` of the client that will want them. It belongs to the nearest
    /// reader, and to the least recently used of several at the same distance. `page_cached` means that the kernel
    /// keeps the samples in its page cache, so that nobody asks for them again in this order.
    pub(crate) fn record(&self, samples: &Range<u64>, ahead: bool, page_cached: bool) -> Recorded {
        let (plane, size) = (self.bricks.plane_samples(), self.bricks.size);
        let mut has_scans = false;
        let mut readers = self.readers.lock();
        let distances = readers.iter().enumerate().filter_map(|(at, reader)| {
            let now = reader.now();
            has_scans |= now.was_sequential && reader.continues_to_next_plane();
            Some((now.progress.distance(samples, plane, size)?, at))
        });
        let Some((_, at)) = distances.min() else {
            if !ahead {
                if readers.len() >= CAPACITY {
                    readers.remove(0);
                }
                readers.push(Arc::new(Scan::new(&self.bricks, Progress::new(samples), &self.shared)));
            }
            return Recorded { reader: None, scan: None, has_scans, may_want_one_plane: samples.start > 0 && !ahead };
        };
        let reader = Arc::clone(&readers[at]);
        readers[at..].rotate_left(1);
        drop(readers);
        let scan = reader.record(samples, ahead, page_cached).then(|| Arc::clone(&reader));
        let progress = reader.now().progress;
        let may_want_one_plane = progress.first > 0 && progress.end_of_only_plane(plane, size).is_some();
        Recorded { reader: Some(reader), scan, has_scans, may_want_one_plane }
    }

    /// Returns the prefetches in flight for all readers.
    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn prefetches_in_flight(&self) -> usize {
        self.readers.lock().iter().map(|reader| reader.now().in_flight).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{BrickGrid, Dims, Dtype};

    /// The readers of a file of 512 planes of 256 KiB, which are samples of one byte.
    fn file() -> Readers {
        let (shape, brick_shape) = (Dims::filled(3, 512), Dims::filled(3, 64));
        let info = ArrayInfo::new(Dtype::UInt8, BrickGrid::aligned(shape, brick_shape), brick_shape);
        Readers::new(&info, AxisPermutation::IDENTITY)
    }

    fn read(file: &Readers, samples: Range<u64>, ahead: bool) -> Option<Arc<Scan>> {
        file.record(&samples, ahead, false).scan
    }

    /// Reads one sample. Returns the first sample of its reader, if it is known.
    fn visit(file: &Readers, sample: u64) -> Option<u64> {
        Some(file.record(&(sample..sample + 1), false, false).reader?.now().progress.first)
    }

    const FAR: u64 = 8 << 20;

    #[test]
    fn a_read_goes_to_the_nearest_reader() {
        let (file, second) = (file(), FAR + (1100 << 10));
        assert_eq!((visit(&file, FAR), visit(&file, second)), (None, None));
        assert_eq!(visit(&file, FAR + (1020 << 10)), Some(second));
        assert_eq!(visit(&file, FAR + 1), Some(FAR));
    }

    #[test]
    fn of_readers_equally_near_the_least_recently_used_is_found() {
        let file = file();
        for _ in 0..3 {
            file.readers.lock().push(Arc::new(Scan::new(&file.bricks, Progress::new(&(0..1)), &file.shared)));
        }
        let all: Vec<_> = file.readers.lock().clone();
        for n in [0, 1, 2, 0] {
            let found = file.record(&(0..1), false, false).reader.unwrap();
            assert!(Arc::ptr_eq(&found, &all[n]), "{n}");
        }
    }

    #[test]
    fn the_least_recently_used_reader_is_replaced() {
        let file = file();
        for n in 1..=4 {
            assert_eq!(visit(&file, n * FAR), None);
        }
        assert_eq!(visit(&file, FAR + 1), Some(FAR));
        assert_eq!(visit(&file, 5 * FAR), None);
        for n in [1, 3, 4] {
            assert_eq!(visit(&file, n * FAR + 2), Some(n * FAR));
        }
        assert_eq!(visit(&file, 2 * FAR + 1), None, "the second was the least recently used");
        assert_eq!(visit(&file, 5 * FAR + 1), None, "and then the fifth");
    }

    #[test]
    fn a_reader_outlives_the_lock_and_its_place_in_the_table() {
        let file = file();
        assert_eq!(visit(&file, FAR), None);
        let found = file.record(&(FAR + 1..FAR + 2), false, false).reader.unwrap();
        for n in 2..2 + CAPACITY as u64 {
            assert_eq!(visit(&file, n * FAR), None);
        }
        assert_eq!(visit(&file, FAR + 2), None, "it was replaced");
        assert_eq!(found.position(), FAR + 2);
    }

    #[test]
    fn sequential_requests_make_a_scan_and_others_do_not() {
        // a plane has 256 KiB, so 128 KiB in order are enough
        let file = file();
        let window = |n: u64| n << 15..(n + 1) << 15;
        // out of order by one window, as the kernel's threads deliver them
        for n in [0, 2, 1] {
            assert!(read(&file, window(n), false).is_none());
        }
        for n in [3, 5, 4, 6, 7] {
            assert!(read(&file, window(n), false).is_some());
        }
        assert_eq!(read(&file, window(8), false).unwrap().position(), 9 << 15);
        // a second reader far away is another scan, and does not disturb the first
        for n in 2500..2503 {
            assert!(read(&file, window(n), false).is_none());
        }
        assert!(read(&file, window(2503), false).is_some());
        assert_eq!(read(&file, window(9), false).unwrap().position(), 10 << 15);
        for n in 1..1000u64 {
            let at = (n * 7_919_777) % (1 << 27);
            assert!(read(&file, at..at + 4096, false).is_none(), "{n}");
        }
    }

    #[test]
    fn what_is_read_ahead_of_a_reader_is_not_its_own() {
        let file = file();
        read(&file, 0..1 << 18, false);
        let scan = read(&file, 1 << 18..1 << 21, true).unwrap();
        assert_eq!((scan.position(), scan.now().progress.own), (1 << 21, 1 << 18));
        for sample in [1 << 20, 1 << 22, 5] {
            read(&file, sample..sample + 1, false);
        }
        assert_eq!(scan.now().progress.own, (1 << 20) + 1);
        let readers = file.readers.lock().len();
        assert!(file.record(&(1 << 26..1 << 27), true, false).reader.is_none(), "nobody is there");
        assert_eq!(file.readers.lock().len(), readers);
    }

    #[test]
    fn the_rows_of_a_box_are_no_scan() {
        let file = file();
        for plane in 0..100u64 {
            for row in 0..100 {
                let at = (plane << 18) + (row << 9);
                assert!(read(&file, at..at + 100, false).is_none(), "plane {plane}, row {row}");
            }
        }
    }
}
