//! Decodes bricks before scans ask for them: decides which, and how far ahead.

use std::ops::Range;
use std::sync::Arc;

use super::brick::{Access, Parts, Purpose};
use super::progress::REORDER_WINDOW;
use super::resources::Resources;
use super::scan::{BrickOrder, PrefetchOrder, Retention, Scan, ScanState, brick_bytes};
use super::shares::{CacheShares, Handover};
use crate::source::Blocking;
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

/// Returns the number of workers worth waking for `bricks` bricks if each is to decode `batch` bytes.
pub(super) fn workers(bricks: u64, info: &ArrayInfo, batch: usize) -> usize {
    let bytes = bricks.saturating_mul(brick_bytes(info) as u64);
    usize::try_from(bytes.div_ceil(batch as u64).min(bricks)).unwrap_or(usize::MAX)
}

/// Prefetches bricks for all scans.
#[derive(Default)]
pub(super) struct Prefetcher {
    shares: Mutex<CacheShares>,
}

/// The position of a scan in its array.
struct Position {
    /// The number of the brick.
    brick: u64,
    plane: u64,
    layer: u64,
    /// The sample at which the scan ends, if it may want a single plane.
    end_of_only_plane: Option<u64>,
}

/// The steps to prefetch: `from..target` in one order.
struct Steps {
    order: PrefetchOrder,
    from: u64,
    target: u64,
}

impl Prefetcher {
    /// Returns the bytes of the planes that scans keep.
    pub(super) fn plane_bytes(&self) -> usize {
        self.shares().plane_bytes()
    }

    /// Records a request of a scan, or of another reader (`other`). Divides the cache again if scans have stopped or
    /// other readers have become busy or idle.
    pub(super) fn record_request(&self, resources: &Arc<Resources>, other: bool) {
        // the thread that holds the lock divides the cache itself, or the next request does
        let Some(mut shares) = self.shares.try_lock() else { return };
        if shares.record_request(other) || shares.has_stopped_scans() {
            let handovers = shares.divide(resources, None);
            drop(shares);
            handovers.iter().for_each(Handover::run);
            let quota = self.shares().quota(resources.cache.capacity);
            resources.cache.set_scan_quota(quota, std::iter::empty());
        }
    }

    /// Divides the cache again for a scan that enters a layer of bricks, which decides whether it keeps bricks or
    /// planes.
    fn enter_layer(&self, access: &Access, scan: &Arc<Scan>, layer: u64, previous: Option<u64>) {
        let (cache, order) = (&access.resources.cache, &scan.bricks);
        let keys = |layer| order.bricks(layer).map(|number| order.key(number));
        let mut shares = self.shares();
        let is_left = shares.enter_layer(access, scan, layer, previous);
        let handovers = shares.divide(&access.resources, Some(scan));
        drop(shares);
        if let Some(left) = previous.filter(|_| is_left && order.may_be_walked()) {
            cache.demote(keys(left), scan.now().page_cached);
        }
        // before the cache evicts the bricks
        handovers.iter().for_each(Handover::run);
        let quota = self.shares().quota(cache.capacity);
        // a larger layer would be walked under the lock of the cache; its bricks keep their places in the eviction order
        let is_wanted = scan.now().retention == Retention::Bricks && order.may_be_walked();
        let wanted = is_wanted.then(|| keys(layer));
        cache.set_scan_quota(quota, wanted.into_iter().flatten());
    }

