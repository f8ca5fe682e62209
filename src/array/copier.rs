//! Copies the pieces of a read to the memory of the caller, for all kinds of brick: those of several bricks together.

use std::cell::Cell;
use std::sync::Arc;

use super::brick::{Access, Purpose};
use super::cache::{DecodedBrick, Lookup};
use super::copy::{Batch, Loops};
use super::output::Rows;
use super::plain::PlainPieces;
use super::region::{Piece, Selection};
use crate::format::FormatError;
use crate::memory::make_room;
use crate::source::Blocking;
use crate::volume::{Brick, Dims};

/// Neighbouring bricks are copied interleaved if their rows have at least this many bytes.
const MIN_INTERLEAVED_ROW: usize = 16;

/// A read that failed: which brick, and why.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("brick {brick:?}: {cause}")]
pub(crate) struct ReadError {
    /// The brick's index in the grid.
    pub(crate) brick: Dims,
    /// The error of the format or of the source.
    pub(crate) cause: FormatError,
}

impl ReadError {
    /// An error in `piece`, or in the whole read.
    pub(super) fn new(piece: Option<&Piece>, cause: impl Into<FormatError>) -> Self {
        Self { brick: piece.map_or_else(|| Dims::filled(1, 0), |piece| piece.brick), cause: cause.into() }
    }
}

// empty but for the memory of the lists whenever a call of this thread has ended, so a child can use it, too
thread_local! {
    static LISTS: Cell<Lists> = Cell::default();
}

/// The lists of one call; the thread's next call reuses their memory.
#[derive(Default)]
struct Lists {
    lookups: Vec<Lookup>,
    /// Pieces of decoded bricks, which are held until they are copied.
    decoded: Batch<Arc<DecodedBrick>>,
    plain: PlainPieces,
}

/// Copies pieces of one read.
pub(super) struct Copier<'a> {
    access: &'a Access,
    selections: &'a [Selection],
    /// With [`Blocking::No`] only what is in memory is copied.
    blocking: Blocking,
    lists: Lists,
    /// A piece was seen whose brick is loaded whole. Only such bricks enter the cache, so it is not searched before.
    seen_whole: bool,
    /// The brick that was loaded last, for further pieces of it.
    last: Option<(Dims, Arc<DecodedBrick>)>,
    copied: Copied,
}

/// What became of the pieces.
#[derive(Default)]
pub(super) struct Copied {
    /// Pieces that have to be waited for.
    pub(super) pending: Vec<Piece>,
    /// Samples came from decoded bricks.
    pub(super) has_decoded: bool,
    /// Samples came straight from the source: they count only if it is unchanged afterwards.
    pub(super) is_unchecked: bool,
}

impl<'a> Copier<'a> {
    pub(super) fn new(access: &'a Access, selections: &'a [Selection], blocking: Blocking) -> Self {
        Self {
            access,
            selections,
            blocking,
            lists: LISTS.take(),
            seen_whole: false,
            last: None,
            copied: Copied::default(),
        }
    }

    /// Copies pieces, except for those of plain bricks, which [`Copier::finish`] copies together, and those that have
    /// to be waited for, which are pending afterwards.
    pub(super) fn copy(&mut self, pieces: &[Piece], out: &mut Rows<'_>) -> Result<(), ReadError> {
        let mut rest = pieces;
        let mut first_whole = None;
        while !self.seen_whole
            && let Some((piece, others)) = rest.split_first()
        {
            first_whole = self.copy_unless_whole(piece, out)?;
            match first_whole {
                Some(_) => self.seen_whole = true,
                None => rest = others,
            }
        }
        // from then on the cache is searched first: a cached brick need not be looked up in the format's tables
        let mut lookups = std::mem::take(&mut self.lists.lookups);
        self.access.look_up(rest, &mut lookups);
        for (piece, (_, found)) in rest.iter().zip(lookups.drain(..)) {
            let (mut brick, mut whole) = (found.or_else(|| self.access.kept_planes(piece)), first_whole.take());
            if brick.is_none() && whole.is_none() {
                whole = self.copy_unless_whole(piece, out)?;
            }
            if let (None, Some(whole)) = (&brick, whole) {
                brick = self.load(piece, &whole)?;
            }
            if let Some(brick) = brick {
                self.copied.has_decoded = true;
                let (selection, size) = (self.selection(piece), self.access.sample_size());
                let place = self.lists.decoded.place(&brick.layout, piece, selection, size);
                let place = place.map_err(|cause| ReadError::new(Some(piece), cause))?;
                self.lists.decoded.add(brick, place);
            }
        }
        self.lists.lookups = lookups;
        let batch = &mut self.lists.decoded;
        batch.copy(batch.members(), MIN_INTERLEAVED_ROW, |piece| &piece.source.bytes[piece.place.from as usize..], out);
        batch.clear_members();
        Ok(())
    }

