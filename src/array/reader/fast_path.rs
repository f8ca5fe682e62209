//! The fast path: copies the pieces of a request that are in memory, on the thread that talks to the kernel. It never
//! waits.

use std::cell::Cell;

use crate::array::ReadError;
use crate::array::brick_sizes::brick_bytes;
use crate::array::bricks::{Attempt, BrickAccess, CachedPieces, CopyFailure, Origin, Origins, PlainPieces};
use crate::array::request::{Destination, Piece, Pieces};
use crate::cache::Lookup;
use crate::volume::Dims;

/// The bytes of bricks that a request holds on to at a time, in case the cache evicts them meanwhile.
const MAX_HELD: usize = 8 << 20;

/// The number of pieces that are looked up at a time.
const MAX_LOOKUPS: usize = 256;

thread_local! {
    static LISTS: Cell<Lists> = Cell::default();
}

/// The lists of one request; the thread's next request reuses their memory.
#[derive(Default)]
struct Lists {
    pieces: Vec<Piece>,
    lookups: Vec<Lookup>,
    cached: CachedPieces,
    plain: PlainPieces,
}

impl Lists {
    /// Releases everything that belongs to a request.
    fn clear(&mut self) {
        self.lookups.clear();
        self.cached.clear();
        self.plain.clear();
    }
}

/// A request of which some pieces are in memory and others have to be waited for.
pub(crate) struct FastPath<'a> {
    access: &'a BrickAccess,
    /// A piece was seen whose brick is loaded whole.
    seen_whole_brick: bool,
    /// Where the pieces that were copied came from.
    pub origins: Origins,
    /// The pieces that have to be waited for, for the slow path.
    pub pending: Vec<Piece>,
}

impl<'a> FastPath<'a> {
    /// Begins a request.
    pub(crate) fn new(access: &'a BrickAccess) -> Self {
        Self { access, seen_whole_brick: false, origins: Origins::default(), pending: Vec::new() }
    }

    /// Copies the pieces that are in memory; the others are pending afterwards.
    pub(crate) fn copy(&mut self, mut pieces: Pieces<'_>, to: &mut Destination<'_>) -> Result<(), ReadError> {
        let at_once = (MAX_HELD / brick_bytes(self.access.view.info())).clamp(1, MAX_LOOKUPS);
        let mut lists = LISTS.take();
        let copied = loop {
            lists.pieces.clear();
            pieces.fill(&mut lists.pieces, at_once);
            if lists.pieces.is_empty() {
                break self.copy_plain_pieces(&lists.plain, to);
            }
            if let Err(e) = self.classify(&mut lists, to) {
                break Err(e);
            }
            lists.cached.copy(to.bytes);
        };
        lists.clear();
        LISTS.set(lists);
        copied
    }

    /// Classifies pieces: copies them, collects them to be copied together, or marks them as pending.
    fn classify(&mut self, lists: &mut Lists, to: &mut Destination<'_>) -> Result<(), ReadError> {
        let Lists { pieces, lookups, cached, plain } = lists;
        let mut pieces = &pieces[..];
        let mut first_needs_whole = false;
        // only bricks that are loaded whole enter the cache, so the cache is not searched before one was seen
        while let Some((piece, rest)) = pieces.split_first().filter(|_| !self.seen_whole_brick) {
            if self.try_copy(piece, plain, to)? == Some(Attempt::NeedsWhole) {
                (self.seen_whole_brick, first_needs_whole) = (true, true);
            } else {
                pieces = rest;
            }
        }
        // from then on the cache is searched first: a cached brick need not be looked up in the format's tables
        let (access, size) = (self.access, self.access.sample_size());
        access.look_up(pieces, lookups);
        for (n, (piece, (_, brick))) in pieces.iter().zip(lookups.drain(..)).enumerate() {
            let (brick, permutation) = match brick {
                Some(brick) => (Some(brick), access.view.permutation.as_ref()),
                None => (access.kept_planes(piece), None),
            };
            if let Some(brick) = brick {
                self.origins.add(Origin::Decoded);
                cached
                    .add(piece, brick, permutation, size, to)
                    .map_err(|cause| ReadError { brick: piece.brick, cause })?;
            } else if (n == 0 && first_needs_whole) || self.try_copy(piece, plain, to)? == Some(Attempt::NeedsWhole) {
                self.pending.push(*piece);
            }
        }
        Ok(())
    }

    /// Tries a piece that is not in memory. `None`: it is pending.
    fn try_copy(
        &mut self,
        piece: &Piece,
        plain: &mut PlainPieces,
        to: &mut Destination<'_>,
    ) -> Result<Option<Attempt>, ReadError> {
        // after the first pending piece no other is tried: workers are needed anyway, and the kernel's next request
        // waits for this thread
        if !self.pending.is_empty() {
            self.pending.push(*piece);
            return Ok(None);
        }
        match self.access.try_copy(piece, to, plain) {
            Ok(attempt) => Ok(Some(attempt)),
            Err(cause) if cause.would_block() => {
                self.pending.push(*piece);
                Ok(None)
            }
            Err(cause) => Err(ReadError { brick: piece.brick, cause }),
        }
    }

    /// Copies the plain pieces; those that have to be waited for are pending afterwards.
    fn copy_plain_pieces(&mut self, plain_pieces: &PlainPieces, to: &mut Destination<'_>) -> Result<(), ReadError> {
        if plain_pieces.is_empty() {
            return Ok(());
        }
        let copied = plain_pieces.copy(self.access.array(), to.bytes);
        self.access.count_source_bytes(plain_pieces.source_bytes());
        match copied {
            Ok(()) => self.origins.add(Origin::Source),
            Err(CopyFailure { number, cause }) if cause.would_block() => {
                self.origins.add(Origin::Source);
                self.pending.extend_from_slice(plain_pieces.pieces().get(number..).unwrap_or_default());
            }
            Err(CopyFailure { number, cause }) => {
                let piece = plain_pieces.pieces().get(number);
                let brick = piece.map_or_else(|| Dims::filled(1, 0), |piece| piece.brick);
                return Err(ReadError { brick, cause });
            }
        }
        Ok(())
    }
}