    /// Prefetches the bricks that a scan will need next, on workers of the pool.
    pub(super) fn prefetch(&self, access: &Access) {
        let Some(scan) = &access.scan else { return };
        let Some(position) = self.update_position(access, scan) else { return };
        let Some(Steps { order, from, target }) = steps(access, scan, &position) else { return };
        let decoders = access.resources.gate.decoders;
        let unclaimed = scan.update(|state| state.skip_to(order, from, target));
        if order == PrefetchOrder::Bricks && access.fetches_ahead() {
            request_ahead(access, scan, from, target, &position);
        }
        let workers = match order {
            PrefetchOrder::Bricks => workers(unclaimed, access.info(), BATCH).min(decoders),
            // most visits find their planes in memory
            PrefetchOrder::Visits => decoders,
        };
        while let Some(step) = scan.update(|state| state.claim(order, target, workers)) {
            let only_plane = (access.parts != Parts::None).then_some(position.plane);
            let job = PrefetchJob { access: access.clone(), order, target, only_plane, share: scan.now().share };
            if job.needs_loading(scan, step) {
                let bulkhead = access.bulkhead.for_prefetch(decoders);
                access.resources.pool.submit(bulkhead, move || job.run(step));
            } else {
                scan.update(|state| state.in_flight -= 1);
            }
        }
    }

    /// Finds the position of a scan. Divides the cache if it has entered another layer, and releases planes if it has
    /// entered another plane.
    fn update_position(&self, access: &Access, scan: &Arc<Scan>) -> Option<Position> {
        let order = &scan.bricks;
        let last = order.shape.product().and_then(|n| n.checked_sub(1))?;
        let sample = scan.position().min(last);
        let plane = order.plane_of(sample);
        let layer = order.layer_of(plane);
        scan.update(|state| state.detect_thrashing(THRASHING * order.layer_bricks()));
        if scan.continues_to_next_plane()
            && let Some(previous) = scan.update(|state| state.enter_layer(layer))
        {
            self.enter_layer(access, scan, layer, previous);
        }
        if scan.update(|state| state.enter_plane(plane)) {
            let planes = order.planes(layer);
            // requests for the last planes may still arrive out of order
            let late = (REORDER_WINDOW / order.size).div_ceil(order.plane_samples());
            let late = late.min((planes.end - planes.start) / 8).max(1);
            scan.planes.release_before(plane.saturating_sub(late), order.bricks(layer).start);
        }
        let end_of_only_plane = scan.now().progress.end_of_only_plane(order.plane_samples(), order.size);
        Some(Position { brick: order.brick_of(sample), plane, layer, end_of_only_plane })
    }

    /// Whether the bricks that a scan leaves are evicted when it comes to the next layer.
    pub(super) fn is_cache_tight(access: &Access) -> bool {
        let Some(scan) = &access.scan else { return false };
        let now = scan.now();
        let room = match now.retention {
            Retention::Planes(_) => 0,
            Retention::Bricks => now.share,
            Retention::Cache => access.resources.cache.capacity,
        };
        let bricks = usize::try_from(scan.bricks.layer_bricks()).unwrap_or(usize::MAX);
        now.thrashing || room < bricks.saturating_mul(scan.bricks.brick_cost).saturating_mul(2)
    }

    fn shares(&self) -> MutexGuard<'_, CacheShares> {
        self.shares.lock()
    }
}

/// Has the source begin to fetch the bricks of a scan from `from` to some beyond `target`.
fn request_ahead(access: &Access, scan: &Arc<Scan>, from: u64, target: u64, position: &Position) {
    let order = &scan.bricks;
    let end = match position.end_of_only_plane {
        None => order.total(),
        Some(_) => order.bricks(position.layer).end.min(order.total()),
    };
    let stored = stored_bytes(access, order.brick_cost as u64);
    let more = (REQUESTED_BYTES / stored.max(1)).clamp(MIN_REQUESTED, MAX_REQUESTED);
    let target = target.saturating_add(more).min(end);
    let Some(bricks) = scan.update(|state| state.claim_requests(from, target)) else { return };
    let (access, plane, scan) = (access.clone(), position.plane, Arc::clone(scan));
    // not in the bulkhead of the prefetches, which wait for what is requested here
    Arc::clone(&access.resources.pool).submit(access.bulkhead, move || {
        access.fetch_tables(bricks.clone().map(|number| scan.bricks.brick(number)));
        let mut from = bricks.start;
        while from < bricks.end {
            let to = bricks.end.min(from + REQUESTED_AT_ONCE);
            let at_once = (from..to).map(|number| scan.bricks.brick(number));
            let needed = at_once.filter_map(|at| scan.bricks.first_plane(&at, plane).map(|region| (at, region)));
            if !access.fetch_ahead(needed) {
                return scan.update(|state| state.requested = state.requested.min(from));
            }
            from = to;
        }
    });
}

