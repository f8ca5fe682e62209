//! The memory that decoding takes beside the chunk and the samples.

use super::bands::{Bands, has};
use super::links::SymlinkPolicy;
use super::residual::Planes;
use super::transform::BufferPool;
use super::walk::{Lists, TWICE};

/// Memory that is used again from chunk to chunk: nothing is allocated for a chunk that is no larger than one before.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The coefficients, which become the picture.
    pub(super) picture: Vec<f32>,
    /// What belongs to the shape of the chunk.
    pub(super) links: SymlinkPolicy,
    /// Nodes and entries.
    pub(super) lists: Lists,
    /// Rows and planes of the transform.
    pub(super) buffers: BufferPool,
    /// Counts of leading zeros.
    pub(super) zero_runs: Vec<u16>,
    /// Bytes of one column of them.
    pub(super) column: Vec<u8>,
    /// Factors, drawn out along X.
    pub(super) normals: Vec<f32>,
    /// The decoders of the residual.
    pub(super) planes: Planes,
}

impl Scratch {
    /// Bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let floats = self.picture.capacity() + self.normals.capacity() + self.buffers.floats();
        4 * floats
            + 2 * self.zero_runs.capacity()
            + self.column.capacity()
            + self.lists.bytes()
            + self.links.bytes()
            + self.planes.bytes()
    }
}

/// Makes sure that there are at least `count` items, of whatever content, and no more memory than for the most ever asked.
pub(super) fn room<T: Copy + Default>(items: &mut Vec<T>, count: usize) {
    if items.len() < count {
        // gives the old memory back before it takes the new
        *items = Vec::new();
        items.reserve_exact(count);
        items.resize(count, T::default());
    }
}

/// The most bytes that a [`Scratch`] takes for chunks of this size (X first), whatever is in them.
#[must_use]
pub fn working_set(size: [usize; 3]) -> usize {
    let bands = Bands::new(size);
    let samples = bands.volume(0);
    let half = if bands.steps > 0 { bands.volume(1) } else { 0 };
    let plane = if has(bands.mask[0], 2) { size[0] * size[1] } else { 0 };
    let twice = if bands.may_be_faulty() { TWICE } else { 1 };
    // four bytes each: the picture, its entries, nodes in two lists, and the box of the second step
    let lists = 4 * (samples + twice * samples + 2 * twice * half + half);
    let planes = 4 * 5 * plane;
    // counts of zeros and one of their columns, and factors for every eighth row
    let rows = 3 * size[1] * size[2] + 4 * size[0] * size[1].div_ceil(8) * size[2].div_ceil(8);
    lists + planes + rows + FIXED
}

/// What does not hang on the size: decoding tables, blocks of the residual, a few rows, links.
const FIXED: usize = 256 << 10;
