//! Reads: at once where memory has the answer, on the pool's threads where it takes time.

use std::ops::Range;
use std::sync::Arc;

use super::ReadError;
use super::access::Access;
use super::at_hand::AtHand;
use super::board::Board;
use super::fetch::{Frame, Target};
use super::gate::Gate;
use super::permuted::PermutedArray;
use super::pieces::pieces;
use super::scan::Scans;
use super::work::Work;
use crate::cache::BrickCache;
use crate::counters::Counters;
use crate::format::Array;
use crate::memory::{Buffer, BufferPool};
use crate::pool::{Bulkhead, Pool};
use crate::volume::AxisPermutation;

/// What every read shares.
pub struct Reader {
    cache: BrickCache,
    board: Board,
    gate: Gate,
    pool: Arc<Pool>,
    buffers: Arc<BufferPool>,
    counters: Arc<Counters>,
}

/// A range of samples of an array, in C order.
pub struct Request {
    /// The array.
    pub array: Arc<dyn Array>,
    /// The order of its axes, if it is not the array's own.
    pub turn: Option<AxisPermutation>,
    /// The samples, by number in that order; they lie within the array.
    pub samples: Range<u64>,
    /// The bulkhead of the pool that the work belongs to.
    pub bulkhead: Bulkhead,
    /// The readers of the file that the request comes from: those that go through it in order are served ahead.
    pub scans: Option<Arc<Scans>>,
}

impl Reader {
    /// A reader that keeps decoded bricks in `cache` and decodes behind `gate` on threads of `pool`.
    #[must_use]
    pub fn new(
        cache: BrickCache,
        gate: Gate,
        pool: Arc<Pool>,
        buffers: Arc<BufferPool>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self { cache, board: Board::default(), gate, pool, buffers, counters })
    }

    /// Reads samples. `done` gets them in C order, little-endian: from within this call if that takes no waiting, else
    /// from a thread of the pool.
    pub fn read(self: &Arc<Self>, request: Request, done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static) {
        let Request { array, turn, samples, bulkhead, scans } = request;
        let array = match turn {
            Some(turn) => PermutedArray::shared(array, turn),
            None => array,
        };
        let done = move |read: Result<Buffer, ReadError>| {
            done(read.map_err(|e| ReadError { brick: turn.map_or(e.brick, |turn| turn.invert_dims(&e.brick)), ..e }));
        };
        let scan = scans.as_ref().and_then(|scans| scans.note(array.info(), &samples));
        let other = scan.is_none() && scans.as_ref().is_none_or(|scans| !scans.any());
        let access = Access { reader: Arc::clone(self), array, turn, bulkhead, scan };
        let array = &*access.array;
        let bytes = (samples.end - samples.start) as usize * array.info().dtype.size();
        let mut out = self.buffers.take_reply(bytes);
        let frame = Frame::of_range(array.info(), samples.start);
        let mut target = Target { bytes: &mut out, frame };
        let mut at_hand = AtHand::new(&access);
        if let Err(e) = at_hand.copy(pieces(array, samples.clone()), &mut target) {
            return done(Err(e));
        }
        let AtHand { tally, pending, .. } = at_hand;
        let (decoded, coded) = (tally.decoded, tally.decoded || !pending.is_empty());
        self.board.settle(self, other && coded);
        let ahead = (access.scan.is_some() && coded).then(|| access.clone());
        if pending.is_empty() {
            done(tally.check(array, pieces(array, samples).next()).map(|()| out));
        } else {
            Work::start(access, frame, pending, out, tally, Box::new(done));
        }
        // what is wanted now goes first
        if let Some(access) = ahead {
            self.board.look_ahead(&access);
            if let (true, Some(scans)) = (decoded, scans) {
                scans.set_tight(Board::is_tight(&access));
            }
        }
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Where buffers come from and go back to.
    #[must_use]
    pub fn buffers(&self) -> &Arc<BufferPool> {
        &self.buffers
    }

    /// The decoded bricks.
    #[must_use]
    pub fn cache(&self) -> &BrickCache {
        &self.cache
    }

    /// Bytes of decoded samples held: bricks in the cache, and what scans keep.
    #[must_use]
    pub fn bytes_held(&self) -> usize {
        self.cache.bytes() + self.board.bytes()
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }
}
