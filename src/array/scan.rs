//! Readers that go through an array in order: noticed by their requests, several at once in one open file.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::segments::Segments;
use crate::volume::ArrayInfo;

/// Readers of one open file that are told apart.
const STREAMS: usize = 4;
/// The kernel's windows come out of order by no more than so many bytes.
const OUT_OF_ORDER: u64 = 1 << 20;
/// A reader that has gone so many bytes in order is on a scan; in an array of smaller planes a quarter of one will do. Whoever
/// reads a box goes less far before the next plane of the box.
const SURE: u64 = 1 << 20;
/// A scan that asked for nothing for so long has stopped.
const STOPPED: Duration = Duration::from_secs(2);

/// The readers of one open file.
#[derive(Default)]
pub struct Scans {
    streams: Mutex<Vec<Arc<Stream>>>,
}

impl Scans {
    /// Takes note of a request; gives the scan that it belongs to, if it does.
    pub fn note(&self, info: &ArrayInfo, samples: &Range<u64>) -> Option<Arc<Stream>> {
        let (size, plane) = (info.dtype.size() as u64, info.shape().strides(1)[0]);
        // the rows of a box in the next plane belong to the same reader
        let (back, on) = (OUT_OF_ORDER / size, (OUT_OF_ORDER / size).max(2 * plane));
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = streams.iter().position(|stream| stream.is_near(samples, back, on)) {
            let stream = streams.remove(at);
            streams.push(Arc::clone(&stream));
            drop(streams);
            let sure = (SURE / size).min(plane / 4);
            return stream.advance(samples, sure).then_some(stream);
        }
        if streams.len() >= STREAMS {
            streams.remove(0);
        }
        streams.push(Arc::new(Stream::new(samples)));
        None
    }
}

/// One reader's way through an array.
pub struct Stream {
    way: Mutex<Way>,
    /// Bricks before this one, by number in C order, were asked for.
    asked: AtomicU64,
    /// Bricks that are decoded ahead at this moment.
    under_way: AtomicUsize,
    /// What is kept of bricks of which the cache does not hold a layer.
    pub(super) segments: Segments,
}

struct Way {
    /// The first sample asked for.
    first: u64,
    /// One past the last sample asked for.
    next: u64,
    /// Samples asked for between these two.
    covered: u64,
    /// It has gone far enough, and left out little, at this moment; and at any time.
    in_order: bool,
    sure: bool,
    last: Instant,
    keep: Keep,
    /// The layer of bricks that it is in, once that is known.
    layer: Option<u64>,
}

/// What a scan keeps of a decoded brick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of it, in the cache: a layer of bricks fits.
    Whole,
    /// The next planes, as many as this.
    Planes(u64),
}

impl Stream {
    fn new(samples: &Range<u64>) -> Self {
        let (first, next) = (samples.start, samples.end);
        Self {
            way: Mutex::new(Way {
                first,
                next,
                covered: next - first,
                in_order: false,
                sure: false,
                last: Instant::now(),
                keep: Keep::Whole,
                layer: None,
            }),
            asked: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            segments: Segments::default(),
        }
    }

    fn is_near(&self, samples: &Range<u64>, back: u64, on: u64) -> bool {
        let next = self.way().next;
        (next.saturating_sub(back)..=next.saturating_add(on)).contains(&samples.start)
    }

    /// Whether it has ever gone `sure` samples and left out few of them: the rows of a box leave out most.
    fn advance(&self, samples: &Range<u64>, sure: u64) -> bool {
        let mut way = self.way();
        way.last = Instant::now();
        way.next = way.next.max(samples.end);
        way.covered = way.covered.saturating_add(samples.end - samples.start);
        let gone = way.next - way.first;
        way.in_order = gone >= sure && way.covered >= gone / 4 * 3;
        if gone >= sure && !way.in_order {
            (way.first, way.covered) = (way.next, 0);
        }
        way.sure |= way.in_order;
        way.sure
    }

