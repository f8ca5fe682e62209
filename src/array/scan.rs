//! Scans: sequential readers of an array. Tells the readers of one open file apart by their requests, and finds those
//! that read in order.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ghost_list::BrickKey;
use super::planes::{KeptPlanes, SegmentPlan};
use crate::sequential::{Progress, StreamTable};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::volume::{ArrayInfo, AxisPermutation, BrickGrid, Dims, Region};

/// The kernel's requests for one reader are out of order by no more than this many bytes.
pub(super) const REORDER_WINDOW: u64 = 1 << 20;
/// A reader that has read this many bytes in order is a scan; in an array of small planes a quarter of a plane is
/// enough, or half of one that is smaller still: around the rows of a box in a memory map the kernel reads 32 KiB more.
/// A reader of a box reads less before it jumps to the next plane of the box.
const SEQUENTIAL_AFTER: u64 = 1 << 20;
const SEQUENTIAL_IN_SMALL_PLANE: u64 = 128 << 10;

/// A scan without a request for this long has stopped.
const STOPPED_AFTER: Duration = Duration::from_secs(2);

/// The bricks of an array in the order of axes in which a file shows its samples. *Planes* lie across the slowest axis of
/// the file, a *layer* of bricks is all that one plane touches, and a *row* of bricks all that a row of planes touches.
pub(super) struct BrickOrder {
    pub(super) axes: AxisPermutation,
    grid: BrickGrid,
    /// Samples and bricks along each axis of the file.
    shape: Dims,
    count: Dims,
}

impl BrickOrder {
    pub(super) fn new(info: &ArrayInfo, axes: AxisPermutation) -> Self {
        let (shape, count) = (axes.permute_dims(&info.shape()), axes.permute_dims(&info.grid.count()));
        Self { axes, grid: info.grid.clone(), shape, count }
    }

    pub(super) fn shape(&self) -> &Dims {
        &self.shape
    }

    /// Samples of a plane.
    pub(super) fn plane_samples(&self) -> u64 {
        self.shape.strides(1)[0].max(1)
    }

    /// Planes from one layer to the next.
    pub(super) fn step(&self) -> u64 {
        self.grid.step()[self.axes.axis(0)]
    }

    /// The number of all bricks, of those in a layer, and of those in a row.
    pub(super) fn total(&self) -> u64 {
        self.grid.total()
    }

    pub(super) fn layer_bricks(&self) -> u64 {
        self.count[1..].iter().product::<u64>().max(1)
    }

    pub(super) fn row_bricks(&self) -> u64 {
        self.count.get(2..).map_or(1, |inner| inner.iter().product::<u64>()).max(1)
    }

    /// Whether a layer has so few bricks that a thread which talks to the kernel may look at each of them.
    pub(super) fn may_be_walked(&self) -> bool {
        self.layer_bricks() <= 1 << 16
    }

    /// The number of a brick in this order.
    pub(super) fn number(&self, brick: &Dims) -> u64 {
        self.count.linear_of(&self.axes.permute_dims(brick))
    }

    /// The brick with a number.
    pub(super) fn brick(&self, number: u64) -> Dims {
        self.axes.invert_dims(&self.count.index_of(number))
    }

    /// The number of the brick that has a sample, which has this number among all samples of the file.
    pub(super) fn brick_of(&self, sample: u64) -> u64 {
        let at = self.axes.invert_dims(&self.shape.index_of(sample));
        self.number(&Dims::from_fn(at.len(), |axis| self.grid.brick_of(axis, at[axis])))
    }

    /// The plane of a sample.
    pub(super) fn plane_of(&self, sample: u64) -> u64 {
        sample / self.plane_samples()
    }

    /// The layer of a plane.
    pub(super) fn layer_of(&self, plane: u64) -> u64 {
        self.grid.brick_of(self.axes.axis(0), plane)
    }

    /// The planes of a layer.
    pub(super) fn planes(&self, layer: u64) -> Range<u64> {
        let (first, end) = self.grid.owned(self.axes.axis(0), layer);
        first..end
    }

