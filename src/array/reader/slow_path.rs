//! The slow path: divides the pieces of a read that are not in memory among workers of the pool.

use std::sync::Arc;

use crate::array::ReadError;
use crate::array::brick_sizes::workers;
use crate::array::bricks::{BrickAccess, Origins};
use crate::array::request::{Destination, Piece, ReplyLayout};
use crate::format::FormatError;
use crate::memory::Buffer;
use crate::pool::WaitingRequest;
use crate::source::Blocking;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Another worker is woken for each of this many bytes to decode: fewer are decoded before it is awake.
const BATCH: usize = 64 << 10;

/// Pieces that are requested at a time from a source that takes long to answer.
const REQUESTED_AT_ONCE: usize = 16;

/// The callback that gets the reply.
pub(crate) type Done = Box<dyn FnOnce(Result<Buffer, ReadError>) + Send>;

/// A read whose pieces are loaded by several workers.
pub(crate) struct SlowPath {
    access: BrickAccess,
    layout: ReplyLayout,
    pieces: Vec<Piece>,
    /// The next piece to request, from a source that takes long to answer.
    requested: AtomicUsize,
    /// The next piece that no worker has taken.
    next: AtomicUsize,
    /// The number of pieces that are not finished.
    unfinished: AtomicUsize,
    pending: Mutex<PendingReply>,
}

/// The reply as far as it is complete. Its lock is held while rows are copied, never while a worker decodes or waits.
struct PendingReply {
    out: Buffer,
    origins: Origins,
    failure: Option<ReadError>,
    done: Option<(Done, WaitingRequest)>,
}

impl SlowPath {
    /// Submits the pieces of a read to the pool. They are copied to `out`, which may hold pieces from the fast path
    /// already.
    pub(crate) fn start(
        access: BrickAccess,
        layout: ReplyLayout,
        pieces: Vec<Piece>,
        out: Buffer,
        origins: Origins,
        done: Done,
    ) {
        let workers = workers(pieces.len() as u64, access.view.info(), BATCH).min(access.resources.gate.decoders());
        let (bulkhead, pool) = (access.view.bulkhead, Arc::clone(&access.resources.pool));
        let (next, unfinished) = (AtomicUsize::new(0), AtomicUsize::new(pieces.len()));
        let requested = AtomicUsize::new(if access.fetches_ahead() { 0 } else { pieces.len() });
        let done = Some((done, pool.request(bulkhead)));
        let pending = Mutex::new(PendingReply { out, origins, failure: None, done });
        let read = Arc::new(Self { access, layout, pieces, requested, next, unfinished, pending });
        if !read.access.fetches_ahead() {
            return read.submit(workers);
        }
        // a worker that reads the first piece would request it by itself
        pool.submit(bulkhead, move || {
            read.request_pieces();
            read.submit(workers.saturating_sub(1));
            read.work();
        });
    }

    fn submit(self: &Arc<Self>, workers: usize) {
        for _ in 0..workers {
            let read = Arc::clone(self);
            self.access.resources.pool.submit(self.access.view.bulkhead, move || read.work());
        }
    }

    /// Takes pieces until none are left. The worker that finishes the last one replies.
    fn work(&self) {
        while let Some(piece) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let mut guard = PieceGuard { read: self, outcome: Some(Err(gave_up(piece))) };
            guard.outcome = self.finish(piece).err().map(Err);
            // there may be room for more now
            self.request_pieces();
        }
    }

    /// Requests the pieces that were not requested yet, as far as the source has room.
    fn request_pieces(&self) {
        loop {
            let from = self.requested.load(Ordering::Relaxed);
            let to = self.pieces.len().min(from.saturating_add(REQUESTED_AT_ONCE));
            let pieces = self.pieces.get(from..to).unwrap_or_default();
            let wanted = pieces.iter().map(|piece| (piece.brick, piece.region));
            if pieces.is_empty() || !self.access.fetch_ahead(wanted) {
                return;
            }
            self.requested.fetch_max(to, Ordering::Relaxed);
        }
    }

    fn finish(&self, piece: &Piece) -> Result<(), ReadError> {
        if self.pending().failure.is_some() {
            return Ok(());
        }
        let failed = |cause| ReadError { brick: piece.brick, cause };
        self.access.fetch_now(&piece.brick, &piece.region);
        let loaded = self.access.load_piece(piece).map_err(failed)?;
        let mut pending = self.pending();
        let PendingReply { out, origins, .. } = &mut *pending;
        let mut to = Destination { bytes: out, layout: self.layout };
        origins.add(self.access.copy_loaded(piece, &loaded, &mut to).map_err(failed)?);
        Ok(())
    }

    fn pending(&self) -> MutexGuard<'_, PendingReply> {
        self.pending.lock()
    }

    fn reply(&self) {
        let mut pending = self.pending();
        let Some((done, waiting)) = pending.done.take() else { return };
        let (failure, origins) = (pending.failure.take(), pending.origins);
        let out = std::mem::replace(&mut pending.out, self.access.resources.buffers.empty());
        drop(pending);
        let checked = match failure {
            Some(failure) => Err(failure),
            None => origins.check(self.access.array(), self.pieces.first().copied(), Blocking::Yes),
        };
        drop(waiting);
        done(checked.map(|()| out));
        // a source that takes long to answer takes longer than the pages of a brick
        if !self.access.fetches_ahead() {
            self.access.resources.prefault();
        }
    }
}

fn gave_up(piece: &Piece) -> ReadError {
    ReadError { brick: piece.brick, cause: FormatError::Damaged("the decoder gave up on it".into()) }
}

/// Counts the piece that a worker has taken as finished when it is dropped, also by a panic.
struct PieceGuard<'a> {
    read: &'a SlowPath,
    outcome: Option<Result<(), ReadError>>,
}

impl Drop for PieceGuard<'_> {
    fn drop(&mut self) {
        if let Some(Err(failure)) = self.outcome.take() {
            self.read.pending().failure.get_or_insert(failure);
        }
        if self.read.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.read.reply();
        }
    }
}
