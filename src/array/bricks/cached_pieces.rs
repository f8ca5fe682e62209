//! Copies pieces of decoded bricks that are in memory.

use std::sync::Arc;

use crate::array::copy::Batch;
use crate::array::request::{Destination, Piece};
use crate::cache::DecodedBrick;
use crate::format::FormatError;
use crate::volume::AxisPermutation;

/// Neighbouring bricks are copied interleaved if their rows have at least this many bytes.
const MIN_INTERLEAVED_ROW: usize = 16;

/// Pieces of decoded bricks: collected first, and copied together. Holds the bricks until they are copied.
#[derive(Default)]
pub(crate) struct CachedPieces {
    batch: Batch<Arc<DecodedBrick>>,
}

impl CachedPieces {
    /// Adds a piece of `brick`. `permutation` is the order in which the reader has the brick's axes, if not its own.
    pub(crate) fn add(
        &mut self,
        piece: &Piece,
        brick: Arc<DecodedBrick>,
        permutation: Option<&AxisPermutation>,
        size: usize,
        to: &Destination<'_>,
    ) -> Result<(), FormatError> {
        let permuted = permutation.map(|order| order.permute_layout(&brick.layout));
        let layout = permuted.as_ref().unwrap_or(&brick.layout);
        if !layout.held.contains(&piece.region) {
            return Err(FormatError::Damaged("the brick does not hold all of its samples".into()));
        }
        let (to_strides, at) = to.place_of(piece);
        let (from, strides) = (layout.offset_of(&piece.region.start), layout.strides);
        self.batch.add(brick, (from, at), (&piece.region.shape, &strides), to_strides, size);
        Ok(())
    }

    /// Copies all pieces to `out` and releases their bricks.
    pub(crate) fn copy(&mut self, out: &mut [u8]) {
        let batch = &self.batch;
        batch.copy(batch.members(), MIN_INTERLEAVED_ROW, |piece| &piece.source.bytes[piece.from as usize..], out);
        self.batch.clear_members();
    }

    /// Releases everything that belongs to a request.
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
    }
}