    /// Whether it leaves out little at this moment.
    pub(super) fn in_order(&self) -> bool {
        self.way().in_order
    }

    /// One past the last sample asked for.
    pub(super) fn next(&self) -> u64 {
        self.way().next
    }

    /// How many samples it has gone in order.
    pub(super) fn gone(&self) -> u64 {
        let way = self.way();
        way.next - way.first
    }

    /// Whether it goes on.
    pub(super) fn is_alive(&self) -> bool {
        self.way().last.elapsed() < STOPPED
    }

    /// What it keeps of a brick.
    pub(super) fn keep(&self) -> Keep {
        self.way().keep
    }

    /// Decides what it keeps of a brick, from here on.
    pub(super) fn set_keep(&self, keep: Keep) {
        self.way().keep = keep;
    }

    /// Whether it comes to another layer of bricks.
    pub(super) fn enter(&self, layer: u64) -> bool {
        self.way().layer.replace(layer) != Some(layer)
    }

    /// It has stopped: nothing is kept for it any more. If it goes on after all it begins anew.
    pub(super) fn stop(&self) {
        let mut way = self.way();
        (way.keep, way.layer) = (Keep::Whole, None);
        drop(way);
        self.segments.drop_before(u64::MAX);
    }

    /// Bricks before `number` are not asked for ahead: the reader itself has come to them.
    pub(super) fn skip_to(&self, number: u64) {
        self.asked.fetch_max(number, Ordering::Relaxed);
    }

    /// A brick is being decoded ahead.
    pub(super) fn begin_ahead(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    /// A brick was decoded ahead.
    pub(super) fn end_ahead(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// Claims the next brick to be asked for ahead, if it is before `target` and fewer than `most` are under way.
    pub(super) fn claim(&self, target: u64, most: usize) -> Option<u64> {
        if self.under_way.load(Ordering::Relaxed) >= most {
            return None;
        }
        let claim = |asked| (asked < target).then_some(asked + 1);
        let brick = self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).ok()?;
        self.begin_ahead();
        Some(brick)
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn requests_in_order_make_a_scan_and_others_do_not() {
        // a plane has 256 KiB, so that 64 KiB in order are enough
        let (info, scans) = (&cube(), Scans::default());
        let window = |n: u64| n << 14..(n + 1) << 14;
        // out of order by one window, as the kernel's threads deliver them
        for n in [0, 2, 1] {
            assert!(scans.note(info, &window(n)).is_none());
        }
        for n in [3, 5, 4, 6, 7] {
            assert!(scans.note(info, &window(n)).is_some());
        }
        assert_eq!(scans.note(info, &window(8)).unwrap().next(), 9 << 14);
        // a second reader far away is another scan, and does not disturb the first
        for n in 5000..5003 {
            assert!(scans.note(info, &window(n)).is_none());
        }
        assert!(scans.note(info, &window(5003)).is_some());
        assert_eq!(scans.note(info, &window(9)).unwrap().next(), 10 << 14);
        for n in 1..1000u64 {
            let at = (n * 7_919_777) % (1 << 27);
            assert!(scans.note(info, &(at..at + 4096)).is_none(), "{n}");
        }
    }

    #[test]
    fn the_rows_of_a_box_are_no_scan() {
        let (info, scans) = (&cube(), Scans::default());
        for plane in 0..100u64 {
            for row in 0..100 {
                let at = (plane << 18) + (row << 9);
                assert!(scans.note(info, &(at..at + 100)).is_none(), "plane {plane}, row {row}");
            }
        }
    }

    #[test]
    fn bricks_are_claimed_once_each_and_a_few_at_a_time() {
        let stream = Stream::new(&(0..0));
        assert_eq!((stream.claim(2, 4), stream.claim(2, 4), stream.claim(2, 4)), (Some(0), Some(1), None));
        assert_eq!((stream.claim(9, 3), stream.claim(9, 3)), (Some(2), None));
    }
}
