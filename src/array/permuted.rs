//! An array with its axes in another order: the transposed view behind the `by-AXIS` files.

use std::ops::Range;
use std::sync::Arc;

use crate::format::{Array, Census, FormatError, StoredBrick};
use crate::source::{Blocking, Source};
use crate::volume::{ArrayInfo, AxisPermutation, Brick, Coded, Dims, ObjectName, Plain};

/// An array with permuted axes: the same bricks with permuted strides. Readers treat it like any other array.
pub(crate) struct PermutedArray {
    array: Arc<dyn Array>,
    permutation: AxisPermutation,
    info: ArrayInfo,
}

impl PermutedArray {
    /// Permutes the axes of `array`.
    pub(crate) fn shared(array: Arc<dyn Array>, permutation: AxisPermutation) -> Arc<dyn Array> {
        let info = permutation.permute_info(array.info());
        Arc::new(Self { array, permutation, info })
    }
}

impl Array for PermutedArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        self.array.source()
    }

    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let permutation = &self.permutation;
        Ok(match self.array.brick(&permutation.invert_dims(at), blocking)? {
            Brick::Constant(value) => Brick::Constant(value),
            Brick::Plain(plain) => Brick::Plain(Plain { layout: permutation.permute_layout(&plain.layout), ..plain }),
            Brick::Coded(coded) => Brick::Coded(Coded { layout: permutation.permute_layout(&coded.layout), ..coded }),
        })
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let coded = Coded { layout: self.permutation.invert_layout(&coded.layout), ..coded.clone() };
        self.array.decode(&coded, stored, out)
    }

    fn decoded_shape(&self, at: &Dims) -> Option<Dims> {
        let decoded = self.array.decoded_shape(&self.permutation.invert_dims(at))?;
        Some(self.permutation.permute_dims(&decoded))
    }

    fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        self.array.stored_brick(&self.permutation.invert_dims(at))
    }

    fn stored_range(&self, at: &Dims) -> Result<Option<(ObjectName, Range<u64>)>, FormatError> {
        self.array.stored_range(&self.permutation.invert_dims(at))
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        self.array.census()
    }
}
