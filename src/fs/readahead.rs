//! The interface through which the file system requests read-ahead. The kernel's page cache can be filled only from
//! outside the daemon, so the code that mounts the file system passes an implementation in.

use std::iter;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use lru::LruCache;

use super::ino::Ino;
use crate::array::Progress;
use crate::sync::Mutex;
use crate::volume::ArrayId;

/// Makes the kernel read pages of a file before a client asks for them.
pub(crate) trait Readahead: Send + Sync {
    /// The number of requests in flight; `None` if no more can be made.
    fn in_flight(&self) -> Option<usize>;

    /// Requests that the kernel reads bytes of a file. `path` is relative to the root of the mount. Never waits, and
    /// promises nothing.
    fn request(&self, file: Ino, path: &Path, bytes: Range<u64>);

    /// Cancels all requests for a file, which no client reads any more.
    fn cancel(&self, file: Ino);
}

/// The longest window. A window is also no longer than the range that the reader has read in order, or than
/// [`MIN_WINDOW`] if that is longer.
const MAX_WINDOW: u64 = 4 << 20;
/// The shortest window.
const MIN_WINDOW: u64 = 1 << 20;
/// The shortest request, except at the end of the file or of the plane.
const MIN_REQUEST: u64 = 256 << 10;
/// A reader that has read this many bytes in order is sequential: it is likely to continue, at least to the end of the
/// plane.
const SEQUENTIAL_AFTER: u64 = 256 << 10;

/// The kernel reads whole pages, in whose middle a sample may begin.
const PAGE: u64 = 4096;

/// Where a file has the samples of its array. All in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileLayout {
    /// Size of the file.
    pub file: u64,
    /// Size of the header, which comes before the array.
    pub header: u64,
    /// Size of a sample.
    pub sample: u64,
}

impl FileLayout {
    /// Returns the bytes to read ahead of a reader that has come so far, if there are any and `admit` allows a request
    /// now. Bytes that it does not allow are returned again by a later read. A plane has `plane` samples.
    pub(crate) fn next_request(
        &self,
        progress: &mut Progress,
        plane: u64,
        admit: impl FnOnce() -> bool,
    ) -> Option<Range<u64>> {
        let bytes = self.window(progress, plane).filter(|_| admit())?;
        progress.request(bytes.end.saturating_sub(self.header).div_ceil(self.sample));
        Some(bytes)
    }

    /// Returns the part of a reader's window that was not requested yet, if the reader is sequential.
    fn window(&self, progress: &Progress, plane: u64) -> Option<Range<u64>> {
        let offset = |sample: u64| self.header.saturating_add(sample.saturating_mul(self.sample));
        let page_of = |sample| offset(sample) / PAGE * PAGE;
        let next = page_of(progress.own);
        let length = next.saturating_sub(page_of(progress.first));
        if length < SEQUENTIAL_AFTER || !progress.is_in_order() {
            return None;
        }
        // a reader that has not reached a second plane may want only this one
        let end_of_plane = progress.end_of_only_plane(plane, self.sample);
        let limit = end_of_plane.map_or(self.file, |end| offset(end).min(self.file));
        let from = if progress.requested <= progress.own {
            // the kernel itself may have asked for the next 128 KiB already
            (next + KERNEL_WINDOW).next_multiple_of(KERNEL_WINDOW)
        } else if offset(progress.requested) < limit {
            page_of(progress.requested)
        } else {
            return None;
        };
        let window = length.clamp(MIN_WINDOW, MAX_WINDOW);
        let until = ((next + window) / KERNEL_WINDOW * KERNEL_WINDOW).min(from + MARKER_SPACING).min(limit);
        (until > from && (until - from >= MIN_REQUEST || until == limit)).then_some(from..until)
    }
}

