//! The buffer of a reply, and the offset of each sample in it.

use super::pieces::Piece;
use crate::volume::{ArrayInfo, Dims, Region};

/// The buffer of a reply, and the layout of the samples in it.
pub(crate) struct Destination<'a> {
    /// The bytes of all samples of the read.
    pub bytes: &'a mut [u8],
    /// The layout of the samples in the bytes.
    pub layout: ReplyLayout,
}

impl Destination<'_> {
    /// Returns the byte strides of the reply, and the offset of the first sample of `piece`.
    pub(crate) fn place_of(&self, piece: &Piece) -> (&Dims, usize) {
        (&self.layout.strides, self.layout.offset_of(&piece.region.start))
    }
}

/// The layout of a reply's samples: those of a range or of a box, in C order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyLayout {
    /// Bytes between neighbours along each axis, slowest axis first.
    strides: Dims,
    /// The byte offset of the read's first sample if the array's first sample stood at 0.
    origin: u64,
}

impl ReplyLayout {
    /// The layout of a range of a C-ordered array, from sample number `first` on.
    pub(crate) fn of_range(info: &ArrayInfo, first: u64) -> Self {
        let size = info.dtype.size() as u64;
        Self { strides: info.shape().strides(size), origin: first * size }
    }

    /// The layout of a box of an array, C-ordered in itself.
    pub(crate) fn of_box(info: &ArrayInfo, region: &Region) -> Self {
        let strides = region.shape.strides(info.dtype.size() as u64);
        Self { strides, origin: dot(&region.start, &strides) }
    }

    /// Returns the byte offset of the sample at `index`, which must be part of the read.
    fn offset_of(&self, index: &Dims) -> usize {
        (dot(index, &self.strides) - self.origin) as usize
    }
}

fn dot(index: &Dims, strides: &Dims) -> u64 {
    index.iter().zip(strides.iter()).map(|(at, stride)| at * stride).sum()
}
