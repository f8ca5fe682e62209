//! Where the samples of a read came from: samples straight from the source need a check that it is unchanged.

use crate::array::error::ReadError;
use crate::array::request::Piece;
use crate::format::Array;
use crate::source::Blocking;
use crate::volume::Dims;

/// Where the samples of a piece came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The brick is constant.
    Constant,
    /// A decoded brick.
    Decoded,
    /// Straight from the source: valid only if the source is unchanged afterwards.
    Source,
}

/// Where the samples of a read came from.
#[derive(Clone, Copy, Default)]
pub(crate) struct Origins {
    source: bool,
    decoded: bool,
}

impl Origins {
    /// Adds the origin of a piece.
    pub(crate) fn add(&mut self, origin: Origin) {
        self.source |= origin == Origin::Source;
        self.decoded |= origin == Origin::Decoded;
    }

    /// Whether some samples came from decoded bricks.
    pub(crate) fn has_decoded(self) -> bool {
        self.decoded
    }

    /// Checks that the source is unchanged if samples came straight from it. The error names the brick of `piece`.
    pub(crate) fn check(self, array: &dyn Array, piece: Option<Piece>, blocking: Blocking) -> Result<(), ReadError> {
        if !self.source {
            return Ok(());
        }
        array
            .source()
            .check_unchanged_or(blocking)
            .map_err(|e| ReadError { brick: piece.map_or_else(|| Dims::filled(1, 0), |p| p.brick), cause: e.into() })
    }
}
