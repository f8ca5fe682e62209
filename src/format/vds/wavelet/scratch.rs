//! The scratch memory of decoding: all memory that it takes besides the chunk and its samples.

use super::bands::{Bands, has};
use super::entry_lists::{EntryLists, MAX_REPEATS};
use super::residual::Planes;
use super::transform::TransformBuffers;
use super::tree_links::TreeLinks;

/// Memory that is used again from chunk to chunk: a chunk that is no larger than an earlier one allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The wavelet coefficients, which the transform converts to samples.
    pub(super) coefficients: Vec<f32>,
    /// The tree's structure, which depends on the shape of the chunk.
    pub(super) links: TreeLinks,
    /// Nodes and entries.
    pub(super) lists: EntryLists,
    /// Rows and planes of the transform.
    pub(super) buffers: TransformBuffers,
    /// Counts of leading zeros, one for each row.
    pub(super) zero_runs: Vec<u16>,
    /// The low or high bytes of those counts.
    pub(super) column: Vec<u8>,
    /// The block normals, interpolated along X.
    pub(super) normals: Vec<f32>,
    /// The decoders of the residual.
    pub(super) planes: Planes,
}

impl Scratch {
    /// Returns the bytes that are allocated.
    pub(crate) fn bytes(&self) -> usize {
        let floats = self.coefficients.capacity() + self.normals.capacity() + self.buffers.floats();
        4 * floats
            + 2 * self.zero_runs.capacity()
            + self.column.capacity()
            + self.lists.bytes()
            + self.links.bytes()
            + self.planes.bytes()
    }
}

/// Returns the most bytes that a [`Scratch`] allocates for chunks of `size` samples (X first), whatever their content.
pub(crate) fn working_set(size: [usize; 3]) -> usize {
    let bands = Bands::new(size);
    let samples = bands.volume(0);
    let half = if bands.steps > 0 { bands.volume(1) } else { 0 };
    let plane = if has(bands.mask[0], 2) { size[0] * size[1] } else { 0 };
    let repeats = if bands.may_be_faulty() { MAX_REPEATS } else { 1 };
    // four bytes each: the coefficients, their entries, nodes in two lists, and the box of the second step
    let lists = 4 * (samples + repeats * samples + 2 * repeats * half + half);
    let planes = 4 * 5 * plane;
    // counts of zeros and one of their columns, and factors for every eighth row
    let rows = 3 * size[1] * size[2] + 4 * size[0] * size[1].div_ceil(8) * size[2].div_ceil(8);
    lists + planes + rows + FIXED
}

/// Bytes that do not depend on the size: decoding tables, blocks of the residual, a few rows, tree links.
const FIXED: usize = 256 << 10;
