//! Pieces of decoded bricks that are in memory: collected first, and copied together.
//!
//! Most pieces of a request have the same shape, and their bricks the same layout, so that the loops of a copy are made once for
//! many of them.

use std::sync::Arc;

use super::beside::{self, SIDE_BY_SIDE};
use super::fetch::{Piece, Target};
use super::gather::Loops;
use crate::cache::DecodedBrick;
use crate::format::FormatError;
use crate::volume::{Dims, Layout};

/// Bricks whose rows are at least so long are copied side by side.
const LONG_ROW: usize = 16;

/// Pieces of decoded bricks.
#[derive(Default)]
pub struct HeldPieces {
    parts: Vec<Part>,
    shapes: Vec<Shape>,
}

/// A piece of a decoded brick.
struct Part {
    brick: Arc<DecodedBrick>,
    /// Its first byte in the brick.
    from: usize,
    /// Its first byte in the reply.
    to: usize,
    /// Which loops it has.
    shape: usize,
}

struct Shape {
    shape: Dims,
    from: Dims,
    loops: Loops,
}

impl HeldPieces {
    /// Adds a piece of a brick, which has this layout for the reader.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if the brick does not hold the samples.
    pub fn add(
        &mut self,
        piece: &Piece,
        (layout, brick): (Layout, Arc<DecodedBrick>),
        size: usize,
        target: &Target<'_>,
    ) -> Result<(), FormatError> {
        if !layout.held.contains(&piece.region) {
            return Err(FormatError::Damaged("the brick does not hold all of its samples".into()));
        }
        let (shape, strides) = (piece.region.shape, layout.strides);
        if self.shapes.last().is_none_or(|last| last.shape != shape || last.from != strides) {
            let (to, _) = piece.place(target);
            self.shapes.push(Shape { shape, from: strides, loops: Loops::new(&shape, &strides, &to, size) });
        }
        let (from, (_, to)) = (layout.offset_of(&piece.region.start) as usize, piece.place(target));
        self.parts.push(Part { brick, from, to, shape: self.shapes.len() - 1 });
        Ok(())
    }

    /// Copies all of them to `out`, and forgets them; their shapes may come again.
    pub fn copy(&mut self, out: &mut [u8]) {
        for alike in self.parts.chunk_by(|a, b| a.shape == b.shape) {
            let loops = &self.shapes[alike[0].shape].loops;
            let (row, _) = loops.run();
            for parts in alike.chunk_by(|a, b| row >= LONG_ROW && a.to + row == b.to) {
                for parts in parts.chunks(SIDE_BY_SIDE) {
                    let out = &mut out[parts[0].to..];
                    let mut sources = [&[][..]; SIDE_BY_SIDE];
                    sources.iter_mut().zip(parts).for_each(|(source, part)| *source = &part.brick.bytes[part.from..]);
                    beside::copy(loops, &sources[..parts.len()], out);
                }
            }
        }
        self.parts.clear();
    }

    /// Forgets them, and their shapes.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.shapes.clear();
    }
}
