//! A decoded brick for one reader: held, kept by its scan, or decoded now.

use std::sync::Arc;

use super::bricks::{brick_bytes, layer_bricks};
use super::fetch::Piece;
use super::plan::Plan;
use super::reader::Reader;
use super::scan::{Keep, Stream};
use super::segments::Cut;
use super::whole::{Way, Whole};
use crate::cache::{BrickKey, DecodedBrick, Kept, Sought};
use crate::format::{Array, FormatError};
use crate::pool::Bulkhead;
use crate::source::Wait;
use crate::volume::{AxisPermutation, Dims, Layout, Region};

/// One reader's access to the bricks of an array.
#[derive(Clone)]
pub struct Access {
    /// What all readers share.
    pub reader: Arc<Reader>,
    /// The array, in the order of axes that the reader wants.
    pub array: Arc<dyn Array>,
    /// What that order is, if it is not the array's own.
    pub turn: Option<AxisPermutation>,
    /// The bulkhead of the pool for work on it.
    pub bulkhead: Bulkhead,
    /// The scan that the reader is on, if it is on one.
    pub scan: Option<Arc<Stream>>,
}

impl Access {
    /// The number of a brick.
    fn number(&self, at: &Dims) -> u64 {
        self.array.info().grid.count().linear_of(at)
    }

    /// What the cache calls a brick: the same in every order of axes.
    pub fn key(&self, at: &Dims) -> BrickKey {
        let info = self.array.info();
        let number = match &self.turn {
            Some(turn) => turn.invert_dims(&info.grid.count()).linear_of(&turn.invert_dims(at)),
            None => self.number(at),
        };
        (info.id, number)
    }

    /// A brick of the cache as this reader sees it.
    fn seen(&self, brick: Arc<DecodedBrick>) -> Arc<DecodedBrick> {
        match &self.turn {
            Some(turn) => Arc::new(brick.seen(turn.permute_layout(&brick.layout))),
            None => brick,
        }
    }

    /// A brick of this reader's as the cache has it: in the array's own order of axes.
    fn for_all(&self, brick: Arc<DecodedBrick>) -> Arc<DecodedBrick> {
        match &self.turn {
            Some(turn) => Arc::new(brick.seen(turn.invert_layout(&brick.layout))),
            None => brick,
        }
    }

    /// What the cache calls the bricks of a layer.
    pub fn layer_keys(&self, layer: u64) -> impl DoubleEndedIterator<Item = BrickKey> {
        let (count, bricks) = (self.array.info().grid.count(), layer_bricks(self.array.info()));
        (layer * bricks..(layer + 1) * bricks).map(move |number| self.key(&count.index_of(number)))
    }

    /// Looks in the cache for the bricks of pieces, all at once.
    pub fn look_for(&self, pieces: &[Piece], bricks: &mut Vec<Sought>) {
        bricks.clear();
        bricks.extend(pieces.iter().map(|piece| (self.key(&piece.brick), None)));
        self.reader.cache().get_many(bricks);
    }

    /// What memory has of a piece, which is read now, with its layout for this reader: the brick that the cache had, or what the
    /// scan keeps of it.
    pub fn held(&self, piece: &Piece, brick: Option<Arc<DecodedBrick>>) -> Option<(Layout, Arc<DecodedBrick>)> {
        if let Some(brick) = brick {
            return Some((self.layout(&brick), brick));
        }
        let planes = self.scan.as_ref()?.segments.get(self.number(&piece.brick), &piece.region, true)?;
        self.reader.counters().cache_hits.add(1);
        Some((planes.layout, planes))
    }

    /// The layout of a brick of the cache for this reader.
    fn layout(&self, brick: &DecodedBrick) -> Layout {
        self.turn.as_ref().map_or(brick.layout, |turn| turn.permute_layout(&brick.layout))
    }

    /// A brick that holds `region`, which is read now, decoded if need be.
    ///
    /// # Errors
    /// Those of the format and the source.
    pub fn decoded(&self, at: &Dims, whole: &Whole, region: &Region) -> Result<Arc<DecodedBrick>, FormatError> {
        self.had(at, whole, region, true)
    }

    fn had(&self, at: &Dims, whole: &Whole, region: &Region, read: bool) -> Result<Arc<DecodedBrick>, FormatError> {
        loop {
            let brick = match self.scan.as_ref().map(|scan| (scan, scan.keep())) {
                Some((scan, Keep::Planes(plan))) => self.had_for(scan, plan, at, whole, region, read)?,
                scan => {
                    // what is decoded while the scan only begins is the scan's as well
                    let scan = scan.filter(|(scan, keep)| *keep == Keep::Whole || scan.goes_on());
                    let kept = if scan.is_some() { Kept::ForScan } else { Kept::ForAll };
                    let load = || {
                        scan.inspect(|(scan, _)| scan.note_decoded());
                        Ok(self.for_all(Arc::new(whole.load(self)?)))
                    };
                    self.seen(self.reader.cache().get_or_decode(self.key(at), kept, load)?)
                }
            };
            // who has waited for another thread may have been given planes that are not the right ones
            if brick.layout.held.contains(region) || !whole.holds(region) {
                return Ok(brick);
            }
        }
    }