    /// The cache's keys of all bricks of a layer; `info` is that of the array.
    pub(super) fn layer_keys(&self, info: &ArrayInfo, layer: u64) -> impl DoubleEndedIterator<Item = BrickKey> {
        let (bricks, id, count) = (self.layer_bricks(), info.id, info.grid.count());
        (layer * bricks..(layer + 1) * bricks).map(move |number| (id, count.linear_of(&self.brick(number))))
    }

    /// Returns the first plane of what a brick owns that is not before `plane`, if there is one.
    pub(super) fn first_plane(&self, brick: &Dims, plane: u64) -> Option<Region> {
        let (axis, mut region) = (self.axes.axis(0), self.grid.region(brick));
        let end = region.end(axis);
        region.start[axis] = region.start[axis].max(plane);
        region.shape[axis] = 1;
        (region.start[axis] < end).then_some(region)
    }
}

/// The readers of one open file.
#[derive(Default)]
pub(crate) struct ScanDetector {
    streams: StreamTable<Arc<Scan>>,
    /// How many streams have ever been sequential.
    sequential: Arc<AtomicUsize>,
    /// Decoded bricks are evicted soon after a scan has passed them.
    cache_is_tight: AtomicBool,
}

impl ScanDetector {
    /// Whether requests that come far out of order would find their bricks evicted, and decode them again.
    #[must_use]
    pub(crate) fn cache_is_tight(&self) -> bool {
        self.cache_is_tight.load(Ordering::Relaxed)
    }

    /// Records whether the cache is tight.
    pub(crate) fn set_cache_is_tight(&self, tight: bool) {
        self.cache_is_tight.store(tight, Ordering::Relaxed);
    }

    /// Records a request, which may be one that reads `ahead` of its reader; returns the scan that it belongs to, if it
    /// belongs to one.
    pub(super) fn record(
        &self,
        info: &ArrayInfo,
        order: &AxisPermutation,
        samples: &Range<u64>,
        ahead: bool,
    ) -> Option<Arc<Scan>> {
        let (size, plane) = (info.dtype.size() as u64, order.permute_dims(&info.shape()).strides(1)[0]);
        // the rows of a box in the next plane belong to the same reader
        let (back, forward) = (REORDER_WINDOW / size, (REORDER_WINDOW / size).max(2 * plane));
        let distance = |stream: &Arc<Scan>| stream.distance_to(samples, back, forward, plane);
        let new = || Arc::new(Scan::new(BrickOrder::new(info, *order), samples, ahead, Arc::clone(&self.sequential)));
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

/// One reader of an open file; a scan if it is sequential.
pub(super) struct Scan {
    pub(super) bricks: BrickOrder,
    state: Mutex<State>,
    /// Bytes of memory that it may use.
    share: AtomicUsize,
    /// The next step to prefetch, in each order.
    cursors: [AtomicU64; 2],
    /// The next brick to request from a source that takes long to answer.
    requested: AtomicU64,
    /// Prefetches in flight.
    in_flight: AtomicUsize,
    /// Bricks that were decoded since it entered its layer.
    decoded: AtomicU64,
    /// The kernel keeps what it reads in the page cache.
    page_cached: AtomicBool,
    /// How many streams of the open file have ever been sequential.
    sequential_streams: Arc<AtomicUsize>,
    /// The planes that it keeps if a layer of bricks does not fit the cache.
    pub(super) planes: KeptPlanes,
}

struct State {
    progress: Progress,
    /// One past the last sample that the reader itself has asked for: others are read ahead of it.
    own_position: u64,
    /// It is sequential now.
    is_sequential: bool,
    /// It is sequential now or was so at any time.
    was_sequential: bool,
    /// It has continued from one plane to the next in order.
    crosses_planes: bool,
    /// Its bricks were evicted before it had read them.
    thrashing: bool,
    last_request: Instant,
    retention: Retention,
    /// The layer of bricks that it has entered.
    layer: Option<u64>,
    /// The plane that it has entered.
    plane: Option<u64>,
    /// The layer that it was in before, until that is taken.
    previous_layer: Option<u64>,
}

/// The order in which bricks are prefetched for a scan. A step is one brick or one visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrefetchOrder {
    /// Bricks in C order: each is kept whole and decoded once.
    Bricks,
    /// Visits of bricks: one for each plane and each brick that the plane touches.
    Visits,
}

/// What a scan keeps of a decoded brick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retention {
    /// The brick goes to the cache, as for any reader: it is not known yet whether the scan continues to the next
    /// plane.
    Cache,
    /// The brick goes to the scan partition of the cache: a layer of bricks fits.
    Bricks,
    /// The scan keeps the next planes, in segments of this plan.
    Planes(SegmentPlan),
}

