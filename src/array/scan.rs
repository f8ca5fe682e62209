//! Readers that go through an array in order: noticed by their requests, several at once in one open file.

use crate::sync::{Mutex, MutexGuard};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::plan::Plan;
use super::segments::Segments;
use crate::format::Array;
use crate::pool::Bulkhead;
use crate::volume::{ArrayInfo, AxisPermutation};

/// Readers of one open file that are told apart.
const STREAMS: usize = 4;
/// The kernel's windows come out of order by no more than so many bytes.
pub(super) const OUT_OF_ORDER: u64 = 1 << 20;
/// A reader that has gone so many bytes in order is on a scan; in an array of smaller planes a quarter of one will do. Whoever
/// reads a box goes less far before the next plane of the box.
const SURE: u64 = 1 << 20;
/// A scan that asked for nothing for so long has stopped.
const STOPPED: Duration = Duration::from_secs(2);

/// The readers of one open file.
#[derive(Default)]
pub struct Scans {
    streams: Mutex<Vec<Arc<Stream>>>,
    /// How many of them have ever gone some way in order.
    in_order: Arc<AtomicUsize>,
    /// Decoded bricks stay for a short time only.
    tight: AtomicBool,
}

impl Scans {
    /// Whether bricks would have to be decoded again for requests that come far out of order.
    #[must_use]
    pub fn is_tight(&self) -> bool {
        self.tight.load(Ordering::Relaxed)
    }

    /// Takes note of whether that is so.
    pub(super) fn set_tight(&self, tight: bool) {
        self.tight.store(tight, Ordering::Relaxed);
    }

    /// Takes note of a request; gives the scan that it belongs to, if it does.
    pub fn note(&self, info: &ArrayInfo, samples: &Range<u64>) -> Option<Arc<Stream>> {
        let (size, plane) = (info.dtype.size() as u64, info.shape().strides(1)[0]);
        // the rows of a box in the next plane belong to the same reader
        let (back, on) = (OUT_OF_ORDER / size, (OUT_OF_ORDER / size).max(2 * plane));
        let mut streams = self.streams.lock();
        let distance = |stream: &Stream| stream.distance(samples, back, on, plane);
        let near = streams.iter().enumerate().filter_map(|(at, stream)| Some((distance(stream)?, at))).min();
        if let Some((_, at)) = near {
            let stream = streams.remove(at);
            streams.push(Arc::clone(&stream));
            drop(streams);
            let sure = (SURE / size).min(plane / 4);
            return stream.advance(samples, sure, plane).then_some(stream);
        }
        if streams.len() >= STREAMS {
            streams.remove(0);
        }
        streams.push(Arc::new(Stream::new(samples, Arc::clone(&self.in_order))));
        None
    }

    /// Whether any of the readers is on a scan of many planes.
    pub fn any(&self) -> bool {
        let streams = self.streams.lock();
        streams.iter().any(|stream| stream.goes_on() && stream.way().sure)
    }
}

/// One reader's way through an array.
pub struct Stream {
    way: Mutex<Way>,
    /// Bytes that it may use.
    share: AtomicUsize,
    /// Steps before this one were asked for, in each course.
    asked: [AtomicU64; 2],
    /// Bricks that are decoded ahead at this moment.
    under_way: AtomicUsize,
    /// Bricks that were decoded since it came to its layer.
    decoded: AtomicU64,
    /// Readers of the file that have ever gone some way in order.
    siblings: Arc<AtomicUsize>,
    /// What it reads. The scan ends with the open file, and the array may then be closed.
    view: Mutex<Option<View>>,
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
    /// It has gone from one plane to the next in order.
    steady: bool,
    /// Whole bricks did not stay as long as they should have.
    crowded: bool,
    last: Instant,
    keep: Keep,
    /// The layer of bricks that it is in, once that is known.
    layer: Option<u64>,
    /// The plane that it is in.
    plane: Option<u64>,
    /// The layer that it came from.
    before: Option<u64>,
}

/// An array as a scan reads it.
#[derive(Clone)]
pub struct View {
    /// The array, in the order of axes of the scan.
    pub array: Arc<dyn Array>,
    /// What that order is, if it is not the array's own.
    pub turn: Option<AxisPermutation>,
    /// The bulkhead of the pool for work on it.
    pub bulkhead: Bulkhead,
}

/// What is counted when a scan asks for bricks ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Bricks in C order: each is kept whole, and decoded once.
    Bricks,
    /// Visits of bricks, as many for each plane as it touches bricks.
    Visits,
}

/// What a scan keeps of a decoded brick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// What any reader does: it is not known whether there is a next plane to go on to.
    Freely,
    /// All of it, in the cache: a layer of bricks fits.
    Whole,
    /// The next planes.
    Planes(Plan),
}

impl Stream {
    fn new(samples: &Range<u64>, siblings: Arc<AtomicUsize>) -> Self {
        let (first, next) = (samples.start, samples.end);
        Self {
            way: Mutex::new(Way {
                first,
                next,
                covered: next - first,
                in_order: false,
                sure: false,
                steady: false,
                crowded: false,
                last: Instant::now(),
                keep: Keep::Freely,
                layer: None,
                plane: None,
                before: None,
            }),
            share: AtomicUsize::new(0),
            asked: Default::default(),
            under_way: AtomicUsize::new(0),
            decoded: AtomicU64::new(0),
            siblings,
            view: Mutex::default(),
            segments: Segments::default(),
        }
    }

