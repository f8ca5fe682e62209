//! Divides the cache among the active scans: decides which of them keep whole bricks, and how many bytes each gets.
//!
//! The scans in the same layer of bricks form a group. A group whose layer fits into its grant keeps whole bricks,
//! which all of its scans share; in any other group each scan keeps planes. Shares depend on the planes that a group
//! still needs of its layer, so a scan that is about to leave a layer takes nothing from the others for the next one. A
//! scan that has to give up whole bricks extracts planes of them first, so a change costs little. Shares change no more
//! often than scans enter layers.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::brick_layer::BrickLayer;
use super::grants::{Group, grant};
use super::handover::Handover;
use crate::array::array_view::ArrayView;
use crate::array::bricks::BrickAccess;
use crate::array::resources::Resources;
use crate::array::scan::{Retention, Stream};
use crate::cache::ScanQuota;

/// The percentage of the cache that all scans together may use while other readers are busy.
const QUOTA_BESIDE_OTHERS: usize = 60;
/// The percentage of its grant that a scan with segments uses; the rest is for bricks of other readers.
const SEGMENT_SHARE: usize = 95;
/// The percentage of the bytes of a layer's remaining planes that a scan needs to keep all of them.
const REST_WITH_SLACK: usize = 110;
/// Other readers are busy if they make this many requests within [`BUSY_WINDOW`].
const BUSY_REQUESTS: usize = 300;
const BUSY_WINDOW: Duration = Duration::from_secs(2);

/// The active scans, and the share of the cache that each gets.
#[derive(Default)]
pub(crate) struct CacheShares {
    scans: Vec<Entry>,
    /// Requests of other readers since `window_start`.
    other_requests: usize,
    window_start: Option<Instant>,
    others_are_busy: bool,
}

struct Entry {
    scan: Weak<Stream>,
    layer: BrickLayer,
    /// The planes of the layer that were left when the segments were planned.
    planned: u64,
}

impl CacheShares {
    /// Records that a scan enters a layer. Returns the layer that it has left, if no other scan is in that one.
    pub(crate) fn enter_layer(&mut self, view: &ArrayView, scan: &Arc<Stream>, number: u64) -> Option<u64> {
        self.scans.retain(|entry| entry.scan.as_ptr() != Arc::as_ptr(scan));
        let layer = BrickLayer::new(view, number);
        scan.set_view(view.clone());
        self.scans.push(Entry { scan: Arc::downgrade(scan), layer, planned: layer.planes_left(scan) });
        scan.take_previous_layer().filter(|previous| {
            let keys = BrickLayer::new(view, *previous).keys;
            self.scans.iter().all(|entry| entry.layer.keys != keys)
        })
    }

    /// Whether a scan has stopped whose share can be given to others.
    pub(crate) fn has_stopped_scans(&self) -> bool {
        self.scans.iter().any(|entry| entry.scan.upgrade().is_none_or(|scan| !scan.is_active()))
    }

    /// Records a request; `other` means that it belongs to no scan. Returns whether the other readers have become busy
    /// or idle.
    pub(crate) fn record_request(&mut self, other: bool) -> bool {
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

    /// Returns the bytes that scans hold in segments.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.scans.iter().filter_map(|entry| entry.scan.upgrade()).map(|scan| scan.segments.bytes()).sum()
    }

    /// Groups the active scans by layer. A scan that has stopped loses its segments, and counts as new if it continues.
    fn groups(&mut self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        self.scans.retain(|entry| {
            let Some(scan) = entry.scan.upgrade() else { return false };
            if !scan.is_active() {
                scan.stop();
                return false;
            }
            let layer = entry.layer;
            let plane_bytes = if layer.depth > 1 {
                let planes = usize::try_from(layer.planes_left(&scan)).unwrap_or(usize::MAX);
                layer.plane_bytes.saturating_mul(planes) / 100 * REST_WITH_SLACK
            } else {
                layer.bytes
            };
            let brick_bytes = if scan.is_thrashing() && layer.depth > 1 { usize::MAX } else { layer.bytes };
            match groups.iter_mut().find(|group| group.layer.keys == layer.keys) {
                Some(group) => {
                    (group.brick_bytes, group.plane_bytes) =
                        (group.brick_bytes.max(brick_bytes), group.plane_bytes.max(plane_bytes));
                    group.scans.push(scan);
                }
                None => groups.push(Group { layer, scans: vec![scan], brick_bytes, plane_bytes, granted: 0 }),
            }
            true
        });
        groups
    }

