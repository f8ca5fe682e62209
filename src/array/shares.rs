//! Divides the cache among the active scans: decides which of them keep whole bricks, and how many bytes each gets.
//!
//! The scans in the same layer of bricks form a group, and all groups get equal shares. A group whose layer fits its
//! share keeps whole bricks, which all of its scans use; in any other group each scan keeps planes. A scan that has to
//! give up whole bricks extracts planes of them first, so that nothing is decoded again. Shares change no more often
//! than scans enter layers.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::brick::{Access, Purpose};
use super::cache::ScanQuota;
use super::early_eviction::BrickKey;
use super::planes::SegmentPlan;
use super::resources::Resources;
use super::scan::{Retention, Scan};
use crate::format::Array;
use crate::pool::Bulkhead;

/// The percentage of the cache that all scans together may use while other readers are busy.
const QUOTA_BESIDE_OTHERS: usize = 60;
/// The percentage of its share that a scan uses, unless it needs more for whole bricks; the rest is for other readers.
const SCAN_SHARE: usize = 95;
/// Bricks of one plane each that are kept for a scan at least: some are read, and the next ones decoded meanwhile.
const MIN_FLAT: u64 = 4;
/// Other readers are busy if they make this many requests within [`BUSY_WINDOW`].
const BUSY_REQUESTS: usize = 300;
const BUSY_WINDOW: Duration = Duration::from_secs(2);

/// The active scans, and the share of the cache that each gets.
#[derive(Default)]
pub(super) struct CacheShares {
    scans: Vec<Entry>,
    /// Requests of other readers since `window_start`.
    other_requests: usize,
    window_start: Option<Instant>,
    others_are_busy: bool,
}

/// A scan, and the layer of bricks that it is in.
struct Entry {
    scan: Weak<Scan>,
    array: Weak<dyn Array>,
    bulkhead: Bulkhead,
    layer: u64,
    /// The keys of the first and the last brick: equal for scans that use the same bricks.
    keys: [BrickKey; 2],
    /// Bytes of all bricks in the cache. If each brick has one plane only, of just the few rows of bricks that a scan
    /// needs at a time, or the bricks of several planes.
    bytes: usize,
    /// The planes of the layer that were left when the segments were planned.
    planned: u64,
}

impl Entry {
    fn new(access: &Access, scan: &Arc<Scan>, layer: u64) -> Self {
        let order = &scan.bricks;
        let all = order.layer_bricks();
        let needed = if order.step() > 1 { all } else { all.min(4 * order.row_bricks()).max(MIN_FLAT) };
        Self {
            scan: Arc::downgrade(scan),
            array: Arc::downgrade(&access.array),
            bulkhead: access.bulkhead,
            layer,
            keys: layer_ends(scan, layer),
            bytes: usize::try_from(needed).unwrap_or(usize::MAX).saturating_mul(order.brick_cost),
            planned: planes_left(scan, layer),
        }
    }

    /// Plans the segments of a scan that has `share` bytes.
    fn plan(&self, scan: &Scan, share: usize) -> SegmentPlan {
        let bricks = scan.bricks.layer_bricks();
        let is_flat = scan.bricks.step() == 1;
        let plane = if is_flat { self.bytes as u64 } else { bricks.saturating_mul(scan.bricks.plane_cost) };
        SegmentPlan::new(share, bricks, self.planned.max(1), (plane, scan.bricks.plane_bytes))
    }
}

fn layer_ends(scan: &Scan, layer: u64) -> [BrickKey; 2] {
    let bricks = scan.bricks.bricks(layer);
    [bricks.start, bricks.end - 1].map(|number| scan.bricks.key(number))
}

/// Returns the number of planes of a layer, 1 if each brick has one plane.
fn depth(scan: &Scan, layer: u64) -> u64 {
    let planes = scan.bricks.planes(layer);
    if scan.bricks.step() > 1 { planes.end.saturating_sub(planes.start).max(1) } else { 1 }
}

/// Returns the number of planes of a layer that a scan has not passed.
fn planes_left(scan: &Scan, layer: u64) -> u64 {
    scan.bricks.planes(layer).end.saturating_sub(scan.plane()).min(depth(scan, layer))
}

impl CacheShares {
    /// Records that a scan enters a layer. Returns whether no scan is in the `previous` one any more.
    pub(super) fn enter_layer(&mut self, access: &Access, scan: &Arc<Scan>, layer: u64, previous: Option<u64>) -> bool {
        self.scans.retain(|entry| entry.scan.as_ptr() != Arc::as_ptr(scan));
        self.scans.push(Entry::new(access, scan, layer));
        previous.is_some_and(|previous| {
            let keys = layer_ends(scan, previous);
            self.scans.iter().all(|entry| entry.keys != keys)
        })
    }

    /// Whether a scan has stopped whose share can be given to others.
    pub(super) fn has_stopped_scans(&self) -> bool {
        self.scans.iter().any(|entry| entry.scan.upgrade().is_none_or(|scan| !scan.is_active()))
    }

    /// Records a request; `other` means that it belongs to no scan. Returns whether the other readers have become busy
    /// or idle.
    pub(super) fn record_request(&mut self, other: bool) -> bool {
        let before = self.others_are_busy;
        self.other_requests += usize::from(other);
        self.others_are_busy |= self.other_requests >= BUSY_REQUESTS;
        let start = *self.window_start.get_or_insert_with(Instant::now);
        if start.elapsed() >= BUSY_WINDOW {
            self.others_are_busy = self.other_requests >= BUSY_REQUESTS;
            (self.other_requests, self.window_start) = (0, None);
        }
        self.others_are_busy != before
    }