    /// A brick of which a scan keeps the next planes, or just these planes.
    fn had_for(
        &self,
        scan: &Stream,
        plan: Plan,
        at: &Dims,
        whole: &Whole,
        region: &Region,
        read: bool,
    ) -> Result<Arc<DecodedBrick>, FormatError> {
        let number = self.number(at);
        let brick = self.reader.cache().get_or_decode(self.key(at), Kept::No, || {
            // another thread may have been here since this one looked
            if let Some(planes) = scan.segments.get(number, region, read) {
                return Ok(self.for_all(planes));
            }
            let brick = whole.load(self)?;
            self.keep_planes(scan, plan, at, &brick, region, read);
            Ok(self.for_all(Arc::new(brick)))
        })?;
        Ok(self.seen(brick))
    }

    /// Keeps planes of a brick for a scan, from the first one of `region` on, and as many as there is room for.
    fn keep_planes(&self, scan: &Stream, plan: Plan, at: &Dims, brick: &DecodedBrick, region: &Region, read: bool) {
        let (number, info) = (self.number(at), self.array.info());
        let planes = if scan.segments.knows(number) { plan.longest() } else { plan.first(number % layer_bricks(info)) };
        let mut kept = info.grid.region(at);
        let end = kept.end(0);
        kept.start[0] = region.start[0];
        kept.shape[0] = region.shape[0];
        // what is read in part will be asked for again at once, and what is read wholly is not kept
        let (least, past) = if !read {
            (0, 0)
        } else if region.samples() < kept.samples() {
            (region.shape[0], 0)
        } else {
            (0, region.shape[0])
        };
        let room = self.room(scan).saturating_add(past);
        kept.shape[0] = planes.min(room).max(least).min(end.saturating_sub(kept.start[0]));
        let cut = Cut { region: kept, read: read.then_some(region), size: info.dtype.size() };
        scan.segments.put(number, brick, cut, self.reader.buffers());
    }

    /// Planes of a brick for which a scan has room.
    fn room(&self, scan: &Stream) -> u64 {
        let info = self.array.info();
        let plane = brick_bytes(info) as u64 / info.grid.step()[0].max(1);
        scan.share().saturating_sub(scan.segments.bytes()) as u64 / plane.max(1)
    }

    /// Gives a scan that keeps planes what the cache still holds of the layer's bricks, from `plane` on. If it is `alone` the cache
    /// drops these bricks one by one.
    pub fn adopt(&self, layer: u64, plane: u64, alone: bool) {
        let Some((scan, Keep::Planes(plan))) = self.scan.as_ref().map(|scan| (scan, scan.keep())) else { return };
        let (grid, bricks) = (&self.array.info().grid, layer_bricks(self.array.info()));
        for number in layer * bricks..(layer + 1) * bricks {
            let at = grid.count().index_of(number);
            let Some(region) = one_plane(grid.region(&at), plane) else { return };
            if !scan.segments.holds(number, &region)
                && let Some(brick) = self.reader.cache().peek(self.key(&at))
            {
                self.keep_planes(scan, plan, &at, &self.seen(brick), &region, false);
                if alone {
                    self.reader.cache().forget(self.key(&at));
                }
            }
        }
    }

    /// The bulkhead for work that nobody waits for yet.
    pub fn prefetch_bulkhead(&self) -> Bulkhead {
        self.bulkhead.for_prefetch(self.reader.gate().decoders())
    }

    /// Whether `region` of a brick is in memory.
    fn is_there(&self, at: &Dims, region: &Region) -> bool {
        self.scan.as_ref().is_some_and(|scan| scan.segments.holds(self.number(at), region))
            || self.reader.cache().peek(self.key(at)).is_some()
    }

    /// Whether a brick would have to be decoded for its plane `plane`, as far as can be told without waiting.
    pub fn lacks(&self, at: &Dims, plane: u64) -> bool {
        let Some(region) = one_plane(self.array.info().grid.region(at), plane) else { return false };
        !self.is_there(at, &region)
            && match self.array.brick(at, Wait::No) {
                Ok(brick) => matches!(Way::of(brick, self), Way::Whole(_)),
                Err(e) => e.would_block(),
            }
    }

    /// Decodes a brick that will be asked for from `plane` on. What is wrong with it is the matter of who asks for it.
    pub fn decode_ahead(&self, at: &Dims, plane: u64) {
        let info = self.array.info();
        let Some(region) = one_plane(info.grid.region(at), plane) else { return };
        let Some(scan) = &self.scan else { return };
        let no_room = matches!(scan.keep(), Keep::Planes(_)) && self.room(scan) == 0;
        if no_room || self.is_there(at, &region) {
            return;
        }
        let Ok(brick) = self.array.brick(at, Wait::Yes) else { return };
        let Way::Whole(whole) = Way::of(brick, self) else { return };
        if self.had(at, &whole, &region, false).is_ok() {
            self.reader.counters().prefetched.add(1);
        }
    }
}

/// The first plane of a region from `plane` on.
fn one_plane(mut region: Region, plane: u64) -> Option<Region> {
    let end = region.end(0);
    region.start[0] = region.start[0].max(plane);
    region.shape[0] = 1;
    (region.start[0] < end).then_some(region)
}