    /// How far from it samples are, if they are near: no more than `back` before it or `on` after it. A plane before its first one
    /// belongs to another reader, or to one that goes backwards.
    fn distance(&self, samples: &Range<u64>, back: u64, on: u64, plane: u64) -> Option<u64> {
        let way = self.way();
        let (first, next) = (way.first, way.next);
        drop(way);
        let late = back.min((plane / 2).max((samples.end - samples.start) / 2));
        let near = (next.saturating_sub(back)..=next.saturating_add(on)).contains(&samples.start);
        (near && samples.start.saturating_add(late) >= first).then(|| next.abs_diff(samples.start))
    }

    /// Whether it has ever gone `sure` samples and left out few of them: the rows of a box leave out most.
    fn advance(&self, samples: &Range<u64>, sure: u64, plane: u64) -> bool {
        let mut way = self.way();
        way.last = Instant::now();
        way.next = way.next.max(samples.end);
        way.covered = way.covered.saturating_add(samples.end - samples.start);
        let gone = way.next - way.first;
        way.in_order = gone >= sure && way.covered >= gone / 4 * 3;
        if gone >= sure && !way.in_order {
            (way.first, way.covered) = (way.next, 0);
        }
        way.steady |= way.in_order && gone > plane;
        if way.in_order && !way.sure {
            way.sure = true;
            self.siblings.fetch_add(1, Ordering::Relaxed);
        }
        way.sure
    }

    /// Whether it is likely to go on to the next plane: it did so before, or it is the only reader of the file so far. Who goes
    /// backwards, or from one plane to any other, begins anew in each plane.
    pub(super) fn goes_on(&self) -> bool {
        self.siblings.load(Ordering::Relaxed) <= 1 || self.way().steady
    }

    /// Whether it leaves out little at this moment.
    pub(super) fn in_order(&self) -> bool {
        self.way().in_order
    }

    /// How many samples it has gone in order.
    pub(super) fn gone(&self) -> u64 {
        let way = self.way();
        way.next - way.first
    }

    /// One past the last sample asked for.
    pub(super) fn next(&self) -> u64 {
        self.way().next
    }

    /// Whether it is a scan, and under way.
    pub(super) fn is_alive(&self) -> bool {
        self.goes_on() && self.way().last.elapsed() < STOPPED
    }

    /// A brick was decoded for it that is to stay in the cache.
    pub(super) fn note_decoded(&self) {
        self.decoded.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes note if more bricks than `most` were decoded in its layer, once.
    pub(super) fn note_crowded(&self, most: u64) {
        let mut way = self.way();
        if way.keep == Keep::Whole && !way.crowded && self.decoded.load(Ordering::Relaxed) > most {
            (way.crowded, way.layer) = (true, None);
        }
    }

    /// Whether bricks that were to stay in the cache did not.
    pub(super) fn is_crowded(&self) -> bool {
        self.way().crowded
    }

    /// What it reads, once it has come to a layer.
    pub(super) fn view(&self) -> Option<View> {
        self.view.lock().clone()
    }

    /// Takes note of what it reads.
    pub(super) fn set_view(&self, view: View) {
        *self.view.lock() = Some(view);
    }

    /// What it keeps of a brick.
    pub(super) fn keep(&self) -> Keep {
        self.way().keep
    }

    /// Decides what it keeps of a brick, from here on.
    pub(super) fn set_keep(&self, keep: Keep) {
        self.way().keep = keep;
    }

    /// Bytes that it may use.
    pub(super) fn share(&self) -> usize {
        self.share.load(Ordering::Relaxed)
    }

    /// Sets how many bytes it may use.
    pub(super) fn set_share(&self, bytes: usize) {
        self.share.store(bytes, Ordering::Relaxed);
    }

    /// Whether it comes to another layer of bricks, or to one anew.
    pub(super) fn enter(&self, layer: u64) -> bool {
        let mut way = self.way();
        let before = way.layer.replace(layer);
        if before != Some(layer) {
            way.before = before;
            self.decoded.store(0, Ordering::Relaxed);
        }
        before != Some(layer)
    }

    /// Whether it comes to another plane.
    pub(super) fn enter_plane(&self, plane: u64) -> bool {
        self.way().plane.replace(plane) != Some(plane)
    }

    /// The layer that it has left behind, once.
    pub(super) fn left_behind(&self) -> Option<u64> {
        self.way().before.take()
    }

    /// It has stopped: nothing is kept for it any more. If it goes on after all it begins anew.
    pub(super) fn stop(&self) {
        let mut way = self.way();
        (way.keep, way.layer) = (Keep::Freely, None);
        drop(way);
        self.segments.clear();
    }

    /// Nothing before `step` is asked for ahead: the reader itself has come to it.
    pub(super) fn skip_to(&self, course: Course, step: u64) {
        self.asked[course as usize].fetch_max(step, Ordering::Relaxed);
    }

    /// A brick is being decoded ahead.
    fn begin_ahead(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    /// A brick was decoded ahead.
    pub(super) fn end_ahead(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// Steps before `target` that nobody has claimed.
    pub(super) fn unclaimed(&self, course: Course, target: u64) -> u64 {
        target.saturating_sub(self.asked[course as usize].load(Ordering::Relaxed))
    }

    /// Claims the next step to be asked for ahead, if it is before `target` and fewer than `most` are under way.
    pub(super) fn claim(&self, course: Course, target: u64, most: usize) -> Option<u64> {
        if self.under_way.load(Ordering::Relaxed) >= most {
            return None;
        }
        let claim = |asked| (asked < target).then_some(asked + 1);
        let asked = &self.asked[course as usize];
        let step = asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).ok()?;
        self.begin_ahead();
        Some(step)
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock()
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
        let stream = Stream::new(&(0..0), Arc::default());
        let claim = |target, most| stream.claim(Course::Bricks, target, most);
        assert_eq!((claim(2, 4), claim(2, 4), claim(2, 4)), (Some(0), Some(1), None));
        assert_eq!((claim(9, 3), claim(9, 3)), (Some(2), None));
    }
}
