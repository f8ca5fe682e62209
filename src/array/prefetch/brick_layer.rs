//! The layer of bricks that a scan is in: its size, and the planes that the scan still needs.

use crate::array::array_view::ArrayView;
use crate::array::brick_sizes::{brick_cost, layer_bricks, row_bricks};
use crate::array::scan::{SegmentPlan, Stream};
use crate::cache::BrickKey;

/// A layer of bricks: all bricks that one plane touches. If each brick has one plane only, just the few rows of bricks
/// that a scan needs at a time.
#[derive(Clone, Copy)]
pub(crate) struct BrickLayer {
    /// The layer's index along the slowest axis of the brick grid.
    pub number: u64,
    /// The keys of the first and the last brick: equal for scans that use the same bricks.
    pub keys: (BrickKey, BrickKey),
    /// The number of bricks.
    bricks: u64,
    /// The number of planes.
    pub depth: u64,
    /// One past the last plane.
    end: u64,
    /// Samples of a plane.
    pub plane_samples: u64,
    /// Bytes of all bricks in the cache.
    pub bytes: usize,
    /// Bytes of one plane of all bricks.
    pub plane_bytes: usize,
}

impl BrickLayer {
    /// Describes layer number `number` of a view.
    pub(crate) fn new(view: &ArrayView, number: u64) -> Self {
        let info = view.info();
        let (count, bricks, step) = (info.grid.count(), layer_bricks(info), info.grid.step()[0]);
        let key = |brick| view.key(&count.index_of(brick));
        let needed = if step > 1 { bricks } else { bricks.min(4 * row_bricks(info)) };
        let bytes = usize::try_from(needed).unwrap_or(usize::MAX).saturating_mul(brick_cost(info));
        let (first, end) = info.grid.owned(0, number);
        Self {
            number,
            keys: (key(number * bricks), key((number + 1) * bricks - 1)),
            bricks,
            depth: if step > 1 { end.saturating_sub(first).max(1) } else { 1 },
            end,
            plane_samples: info.shape().strides(1)[0].max(1),
            bytes,
            plane_bytes: bytes / usize::try_from(step).unwrap_or(usize::MAX).max(1),
        }
    }

    /// Returns the plane that a scan has come to.
    pub(crate) fn plane_of(&self, scan: &Stream) -> u64 {
        scan.position() / self.plane_samples
    }

    /// Returns the number of planes that a scan has not passed.
    pub(crate) fn planes_left(&self, scan: &Stream) -> u64 {
        self.end.saturating_sub(self.plane_of(scan)).min(self.depth)
    }

    /// Plans the segments of a scan that has `share` bytes and `planes` planes left to read.
    pub(crate) fn plan(&self, share: usize, planes: u64) -> SegmentPlan {
        SegmentPlan::new(share, self.bricks, planes.max(1), self.plane_bytes as u64)
    }
}
