//! Scans: sequential readers of an array. What is kept and prefetched for each.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::early_eviction::BrickKey;
use super::planes::{KeptPlanes, SegmentPlan, plane_cost};
use super::progress::Progress;
use crate::memory::entry_weight;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::volume::{ArrayId, ArrayInfo, AxisPermutation, BrickGrid, Dims, Region};

/// A reader that has read this many bytes in order is a scan; in an array of small planes a quarter of a plane is
/// enough, or half of one that is smaller still: around the rows of a box in a memory map the kernel reads 32 KiB more.
/// A reader of a box reads less before it jumps to the next plane of the box.
const SEQUENTIAL_AFTER: u64 = 1 << 20;
const SEQUENTIAL_IN_SMALL_PLANE: u64 = 128 << 10;
/// A scan without a request for this long has stopped.
const STOPPED_AFTER: Duration = Duration::from_secs(2);
/// Bricks from this size on take whole pages of memory.
const PAGE: usize = 4096;

/// Bytes of a decoded brick.
pub(super) fn brick_bytes(info: &ArrayInfo) -> usize {
    let samples = info.brick_shape.product().and_then(|n| usize::try_from(n).ok());
    samples.and_then(|n| n.checked_mul(info.dtype.size())).unwrap_or(usize::MAX).max(1)
}

/// The bricks of an array in the order of axes in which a file shows its samples. *Planes* lie across the slowest axis of
/// the file, a *layer* of bricks is all that one plane touches, and a *row* of bricks all that a row of planes touches.
pub(super) struct BrickOrder {
    pub(super) axes: AxisPermutation,
    array: ArrayId,
    grid: BrickGrid,
    /// Samples and bricks along each axis of the file.
    pub(super) shape: Dims,
    count: Dims,
    /// Bytes of a sample.
    pub(super) size: u64,
    /// Bytes that a decoded brick takes in the cache, overhead included.
    pub(super) brick_cost: usize,
    /// Bytes that a plane of a brick takes among those that a scan keeps, overhead included.
    pub(super) plane_cost: u64,
    /// Bytes of a plane of a brick.
    pub(super) plane_bytes: u64,
}

impl BrickOrder {
    pub(super) fn new(info: &ArrayInfo, axes: AxisPermutation) -> Self {
        let (shape, count) = (axes.permute_dims(&info.shape()), axes.permute_dims(&info.grid.count()));
        let brick = brick_bytes(info);
        let pages = if brick < PAGE { brick } else { brick.saturating_add(PAGE - 1) / PAGE * PAGE };
        let (size, brick_cost) = (info.dtype.size() as u64, entry_weight(pages));
        let planes = info.grid.step()[axes.axis(0)].max(1);
        let plane_bytes = brick as u64 / planes;
        let plane_cost = plane_cost(planes, plane_bytes);
        Self { axes, array: info.id, grid: info.grid.clone(), shape, count, size, brick_cost, plane_cost, plane_bytes }
    }

    /// Samples of a plane.
    pub(super) fn plane_samples(&self) -> u64 {
        self.shape.strides(1)[0].max(1)
    }

    /// Planes from one layer to the next.
    pub(super) fn step(&self) -> u64 {
        self.grid.step()[self.axes.axis(0)]
    }

    /// The number of all bricks.
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

    /// The brick with a number, and its key in the cache.
    pub(super) fn brick(&self, number: u64) -> Dims {
        self.axes.invert_dims(&self.count.index_of(number))
    }

    pub(super) fn key(&self, number: u64) -> BrickKey {
        (self.array, self.grid.count().linear_of(&self.brick(number)))
    }

