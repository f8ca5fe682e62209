//! The prefetcher: decides which bricks are decoded before scans ask for them, and divides the cache among the active
//! scans.

use std::sync::Arc;

use super::cache_shares::CacheShares;
use super::handover::Handover;
use super::prefetch_job::PrefetchJob;
use crate::array::brick_sizes::{brick_cost, layer_bricks, may_be_walked, row_bricks, workers};
use crate::array::bricks::{BrickAccess, first_plane};
use crate::array::resources::Resources;
use crate::array::scan::{PrefetchOrder, REORDER_WINDOW, Retention, Stream};
use crate::sync::{Mutex, MutexGuard};
use crate::volume::{ArrayInfo, Dims};

/// A scan whose layer fits the cache decodes each brick once or twice, and prefetches as many of the next layer. A scan
/// that decodes more than this many times the bricks of its layer is thrashing: the cache is too small after all.
const THRASHING: u64 = 3;

/// Another worker is woken for each of this many bytes to decode: more than for a read, since no reader waits for them
/// yet.
const BATCH: usize = 256 << 10;

/// What a scan requests from a source that takes long to answer, beyond the bricks that are prefetched: as many bricks
/// as take these bytes where they are stored.
const REQUESTED_BYTES: u64 = 32 << 20;
/// Not fewer than these are requested ahead, however large they are.
const MIN_REQUESTED: u64 = 8;
/// Not more than these, however small they are.
const MAX_REQUESTED: u64 = 64;
/// Bricks that are requested at a time: neighbours are fetched together.
const REQUESTED_AT_ONCE: u64 = 8;

/// Bricks of the next layer are prefetched for a scan that has read these bytes of the layer that it began with, and an
/// eighth of its planes.
const NEXT_LAYER_AFTER: u64 = 2 << 20;

/// Prefetches bricks for all scans.
#[derive(Default)]
pub(crate) struct Prefetcher {
    shares: Mutex<CacheShares>,
}

/// The position of a scan in its array.
struct Position {
    /// The number of the brick, in C order.
    brick: u64,
    plane: u64,
    layer: u64,
    /// The sample at which the scan ends, if it may want a single plane.
    end_of_only_plane: Option<u64>,
}

/// The steps to prefetch: `from..target` in one order.
struct Range {
    order: PrefetchOrder,
    from: u64,
    target: u64,
}