    /// Returns the bytes of the planes that scans keep.
    pub(super) fn plane_bytes(&self) -> usize {
        self.scans.iter().filter_map(|entry| entry.scan.upgrade()).map(|scan| scan.planes.bytes()).sum()
    }

    /// Returns the active scans in groups, one for each layer. A scan that has stopped loses its planes, and counts as
    /// new if it continues.
    fn groups(&mut self) -> Vec<Vec<(Arc<Scan>, &mut Entry)>> {
        self.scans.retain(|entry| {
            let Some(scan) = entry.scan.upgrade() else { return false };
            let is_active = scan.is_active();
            if !is_active {
                scan.stop();
            }
            is_active
        });
        let mut groups: Vec<Vec<(Arc<Scan>, &mut Entry)>> = Vec::new();
        for entry in &mut self.scans {
            let Some(scan) = entry.scan.upgrade() else { continue };
            match groups.iter_mut().find(|group| group[0].1.keys == entry.keys) {
                Some(group) => group.push((scan, entry)),
                None => groups.push(vec![(scan, entry)]),
            }
        }
        groups
    }

    /// Divides the cache among the scans; `entering` has just entered a layer. Returns a handover for each scan that
    /// keeps planes instead of whole bricks from now on.
    #[must_use]
    pub(super) fn divide(&mut self, resources: &Arc<Resources>, entering: Option<&Arc<Scan>>) -> Vec<Handover> {
        let capacity = resources.cache.capacity;
        let budget = if self.others_are_busy { capacity / 100 * QUOTA_BESIDE_OTHERS } else { capacity };
        let groups = self.groups();
        let share = budget / groups.len().max(1);
        let mut handovers = Vec::new();
        for group in groups {
            let enters = |scan: &Arc<Scan>| entering.is_some_and(|entering| Arc::ptr_eq(entering, scan));
            let keeps_bricks = |scan: &Scan| scan.now().retention == Retention::Bricks;
            let (first, entry) = &group[0];
            let (is_flat, bytes) = (depth(first, entry.layer) <= 1, entry.bytes);
            let fits = is_flat || bytes <= share && !group.iter().any(|(scan, _)| scan.now().thrashing);
            // a scan that keeps planes does so until the next layer, unless the bricks are kept for another scan anyway
            let is_entered = group.iter().any(|(scan, _)| enters(scan));
            let keep = |scan: &Scan| fits && (is_entered || keeps_bricks(scan));
            let removes_bricks = !group.iter().any(|(scan, _)| keep(scan));
            let plane_share = share / 100 * SCAN_SHARE / group.len();
            for (scan, entry) in group {
                if keep(&scan) {
                    scan.planes.clear();
                    // prefetching may use a second layer's worth
                    let share = (share / 100 * SCAN_SHARE).max(bytes.min(share)).min(bytes.saturating_mul(2));
                    scan.update(|state| (state.share, state.retention) = (share, Retention::Bricks));
                    continue;
                }
                let replans = enters(&scan) || keeps_bricks(&scan);
                if replans {
                    entry.planned = planes_left(&scan, entry.layer);
                }
                let retention = Retention::Planes(entry.plan(&scan, plane_share));
                scan.update(|state| (state.share, state.retention) = (plane_share, retention));
                scan.planes.trim(plane_share);
                if let Some(array) = entry.array.upgrade().filter(|_| replans) {
                    let layer = entry.layer;
                    // first those who give up what the entering one gets
                    let at = if enters(&scan) { handovers.len() } else { 0 };
                    let access = Access { scan: Some(scan), ..Access::new(resources, array, entry.bulkhead) };
                    handovers.insert(at, Handover { access, layer, removes_bricks });
                }
            }
        }
        handovers
    }

    /// Returns the quota of all scans together in a cache of `capacity` bytes.
    pub(super) fn quota(&mut self, capacity: usize) -> ScanQuota {
        let (mut outside, mut partition) = (0usize, 0usize);
        for group in self.groups() {
            let mut shared = 0;
            for (scan, _) in group {
                let now = scan.now();
                match now.retention {
                    Retention::Bricks => shared = now.share.max(shared),
                    _ => outside = outside.saturating_add(now.share.max(scan.planes.bytes())),
                }
            }
            partition = partition.saturating_add(shared);
        }
        let partition = partition.min(capacity.saturating_sub(outside));
        ScanQuota { outside, partition, scan_resistant: self.others_are_busy }
    }
}

/// A scan that no longer keeps whole bricks, and extracts planes of those that are still cached, before the cache
/// evicts them.
pub(super) struct Handover {
    access: Access,
    layer: u64,
    /// No scan keeps these bricks whole any more, so each is removed from the cache once its planes are extracted.
    removes_bricks: bool,
}

impl Handover {
    pub(super) fn run(&self) {
        let access = &self.access;
        let Some((scan, Retention::Planes(plan))) = access.scan.as_ref().map(|scan| (scan, scan.now().retention))
        else {
            return;
        };
        let (order, plane) = (&scan.bricks, scan.plane());
        // bricks that are not looked at stay in the cache, where the scan finds them until they are evicted
        let bricks = if order.may_be_walked() { order.bricks(self.layer) } else { 0..0 };
        for number in bricks {
            let (at, key) = (order.brick(number), order.key(number));
            let Some(region) = order.first_plane(&at, plane) else { return };
            if !scan.planes.holds(number, &region)
                && let Some(brick) = access.resources.cache.peek(key)
            {
                access.keep_planes(scan, plan, &at, &brick, &region, Purpose::Prefetch);
                if self.removes_bricks {
                    access.resources.cache.remove(key);
                }
            }
        }
    }
}
