//! Reads: at once where memory has the answer, on the pool's threads where it takes time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::ReadError;
use super::fetch::{Had, Piece, Target, decode};
use super::gate::Gate;
use super::spans::boxes;
use crate::cache::{BrickCache, DecodedBrick};
use crate::counters::Counters;
use crate::format::{Array, FormatError};
use crate::memory::{Buffer, Buffers};
use crate::pool::{Lane, Pool};
use crate::volume::{Coded, Dims};

/// What every read shares.
pub struct Reader {
    cache: BrickCache,
    gate: Gate,
    pool: Arc<Pool>,
    buffers: Arc<Buffers>,
    counters: Arc<Counters>,
}

/// A range of samples of an array, in C order.
pub struct Request {
    /// The array.
    pub array: Arc<dyn Array>,
    /// The samples, by number; they lie within the array.
    pub samples: Range<u64>,
    /// The lane of the pool that the work belongs to.
    pub lane: Lane,
}

type Done = Box<dyn FnOnce(Result<Buffer, ReadError>) + Send>;

impl Reader {
    /// A reader that keeps decoded bricks in `cache` and decodes behind `gate` on threads of `pool`.
    #[must_use]
    pub fn new(
        cache: BrickCache,
        gate: Gate,
        pool: Arc<Pool>,
        buffers: Arc<Buffers>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self { cache, gate, pool, buffers, counters })
    }

    /// Reads samples. `done` gets them in C order, little-endian: from within this call if that takes no waiting, else
    /// from a thread of the pool.
    pub fn read(self: &Arc<Self>, request: Request, done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static) {
        let array = &*request.array;
        let size = array.info().dtype.size();
        let bytes = (request.samples.end - request.samples.start) as usize * size;
        let mut out = self.buffers.take(bytes);
        let mut target = Target { bytes: &mut out, first: request.samples.start };
        let mut at_hand = true;
        let mut pending = Vec::new();
        let mut tally = Tally::default();
        for piece in pieces(array, request.samples.clone()) {
            // after the first piece that takes waiting the others are not tried: what they cost here is time of the kernel's
            let outcome = if at_hand { piece.try_copy(self, array, &mut target) } else { Err(would_block()) };
            match outcome {
                Ok(had) => tally.add(had),
                Err(e) if e.would_block() => {
                    at_hand = false;
                    pending.push(piece);
                }
                Err(cause) => return done(Err(ReadError { brick: piece.brick, cause })),
            }
        }
        if !pending.is_empty() {
            return Work::start(self, request, pending, out, tally, Box::new(done));
        }
        done(tally.check(array, pieces(array, request.samples).next()).map(|()| out));
    }

    /// The brick at `at`, if it is decoded and held.
    pub(super) fn cached(&self, array: &dyn Array, at: &Dims) -> Option<Arc<DecodedBrick>> {
        self.cache.get((array.info().id, array.info().grid.count().linear_of(at)))
    }

    /// The brick at `at`, decoded now if need be.
    pub(super) fn decoded(
        &self,
        array: &dyn Array,
        at: &Dims,
        coded: &Coded,
    ) -> Result<Arc<DecodedBrick>, FormatError> {
        let key = (array.info().id, array.info().grid.count().linear_of(at));
        self.cache.get_or_decode(key, || decode(self, array, coded))
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Where buffers come from and go back to.
    #[must_use]
    pub fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }

    /// The decoded bricks.
    #[must_use]
    pub fn cache(&self) -> &BrickCache {
        &self.cache
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn would_block() -> FormatError {
    crate::source::SourceError::WouldBlock.into()
}

/// The parts of bricks that make up the samples `range`, box by box, bricks in C order.
fn pieces(array: &dyn Array, range: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
    let grid = &array.info().grid;
    boxes(&grid.shape(), range).into_iter().flat_map(move |part| {
        let touched = grid.touched(&part);
        (0..touched.samples()).filter_map(move |n| {
            let within = touched.shape.index_of(n);
            let brick = Dims::from_fn(within.len(), |a| touched.start[a] + within[a]);
            Some(Piece { brick, region: grid.region(&brick).intersection(&part)? })
        })
    })
}

/// Whether anything came straight from the source.
#[derive(Clone, Copy, Default)]
struct Tally {
    from_source: bool,
}

impl Tally {
    fn add(&mut self, had: Had) {
        self.from_source |= had == Had::Source;
    }

    /// What was read straight from the source counts only if the source is still what it was.
    fn check(self, array: &dyn Array, piece: Option<Piece>) -> Result<(), ReadError> {
        if !self.from_source {
            return Ok(());
        }
        array
            .source()
            .unchanged()
            .map_err(|e| ReadError { brick: piece.map_or_else(|| Dims::filled(1, 0), |p| p.brick), cause: e.into() })
    }
}

/// A read that takes time, shared by the threads that work on it.
struct Work {
    reader: Arc<Reader>,
    request: Request,
    pieces: Vec<Piece>,
    /// The next piece that nobody works on.
    next: AtomicUsize,
    /// Pieces that are not finished.
    left: AtomicUsize,
    progress: Mutex<Progress>,
}

/// What the threads have done so far. The lock is held for copying rows, never for decoding or for a wait.
struct Progress {
    out: Buffer,
    tally: Tally,
    failure: Option<ReadError>,
    done: Option<Done>,
}

impl Work {
    fn start(reader: &Arc<Reader>, request: Request, pieces: Vec<Piece>, out: Buffer, tally: Tally, done: Done) {
        let helpers = pieces.len().min(reader.gate.decoders());
        let (lane, left) = (request.lane, AtomicUsize::new(pieces.len()));
        let progress = Mutex::new(Progress { out, tally, failure: None, done: Some(done) });
        let work =
            Arc::new(Self { reader: Arc::clone(reader), request, pieces, next: AtomicUsize::new(0), left, progress });
        for _ in 0..helpers {
            let work = Arc::clone(&work);
            reader.pool.submit(lane, move || work.help());
        }
    }

    /// Takes pieces until there are none; who finishes the last one answers.
    fn help(&self) {
        while let Some(piece) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let mut turn = Turn { work: self, outcome: Some(Err(gave_up(piece))) };
            turn.outcome = self.finish(piece).err().map(Err);
        }
    }

    fn finish(&self, piece: &Piece) -> Result<(), ReadError> {
        if self.progress().failure.is_some() {
            return Ok(());
        }
        let array = &*self.request.array;
        let failed = |cause| ReadError { brick: piece.brick, cause };
        let loaded = piece.load(&self.reader, array).map_err(failed)?;
        let mut progress = self.progress();
        let Progress { out, tally, .. } = &mut *progress;
        let mut target = Target { bytes: out, first: self.request.samples.start };
        tally.add(piece.copy(array, &loaded, &mut target).map_err(failed)?);
        Ok(())
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self) {
        let mut progress = self.progress();
        let Some(done) = progress.done.take() else { return };
        let (failure, tally) = (progress.failure.take(), progress.tally);
        let out = std::mem::replace(&mut progress.out, self.reader.buffers.take(0));
        drop(progress);
        let checked = match failure {
            Some(failure) => Err(failure),
            None => tally.check(&*self.request.array, self.pieces.first().copied()),
        };
        done(checked.map(|()| out));
    }
}

fn gave_up(piece: &Piece) -> ReadError {
    ReadError { brick: piece.brick, cause: FormatError::Damaged("the decoder gave up on it".into()) }
}

/// One piece in the hands of one thread: counted as finished however the thread leaves it.
struct Turn<'a> {
    work: &'a Work,
    outcome: Option<Result<(), ReadError>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(Err(failure)) = self.outcome.take() {
            self.work.progress().failure.get_or_insert(failure);
        }
        if self.work.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.work.answer();
        }
    }
}