impl Prefetcher {
    /// Returns the bytes that scans hold in segments.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.shares().segment_bytes()
    }

    /// Records a request of a scan, or of another reader (`other`). Divides the cache again if scans have stopped or
    /// other readers have become busy or idle.
    pub(crate) fn record_request(&self, resources: &Arc<Resources>, other: bool) {
        // the thread that holds the lock divides the cache itself, or the next request does
        let Some(mut shares) = self.shares.try_lock() else { return };
        if shares.record_request(other) || shares.has_stopped_scans() {
            let handovers = shares.divide(resources, None);
            drop(shares);
            handovers.iter().for_each(Handover::run);
            let quota = self.shares().quota(resources.cache.capacity());
            resources.cache.set_scan_quota(quota, std::iter::empty());
        }
    }

    /// Divides the cache again for a scan that enters a layer of bricks, which decides whether it keeps bricks or
    /// planes.
    fn enter_layer(&self, access: &BrickAccess, scan: &Arc<Stream>, layer: u64) {
        let cache = &access.resources.cache;
        let mut shares = self.shares();
        let left = shares.enter_layer(&access.view, scan, layer);
        let handovers = shares.divide(&access.resources, Some(scan));
        drop(shares);
        if let Some(left) = left.filter(|_| may_be_walked(access.view.info())) {
            cache.demote(access.view.layer_keys(left), scan.is_page_cached());
        }
        // before the cache evicts the bricks
        handovers.iter().for_each(Handover::run);
        let quota = self.shares().quota(cache.capacity());
        let wanted = (scan.retention() == Retention::Bricks).then(|| access.view.layer_keys(layer));
        cache.set_scan_quota(quota, wanted.into_iter().flatten());
    }

    /// Prefetches the bricks that a scan will need next, on workers of the pool.
    pub(crate) fn prefetch(&self, access: &BrickAccess) {
        let Some(scan) = &access.scan else { return };
        let Some(position) = self.update_position(access, scan) else { return };
        let Some(Range { order, from, target }) = range(access, scan, &position) else { return };
        let (info, decoders) = (access.view.info(), access.resources.gate.decoders());
        scan.skip_to(order, from);
        if order == PrefetchOrder::Bricks && access.fetches_ahead() {
            request_ahead(access, scan, from, target, &position);
        }
        let workers = match order {
            PrefetchOrder::Bricks => workers(scan.unclaimed(order, target), info, BATCH).min(decoders),
            // most visits find their planes in memory
            PrefetchOrder::Visits => decoders,
        };
        while let Some(step) = scan.claim(order, target, workers) {
            let job = PrefetchJob { access: access.clone(), order, target, share: scan.share() };
            if job.needs_loading(step) {
                let bulkhead = access.view.bulkhead.for_prefetch(decoders);
                access.resources.pool.submit(bulkhead, move || job.run(step));
            } else {
                scan.end_prefetch();
            }
        }
    }

    /// Finds the position of a scan. Divides the cache if it has entered another layer, and releases planes if it has
    /// entered another plane.
    fn update_position(&self, access: &BrickAccess, scan: &Arc<Stream>) -> Option<Position> {
        let info = access.view.info();
        let grid = &info.grid;
        let last = info.shape().product().and_then(|n| n.checked_sub(1))?;
        let sample = info.shape().index_of(scan.position().min(last));
        let brick = Dims::from_fn(sample.len(), |a| grid.brick_of(a, sample[a]));
        let (plane, layer, bricks) = (sample[0], brick[0], layer_bricks(info));
        let (first, end) = grid.owned(0, layer);
        scan.detect_thrashing(THRASHING * bricks);
        if scan.continues_to_next_plane() && scan.enter_layer(layer) {
            self.enter_layer(access, scan, layer);
        }
        let plane_samples = info.shape().strides(1)[0].max(1);
        if scan.enter_plane(plane) {
            // requests for the last planes may still arrive out of order
            let late =
                (REORDER_WINDOW / info.dtype.size() as u64).div_ceil(plane_samples).min((end - first) / 8).max(1);
            scan.segments.release_before(plane.saturating_sub(late), layer * bricks);
        }
        let end_of_only_plane = scan.end_of_only_plane(plane_samples, info.dtype.size() as u64);
        Some(Position { brick: grid.count().linear_of(&brick), plane, layer, end_of_only_plane })
    }

    /// Whether the bricks that a scan leaves are evicted when it comes to the next layer.
    pub(crate) fn is_cache_tight(access: &BrickAccess) -> bool {
        let Some(scan) = &access.scan else { return false };
        let room = match scan.retention() {
            Retention::Planes(_) => 0,
            Retention::Bricks => scan.share(),
            Retention::Cache => access.resources.cache.capacity(),
        };
        let info = access.view.info();
        let layer = usize::try_from(layer_bricks(info)).unwrap_or(usize::MAX).saturating_mul(brick_cost(info));
        scan.is_thrashing() || room < layer.saturating_mul(2)
    }

    fn shares(&self) -> MutexGuard<'_, CacheShares> {
        self.shares.lock()
    }
}

/// Has the source begin to fetch the bricks of a scan from `from` to some beyond `target`.
fn request_ahead(access: &BrickAccess, scan: &Arc<Stream>, from: u64, target: u64, position: &Position) {
    let info = access.view.info();
    let end = match position.end_of_only_plane {
        None => info.grid.total(),
        Some(_) => (position.layer + 1).saturating_mul(layer_bricks(info)).min(info.grid.total()),
    };
    let more = (REQUESTED_BYTES / stored_bytes(access).max(1)).clamp(MIN_REQUESTED, MAX_REQUESTED);
    let Some(bricks) = scan.claim_requests(from, target.saturating_add(more).min(end)) else { return };
    let (access, plane) = (access.clone(), position.plane);
    // not in that of the prefetches, which wait for what is requested here
    let bulkhead = access.view.bulkhead;
    let pool = Arc::clone(&access.resources.pool);
    let scan = Arc::clone(scan);
    pool.submit(bulkhead, move || {
        let grid = &access.view.info().grid;
        let mut from = bricks.start;
        while from < bricks.end {
            let to = bricks.end.min(from + REQUESTED_AT_ONCE);
            let at_once = (from..to).map(|number| grid.count().index_of(number));
            let needed = at_once.filter_map(|at| first_plane(grid.region(&at), plane).map(|region| (at, region)));
            if !access.fetch_ahead(needed) {
                return scan.unclaim_requests(from);
            }
            from = to;
        }
    });
}

