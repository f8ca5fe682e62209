//! An array for who counts its axes in another order.

use std::sync::Arc;

use crate::format::{Array, Census, FormatError};
use crate::source::{Source, Wait};
use crate::volume::{ArrayInfo, AxisPermutation, Brick, Coded, Dims, Plain};

/// An array with its axes in another order: the same bricks with other strides, so that whoever reads it goes the same way as
/// with any other array.
pub struct PermutedArray {
    array: Arc<dyn Array>,
    turn: AxisPermutation,
    info: ArrayInfo,
}

impl PermutedArray {
    /// `array` in the order of `turn`.
    pub fn shared(array: Arc<dyn Array>, turn: AxisPermutation) -> Arc<dyn Array> {
        let info = turn.permute_info(array.info());
        Arc::new(Self { array, turn, info })
    }
}

impl Array for PermutedArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        self.array.source()
    }

    fn brick(&self, at: &Dims, wait: Wait) -> Result<Brick, FormatError> {
        let turn = &self.turn;
        Ok(match self.array.brick(&turn.invert_dims(at), wait)? {
            Brick::Constant(value) => Brick::Constant(value),
            Brick::Plain(plain) => Brick::Plain(Plain { layout: turn.permute_layout(&plain.layout), ..plain }),
            Brick::Coded(coded) => Brick::Coded(Coded { layout: turn.permute_layout(&coded.layout), ..coded }),
        })
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let coded = Coded { layout: self.turn.invert_layout(&coded.layout), ..coded.clone() };
        self.array.decode(&coded, stored, out)
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        self.array.census()
    }
}