    /// Copies a piece of a constant brick, or collects it to be copied with those of other plain bricks. Returns any
    /// other brick, which has to be loaded whole; `None` also if the piece is pending.
    fn copy_unless_whole(&mut self, piece: &Piece, out: &mut Rows<'_>) -> Result<Option<Brick>, ReadError> {
        // after the first pending piece no other is tried: workers are needed anyway, and the kernel's next request
        // waits for this thread
        if !self.copied.pending.is_empty() {
            leave_for_later(&mut self.copied.pending, &[*piece])?;
            return Ok(None);
        }
        let (access, size) = (self.access, self.access.sample_size());
        if self.blocking == Blocking::Yes {
            access.fetch_now(&piece.brick, &piece.region);
        }
        let failed = |cause| ReadError::new(Some(piece), cause);
        match access.array.brick(&piece.brick, self.blocking) {
            Ok(Brick::Constant(ref value)) => {
                let Selection { step, strides, .. } = self.selection(piece);
                let count = Dims::from_fn(step.len(), |a| (piece.region.shape[a] - 1) / step[a] + 1);
                Loops::new(&count, strides, strides, size).fill(value, out, piece.to);
                Ok(None)
            }
            Ok(ref brick @ Brick::Plain(ref plain)) if !access.is_loaded_whole(brick) => {
                self.lists.plain.add(piece, plain, self.selection(piece), size).map_err(failed)?;
                Ok(None)
            }
            Ok(brick) => Ok(Some(brick)),
            Err(cause) if cause.would_block() => {
                leave_for_later(&mut self.copied.pending, &[*piece])?;
                Ok(None)
            }
            Err(cause) => Err(failed(cause)),
        }
    }

    /// Loads the brick of a piece, or makes the piece pending.
    fn load(&mut self, piece: &Piece, brick: &Brick) -> Result<Option<Arc<DecodedBrick>>, ReadError> {
        if self.blocking == Blocking::No {
            leave_for_later(&mut self.copied.pending, &[*piece])?;
            return Ok(None);
        }
        if let Some((at, last)) = &self.last
            && *at == piece.brick
            && last.layout.held.contains(&piece.region)
        {
            return Ok(Some(Arc::clone(last)));
        }
        let loaded = self.access.get_or_load(&piece.brick, brick, &piece.region, Purpose::Read);
        let loaded = loaded.map_err(|cause| ReadError::new(Some(piece), cause))?;
        self.last = Some((piece.brick, Arc::clone(&loaded)));
        Ok(Some(loaded))
    }

    fn selection(&self, piece: &Piece) -> &'a Selection {
        &self.selections[piece.selection as usize]
    }

    /// Copies the pieces of plain bricks, unless they have to be waited for.
    pub(super) fn finish(mut self, out: &mut Rows<'_>) -> Result<Copied, ReadError> {
        let plain = &mut self.lists.plain;
        if !plain.pieces.is_empty() {
            self.copied.is_unchecked = true;
            let outcome = plain.copy(&*self.access.array, self.blocking, out);
            self.access.count_source_bytes(plain.source_bytes);
            match outcome {
                Ok(()) => {}
                Err((number, cause)) if cause.would_block() && self.blocking == Blocking::No => {
                    leave_for_later(&mut self.copied.pending, plain.pieces.get(number..).unwrap_or_default())?;
                }
                Err((number, cause)) => return Err(ReadError::new(plain.pieces.get(number), cause)),
            }
        }
        Ok(std::mem::take(&mut self.copied))
    }
}

impl Drop for Copier<'_> {
    fn drop(&mut self) {
        let mut lists = std::mem::take(&mut self.lists);
        lists.lookups.clear();
        lists.decoded.clear();
        lists.plain.clear();
        LISTS.set(lists);
    }
}

/// Adds pieces to those that have to be waited for.
fn leave_for_later(pending: &mut Vec<Piece>, pieces: &[Piece]) -> Result<(), ReadError> {
    make_room(pending, pieces.len()).map_err(|error| ReadError::new(pieces.first(), error))?;
    pending.extend_from_slice(pieces);
    Ok(())
}