    /// The numbers of the bricks of a layer.
    pub(super) fn bricks(&self, layer: u64) -> Range<u64> {
        layer * self.layer_bricks()..(layer + 1) * self.layer_bricks()
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

    /// Returns the first plane of what a brick owns that is not before `plane`, if there is one.
    pub(super) fn first_plane(&self, brick: &Dims, plane: u64) -> Option<Region> {
        let (axis, mut region) = (self.axes.axis(0), self.grid.region(brick));
        let end = region.end(axis);
        region.start[axis] = region.start[axis].max(plane);
        region.shape[axis] = 1;
        (region.start[axis] < end).then_some(region)
    }
}

/// What the readers of an open file share.
#[derive(Default)]
pub(super) struct Shared {
    /// How many of them have ever been sequential.
    sequential: AtomicUsize,
    /// Decoded bricks are evicted soon after a scan has passed them.
    cache_is_tight: AtomicBool,
}

/// One reader of an open file; a scan if it is sequential.
pub(crate) struct Scan {
    pub(super) bricks: Arc<BrickOrder>,
    /// The planes that it keeps if a layer of bricks does not fit the cache.
    pub(super) planes: KeptPlanes,
    state: Mutex<ScanState>,
    shared: Arc<Shared>,
}

/// How far a reader has come, and what is kept and prefetched for it.
#[derive(Clone, Copy)]
pub(super) struct ScanState {
    pub(super) progress: Progress,
    /// It is sequential now.
    pub(super) is_sequential: bool,
    /// It is sequential now or was so at any time.
    pub(super) was_sequential: bool,
    /// It has continued from one plane to the next in order.
    crosses_planes: bool,
    last_request: Instant,
    /// The kernel keeps what it reads in the page cache.
    pub(super) page_cached: bool,
    pub(super) retention: Retention,
    /// Bytes of memory that it may use.
    pub(super) share: usize,
    /// The layer of bricks and the plane that it has entered.
    layer: Option<u64>,
    plane: Option<u64>,
    /// Bricks that were decoded since it entered its layer.
    pub(super) decoded: u64,
    /// Its bricks were evicted before it had read them.
    pub(super) thrashing: bool,
    /// The next step to prefetch, in each order.
    cursors: [u64; 2],
    /// The next brick to request from a source that takes long to answer.
    pub(super) requested: u64,
    /// Prefetches in flight.
    pub(super) in_flight: usize,
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
    pub(super) fn new(bricks: &Arc<BrickOrder>, progress: Progress, shared: &Arc<Shared>) -> Self {
        let state = ScanState {
            progress,
            is_sequential: false,
            was_sequential: false,
            crosses_planes: false,
            last_request: Instant::now(),
            page_cached: false,
            retention: Retention::Cache,
            share: 0,
            layer: None,
            plane: None,
            decoded: 0,
            thrashing: false,
            cursors: [0; 2],
            requested: 0,
            in_flight: 0,
        };
        let (bricks, planes) = (Arc::clone(bricks), KeptPlanes::new(bricks.axes));
        Self { bricks, planes, state: Mutex::new(state), shared: Arc::clone(shared) }
    }

    pub(super) fn now(&self) -> ScanState {
        *self.state.lock()
    }

    pub(super) fn update<R>(&self, change: impl FnOnce(&mut ScanState) -> R) -> R {
        change(&mut self.state.lock())
    }

    /// Records a read of this reader, or ahead of it. Returns whether it is, or was, sequential.
    pub(super) fn record(&self, samples: &Range<u64>, ahead: bool, page_cached: bool) -> bool {
        let (plane, size) = (self.bricks.plane_samples(), self.bricks.size);
        let threshold = (SEQUENTIAL_IN_SMALL_PLANE / size).min(plane / 2).max(plane / 4).min(SEQUENTIAL_AFTER / size);
        self.update(|state| {
            state.last_request = Instant::now();
            state.is_sequential = state.progress.record(samples, ahead, threshold);
            state.crosses_planes |= state.is_sequential && state.progress.length() > plane;
            if state.is_sequential && !state.was_sequential {
                state.was_sequential = true;
                self.shared.sequential.fetch_add(1, Ordering::Relaxed);
            }
            state.page_cached = page_cached;
            state.was_sequential
        })
    }

    /// Decides what is read ahead of it: `request` gets how far it has come and the samples of a plane, and records
    /// what it requests. In a tight cache it is nothing: reads far out of order would decode bricks again.
    pub(crate) fn read_ahead<R>(&self, request: impl FnOnce(&mut Progress, u64) -> Option<R>) -> Option<R> {
        if self.shared.cache_is_tight.load(Ordering::Relaxed) {
            return None;
        }
        self.update(|state| request(&mut state.progress, self.bricks.plane_samples()))
    }

    pub(super) fn set_cache_is_tight(&self, tight: bool) {
        self.shared.cache_is_tight.store(tight, Ordering::Relaxed);
    }

    /// Returns one past the last sample asked for.
    pub(super) fn position(&self) -> u64 {
        self.now().progress.next
    }

    /// Returns the plane that it has come to.
    pub(super) fn plane(&self) -> u64 {
        self.bricks.plane_of(self.position())
    }

