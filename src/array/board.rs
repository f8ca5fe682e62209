//! The scans under way: what they should ask for ahead, and that each has its part of the cache.

use crate::sync::{Mutex, MutexGuard};
use std::sync::Arc;

use super::access::Access;
use super::bricks::{brick_cost, hands, layer_bricks, row_bricks};
use super::division::{Adoption, Division};
use super::reader::Reader;
use super::scan::{Course, Keep, OUT_OF_ORDER, Stream};
use crate::volume::Dims;

/// A scan whose layer fits the cache has each brick decoded once or twice, and as many of the next layer ahead; one that has more than so many
/// times its bricks decoded is in a cache that is too small after all.
const CROWDED: u64 = 3;

/// Decoded bytes for which another thread is woken to decode ahead: nobody waits for them yet.
const BATCH: usize = 256 << 10;

/// All scans under way.
#[derive(Default)]
pub struct Board {
    division: Mutex<Division>,
}

impl Board {
    /// Bytes in segments.
    pub fn bytes(&self) -> usize {
        self.division().bytes()
    }

    /// Takes note of a request, of a scan or of another reader, and takes back what scans that stopped have been lent.
    pub fn settle(&self, reader: &Arc<Reader>, other: bool) {
        // whoever has the lock divides anew himself, or the next request does
        let Some(mut division) = self.division.try_lock() else { return };
        if division.note(other) || division.has_stopped() {
            let adoptions = division.divide(reader, None);
            drop(division);
            adoptions.iter().for_each(Adoption::run);
            let loan = self.division().loan(reader.cache().bound());
            reader.cache().lend(loan, std::iter::empty());
        }
    }

    /// A scan comes to a layer of bricks: decides what it keeps of them.
    fn enter(&self, access: &Access, scan: &Arc<Stream>, layer: u64) {
        let cache = access.reader.cache();
        let mut division = self.division();
        let before = division.enter(access, scan, layer);
        let adoptions = division.divide(&access.reader, Some(scan));
        drop(division);
        if let Some(before) = before {
            cache.retire(access.layer_keys(before));
        }
        // before the cache drops the bricks
        adoptions.iter().for_each(Adoption::run);
        let loan = self.division().loan(cache.bound());
        let wanted = (scan.keep() == Keep::Whole).then(|| access.layer_keys(layer));
        cache.lend(loan, wanted.into_iter().flatten());
    }

    /// Asks for the bricks that a scan will want next, on threads of the pool.
    pub fn look_ahead(&self, access: &Access) {
        let Some(scan) = &access.scan else { return };
        let info = access.array.info();
        let grid = &info.grid;
        let Some(last) = info.shape().product().and_then(|n| n.checked_sub(1)) else { return };
        let position = info.shape().index_of(scan.next().min(last));
        let brick = Dims::from_fn(position.len(), |a| grid.brick_of(a, position[a]));
        let (number, bricks) = (grid.count().linear_of(&brick), layer_bricks(info));
        let (plane, layer) = (position[0], brick[0]);
        let (first, end) = grid.owned(0, layer);
        let plane_samples = info.shape().strides(1)[0].max(1);
        scan.note_crowded(CROWDED * bricks);
        if scan.goes_on() && scan.enter(layer) {
            self.enter(access, scan, layer);
        }
        if scan.enter_plane(plane) {
            // some windows of the last planes may still come
            let late = (OUT_OF_ORDER / info.dtype.size() as u64).div_ceil(plane_samples).min((end - first) / 8).max(1);
            scan.segments.pass(plane.saturating_sub(late), layer * bricks);
        }
        // who may go elsewhere after this plane gets nothing of the next
        let goes_on = scan.goes_on() || !scan.next().is_multiple_of(info.shape().strides(1)[0].max(1));
        if !scan.in_order() || !goes_on {
            return;
        }
        let decoders = access.reader.gate().decoders() as u64;
        let share = if scan.keep() == Keep::Freely { access.reader.cache().bound() } else { scan.share() };
        let room = (share / brick_cost(info)) as u64;
        // who reads planes in another order than theirs is on a scan within each, but not from one to the next
        let steady = scan.gone() > plane_samples;
        let (course, from, target) = match scan.keep() {
            Keep::Planes(plan) => {
                // of as many visits as a segment has planes one decodes: there is something to do for half of the decoders, and the
                // requests under way occupy the others
                let planes = room.saturating_mul(grid.step()[0]);
                let ahead = row_bricks(info).saturating_add((decoders / 2).max(1).saturating_mul(plan.longest()));
                let from = plane * bricks + number - layer * bricks;
                let target = from.saturating_add(ahead.min(bricks).min(planes / 2));
                let end = if steady { info.shape()[0] } else { plane + 1 };
                (Course::Visits, from, target.min(end.saturating_mul(bricks)))
            }
            keep if keep == Keep::Freely || plane == first => {
                // in the first plane that it sees: the rest of this row of bricks, and the next
                let row = row_bricks(info);
                let ahead = row.max(4 * decoders).min(room / 2);
                let target = (number - number % row + row + ahead).min((layer + 1) * bricks);
                (Course::Bricks, number, target)
            }
            _ if !steady => return,
            _ => {
                // in the others: of the next layer as much as of this one is passed, so that it is there in time
                let (passed, deep) = (plane - first, end - first);
                let due = (u128::from(bricks) * u128::from(passed + 1)).div_ceil(u128::from(deep)) as u64;
                let target = (layer + 1) * bricks + due.min(room.saturating_sub(bricks));
                (Course::Bricks, number, target.min(grid.total()))
            }
        };
        scan.skip_to(course, from);
        let hands = match course {
            Course::Bricks => hands(scan.unclaimed(course, target), info, BATCH).min(decoders as usize),
            // most visits find their planes there
            Course::Visits => decoders as usize,
        };
        while let Some(step) = scan.claim(course, target, hands) {
            let ahead = Ahead { access: access.clone(), course, target, share: scan.share() };
            if ahead.lacks(step) {
                access.reader.pool().submit(access.prefetch_bulkhead(), move || ahead.go_on(step));
            } else {
                scan.end_ahead();
            }
        }
    }

