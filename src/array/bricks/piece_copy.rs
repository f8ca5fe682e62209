//! Copies the samples of one piece to the reply, for all kinds of brick.

use std::sync::Arc;

use super::access::BrickAccess;
use super::lookup::Purpose;
use super::origin::Origin;
use super::plain_pieces::PlainPieces;
use super::plain_read::read_piece;
use super::read_strategy::{ReadStrategy, is_loaded_whole};
use crate::array::copy::Loops;
use crate::array::request::{Destination, Piece};
use crate::cache::DecodedBrick;
use crate::format::FormatError;
use crate::source::Blocking;
use crate::volume::{Brick, Element, Layout};

/// The outcome of an attempt to copy a piece without waiting, if its brick is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It was copied: the brick is constant.
    Copied,
    /// It was added to the plain pieces, which are copied together.
    Deferred,
    /// Its brick has to be loaded whole, which may wait.
    NeedsWhole,
}

/// A piece that was loaded; only the copy is left to do.
pub(crate) enum LoadedPiece {
    /// Every sample has this value.
    Constant(Element),
    /// A brick in memory, or as much of it as the piece needs, and where it came from.
    Brick(Arc<DecodedBrick>, Origin),
}

impl BrickAccess {
    /// Copies a piece to `to` if that needs no waiting, or adds it to `plain_pieces` if its brick is plain.
    pub(crate) fn try_copy(
        &self,
        piece: &Piece,
        to: &mut Destination<'_>,
        plain_pieces: &mut PlainPieces,
    ) -> Result<Attempt, FormatError> {
        let array = self.array();
        // a brick's description is long: it is looked at where it is
        match array.brick(&piece.brick, Blocking::No) {
            Ok(Brick::Constant(ref value)) => {
                self.fill(piece, value, to);
                Ok(Attempt::Copied)
            }
            Ok(Brick::Plain(ref plain)) if !is_loaded_whole(plain, self) => {
                let (strides, at) = to.place_of(piece);
                plain_pieces.add(array, piece, plain, strides, at)?;
                Ok(Attempt::Deferred)
            }
            Ok(Brick::Plain(_) | Brick::Coded(_)) => Ok(Attempt::NeedsWhole),
            Err(e) => Err(e),
        }
    }

    /// Decodes the brick of a piece, or reads the piece if its brick is plain: everything that takes time and needs no
    /// destination.
    pub(crate) fn load_piece(&self, piece: &Piece) -> Result<LoadedPiece, FormatError> {
        let array = self.array();
        match ReadStrategy::choose(array.brick(&piece.brick, Blocking::Yes)?, self) {
            ReadStrategy::Constant(value) => Ok(LoadedPiece::Constant(value)),
            ReadStrategy::Whole(whole) => {
                let brick = self.get_or_load(&piece.brick, &whole, &piece.region, Purpose::Read)?;
                Ok(LoadedPiece::Brick(brick, Origin::Decoded))
            }
            ReadStrategy::Parts(plain) => {
                let strides = piece.region.shape.strides(self.sample_size() as u64);
                let layout = Layout { held: piece.region, first: 0, strides };
                let length = piece.region.samples() as usize * self.sample_size();
                let mut bytes = self.resources.buffers.try_take(length)?;
                self.count_source_bytes(read_piece(array, piece, &plain, &layout.strides, &mut bytes)?);
                Ok(LoadedPiece::Brick(Arc::new(DecodedBrick { bytes: bytes.into(), layout }), Origin::Source))
            }
        }
    }

    /// Copies the result of [`BrickAccess::load_piece`] to `to`.
    pub(crate) fn copy_loaded(
        &self,
        piece: &Piece,
        loaded: &LoadedPiece,
        to: &mut Destination<'_>,
    ) -> Result<Origin, FormatError> {
        match loaded {
            LoadedPiece::Constant(value) => {
                self.fill(piece, value, to);
                Ok(Origin::Constant)
            }
            LoadedPiece::Brick(brick, origin) => self.copy_brick(piece, brick, to).map(|()| *origin),
        }
    }

    fn fill(&self, piece: &Piece, value: &Element, to: &mut Destination<'_>) {
        let (strides, at) = to.place_of(piece);
        let loops = Loops::new(&piece.region.shape, strides, strides, self.sample_size());
        loops.fill(value, &mut to.bytes[at..]);
    }

    fn copy_brick(&self, piece: &Piece, brick: &DecodedBrick, to: &mut Destination<'_>) -> Result<(), FormatError> {
        if !brick.layout.held.contains(&piece.region) {
            return Err(FormatError::Damaged("the brick does not hold all of its samples".into()));
        }
        let (strides, at) = to.place_of(piece);
        let loops = Loops::new(&piece.region.shape, &brick.layout.strides, strides, self.sample_size());
        let from = brick.layout.offset_of(&piece.region.start) as usize;
        loops.copy(&brick.bytes[from..], &mut to.bytes[at..]);
        Ok(())
    }
}
