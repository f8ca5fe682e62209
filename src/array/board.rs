//! The scans under way: how much of the cache each of them may use, and what it should ask for ahead.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::access::Access;
use super::scan::{Keep, Stream};
use super::segments::CHUNKS;
use crate::cache::BrickCache;
use crate::volume::{ArrayInfo, Dims};

/// Scans may use so much of the cache together, in hundredths; the rest is for other readers.
const SHARE: usize = 95;

/// All scans under way.
#[derive(Default)]
pub struct Board {
    scans: Mutex<Vec<Weak<Stream>>>,
    /// Bytes of the cache that are lent for segments.
    lent: AtomicUsize,
}

impl Board {
    /// Bricks that one plane of an array touches.
    pub fn layer_bricks(info: &ArrayInfo) -> u64 {
        info.grid.count()[1..].iter().product::<u64>().max(1)
    }

    fn brick_bytes(info: &ArrayInfo) -> usize {
        let samples = info.brick_shape.product().and_then(|n| usize::try_from(n).ok());
        samples.and_then(|n| n.checked_mul(info.dtype.size())).unwrap_or(usize::MAX).max(1)
    }

    /// Bytes in segments.
    pub fn bytes(&self) -> usize {
        self.alive().iter().map(|scan| scan.segments.bytes()).sum()
    }

    /// Planes of a brick that a scan may keep now, at most `planes`: its part of what is lent, less what it keeps already. Where
    /// that is little it is a few all the same: to keep nothing would mean to decode the brick again for the next plane, and a
    /// few of each brick are less than what was reckoned with.
    pub fn room(&self, scan: &Stream, info: &ArrayInfo, planes: u64) -> u64 {
        let segmented = self.alive().iter().filter(|other| other.keep() != Keep::Whole).count();
        let part = self.lent.load(Ordering::Relaxed) / segmented.max(1);
        let plane = Self::brick_bytes(info) as u64 / info.grid.step()[0].max(1);
        let room = part.saturating_sub(scan.segments.bytes()) as u64 / plane.max(1);
        planes.min(room.max(planes.div_ceil(4)))
    }

    /// Takes back what scans that stopped have been lent.
    pub fn settle(&self, cache: &BrickCache) {
        if self.lent.load(Ordering::Relaxed) > 0 {
            self.balance(cache);
        }
    }

    /// What a scan should keep of the bricks of the layer that it comes to.
    fn decide(&self, scan: &Arc<Stream>, info: &ArrayInfo, cache: &BrickCache) {
        self.join(scan);
        let share = cache.bound() / 100 * SHARE / self.alive().len().max(1);
        let (bricks, brick) = (Self::layer_bricks(info), Self::brick_bytes(info));
        let deep = info.grid.step()[0];
        let layer = usize::try_from(bricks).unwrap_or(usize::MAX).saturating_mul(brick);
        scan.set_keep(if deep <= 1 || layer <= share {
            Keep::Whole
        } else {
            let longest = longest_segment(share, (layer as u64 / deep).max(1));
            Keep::Planes(longest.clamp(1, deep))
        });
    }

    fn join(&self, scan: &Arc<Stream>) {
        let mut scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        if !scans.iter().any(|other| other.as_ptr() == Arc::as_ptr(scan)) {
            scans.push(Arc::downgrade(scan));
        }
    }

    /// The scans that go on. One that has stopped loses its segments, and is a new one if it goes on after all.
    fn alive(&self) -> Vec<Arc<Stream>> {
        let mut scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        let (alive, stopped): (Vec<_>, Vec<_>) =
            scans.iter().filter_map(Weak::upgrade).partition(|scan| scan.is_alive());
        *scans = alive.iter().map(Arc::downgrade).collect();
        drop(scans);
        for scan in stopped {
            scan.stop();
        }
        alive
    }

    fn balance(&self, cache: &BrickCache) {
        let alive = self.alive();
        let segmented = alive.iter().filter(|scan| scan.keep() != Keep::Whole).count();
        let lent = cache.bound() / 100 * SHARE / alive.len().max(1) * segmented;
        if self.lent.swap(lent, Ordering::Relaxed) != lent {
            cache.lend(lent);
        }
    }

    /// Asks for the bricks that a scan will want next, on threads of the pool.
    pub fn look_ahead(&self, access: &Access) {
        let Some(scan) = &access.scan else { return };
        let (info, cache) = (access.array.info(), access.reader.cache());
        let grid = &info.grid;
        let Some(last) = info.shape().product().and_then(|n| n.checked_sub(1)) else { return };
        let position = info.shape().index_of(scan.next().min(last));
        let brick = Dims::from_fn(position.len(), |a| grid.brick_of(a, position[a]));
        let (number, bricks) = (grid.count().linear_of(&brick), Self::layer_bricks(info));
        let layer = brick[0];
        if scan.enter(layer) {
            scan.segments.drop_before(layer * bricks);
            // what was decoded ahead is wanted sooner than what the scan has just passed
            cache
                .touch((layer * bricks..(layer + 1) * bricks).map(|number| access.key(&grid.count().index_of(number))));
            self.decide(scan, info, cache);
            access.adopt(layer, position[0]);
            self.balance(cache);
        }
        if !scan.in_order() {
            return;
        }
        let share = cache.bound() / 100 * SHARE / self.alive().len().max(1);
        let room = (share / Self::brick_bytes(info)) as u64;
        let decoders = access.reader.gate().decoders() as u64;
        let (first, end) = grid.owned(0, layer);
        let (passed, deep) = (position[0] - first, end - first);
        let next_layer = (layer + 1) * bricks;
        let target = if passed == 0 {
            // in the first plane: the rest of this row of bricks, and the next
            let row = grid.count().get(2..).map_or(1, |inner| inner.iter().product::<u64>()).max(1);
            let ahead = row.max(4 * decoders).min(room / 2);
            (number - number % row + row + ahead).min(next_layer)
        } else if scan.keep() == Keep::Whole {
            // in the others: of the next layer as much as of this one is passed, so that it is there in time
            let due = (u128::from(bricks) * u128::from(passed + 1)).div_ceil(u128::from(deep)) as u64;
            next_layer + due.min(room.saturating_sub(bricks))
        } else {
            return;
        };
        scan.skip_to(number);
        for _ in 0..decoders {
            let Some(number) = scan.claim(target.min(grid.total()), decoders as usize) else { return };
            let access = access.clone();
            access.reader.pool().clone().submit(access.lane_ahead(), move || go_on(&access, number, target));
        }
    }
}

/// How many planes a segment has if there are `share` bytes, and one plane of all bricks of a layer takes `plane`. On average a
/// segment holds half of its length, and half a chunk that is passed in part; an eleventh is for the times when it is more.
fn longest_segment(share: usize, plane: u64) -> u64 {
    (share as u64 / 11 * 10).saturating_mul(2 * CHUNKS) / (CHUNKS + 1) / plane
}

/// Decodes one brick ahead after the other.
fn go_on(access: &Access, number: u64, target: u64) {
    let Some(scan) = &access.scan else { return };
    let grid = &access.array.info().grid;
    let mut number = Some(number);
    while let Some(brick) = number {
        let at = grid.count().index_of(brick);
        let plane = access.array.info().shape().index_of(scan.next())[0];
        access.decode_ahead(&at, plane);
        scan.end_ahead();
        number = scan.claim(target.min(grid.total()), access.reader.gate().decoders());
    }
}