impl Scan {
    /// A reader that begins with the request for `samples`, which may be one that reads `ahead` of it.
    fn new(bricks: BrickOrder, samples: &Range<u64>, ahead: bool, sequential_streams: Arc<AtomicUsize>) -> Self {
        Self {
            planes: KeptPlanes::new(bricks.axes),
            bricks,
            state: Mutex::new(State {
                progress: Progress::new(samples),
                own_position: if ahead { samples.start } else { samples.end },
                is_sequential: false,
                was_sequential: false,
                crosses_planes: false,
                thrashing: false,
                last_request: Instant::now(),
                retention: Retention::Cache,
                layer: None,
                plane: None,
                previous_layer: None,
            }),
            share: AtomicUsize::new(0),
            cursors: Default::default(),
            requested: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            decoded: AtomicU64::new(0),
            page_cached: AtomicBool::new(false),
            sequential_streams,
        }
    }

    /// Returns how far a request is from the stream's position, if it may belong to the stream: no more than `back`
    /// samples before it or `forward` samples after it. A request a plane before the stream's first sample belongs to
    /// another reader, or to one that goes backwards.
    pub(super) fn distance_to(&self, samples: &Range<u64>, back: u64, forward: u64, plane: u64) -> Option<u64> {
        let progress = self.state().progress;
        let (first, next) = (progress.first(), progress.next());
        let late = back.min((plane / 2).max((samples.end - samples.start) / 2));
        let near = (next.saturating_sub(back)..=next.saturating_add(forward)).contains(&samples.start);
        (near && samples.start.saturating_add(late) >= first).then(|| next.abs_diff(samples.start))
    }

    /// Records a request, which may be one that reads `ahead` of the reader. Returns whether the stream has ever been
    /// sequential over `threshold` samples.
    pub(super) fn advance(&self, samples: &Range<u64>, threshold: u64, plane: u64, ahead: bool) -> bool {
        let mut state = self.state();
        if !ahead {
            state.own_position = state.own_position.max(samples.end);
        }
        state.last_request = Instant::now();
        state.is_sequential = state.progress.advance(samples, threshold);
        state.crosses_planes |= state.is_sequential && state.progress.length() > plane;
        if state.is_sequential && !state.was_sequential {
            state.was_sequential = true;
            self.sequential_streams.fetch_add(1, Ordering::Relaxed);
        }
        state.was_sequential
    }

    /// Records that the reader has reached a sample, if that is one that was read ahead of it. Returns whether it is.
    pub(super) fn record_position(&self, sample: u64) -> bool {
        let mut state = self.state();
        let is_ahead = (state.own_position..state.progress.next()).contains(&sample);
        if is_ahead {
            state.own_position = sample + 1;
        }
        is_ahead
    }

    /// Returns one past the last sample that the reader itself has asked for, as far as it had to ask.
    pub(super) fn own_position(&self) -> u64 {
        self.state().own_position
    }

    /// Whether it is likely to continue to the next plane: it did so before, or it is the only sequential reader of the
    /// file so far. A reader that goes backwards, or from one plane to any other, is a new stream in each plane.
    pub(super) fn continues_to_next_plane(&self) -> bool {
        self.sequential_streams.load(Ordering::Relaxed) <= 1 || self.state().crosses_planes
    }

