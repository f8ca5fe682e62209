//! Looks for a brick in memory (the cache, and the planes that the reader's scan keeps), and loads it if it is not
//! there.

use std::sync::Arc;

use super::access::BrickAccess;
use super::load::load;
use super::read_strategy::WholeBrick;
use crate::array::brick_sizes::{brick_bytes, layer_bricks};
use crate::array::request::Piece;
use crate::array::scan::{KeptPlanes, Retention, SegmentPlan, Stream};
use crate::cache::{DecodeResult, DecodedBrick, Lookup, Partition};
use crate::format::FormatError;
use crate::volume::{Dims, Region};

/// Why a brick is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A reader copies samples from it now.
    Read,
    /// A scan will need it.
    Prefetch,
}

impl BrickAccess {
    /// Looks up the bricks of pieces in the cache, under one lock.
    pub(crate) fn look_up(&self, pieces: &[Piece], lookups: &mut Vec<Lookup>) {
        lookups.clear();
        lookups.extend(pieces.iter().map(|piece| (self.view.key(&piece.brick), None)));
        let found = self.resources.cache.get_many(lookups);
        self.count(|counters| &counters.cache_hits, found as u64);
    }

    /// Returns the planes that the scan keeps, in the reader's order of axes, if they have the samples of a piece that is
    /// read now.
    pub(crate) fn kept_planes(&self, piece: &Piece) -> Option<Arc<DecodedBrick>> {
        let scan = self.scan.as_ref()?;
        let planes = scan.segments.get(self.view.number(&piece.brick), &piece.region, true)?;
        self.count(|counters| &counters.cache_hits, 1);
        Some(planes)
    }

    /// Whether `region` of a brick is in memory. This does not count as a use.
    pub(crate) fn is_in_memory(&self, brick: &Dims, region: &Region) -> bool {
        self.scan.as_ref().is_some_and(|scan| scan.segments.holds(self.view.number(brick), region))
            || self.resources.cache.contains(self.view.key(brick))
    }

    /// Returns a brick that holds `region`, from memory or loaded now, and keeps it as the reader's scan has decided.
    pub(crate) fn get_or_load(
        &self,
        at: &Dims,
        whole: &WholeBrick,
        region: &Region,
        purpose: Purpose,
    ) -> Result<Arc<DecodedBrick>, FormatError> {
        loop {
            let brick = match self.scan.as_ref().map(|scan| (scan, scan.retention())) {
                Some((scan, Retention::Planes(plan))) => {
                    self.get_or_load_planes(scan, plan, at, whole, region, purpose)?
                }
                scan => {
                    // bricks that are decoded while the scan is only beginning belong to the scan as well
                    let scan = scan
                        .filter(|(scan, retention)| *retention == Retention::Bricks || scan.continues_to_next_plane());
                    let partition = if scan.is_some() { Partition::Scan } else { Partition::Shared };
                    let decode = || {
                        scan.inspect(|(scan, _)| scan.count_decoded());
                        Ok(self.view.in_cache_order(Arc::new(load(self, whole)?)))
                    };
                    let cached = self.get_or_decode(at, Some(partition), decode)?;
                    self.view.in_reader_order(cached)
                }
            };
            // a thread that waited for another one may get planes that do not hold its own region
            if brick.layout.held.contains(region) || !whole.holds(region) {
                return Ok(brick);
            }
        }
    }

    /// Returns a brick, in the cache's order of axes, as [`BrickCache::get_or_decode`](crate::cache::BrickCache) does,
    /// and counts the lookup.
    fn get_or_decode(
        &self,
        at: &Dims,
        partition: Option<Partition>,
        decode: impl FnOnce() -> DecodeResult,
    ) -> DecodeResult {
        let (brick, was_cached) = self.resources.cache.get_or_decode(self.view.key(at), partition, decode);
        self.count(|counters| if was_cached { &counters.cache_hits } else { &counters.cache_misses }, 1);
        brick
    }

    /// Returns a brick of which the scan keeps the next planes, or only those planes.
    fn get_or_load_planes(
        &self,
        scan: &Stream,
        plan: SegmentPlan,
        at: &Dims,
        whole: &WholeBrick,
        region: &Region,
        purpose: Purpose,
    ) -> Result<Arc<DecodedBrick>, FormatError> {
        let number = self.view.number(at);
        let brick = self.get_or_decode(at, None, || {
            // another thread may have loaded it since this one looked
            if let Some(planes) = scan.segments.get(number, region, purpose == Purpose::Read) {
                return Ok(self.view.in_cache_order(planes));
            }
            let brick = load(self, whole)?;
            self.keep_planes(scan, plan, at, &brick, region, purpose);
            Ok(self.view.in_cache_order(Arc::new(brick)))
        })?;
        Ok(self.view.in_reader_order(brick))
    }

    /// Keeps planes of a brick for a scan, from the first plane of `region` on: as many as the plan allows and as fit.
    pub(crate) fn keep_planes(
        &self,
        scan: &Stream,
        plan: SegmentPlan,
        at: &Dims,
        brick: &DecodedBrick,
        region: &Region,
        purpose: Purpose,
    ) {
        let (number, info, read) = (self.view.number(at), self.view.info(), purpose == Purpose::Read);
        let planes =
            if scan.segments.had_segment(number) { plan.longest() } else { plan.first(number % layer_bricks(info)) };
        let mut kept = info.grid.region(at);
        let end = kept.end(0);
        kept.start[0] = region.start[0];
        kept.shape[0] = region.shape[0];
        // planes that were read in part are about to be read again; planes that were read completely need no room
        let (least, completely_read) = if !read {
            (0, 0)
        } else if region.samples() < kept.samples() {
            (region.shape[0], 0)
        } else {
            (0, region.shape[0])
        };
        let room = self.planes_that_fit(scan).saturating_add(completely_read);
        kept.shape[0] = planes.min(room).max(least).min(end.saturating_sub(kept.start[0]));
        let kept = KeptPlanes { region: kept, read: read.then_some(region), size: info.dtype.size() };
        scan.segments.put(number, brick, kept, &self.resources.buffers);
    }

    /// Returns how many more planes of a brick fit into a scan's share.
    pub(crate) fn planes_that_fit(&self, scan: &Stream) -> u64 {
        let info = self.view.info();
        let plane = brick_bytes(info) as u64 / info.grid.step()[0].max(1);
        scan.share().saturating_sub(scan.segments.bytes()) as u64 / plane.max(1)
    }
}

/// Returns the first plane of a region that is not before `plane`, if there is one.
pub(crate) fn first_plane(mut region: Region, plane: u64) -> Option<Region> {
    let end = region.end(0);
    region.start[0] = region.start[0].max(plane);
    region.shape[0] = 1;
    (region.start[0] < end).then_some(region)
}
