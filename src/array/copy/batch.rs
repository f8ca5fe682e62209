//! Copies many boxes together, which are collected first.
//!
//! Most pieces of a request have the same shape, and their bricks the same layout, so the loops of a copy are computed
//! once for many of them; and neighbours in the reply are copied interleaved.

use super::gather::Loops;
use super::interleave::{self, MAX_INTERLEAVED};
use crate::volume::Dims;

/// Boxes to copy, each from a source `S`.
pub(crate) struct Batch<S> {
    members: Vec<Member<S>>,
    shapes: Vec<Shape>,
}

/// One box of a batch.
pub(crate) struct Member<S> {
    /// Where its bytes come from.
    pub source: S,
    /// The offset of its first sample in the source, in bytes.
    pub from: u64,
    /// The offset of its first sample in the reply, in bytes.
    pub to: usize,
    shape: usize,
}

/// The loops that some members of a batch share.
pub(crate) struct Shape {
    extent: Dims,
    strides: Dims,
    /// The loops of the copy.
    pub loops: Loops,
    /// [`Loops::span`].
    pub span: usize,
    /// [`Loops::useful`].
    pub useful: usize,
}

impl<S> Default for Batch<S> {
    fn default() -> Self {
        Self { members: Vec::new(), shapes: Vec::new() }
    }
}

impl<S> Batch<S> {
    /// Adds a box: `extent` samples along each axis, `strides` bytes apart in the source and `to_strides` bytes in the
    /// reply, which are the same for all members. `from` and `to` are the offsets of its first sample, a sample has
    /// `size` bytes.
    pub(crate) fn add(
        &mut self,
        source: S,
        (from, to): (u64, usize),
        (extent, strides): (&Dims, &Dims),
        to_strides: &Dims,
        size: usize,
    ) {
        // compared axis by axis: to compare whole `Dims` is a call
        let alike = |a: &Dims, b: &Dims| a.iter().eq(b.iter());
        if !self.shapes.last().is_some_and(|last| alike(&last.extent, extent) && alike(&last.strides, strides)) {
            let loops = Loops::new(extent, strides, to_strides, size);
            let (span, useful) = (loops.span(), loops.useful());
            self.shapes.push(Shape { extent: *extent, strides: *strides, loops, span, useful });
        }
        self.members.push(Member { source, from, to, shape: self.shapes.len() - 1 });
    }

    /// The boxes, in the order in which they were added.
    pub(crate) fn members(&self) -> &[Member<S>] {
        &self.members
    }

    /// The loops of a member.
    pub(crate) fn shape_of(&self, member: &Member<S>) -> &Shape {
        &self.shapes[member.shape]
    }

    /// Copies `members` of this batch to `out`; `bytes_of` returns the bytes of a member's source from its first sample
    /// on. Interleaves neighbours whose rows have at least `min_row` bytes. Returns the bytes copied.
    pub(crate) fn copy<'s>(
        &self,
        members: &'s [Member<S>],
        min_row: usize,
        bytes_of: impl Fn(&'s Member<S>) -> &'s [u8],
        out: &mut [u8],
    ) -> usize {
        let mut copied = 0;
        for alike in members.chunk_by(|a, b| a.shape == b.shape) {
            let Shape { loops, useful, .. } = self.shape_of(&alike[0]);
            copied += useful * alike.len();
            let (row, _) = loops.run();
            for neighbours in alike.chunk_by(|a, b| row >= min_row && a.to + row == b.to) {
                for group in neighbours.chunks(MAX_INTERLEAVED) {
                    let mut sources = [&[][..]; MAX_INTERLEAVED];
                    sources.iter_mut().zip(group).for_each(|(source, member)| *source = bytes_of(member));
                    interleave::copy(loops, &sources[..group.len()], &mut out[group[0].to..]);
                }
            }
        }
        copied
    }

    /// Removes all members; their loops stay, since the next members may have the same.
    pub(crate) fn clear_members(&mut self) {
        self.members.clear();
    }

    /// Removes all members and their loops; the memory of the lists stays.
    pub(crate) fn clear(&mut self) {
        self.members.clear();
        self.shapes.clear();
    }
}