    /// Returns the sample at which it ends if it may want a single plane; see [`Progress::end_of_only_plane`].
    pub(super) fn end_of_only_plane(&self, plane: u64, size: u64) -> Option<u64> {
        self.state().progress.end_of_only_plane(0, plane, size)
    }

    /// Whether it is sequential now.
    pub(super) fn is_sequential(&self) -> bool {
        self.state().is_sequential
    }

    /// Whether it is sequential now or was so at any time.
    pub(super) fn has_been_sequential(&self) -> bool {
        self.state().was_sequential
    }

    /// Returns the number of samples from the first to the last of its range.
    pub(super) fn distance_covered(&self) -> u64 {
        self.state().progress.length()
    }

    /// Returns one past the last sample asked for.
    pub(super) fn position(&self) -> u64 {
        self.state().progress.next()
    }

    /// Whether it is likely to continue: it is not at the end of the array, and has had a request lately.
    pub(super) fn is_active(&self) -> bool {
        let end = self.bricks.shape().product().unwrap_or(u64::MAX);
        let has_requests = || {
            let state = self.state();
            state.progress.next() < end && state.last_request.elapsed() < STOPPED_AFTER
        };
        self.continues_to_next_plane() && has_requests()
    }

    /// Whether the kernel keeps what it reads in the page cache.
    pub(super) fn is_page_cached(&self) -> bool {
        self.page_cached.load(Ordering::Relaxed)
    }

    /// Records whether the kernel keeps what it reads in the page cache.
    pub(super) fn set_page_cached(&self, page_cached: bool) {
        self.page_cached.store(page_cached, Ordering::Relaxed);
    }

    /// Counts a brick that was decoded for it and inserted into the cache.
    pub(super) fn count_decoded(&self) {
        self.decoded.fetch_add(1, Ordering::Relaxed);
    }

    /// Marks the scan as thrashing, once, if more bricks than `max_decodes` were decoded in its layer.
    pub(super) fn detect_thrashing(&self, max_decodes: u64) {
        let mut state = self.state();
        if state.retention == Retention::Bricks
            && !state.thrashing
            && self.decoded.load(Ordering::Relaxed) > max_decodes
        {
            (state.thrashing, state.layer) = (true, None);
        }
    }

    /// Whether its bricks were evicted from the cache too early.
    pub(super) fn is_thrashing(&self) -> bool {
        self.state().thrashing
    }

    /// Returns what it keeps of a brick.
    pub(super) fn retention(&self) -> Retention {
        self.state().retention
    }

    /// Sets what it keeps of a brick from here on.
    pub(super) fn set_retention(&self, retention: Retention) {
        self.state().retention = retention;
    }

    /// Returns the bytes of memory that it may use.
    pub(super) fn share(&self) -> usize {
        self.share.load(Ordering::Relaxed)
    }

    /// Sets the bytes of memory that it may use.
    pub(super) fn set_share(&self, bytes: usize) {
        self.share.store(bytes, Ordering::Relaxed);
    }

    /// Records the layer of bricks that it is in. Returns whether it has just entered it.
    pub(super) fn enter_layer(&self, layer: u64) -> bool {
        let mut state = self.state();
        let previous = state.layer.replace(layer);
        if previous != Some(layer) {
            state.previous_layer = previous;
            self.decoded.store(0, Ordering::Relaxed);
        }
        previous != Some(layer)
    }

    /// Records the plane that it is in. Returns whether it has just entered it.
    pub(super) fn enter_plane(&self, plane: u64) -> bool {
        self.state().plane.replace(plane) != Some(plane)
    }

    /// Returns the layer that it has left, once.
    pub(super) fn take_previous_layer(&self) -> Option<u64> {
        self.state().previous_layer.take()
    }