/// Bytes that the kernel reads ahead of long reads by itself, at most. No range of [`advice_ranges`] is longer, so
/// several threads of the daemon answer one request.
pub(crate) const KERNEL_WINDOW: u64 = 128 << 10;
/// Each multiple of this many bytes is the offset of a marker page. No read-ahead request is longer than this.
pub(crate) const MARKER_SPACING: u64 = 2 << 20;
/// The greatest number of stored marker pages, all readers together. A page that was evicted is read like any other.
const MAX_STORED: NonZeroUsize = NonZeroUsize::new(128).unwrap();

/// Splits a read-ahead request into the ranges for which the kernel is advised, in order: each ends at the next
/// multiple of 128 KiB, and none contains a marker page. `page` is the size of a page in bytes.
pub(crate) fn advice_ranges(request: Range<u64>, page: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = request.start;
    iter::from_fn(move || {
        if at.is_multiple_of(MARKER_SPACING) {
            at += page;
        }
        let next = (at + 1).next_multiple_of(KERNEL_WINDOW).min(request.end);
        let range = at..next;
        at = next;
        (!range.is_empty()).then_some(range)
    })
}

/// Whether a read is of a marker page and nothing else.
pub(crate) fn is_marker(offset: u64, length: u64, page: u64) -> bool {
    offset.is_multiple_of(MARKER_SPACING) && length == page
}

/// Returns the offset of the marker page that ends at `offset`, if there is one.
pub(crate) fn marker_before(offset: u64, page: u64) -> Option<u64> {
    offset.checked_sub(page).filter(|at| at.is_multiple_of(MARKER_SPACING))
}

/// A file and the array that it shows, and the offset of a page. A dataset that is opened again has other arrays.
type PageKey = (Ino, ArrayId, u64);

/// The stored marker pages.
pub(crate) struct MarkerPages {
    pages: Mutex<LruCache<PageKey, Box<[u8]>>>,
}

impl Default for MarkerPages {
    fn default() -> Self {
        Self { pages: Mutex::new(LruCache::new(MAX_STORED)) }
    }
}

impl MarkerPages {
    /// Stores the bytes of a page until they are taken.
    pub(crate) fn put(&self, (file, array): (Ino, ArrayId), offset: u64, page: &[u8]) {
        self.pages.lock().put((file, array, offset), page.into());
    }

    /// Removes and returns the bytes of a page.
    pub(crate) fn take(&self, (file, array): (Ino, ArrayId), offset: u64) -> Option<Box<[u8]>> {
        self.pages.lock().pop(&(file, array, offset))
    }
}