    /// Whether the bricks that a scan comes from go when it comes to the next ones.
    pub fn is_tight(access: &Access) -> bool {
        let Some(scan) = &access.scan else { return false };
        let room = match scan.keep() {
            Keep::Planes(_) => 0,
            Keep::Whole => scan.share(),
            Keep::Freely => access.reader.cache().bound(),
        };
        let info = access.array.info();
        let layer = usize::try_from(layer_bricks(info)).unwrap_or(usize::MAX).saturating_mul(brick_cost(info));
        scan.is_crowded() || room < layer.saturating_mul(2)
    }

    fn division(&self) -> MutexGuard<'_, Division> {
        self.division.lock()
    }
}

/// Decodes the bricks of a scan before they are asked for.
struct Ahead {
    access: Access,
    course: Course,
    target: u64,
    /// What the scan had of the cache when that was decided.
    share: usize,
}

impl Ahead {
    /// The brick of a step, and the plane for which it is wanted.
    fn place(&self, step: u64) -> (Dims, u64) {
        let info = self.access.array.info();
        match self.course {
            Course::Bricks => (info.grid.count().index_of(step), self.plane()),
            Course::Visits => {
                let bricks = layer_bricks(info);
                let plane = step / bricks;
                let number = info.grid.brick_of(0, plane) * bricks + step % bricks;
                (info.grid.count().index_of(number), plane)
            }
        }
    }

    /// The plane to which the scan has come.
    fn plane(&self) -> u64 {
        let next = self.access.scan.as_ref().map_or(0, |scan| scan.next());
        self.access.array.info().shape().index_of(next)[0]
    }

    fn lacks(&self, step: u64) -> bool {
        let (at, plane) = self.place(step);
        self.access.lacks(&at, plane)
    }

    /// Decodes the brick of a step, and then those of others as long as there are any.
    fn go_on(&self, step: u64) {
        let Some(scan) = &self.access.scan else { return };
        let decoders = self.access.reader.gate().decoders();
        let mut step = Some(step);
        while let Some(this) = step {
            let turn = Turn { scan };
            let (at, plane) = self.place(this);
            if plane >= self.plane() {
                self.access.decode_ahead(&at, plane);
            }
            drop(turn);
            let has_room = scan.share() >= self.share;
            step = if has_room { scan.claim(self.course, self.target, decoders) } else { None };
        }
    }
}

/// A brick that is being decoded ahead, however that ends.
struct Turn<'a> {
    scan: &'a Stream,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.scan.end_ahead();
    }
}
