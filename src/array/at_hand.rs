//! What memory has of a request: copied at once, by the thread that talks to the kernel.

use std::cell::Cell;

use super::ReadError;
use super::access::Access;
use super::bricks::brick_bytes;
use super::fetch::{Had, Piece, Target};
use super::held::HeldPieces;
use super::plain::{Failed, PlainPieces};
use super::work::Tally;
use crate::cache::Sought;
use crate::volume::Dims;

/// Bricks of so many bytes are held for copying at a time, if they are dropped from the cache meanwhile.
const HELD: usize = 8 << 20;

/// So many pieces are looked for at a time.
const PIECES: usize = 256;

thread_local! {
    static LISTS: Cell<Lists> = Cell::default();
}

/// The lists for pieces of one request: the thread's next one uses their memory again.
#[derive(Default)]
struct Lists {
    pieces: Vec<Piece>,
    bricks: Vec<Sought>,
    held: HeldPieces,
}

impl Lists {
    /// Nothing of a request is held after it.
    fn forget(&mut self) {
        self.bricks.clear();
        self.held.clear();
    }
}

/// A request, of which some pieces are there and others take waiting.
pub struct AtHand<'a> {
    access: &'a Access,
    plains: PlainPieces,
    /// There was a brick that is had as a whole.
    wholes: bool,
    /// Where the pieces came from that were copied.
    pub tally: Tally,
    /// The pieces that take waiting.
    pub pending: Vec<Piece>,
}

impl<'a> AtHand<'a> {
    pub fn new(access: &'a Access) -> Self {
        Self { access, plains: PlainPieces::default(), wholes: false, tally: Tally::default(), pending: Vec::new() }
    }

    /// Copies those of the pieces that are there.
    ///
    /// # Errors
    /// Those of the format and the source.
    pub fn copy(&mut self, mut pieces: impl Iterator<Item = Piece>, target: &mut Target<'_>) -> Result<(), ReadError> {
        let at_once = (HELD / brick_bytes(self.access.array.info())).clamp(1, PIECES);
        let mut lists = LISTS.take();
        let copied = loop {
            lists.pieces.clear();
            lists.pieces.extend(pieces.by_ref().take(at_once));
            if lists.pieces.is_empty() {
                break self.copy_plains(target);
            }
            if let Err(e) = self.sort(&mut lists, target) {
                break Err(e);
            }
            lists.held.copy(target.bytes);
        };
        lists.forget();
        LISTS.set(lists);
        copied
    }

    fn sort(&mut self, lists: &mut Lists, target: &mut Target<'_>) -> Result<(), ReadError> {
        let Lists { pieces, bricks, held } = lists;
        let mut pieces = &pieces[..];
        while let Some((piece, rest)) = pieces.split_first().filter(|_| !self.wholes) {
            self.try_other(piece, target)?;
            // it is looked for with the others
            pieces = if self.wholes { pieces } else { rest };
        }
        // beside a brick that is had as a whole is mostly another: if it is held, where it is stored does not matter
        let (access, size) = (self.access, self.access.array.info().dtype.size());
        access.look_for(pieces, bricks);
        for (piece, (_, brick)) in pieces.iter().zip(bricks.drain(..)) {
            let Some((layout, brick)) = access.held(piece, brick) else {
                self.try_other(piece, target)?;
                continue;
            };
            self.tally.add(Had::Decoded);
            held.add(piece, (layout, brick), size, target).map_err(|cause| ReadError { brick: piece.brick, cause })?;
        }
        Ok(())
    }

    /// A piece that is not of a brick in memory: copied if it takes no waiting; that of a plain brick is put aside for now.
    fn try_other(&mut self, piece: &Piece, target: &mut Target<'_>) -> Result<(), ReadError> {
        // after the first piece that takes waiting others are not tried: what they cost here is time of the kernel's
        if !self.pending.is_empty() {
            self.pending.push(*piece);
            return Ok(());
        }
        match piece.try_copy(self.access, target, &mut self.plains) {
            Ok(None) if self.wholes => self.pending.push(*piece),
            Ok(None) => self.wholes = true,
            Ok(Some(had)) => self.tally.add(had),
            Err(cause) if cause.would_block() => self.pending.push(*piece),
            Err(cause) => return Err(ReadError { brick: piece.brick, cause }),
        }
        Ok(())
    }

    fn copy_plains(&mut self, target: &mut Target<'_>) -> Result<(), ReadError> {
        let plains = &self.plains;
        if plains.is_empty() {
            return Ok(());
        }
        match plains.copy(&*self.access.array, target.bytes) {
            Ok(()) => self.tally.add(Had::Source),
            Err(Failed { number, cause }) if cause.would_block() => {
                self.tally.add(Had::Source);
                self.pending.extend(plains.pieces_from(number));
            }
            Err(Failed { number, cause }) => {
                let brick = plains.piece(number).map_or_else(|| Dims::filled(1, 0), |piece| piece.brick);
                return Err(ReadError { brick, cause });
            }
        }
        Ok(())
    }
}