#[cfg(test)]
mod window_tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::array::Readers;
    use crate::volume::{ArrayInfo, AxisPermutation, BrickGrid, Dims, Dtype};

    const PLANE: u64 = 1 << 20;

    /// A client that reads a file, a kernel that asks for windows of the pages that it lacks, and a read-ahead process.
    struct Client {
        readers: Readers,
        layout: FileLayout,
        /// The file's pages in the page cache.
        pages: BTreeSet<u64>,
        /// The number of reads that the kernel asks for on behalf of the client.
        reads: usize,
        requests: Vec<Range<u64>>,
        /// The number of next requests that are not carried out.
        lost: usize,
    }

    /// The readers of a file of an array of bytes.
    fn readers(file: u64, plane: u64) -> Readers {
        let (shape, bricks) = (Dims::from([file.div_ceil(plane), plane]), Dims::from([1, plane]));
        let info = ArrayInfo::new(Dtype::UInt8, BrickGrid::aligned(shape, bricks), bricks);
        Readers::new(&info, AxisPermutation::IDENTITY)
    }

    impl Client {
        fn new(file: u64, plane: u64) -> Self {
            let layout = FileLayout { file, header: 0, sample: 1 };
            let readers = readers(file, plane);
            Self { readers, layout, pages: BTreeSet::new(), reads: 0, requests: Vec::new(), lost: 0 }
        }

        /// Records a read of the kernel. Returns what is to be read ahead.
        fn record(&self, bytes: Range<u64>, ahead: bool, admit: bool) -> Option<Range<u64>> {
            let header = self.layout.header;
            let samples = bytes.start.saturating_sub(header)..bytes.end.saturating_sub(header);
            let reader = self.readers.record(&samples, ahead, true).reader.filter(|_| !ahead)?;
            reader.read_ahead(|progress, plane| self.layout.next_request(progress, plane, || admit))
        }

        fn read(&mut self, bytes: Range<u64>) {
            for page in bytes.start / PAGE..bytes.end.div_ceil(PAGE) {
                if self.pages.contains(&page) {
                    continue;
                }
                let window = page..page + KERNEL_WINDOW / PAGE;
                let window = window.take_while(|page| !self.pages.contains(page)).count() as u64;
                let offset = page * PAGE;
                let end = (offset + window * PAGE).min(self.layout.file);
                self.reads += 1;
                let request = self.record(offset..end, false, true);
                self.pages.extend(page..page + window);
                if let Some(request) = request {
                    self.read_ahead(request);
                }
            }
        }

        fn read_ahead(&mut self, request: Range<u64>) {
            assert!(request.start < request.end && request.end <= self.layout.file, "{request:?}");
            assert!(request.end - request.start <= MARKER_SPACING, "{request:?}");
            self.requests.push(request.clone());
            if self.lost > 0 {
                self.lost -= 1;
                return;
            }
            let mut at = request.start;
            for range in advice_ranges(request.clone(), PAGE) {
                assert!(range.start == at || marker_before(range.start, PAGE) == Some(at), "{range:?} after {at}");
                assert!(range.start < range.end && range.end - range.start <= KERNEL_WINDOW);
                assert!(range.start.is_multiple_of(PAGE));
                at = range.end;
                self.pages.extend(range.start / PAGE..range.end.div_ceil(PAGE));
                let marker = marker_before(range.start, PAGE);
                self.record(marker.unwrap_or(range.start)..range.end, true, true);
            }
        }

        fn cached_beyond(&self, end: u64) -> u64 {
            self.pages.range(end.div_ceil(PAGE)..).count() as u64 * PAGE
        }
    }

    #[test]
    fn a_sequential_reader_asks_for_marker_pages_only() {
        let mut client = Client::new(64 << 20, PLANE);
        for at in (0..64).map(|n| n * PLANE) {
            client.read(at..at + PLANE);
            let window = MAX_WINDOW.min((at + PLANE).max(MIN_WINDOW));
            assert!(client.cached_beyond(at + PLANE) <= window + KERNEL_WINDOW);
        }
        assert!(client.reads <= 74 / 2 + 16, "{}", client.reads);
        // all bytes but those of the first windows and the marker pages
        let sum: u64 = client.requests.iter().map(|request| request.end - request.start).sum();
        assert!(sum > 62 << 20, "{sum}");
        let in_order = client.requests.windows(2).all(|two| two[0].end <= two[1].start);
        assert!(in_order);
    }

    #[test]
    fn no_other_plane_is_read_ahead_of_a_reader_of_one_plane() {
        for (header, plane) in [(0, PLANE), (128, PLANE), (0, 256 << 10), (128, 2 << 20)] {
            let mut client = Client::new(64 << 20, plane);
            client.layout.header = header;
            let (begin, end) = (header + 5 * plane, header + 6 * plane);
            // by reads, or by faults of a map
            for begin in [begin, begin - KERNEL_WINDOW / 2] {
                client.readers = readers(64 << 20, plane);
                client.pages.clear();
                client.reads = 0;
                client.read(begin..end);
                assert!(client.reads <= 7, "{}", client.reads);
                assert!(client.cached_beyond(end) <= KERNEL_WINDOW, "{}", client.cached_beyond(end));
            }
            assert!(client.requests.iter().all(|request| request.end <= end));
        }
    }

    #[test]
    fn nothing_is_read_ahead_of_a_random_reader() {
        let mut client = Client::new(64 << 20, PLANE);
        for n in 0..500u64 {
            let at = (n * 7_919_777) % (63 << 20) / PAGE * PAGE;
            assert_eq!(client.record(at..at + PAGE, false, true), None);
        }
        // the rows of a box
        for at in (0..60).map(|n| n * PLANE) {
            client.read(at..at + (64 << 10));
        }
        assert!(client.requests.is_empty());
    }

    #[test]
    fn two_readers_of_a_file_are_told_apart() {
        let mut client = Client::new(64 << 20, PLANE);
        for at in (0..16).map(|n| n * PLANE) {
            client.read(at..at + PLANE);
            client.read((40 << 20) + at..(40 << 20) + at + PLANE);
        }
        assert!(client.reads <= 2 * (16 / 2 + 12), "{}", client.reads);
    }

    #[test]
    fn a_request_that_is_not_admitted_is_made_later() {
        let client = Client::new(64 << 20, PLANE);
        let read = |n: u64, admit| client.record(n * KERNEL_WINDOW..(n + 1) * KERNEL_WINDOW, false, admit);
        assert_eq!((read(0, true), read(1, false)), (None, None));
        let request = read(2, true).unwrap();
        assert_eq!(request, 4 * KERNEL_WINDOW..PLANE);
        assert_eq!(read(3, true), None);
    }

    proptest! {
        #[test]
        fn requests_lie_within_the_file(
            file in 1u64..20 << 20, plane in 1u64..4 << 20,
            reads in prop::collection::vec((0.0f64..1.0, 1u64..6 << 20), 1..8), lost in 0usize..6,
        ) {
            let mut client = Client::new(file, plane);
            client.lost = lost;
            for (at, length) in reads {
                let start = ((file as f64 * at) as u64).min(file - 1);
                client.read(start..start.saturating_add(length).min(file));
            }
        }
    }
}

