//! A handover: a scan that no longer keeps whole bricks extracts planes of them before the cache evicts them.

use crate::array::brick_sizes::{layer_bricks, may_be_walked};
use crate::array::bricks::{BrickAccess, Purpose, first_plane};
use crate::array::scan::Retention;

/// A scan that extracts planes of the bricks of its layer that are still cached.
pub(crate) struct Handover {
    /// The scan's access to its bricks.
    pub access: BrickAccess,
    /// The layer.
    pub layer: u64,
    /// The first plane that the scan still needs.
    pub plane: u64,
    /// No scan keeps these bricks whole any more, so each brick is removed from the cache once its planes are
    /// extracted.
    pub removes_bricks: bool,
    /// The share of a scan that has just entered the layer. It is set when the handovers of the other scans are done.
    pub share_on_entry: Option<usize>,
}

impl Handover {
    /// Extracts the planes.
    pub(crate) fn run(&self) {
        if let (Some(share), Some(scan)) = (self.share_on_entry, &self.access.scan) {
            scan.set_share(share);
        }
        self.take_planes();
    }

    fn take_planes(&self) {
        let access = &self.access;
        let Some((scan, Retention::Planes(plan))) = access.scan.as_ref().map(|scan| (scan, scan.retention())) else {
            return;
        };
        let (grid, bricks) = (&access.view.info().grid, layer_bricks(access.view.info()));
        // bricks that are not looked at stay in the cache, where the scan finds them until they are evicted
        if !may_be_walked(access.view.info()) {
            return;
        }
        for number in self.layer * bricks..(self.layer + 1) * bricks {
            let at = grid.count().index_of(number);
            let Some(region) = first_plane(grid.region(&at), self.plane) else { return };
            if !scan.segments.holds(number, &region)
                && let Some(brick) = access.resources.cache.peek(access.view.key(&at))
            {
                let brick = access.view.in_reader_order(brick);
                access.keep_planes(scan, plan, &at, &brick, &region, Purpose::Prefetch);
                if self.removes_bricks {
                    access.resources.cache.remove(access.view.key(&at));
                }
            }
        }
    }
}
