//! One reader of an array, called a scan once it is sequential: its position, the planes that it keeps, and the state
//! of its prefetches.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::segment_plan::SegmentPlan;
use super::segments::Segments;
use crate::array::array_view::ArrayView;
use crate::sequential::Progress;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// A scan without a request for this long has stopped.
const STOPPED_AFTER: Duration = Duration::from_secs(2);

/// One reader of an open file; a scan if it is sequential.
pub(crate) struct Stream {
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
    /// The array that it reads. Dropped with the open file, so that the array may be closed.
    view: Mutex<Option<ArrayView>>,
    /// The planes that it keeps if a layer of bricks does not fit the cache.
    pub segments: Segments,
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
pub(crate) enum PrefetchOrder {
    /// Bricks in C order: each is kept whole and decoded once.
    Bricks,
    /// Visits of bricks: one for each plane and each brick that the plane touches.
    Visits,
}

/// What a scan keeps of a decoded brick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    /// The brick goes to the cache, as for any reader: it is not known yet whether the scan continues to the next
    /// plane.
    Cache,
    /// The brick goes to the scan partition of the cache: a layer of bricks fits.
    Bricks,
    /// The scan keeps the next planes, in segments of this plan.
    Planes(SegmentPlan),
}

impl Stream {
    /// A reader that begins with the request for `samples`, which may be one that reads `ahead` of it.
    pub(crate) fn new(samples: &Range<u64>, ahead: bool, sequential_streams: Arc<AtomicUsize>) -> Self {
        Self {
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
            view: Mutex::default(),
            segments: Segments::default(),
        }
    }

    /// Returns how far a request is from the stream's position, if it may belong to the stream: no more than `back`
    /// samples before it or `forward` samples after it. A request a plane before the stream's first sample belongs to
    /// another reader, or to one that goes backwards.
    pub(crate) fn distance_to(&self, samples: &Range<u64>, back: u64, forward: u64, plane: u64) -> Option<u64> {
        let progress = self.state().progress;
        let (first, next) = (progress.first(), progress.next());
        let late = back.min((plane / 2).max((samples.end - samples.start) / 2));
        let near = (next.saturating_sub(back)..=next.saturating_add(forward)).contains(&samples.start);
        (near && samples.start.saturating_add(late) >= first).then(|| next.abs_diff(samples.start))
    }