/// Returns the bytes that a brick takes where it is stored: on average of those of the dataset that were decoded so far.
fn stored_bytes(access: &BrickAccess) -> u64 {
    let (cost, counters) = (brick_cost(access.view.info()) as u64, access.counters.as_deref());
    let counted = counters.map_or((0, 0), |counters| (counters.source_bytes.get(), counters.bytes_decoded.get()));
    match counted {
        (read, decoded) if decoded > 0 => (u128::from(cost) * u128::from(read) / u128::from(decoded)) as u64,
        _ => cost,
    }
}

/// Decides how far to prefetch for a scan.
fn range(access: &BrickAccess, scan: &Stream, position: &Position) -> Option<Range> {
    let info = access.view.info();
    let (grid, bricks) = (&info.grid, layer_bricks(info));
    let &Position { brick, plane, layer, end_of_only_plane } = position;
    let (first, end) = grid.owned(0, layer);
    // a reader that takes planes out of order is a scan within each plane, but not from one plane to the next
    let crosses_planes = end_of_only_plane.is_none();
    let is_at_an_end = scan.position().is_multiple_of(info.shape().strides(1)[0].max(1));
    let goes_on =
        end_of_only_plane.is_none_or(|end| scan.position() < end) && (!is_at_an_end || scan.continues_to_next_plane());
    if !scan.is_sequential() || !goes_on {
        return None;
    }
    let decoders = access.resources.gate.decoders() as u64;
    let share = if scan.retention() == Retention::Cache { access.resources.cache.capacity() } else { scan.share() };
    let room = (share / brick_cost(info)) as u64;
    match scan.retention() {
        Retention::Planes(plan) => {
            // one visit in as many as a segment has planes decodes: this keeps half of the decoders busy, and requests
            // occupy the others
            let planes = room.saturating_mul(grid.step()[0]);
            let ahead = row_bricks(info).saturating_add((decoders / 2).max(1).saturating_mul(plan.longest()));
            let from = plane * bricks + brick - layer * bricks;
            let target = from.saturating_add(ahead.min(bricks).min(planes / 2));
            let end = if crosses_planes { info.shape()[0] } else { plane + 1 };
            let target = target.min(end.saturating_mul(bricks));
            Some(Range { order: PrefetchOrder::Visits, from, target })
        }
        retention if retention == Retention::Cache || plane == first => {
            // in the first plane of a layer: the rest of this row of bricks, and the next row
            let row = row_bricks(info);
            let ahead = row.max(4 * decoders).min(room / 2);
            let target = (brick - brick % row + row + ahead).min((layer + 1) * bricks);
            Some(Range { order: PrefetchOrder::Bricks, from: brick, target })
        }
        _ if !crosses_planes => None,
        _ => {
            // in the other planes: the same fraction of the next layer as the scan has passed of this one, so that it
            // is decoded in time
            let due = first_plane_ahead(scan, info, first, end).map_or(0, |begin| {
                let passed = plane.saturating_sub(begin);
                (u128::from(bricks) * u128::from(passed + 1)).div_ceil(u128::from(end - begin)) as u64
            });
            let target = (layer + 1) * bricks + due.min(room.saturating_sub(bricks));
            Some(Range { order: PrefetchOrder::Bricks, from: brick, target: target.min(grid.total()) })
        }
    }
}

/// Returns the plane of a layer, of planes `first..end`, from which on bricks of the next layer are prefetched for a
/// scan: the first one if the scan comes from the layer before. In the layer that it begins with it has to read some of
/// it before, since many readers want a few planes only; what was read ahead of it does not count. `None` if it has not.
fn first_plane_ahead(scan: &Stream, info: &ArrayInfo, first: u64, end: u64) -> Option<u64> {
    let plane = info.shape().strides(1)[0].max(1);
    let began = scan.position().saturating_sub(scan.distance_covered()) / plane;
    if began < first {
        return Some(first);
    }
    let enough = NEXT_LAYER_AFTER.div_ceil(plane.saturating_mul(info.dtype.size() as u64).max(1));
    let begin = first + enough.max((end - first) / 8).min((end - first) / 2);
    (scan.own_position() / plane >= begin).then_some(begin)
}