#[cfg(test)]
mod marker_pages_tests {
    use super::*;

    #[test]
    fn a_page_is_taken_once_and_memory_is_bounded() {
        let pages = MarkerPages::default();
        let number = |n: u64| n.to_le_bytes();
        let (file, other) = ((Ino(7), ArrayId::next()), (Ino(7), ArrayId::next()));
        for n in 0..1000 {
            pages.put(file, n * 4096, &number(n));
        }
        assert_eq!(pages.take(file, 999 * 4096).as_deref(), Some(&number(999)[..]));
        assert_eq!(pages.take(file, 999 * 4096), None);
        assert_eq!(pages.take((Ino(8), file.1), 998 * 4096), None);
        assert_eq!(pages.take(other, 998 * 4096), None);
        assert_eq!(pages.take(file, 0), None);
        assert_eq!(pages.pages.lock().len(), MAX_STORED.get() - 1);
    }

    #[test]
    fn ranges_leave_out_marker_pages_which_are_found_again() {
        let request = MARKER_SPACING - KERNEL_WINDOW..MARKER_SPACING + KERNEL_WINDOW;
        let all: Vec<_> = advice_ranges(request.clone(), PAGE).collect();
        assert_eq!(all, [request.start..MARKER_SPACING, MARKER_SPACING + PAGE..request.end]);
        assert_eq!(marker_before(all[1].start, PAGE), Some(MARKER_SPACING));
        assert_eq!((marker_before(all[0].start, PAGE), marker_before(0, PAGE)), (None, None));
        assert!(is_marker(MARKER_SPACING, PAGE, PAGE) && !is_marker(MARKER_SPACING, KERNEL_WINDOW, PAGE));
        assert!(!is_marker(KERNEL_WINDOW, PAGE, PAGE));
        assert_eq!(advice_ranges(MARKER_SPACING..MARKER_SPACING + 10, PAGE).count(), 0);
    }
}