    /// Stops the scan: nothing is kept for it any more. If it continues after all, it enters its layer again.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        (state.retention, state.layer) = (Retention::Cache, None);
        drop(state);
        self.planes.clear();
    }

    /// Skips the steps before `step`, which the reader itself has reached.
    pub(super) fn skip_to(&self, order: PrefetchOrder, step: u64) {
        self.cursors[order as usize].fetch_max(step, Ordering::Relaxed);
    }

    /// Returns the number of steps before `target` that no worker has claimed.
    pub(super) fn unclaimed(&self, order: PrefetchOrder, target: u64) -> u64 {
        target.saturating_sub(self.cursors[order as usize].load(Ordering::Relaxed))
    }

    /// Claims the next step to prefetch, if it is before `target` and fewer than `max_in_flight` are in flight. The
    /// caller ends each claim with [`Scan::end_prefetch`].
    pub(super) fn claim(&self, order: PrefetchOrder, target: u64, max_in_flight: usize) -> Option<u64> {
        if self.in_flight.load(Ordering::Relaxed) >= max_in_flight {
            return None;
        }
        let claim = |cursor| (cursor < target).then_some(cursor + 1);
        let cursor = &self.cursors[order as usize];
        let step = cursor.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).ok()?;
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Some(step)
    }

    /// Returns the bricks `from..target` that were not claimed to be requested yet, and claims them. `None` if there
    /// are none.
    pub(super) fn claim_requests(&self, from: u64, target: u64) -> Option<Range<u64>> {
        let begin = self.requested.fetch_max(target, Ordering::Relaxed).max(from);
        (begin < target).then_some(begin..target)
    }

    /// Gives back the bricks from `from` on, which could not be requested.
    pub(super) fn unclaim_requests(&self, from: u64) {
        self.requested.fetch_min(from, Ordering::Relaxed);
    }

    /// Returns the prefetches in flight.
    #[cfg(all(test, feature = "shuttle"))]
    pub(super) fn prefetches_in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Ends a prefetch, successful or not.
    pub(super) fn end_prefetch(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Dtype;

    const ORDER: AxisPermutation = AxisPermutation::IDENTITY;

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
            assert!(scans.record(info, &ORDER, &window(n), false).is_none());
        }
        for n in [3, 5, 4, 6, 7] {
            assert!(scans.record(info, &ORDER, &window(n), false).is_some());
        }
        assert_eq!(scans.record(info, &ORDER, &window(8), false).unwrap().position(), 9 << 15);
        // a second reader far away is another scan, and does not disturb the first
        for n in 2500..2503 {
            assert!(scans.record(info, &ORDER, &window(n), false).is_none());
        }
        assert!(scans.record(info, &ORDER, &window(2503), false).is_some());
        assert_eq!(scans.record(info, &ORDER, &window(9), false).unwrap().position(), 10 << 15);
        for n in 1..1000u64 {
            let at = (n * 7_919_777) % (1 << 27);
            assert!(scans.record(info, &ORDER, &(at..at + 4096), false).is_none(), "{n}");
        }
    }

    #[test]
    fn what_is_read_ahead_of_a_reader_is_not_its_own() {
        let (info, scans) = (&cube(), ScanDetector::default());
        scans.record(info, &ORDER, &(0..1 << 18), false);
        let scan = scans.record(info, &ORDER, &(1 << 18..1 << 21), true).unwrap();
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
                assert!(scans.record(info, &ORDER, &(at..at + 100), false).is_none(), "plane {plane}, row {row}");
            }
        }
    }

    #[test]
    fn bricks_are_claimed_once_each_and_a_few_at_a_time() {
        let scan = Scan::new(BrickOrder::new(&cube(), ORDER), &(0..0), false, Arc::default());
        let claim = |target, most| scan.claim(PrefetchOrder::Bricks, target, most);
        assert_eq!((claim(2, 4), claim(2, 4), claim(2, 4)), (Some(0), Some(1), None));
        assert_eq!((claim(9, 3), claim(9, 3)), (Some(2), None));
        let claim = |from, target| scan.claim_requests(from, target);
        assert_eq!((claim(0, 4), claim(2, 4), claim(2, 7), claim(9, 12)), (Some(0..4), None, Some(4..7), Some(9..12)));
        scan.unclaim_requests(10);
        assert_eq!((claim(2, 12), claim(2, 12)), (Some(10..12), None));
    }
}