/// Returns the bytes that a brick takes where it is stored: on average of those of the dataset that were decoded so far.
fn stored_bytes(access: &Access, cost: u64) -> u64 {
    let counted = access
        .counters
        .as_deref()
        .map_or((0, 0), |counters| (counters.source_bytes.get(), counters.bytes_decoded.get()));
    match counted {
        (read, decoded) if decoded > 0 => (u128::from(cost) * u128::from(read) / u128::from(decoded)) as u64,
        _ => cost,
    }
}

/// Decides how far to prefetch for a scan.
fn steps(access: &Access, scan: &Scan, position: &Position) -> Option<Steps> {
    let (order, now) = (&scan.bricks, scan.now());
    let (bricks, row, at) = (order.layer_bricks(), order.row_bricks(), now.progress.next);
    let &Position { brick, plane, layer, end_of_only_plane } = position;
    let planes = order.planes(layer);
    // a reader that takes planes out of order is a scan within each plane, but not from one plane to the next
    let crosses_planes = end_of_only_plane.is_none();
    let goes_on = end_of_only_plane.is_none_or(|end| at < end)
        && (!at.is_multiple_of(order.plane_samples()) || scan.continues_to_next_plane());
    if !now.is_sequential || !goes_on {
        return None;
    }
    let decoders = access.resources.gate.decoders as u64;
    let share = if now.retention == Retention::Cache { access.resources.cache.capacity } else { now.share };
    let room = (share / order.brick_cost) as u64;
    let (kind, from, target) = match now.retention {
        Retention::Planes(plan) => {
            // one visit in as many as a segment has planes decodes: this keeps half of the decoders busy, and requests
            // occupy the others
            let ahead = row.saturating_add((decoders / 2).max(1).saturating_mul(plan.longest()));
            let from = plane * bricks + brick - layer * bricks;
            let target = from.saturating_add(ahead.min(bricks).min(room.saturating_mul(order.step()) / 2));
            let end = if crosses_planes { order.shape[0] } else { plane + 1 };
            (PrefetchOrder::Visits, from, target.min(end.saturating_mul(bricks)))
        }
        retention if retention == Retention::Cache || plane == planes.start => {
            // in the first plane of a layer: the rest of this row of bricks, and the next row; if bricks have one plane
            // each, also of the next layer
            let ahead = row.max(4 * decoders).min(room / 2);
            let goes_on_flat = order.step() == 1 && crosses_planes && order.plane_of(now.progress.first) < planes.start;
            let end = if goes_on_flat && retention == Retention::Bricks { order.total() } else { (layer + 1) * bricks };
            (PrefetchOrder::Bricks, brick, (brick - brick % row + row + ahead).min(end))
        }
        _ if !crosses_planes => return None,
        _ => {
            // in the other planes: the same fraction of the next layer as the scan has passed of this one, so that it
            // is decoded in time
            let due = first_plane_ahead(order, &now, &planes).map_or(0, |begin| {
                let passed = plane.saturating_sub(begin);
                (u128::from(bricks) * u128::from(passed + 1)).div_ceil(u128::from(planes.end - begin)) as u64
            });
            let target = (layer + 1) * bricks + due.min(room.saturating_sub(bricks));
            (PrefetchOrder::Bricks, brick, target.min(order.total()))
        }
    };
    Some(Steps { order: kind, from, target })
}

