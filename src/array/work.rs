//! A read that takes time: its pieces, and the threads that share them.

use crate::sync::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ReadError;
use super::access::Access;
use super::bricks::hands;
use super::fetch::{Frame, Had, Piece, Target};
use crate::format::{Array, FormatError};
use crate::memory::Buffer;
use crate::volume::Dims;

/// Decoded bytes for which another thread is woken while somebody waits: less is done before it is awake.
const BATCH: usize = 64 << 10;

/// Who gets the answer.
pub type Done = Box<dyn FnOnce(Result<Buffer, ReadError>) + Send>;

/// Where the pieces of a read came from.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    from_source: bool,
    /// Some came from decoded bricks.
    pub decoded: bool,
}

impl Tally {
    pub fn add(&mut self, had: Had) {
        self.from_source |= had == Had::Source;
        self.decoded |= had == Had::Decoded;
    }

    /// What was read straight from the source counts only if the source is still what it was.
    pub fn check(self, array: &dyn Array, piece: Option<Piece>) -> Result<(), ReadError> {
        if !self.from_source {
            return Ok(());
        }
        array
            .source()
            .check_unchanged()
            .map_err(|e| ReadError { brick: piece.map_or_else(|| Dims::filled(1, 0), |p| p.brick), cause: e.into() })
    }
}

/// A read that takes time, shared by the threads that work on it.
pub struct Work {
    access: Access,
    /// Where the samples stand in the bytes of the read.
    frame: Frame,
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
    /// Begins to work on the pieces of a read into `out`, of which some may be there already.
    pub fn start(access: Access, frame: Frame, pieces: Vec<Piece>, out: Buffer, tally: Tally, done: Done) {
        let helpers = hands(pieces.len() as u64, access.array.info(), BATCH).min(access.reader.gate().decoders());
        let (bulkhead, pool) = (access.bulkhead, Arc::clone(access.reader.pool()));
        let (next, left) = (AtomicUsize::new(0), AtomicUsize::new(pieces.len()));
        let progress = Mutex::new(Progress { out, tally, failure: None, done: Some(done) });
        let work = Arc::new(Self { access, frame, pieces, next, left, progress });
        for _ in 0..helpers {
            let work = Arc::clone(&work);
            pool.submit(bulkhead, move || work.help());
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
        let failed = |cause| ReadError { brick: piece.brick, cause };
        let loaded = piece.load(&self.access).map_err(failed)?;
        let mut progress = self.progress();
        let Progress { out, tally, .. } = &mut *progress;
        let mut target = Target { bytes: out, frame: self.frame };
        tally.add(piece.copy(&*self.access.array, &loaded, &mut target).map_err(failed)?);
        Ok(())
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }

    fn answer(&self) {
        let mut progress = self.progress();
        let Some(done) = progress.done.take() else { return };
        let (failure, tally) = (progress.failure.take(), progress.tally);
        let out = std::mem::replace(&mut progress.out, self.access.reader.buffers().take(0));
        drop(progress);
        let checked = match failure {
            Some(failure) => Err(failure),
            None => tally.check(&*self.access.array, self.pieces.first().copied()),
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
