//! Marker pages: pages that read-ahead leaves out, so that the daemon sees how far a reader has come.
//!
//! A reader that finds all pages in the page cache asks the daemon for nothing. So read-ahead skips the first page of
//! every 2 MiB of a file: the reader asks for that page itself. Linux does the same: it marks a page whose use triggers
//! the next read-ahead. The bytes of a marker page are read together with the pages that follow it and stored here
//! until the reader asks, since by then the bricks around it may have left the cache.

use std::iter;
use std::num::NonZeroUsize;
use std::ops::Range;

use lru::LruCache;

use super::ino::Ino;
use crate::sync::Mutex;
use crate::volume::ArrayId;

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
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

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