    /// Whether it is likely to continue to the next plane: it did so before, or it is the only sequential reader of the
    /// file so far. A reader that goes backwards, or from one plane to any other, is a new reader in each plane.
    pub(super) fn continues_to_next_plane(&self) -> bool {
        self.shared.sequential.load(Ordering::Relaxed) <= 1 || self.now().crosses_planes
    }

    /// Whether it is likely to continue: it is not at the end of the array, and has had a request lately.
    pub(super) fn is_active(&self) -> bool {
        let (now, end) = (self.now(), self.bricks.shape.product().unwrap_or(u64::MAX));
        self.continues_to_next_plane() && now.progress.next < end && now.last_request.elapsed() < STOPPED_AFTER
    }

    /// Stops the scan: nothing is kept for it any more. If it continues after all, it enters its layer again.
    pub(super) fn stop(&self) {
        self.update(|state| (state.retention, state.layer) = (Retention::Cache, None));
        self.planes.clear();
    }
}

impl ScanState {
    /// Marks the scan as thrashing, once, if more bricks than `max_decodes` were decoded in its layer.
    pub(super) fn detect_thrashing(&mut self, max_decodes: u64) {
        if self.retention == Retention::Bricks && !self.thrashing && self.decoded > max_decodes {
            (self.thrashing, self.layer) = (true, None);
        }
    }

    /// Records the layer of bricks that it is in. If it has just entered it, returns the layer that it was in before.
    pub(super) fn enter_layer(&mut self, layer: u64) -> Option<Option<u64>> {
        let previous = self.layer.replace(layer);
        if previous == Some(layer) {
            return None;
        }
        self.decoded = 0;
        Some(previous)
    }

    /// Records the plane that it is in. Returns whether it has just entered it.
    pub(super) fn enter_plane(&mut self, plane: u64) -> bool {
        self.plane.replace(plane) != Some(plane)
    }

    /// Skips the steps before `from`, which the reader itself has reached. Returns the number of steps before `target`
    /// that no worker has claimed.
    pub(super) fn skip_to(&mut self, order: PrefetchOrder, from: u64, target: u64) -> u64 {
        let cursor = &mut self.cursors[order as usize];
        *cursor = (*cursor).max(from);
        target.saturating_sub(*cursor)
    }

    /// Claims the next step to prefetch, if it is before `target` and fewer than `max_in_flight` are in flight. The
    /// caller takes each claim out of `in_flight`.
    pub(super) fn claim(&mut self, order: PrefetchOrder, target: u64, max_in_flight: usize) -> Option<u64> {
        let step = self.cursors[order as usize];
        if self.in_flight >= max_in_flight || step >= target {
            return None;
        }
        self.cursors[order as usize] += 1;
        self.in_flight += 1;
        Some(step)
    }

    /// Returns the bricks `from..target` that were not claimed to be requested yet, and claims them. `None` if there
    /// are none.
    pub(super) fn claim_requests(&mut self, from: u64, target: u64) -> Option<Range<u64>> {
        let begin = self.requested.max(from);
        self.requested = self.requested.max(target);
        (begin < target).then_some(begin..target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Dtype;

    fn cube() -> ArrayInfo {
        let (shape, brick_shape) = (Dims::filled(3, 512), Dims::filled(3, 64));
        ArrayInfo::new(Dtype::UInt8, BrickGrid::aligned(shape, brick_shape), brick_shape)
    }

    #[test]
    fn bricks_are_claimed_once_each_and_a_few_at_a_time() {
        let order = Arc::new(BrickOrder::new(&cube(), AxisPermutation::IDENTITY));
        let mut state = Scan::new(&order, Progress::new(&(0..0)), &Arc::default()).now();
        let mut claim = |target, most| state.claim(PrefetchOrder::Bricks, target, most);
        assert_eq!((claim(2, 4), claim(2, 4), claim(2, 4)), (Some(0), Some(1), None));
        assert_eq!((claim(9, 3), claim(9, 3)), (Some(2), None));
        let mut claim = |from, target| state.claim_requests(from, target);
        assert_eq!((claim(0, 4), claim(2, 4), claim(2, 7), claim(9, 12)), (Some(0..4), None, Some(4..7), Some(9..12)));
        state.requested = 10;
        let mut claim = |from, target| state.claim_requests(from, target);
        assert_eq!((claim(2, 12), claim(2, 12)), (Some(10..12), None));
    }
}