/// Returns the plane of a layer of `planes` from which on bricks of the next layer are prefetched for a scan: the first
/// one if the scan comes from the layer before. In the layer that it begins with it has to read some of it before, since
/// many readers want a few planes only; what was read ahead of it does not count. `None` if it has not.
fn first_plane_ahead(order: &BrickOrder, now: &ScanState, planes: &Range<u64>) -> Option<u64> {
    if order.plane_of(now.progress.first) < planes.start {
        return Some(planes.start);
    }
    let depth = planes.end - planes.start;
    let enough = NEXT_LAYER_AFTER.div_ceil(order.plane_samples().saturating_mul(order.size).max(1));
    let begin = planes.start + enough.max(depth / 8).min(depth / 2);
    (order.plane_of(now.progress.own) >= begin).then_some(begin)
}

/// Prefetches bricks of a scan one after another, until there are no more to prefetch.
struct PrefetchJob {
    access: Access,
    order: PrefetchOrder,
    /// The step before which the job ends.
    target: u64,
    /// The plane for which parts of bricks are loaded.
    only_plane: Option<u64>,
    /// The scan's share of the cache when `target` was decided; the job ends if it becomes less.
    share: usize,
}

impl PrefetchJob {
    /// Returns the brick of a step, and the plane for which it is needed.
    fn place(&self, scan: &Scan, step: u64) -> (Dims, u64) {
        let bricks = &scan.bricks;
        match self.order {
            PrefetchOrder::Bricks => (bricks.brick(step), self.only_plane.unwrap_or_else(|| scan.plane())),
            PrefetchOrder::Visits => {
                let plane = step / bricks.layer_bricks();
                let number = bricks.bricks(bricks.layer_of(plane)).start + step % bricks.layer_bricks();
                (bricks.brick(number), plane)
            }
        }
    }

    /// Whether the brick of a step would have to be loaded, as far as is known without waiting.
    fn needs_loading(&self, scan: &Scan, step: u64) -> bool {
        let (access, (at, plane)) = (&self.access, self.place(scan, step));
        let Some(region) = scan.bricks.first_plane(&at, plane) else { return false };
        !access.is_in_memory(&at, &region)
            && match access.array.brick(&at, Blocking::No) {
                Ok(brick) => access.is_loaded_whole(&brick),
                Err(e) => e.would_block(),
            }
    }

    /// Prefetches the brick of a claimed step, then claims further steps and prefetches theirs.
    fn run(&self, step: u64) {
        /// A prefetch in flight; ends when it is dropped, also by a panic.
        struct Claim<'a>(&'a Scan);
        impl Drop for Claim<'_> {
            fn drop(&mut self) {
                self.0.update(|state| state.in_flight -= 1);
            }
        }
        let Some(scan) = &self.access.scan else { return };
        let mut step = Some(step);
        while let Some(this) = step {
            let claim = Claim(scan);
            let (at, plane) = self.place(scan, this);
            if plane >= scan.plane() {
                self.prefetch(scan, &at, plane);
            }
            drop(claim);
            let decoders = self.access.resources.gate.decoders;
            step = scan.update(|state| match state.share >= self.share {
                true => state.claim(self.order, self.target, decoders),
                false => None,
            });
        }
    }

    /// Loads a brick that a scan will need from `plane` on. Errors are ignored here; the reader that asks for the brick
    /// gets them.
    fn prefetch(&self, scan: &Scan, at: &Dims, plane: u64) {
        let access = &self.access;
        let Some(region) = scan.bricks.first_plane(at, plane) else { return };
        let is_full = matches!(scan.now().retention, Retention::Planes(_)) && access.planes_that_fit(scan) == 0;
        if is_full || access.is_in_memory(at, &region) {
            return;
        }
        access.fetch_now(at, &region);
        let Ok(brick) = access.array.brick(at, Blocking::Yes) else { return };
        if access.is_loaded_whole(&brick) && access.get_or_load(at, &brick, &region, Purpose::Prefetch).is_ok() {
            access.count(|counters| &counters.prefetched, 1);
        }
    }
}