    /// Divides the cache among the scans; `entering` has just entered a layer. Returns a handover for each scan that
    /// keeps planes instead of whole bricks from now on.
    pub(crate) fn divide(&mut self, resources: &Arc<Resources>, entering: Option<&Arc<Stream>>) -> Vec<Handover> {
        let capacity = resources.cache.capacity();
        let mut groups = self.groups();
        let budget = if self.others_are_busy { capacity / 100 * QUOTA_BESIDE_OTHERS } else { capacity };
        let left = grant(&mut groups, budget);
        let left = left.saturating_sub(capacity / 100 * (100 - SEGMENT_SHARE));
        let fits_bricks = |group: &Group| group.granted >= group.brick_bytes || group.layer.depth <= 1;
        let spare = left / groups.iter().filter(|group| fits_bricks(group)).count().max(1);
        let mut handovers = Vec::new();
        for group in &groups {
            let enters = |scan: &Arc<Stream>| entering.is_some_and(|entering| Arc::ptr_eq(entering, scan));
            let entered = group.scans.iter().any(enters);
            let share = group.granted / 100 * SEGMENT_SHARE / group.scans.len();
            let keeps_bricks =
                |scan: &Arc<Stream>| fits_bricks(group) && (entered || scan.retention() == Retention::Bricks);
            let removes_bricks = !group.scans.iter().any(keeps_bricks);
            for scan in &group.scans {
                // a scan that keeps planes does so until the next layer, unless the bricks are kept for another scan
                // anyway
                if keeps_bricks(scan) {
                    scan.segments.clear();
                    // prefetching may use at most a second layer's worth
                    scan.set_share(group.granted + spare.min(group.granted));
                    scan.set_retention(Retention::Bricks);
                    continue;
                }
                let replans = enters(scan) || scan.retention() == Retention::Bricks;
                let Some(entry) = self.scans.iter_mut().find(|entry| entry.scan.as_ptr() == Arc::as_ptr(scan)) else {
                    continue;
                };
                if replans {
                    entry.planned = group.layer.planes_left(scan);
                }
                let enters = enters(scan);
                scan.set_share(if enters { share.min(scan.segments.bytes()) } else { share });
                scan.set_retention(Retention::Planes(group.layer.plan(share, entry.planned)));
                scan.segments.trim(share);
                if replans && let Some(view) = scan.view() {
                    let resources = Arc::clone(resources);
                    handovers.push(Handover {
                        access: BrickAccess { resources, view, scan: Some(Arc::clone(scan)), counters: None },
                        layer: group.layer.number,
                        plane: group.layer.plane_of(scan),
                        removes_bricks,
                        share_on_entry: enters.then_some(share),
                    });
                }
            }
        }
        handovers.sort_by_key(|handover| handover.share_on_entry.is_some());
        handovers
    }

    /// Returns the quota of all scans together in a cache of `capacity` bytes.
    pub(crate) fn quota(&mut self, capacity: usize) -> ScanQuota {
        let (mut outside, mut partition) = (0usize, 0usize);
        for group in self.groups() {
            let (bricks, planes): (Vec<_>, Vec<_>) =
                group.scans.iter().partition(|scan| scan.retention() == Retention::Bricks);
            let kept = planes.iter().map(|scan| scan.share().max(scan.segments.bytes())).sum();
            let shared = bricks.iter().map(|scan| scan.share()).max().unwrap_or(0);
            (outside, partition) = (outside.saturating_add(kept), partition.saturating_add(shared));
        }
        let partition = partition.min(capacity.saturating_sub(outside));
        ScanQuota { outside, partition, scan_resistant: self.others_are_busy }
    }
}
