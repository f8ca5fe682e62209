//! Prefetches one brick for a scan.

use crate::array::bricks::{BrickAccess, Purpose, ReadStrategy, first_plane};
use crate::array::scan::Retention;
use crate::source::Blocking;
use crate::volume::Dims;

/// Whether a brick would have to be loaded for a scan that comes to its plane `plane`, as far as is known without
/// waiting.
pub(crate) fn needs_loading(access: &BrickAccess, at: &Dims, plane: u64) -> bool {
    let Some(region) = first_plane(access.view.info().grid.region(at), plane) else { return false };
    !access.is_in_memory(at, &region)
        && match access.array().brick(at, Blocking::No) {
            Ok(brick) => matches!(ReadStrategy::choose(brick, access), ReadStrategy::Whole(_)),
            Err(e) => e.would_block(),
        }
}

/// Loads a brick that a scan will need from `plane` on. Errors are ignored here; the reader that asks for the brick
/// gets them.
pub(crate) fn prefetch_brick(access: &BrickAccess, at: &Dims, plane: u64) {
    let Some(region) = first_plane(access.view.info().grid.region(at), plane) else { return };
    let Some(scan) = &access.scan else { return };
    let is_full = matches!(scan.retention(), Retention::Planes(_)) && access.planes_that_fit(scan) == 0;
    if is_full || access.is_in_memory(at, &region) {
        return;
    }
    access.fetch_now(at, &region);
    let Ok(brick) = access.array().brick(at, Blocking::Yes) else { return };
    let ReadStrategy::Whole(whole) = ReadStrategy::choose(brick, access) else { return };
    if access.get_or_load(at, &whole, &region, Purpose::Prefetch).is_ok() {
        access.count(|counters| &counters.prefetched, 1);
    }
}