    /// Records a request, which may be one that reads `ahead` of the reader. Returns whether the stream has ever been
    /// sequential over `threshold` samples.
    pub(crate) fn advance(&self, samples: &Range<u64>, threshold: u64, plane: u64, ahead: bool) -> bool {
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
    pub(crate) fn record_position(&self, sample: u64) -> bool {
        let mut state = self.state();
        let is_ahead = (state.own_position..state.progress.next()).contains(&sample);
        if is_ahead {
            state.own_position = sample + 1;
        }
        is_ahead
    }

    /// Returns one past the last sample that the reader itself has asked for, as far as it had to ask.
    pub(crate) fn own_position(&self) -> u64 {
        self.state().own_position
    }

    /// Whether it is likely to continue to the next plane: it did so before, or it is the only sequential reader of the
    /// file so far. A reader that goes backwards, or from one plane to any other, is a new stream in each plane.
    pub(crate) fn continues_to_next_plane(&self) -> bool {
        self.sequential_streams.load(Ordering::Relaxed) <= 1 || self.state().crosses_planes
    }

    /// Returns the sample at which it ends if it may want a single plane; see [`Progress::end_of_only_plane`].
    pub(crate) fn end_of_only_plane(&self, plane: u64, size: u64) -> Option<u64> {
        self.state().progress.end_of_only_plane(0, plane, size)
    }

    /// Whether it is sequential now.
    pub(crate) fn is_sequential(&self) -> bool {
        self.state().is_sequential
    }

    /// Whether it is sequential now or was so at any time.
    pub(crate) fn has_been_sequential(&self) -> bool {
        self.state().was_sequential
    }

    /// Returns the number of samples from the first to the last of its range.
    pub(crate) fn distance_covered(&self) -> u64 {
        self.state().progress.length()
    }

    /// Returns one past the last sample asked for.
    pub(crate) fn position(&self) -> u64 {
        self.state().progress.next()
    }

    /// Whether it is likely to continue, and has had a request lately.
    pub(crate) fn is_active(&self) -> bool {
        self.continues_to_next_plane() && self.state().last_request.elapsed() < STOPPED_AFTER
    }

    /// Whether the kernel keeps what it reads in the page cache.
    pub(crate) fn is_page_cached(&self) -> bool {
        self.page_cached.load(Ordering::Relaxed)
    }

    /// Records whether the kernel keeps what it reads in the page cache.
    pub(crate) fn set_page_cached(&self, page_cached: bool) {
        self.page_cached.store(page_cached, Ordering::Relaxed);
    }

    /// Counts a brick that was decoded for it and inserted into the cache.
    pub(crate) fn count_decoded(&self) {
        self.decoded.fetch_add(1, Ordering::Relaxed);
    }

    /// Marks the scan as thrashing, once, if more bricks than `max_decodes` were decoded in its layer.
    pub(crate) fn detect_thrashing(&self, max_decodes: u64) {
        let mut state = self.state();
        if state.retention == Retention::Bricks
            && !state.thrashing
            && self.decoded.load(Ordering::Relaxed) > max_decodes
        {
            (state.thrashing, state.layer) = (true, None);
        }
    }

    /// Whether its bricks were evicted from the cache too early.
    pub(crate) fn is_thrashing(&self) -> bool {
        self.state().thrashing
    }

    /// Returns the array that it reads, once it has entered a layer.
    pub(crate) fn view(&self) -> Option<ArrayView> {
        self.view.lock().clone()
    }

    /// Sets the array that it reads.
    pub(crate) fn set_view(&self, view: ArrayView) {
        *self.view.lock() = Some(view);
    }

    /// Returns what it keeps of a brick.
    pub(crate) fn retention(&self) -> Retention {
        self.state().retention
    }

    /// Sets what it keeps of a brick from here on.
    pub(crate) fn set_retention(&self, retention: Retention) {
        self.state().retention = retention;
    }

    /// Returns the bytes of memory that it may use.
    pub(crate) fn share(&self) -> usize {
        self.share.load(Ordering::Relaxed)
    }

    /// Sets the bytes of memory that it may use.
    pub(crate) fn set_share(&self, bytes: usize) {
        self.share.store(bytes, Ordering::Relaxed);
    }

    /// Records the layer of bricks that it is in. Returns whether it has just entered it.
    pub(crate) fn enter_layer(&self, layer: u64) -> bool {
        let mut state = self.state();
        let previous = state.layer.replace(layer);
        if previous != Some(layer) {
            state.previous_layer = previous;
            self.decoded.store(0, Ordering::Relaxed);
        }
        previous != Some(layer)
    }

    /// Records the plane that it is in. Returns whether it has just entered it.
    pub(crate) fn enter_plane(&self, plane: u64) -> bool {
        self.state().plane.replace(plane) != Some(plane)
    }

    /// Returns the layer that it has left, once.
    pub(crate) fn take_previous_layer(&self) -> Option<u64> {
        self.state().previous_layer.take()
    }

    /// Stops the scan: nothing is kept for it any more. If it continues after all, it enters its layer again.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        (state.retention, state.layer) = (Retention::Cache, None);
        drop(state);
        self.segments.clear();
    }

    /// Skips the steps before `step`, which the reader itself has reached.
    pub(crate) fn skip_to(&self, order: PrefetchOrder, step: u64) {
        self.cursors[order as usize].fetch_max(step, Ordering::Relaxed);
    }

    /// Returns the number of steps before `target` that no worker has claimed.
    pub(crate) fn unclaimed(&self, order: PrefetchOrder, target: u64) -> u64 {
        target.saturating_sub(self.cursors[order as usize].load(Ordering::Relaxed))
    }

    /// Claims the next step to prefetch, if it is before `target` and fewer than `max_in_flight` are in flight. The
    /// caller ends each claim with [`Stream::end_prefetch`].
    pub(crate) fn claim(&self, order: PrefetchOrder, target: u64, max_in_flight: usize) -> Option<u64> {
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
    pub(crate) fn claim_requests(&self, from: u64, target: u64) -> Option<Range<u64>> {
        let begin = self.requested.fetch_max(target, Ordering::Relaxed).max(from);
        (begin < target).then_some(begin..target)
    }

    /// Gives back the bricks from `from` on, which could not be requested.
    pub(crate) fn unclaim_requests(&self, from: u64) {
        self.requested.fetch_min(from, Ordering::Relaxed);
    }

    /// Returns the prefetches in flight.
    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn prefetches_in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Ends a prefetch, successful or not.
    pub(crate) fn end_prefetch(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bricks_are_claimed_once_each_and_a_few_at_a_time() {
        let stream = Stream::new(&(0..0), false, Arc::default());
        let claim = |target, most| stream.claim(PrefetchOrder::Bricks, target, most);
        assert_eq!((claim(2, 4), claim(2, 4), claim(2, 4)), (Some(0), Some(1), None));
        assert_eq!((claim(9, 3), claim(9, 3)), (Some(2), None));
        let claim = |from, target| stream.claim_requests(from, target);
        assert_eq!((claim(0, 4), claim(2, 4), claim(2, 7), claim(9, 12)), (Some(0..4), None, Some(4..7), Some(9..12)));
        stream.unclaim_requests(10);
        assert_eq!((claim(2, 12), claim(2, 12)), (Some(10..12), None));
    }
}
