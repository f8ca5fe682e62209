//! The job of one worker: prefetches bricks of a scan one after another, until there are no more to prefetch.

use crate::array::brick_sizes::layer_bricks;
use crate::array::bricks::BrickAccess;
use crate::array::scan::{PrefetchOrder, Stream};
use crate::volume::Dims;

use super::brick_prefetch::{needs_loading, prefetch_brick};

/// Prefetches the bricks of a scan.
pub(crate) struct PrefetchJob {
    /// The scan's access to its bricks.
    pub access: BrickAccess,
    /// The order in which bricks are prefetched.
    pub order: PrefetchOrder,
    /// The step before which the job ends.
    pub target: u64,
    /// The scan's share of the cache when `target` was decided; the job ends if it becomes less.
    pub share: usize,
}

impl PrefetchJob {
    /// Returns the brick of a step, and the plane for which it is needed.
    fn place(&self, step: u64) -> (Dims, u64) {
        let info = self.access.view.info();
        match self.order {
            PrefetchOrder::Bricks => (info.grid.count().index_of(step), self.current_plane()),
            PrefetchOrder::Visits => {
                let bricks = layer_bricks(info);
                let plane = step / bricks;
                let number = info.grid.brick_of(0, plane) * bricks + step % bricks;
                (info.grid.count().index_of(number), plane)
            }
        }
    }

    /// Returns the plane that the scan has come to.
    fn current_plane(&self) -> u64 {
        let position = self.access.scan.as_ref().map_or(0, |scan| scan.position());
        self.access.view.info().shape().index_of(position)[0]
    }

    /// Whether the brick of a step has to be loaded.
    pub(crate) fn needs_loading(&self, step: u64) -> bool {
        let (at, plane) = self.place(step);
        needs_loading(&self.access, &at, plane)
    }

    /// Prefetches the brick of a claimed step, then claims further steps and prefetches theirs.
    pub(crate) fn run(&self, step: u64) {
        let Some(scan) = &self.access.scan else { return };
        let decoders = self.access.resources.gate.decoders();
        let mut step = Some(step);
        while let Some(this) = step {
            let claim = Claim { scan };
            let (at, plane) = self.place(this);
            if plane >= self.current_plane() {
                prefetch_brick(&self.access, &at, plane);
            }
            drop(claim);
            let has_room = scan.share() >= self.share;
            step = if has_room { scan.claim(self.order, self.target, decoders) } else { None };
        }
    }
}

/// A prefetch in flight; ends when it is dropped, also by a panic.
struct Claim<'a> {
    scan: &'a Stream,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.scan.end_prefetch();
    }
}
