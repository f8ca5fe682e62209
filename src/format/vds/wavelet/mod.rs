//! Chunks compressed by OpenVDS's wavelet methods: bit planes of wavelet coefficients, and for the lossless methods a
//! residual that makes the reconstructed samples exact.
//!
//! The chunk is decomposed into subbands by halving its box, step by step. Coefficients are coded in the manner of a
//! zerotree (as in SPIHT): a tree says, one threshold (*level*) after the other, which coefficients are significant;
//! the coefficients then have a bit in the plane of each lower level.
//!
//! ```text
//! header        which parts the chunk has, and where
//! bands         the nested boxes and their subbands
//! tree_links    which coefficients are children of which
//! walk          the tree bits: which coefficients are coded, and where their bits are (node, entry_lists)
//! bit_planes    the bits: coefficients
//! transform     the inverse wavelet transform, row by row (lifting: its arithmetic)
//! no_value normals zero_runs residual (fse: its entropy coder)
//!               corrections of each row (row_output)
//! row_output    conversion to the stored type
//! decode        runs all of these on one chunk
//! ```
//!
//! All arithmetic is f32 and each operation is rounded on its own, for integers too: the residual fits only the bits
//! that the writer's reconstruction had.

mod adaptive_levels;
mod bands;
mod bit_planes;
mod decode;
mod entry_lists;
mod error;
mod expected;
mod fse;
mod grow;
mod header;
mod lifting;
mod no_value;
mod node;
mod normals;
mod residual;
mod row_output;
mod scratch;
mod transform;
mod tree_links;
mod walk;
mod zero_runs;

#[cfg(test)]
mod reference_tests;
#[cfg(test)]
mod tests;

pub(crate) use adaptive_levels::bytes_needed;
pub(crate) use bands::MAX_SIDE;
pub(crate) use decode::decode;
pub(crate) use expected::{Expected, Sample};
pub(crate) use scratch::{Scratch, working_set};
