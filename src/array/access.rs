//! A decoded brick for one reader: held, kept by its scan, or decoded now.

use std::sync::Arc;

use super::board::Board;
use super::reader::Reader;
use super::scan::{Keep, Stream};
use super::whole::{Way, Whole};
use crate::cache::{BrickKey, DecodedBrick};
use crate::format::{Array, FormatError};
use crate::pool::Lane;
use crate::source::Wait;
use crate::volume::{Dims, Region, Turn};

/// One reader's access to the bricks of an array.
#[derive(Clone)]
pub struct Access {
    /// What all readers share.
    pub reader: Arc<Reader>,
    /// The array, in the order of axes that the reader wants.
    pub array: Arc<dyn Array>,
    /// What that order is, if it is not the array's own.
    pub turn: Option<Turn>,
    /// The lane of the pool for work on it.
    pub lane: Lane,
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
            Some(turn) => turn.dims_back(&info.grid.count()).linear_of(&turn.dims_back(at)),
            None => self.number(at),
        };
        (info.id, number)
    }

    /// A brick of the cache as this reader sees it.
    fn seen(&self, brick: Arc<DecodedBrick>) -> Arc<DecodedBrick> {
        match &self.turn {
            Some(turn) => Arc::new(brick.seen(turn.layout(&brick.layout))),
            None => brick,
        }
    }

    /// A brick of this reader's as the cache has it: in the array's own order of axes.
    fn for_all(&self, brick: Arc<DecodedBrick>) -> Arc<DecodedBrick> {
        match &self.turn {
            Some(turn) => Arc::new(brick.seen(turn.layout_back(&brick.layout))),
            None => brick,
        }
    }

    /// A brick that holds `region`, if there is one in memory.
    pub fn held(&self, at: &Dims, region: &Region) -> Option<Arc<DecodedBrick>> {
        let number = self.number(at);
        if let Some(brick) = self.reader.cache().get(self.key(at)) {
            return Some(self.seen(brick));
        }
        let scan = self.scan.as_ref()?;
        let chunk = scan.segments.get(number, region)?;
        self.reader.counters().cache_hits.add(1);
        let (_, end) = self.array.info().grid.owned(0, at[0]);
        if chunk.last && region.end(0) < end {
            self.renew(scan, *at, region.end(0));
        }
        Some(chunk.brick)
    }

    /// A brick that holds `region`, decoded now if need be.
    ///
    /// # Errors
    /// Those of the format and the source.
    pub fn decoded(&self, at: &Dims, whole: &Whole, region: &Region) -> Result<Arc<DecodedBrick>, FormatError> {
        loop {
            let brick = match self.scan.as_ref().map(|scan| (scan, scan.keep())) {
                Some((scan, Keep::Planes(planes))) => self.decoded_for(scan, planes, at, whole, region)?,
                _ => {
                    let load = || Ok(self.for_all(Arc::new(whole.load(self)?)));
                    self.seen(self.reader.cache().get_or_decode(self.key(at), true, load)?)
                }
            };
            // who has waited for another thread may have been given planes that are not the right ones
            if brick.layout.held.contains(region) || !whole.holds(region) {
                return Ok(brick);
            }
        }
    }

    /// A brick of which a scan keeps the next planes, or just these planes.
    fn decoded_for(
        &self,
        scan: &Stream,
        planes: u64,
        at: &Dims,
        whole: &Whole,
        region: &Region,
    ) -> Result<Arc<DecodedBrick>, FormatError> {
        let (number, array) = (self.number(at), &*self.array);
        let brick = self.reader.cache().get_or_decode(self.key(at), false, || {
            // another thread may have been here since this one looked
            if scan.segments.holds(number, region)
                && let Some(chunk) = scan.segments.get(number, region)
            {
                return Ok(self.for_all(chunk.brick));
            }
            let brick = whole.load(self)?;
            let (from, size) = (region.start[0], array.info().dtype.size());
            let planes = self.segment(scan, number, planes);
            let planes = self.reader.board().room(scan, array.info(), planes);
            scan.segments.put(number, &brick, from, planes, size, self.reader.buffers());
            Ok(self.for_all(Arc::new(brick)))
        })?;
        Ok(self.seen(brick))
    }

    /// Gives a scan that keeps planes what the cache still holds of the layer's bricks, from `plane` on.
    pub fn adopt(&self, layer: u64, plane: u64) {
        let Some((scan, Keep::Planes(planes))) = self.scan.as_ref().map(|scan| (scan, scan.keep())) else { return };
        let info = self.array.info();
        let bricks = Board::layer_bricks(info);
        for number in layer * bricks..(layer + 1) * bricks {
            if let Some(brick) = self.reader.cache().peek(self.key(&info.grid.count().index_of(number))) {
                let (brick, planes) = (self.seen(brick), self.segment(scan, number, planes));
                scan.segments.put(number, &brick, plane, planes, info.dtype.size(), self.reader.buffers());
            }
        }
    }

    /// How many planes to keep of a brick. The first segments of a layer's bricks have all lengths up to `planes`, so that they
    /// do not all end at once.
    fn segment(&self, scan: &Stream, number: u64, planes: u64) -> u64 {
        if scan.segments.knows(number) {
            return planes;
        }
        let layer = Board::layer_bricks(self.array.info());
        1 + (u128::from(number % layer) * u128::from(planes) / u128::from(layer)) as u64
    }

    /// The lane for work that nobody waits for yet.
    pub fn lane_ahead(&self) -> Lane {
        self.lane.ahead(self.reader.gate().decoders())
    }

    /// Decodes the continuation of a segment before it is asked for.
    fn renew(&self, scan: &Arc<Stream>, at: Dims, plane: u64) {
        let (access, pool) = (self.clone(), self.reader.pool());
        scan.begin_ahead();
        pool.submit(self.lane_ahead(), move || {
            access.decode_ahead(&at, plane);
            if let Some(scan) = &access.scan {
                scan.end_ahead();
            }
        });
    }

    /// Decodes a brick that will be asked for from `plane` on. What is wrong with it is the matter of who asks for it.
    pub fn decode_ahead(&self, at: &Dims, plane: u64) {
        let grid = &self.array.info().grid;
        let mut region = grid.region(at);
        let end = region.end(0);
        region.start[0] = region.start[0].max(plane);
        region.shape[0] = end.saturating_sub(region.start[0]).min(1);
        if region.shape[0] == 0 {
            return;
        }
        let Ok(brick) = self.array.brick(at, Wait::Yes) else { return };
        let Way::Whole(whole) = Way::of(brick, self) else { return };
        let number = self.number(at);
        let there = self.reader.cache().peek(self.key(at)).is_some()
            || self.scan.as_ref().is_some_and(|scan| scan.segments.holds(number, &region));
        if !there && self.decoded(at, &whole, &region).is_ok() {
            self.reader.counters().prefetched.add(1);
        }
    }
}
