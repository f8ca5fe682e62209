//! ZFP: arrays of one to four dimensions, of integers and floating-point numbers, in every mode.
//!
//! [`decode`] decodes a brick with either of two [decoders](Decoder) that return the same. That of volfs, in the order
//! of the imports: [`params`], [`header`] and [`scalar`] are what a stream says of itself; [`bits`] reads bits,
//! [`planes`] the bit planes of a block, [`coefficients`] turns these to numbers, or, of blocks of four samples, [`line`]
//! at once, of 16 [`square`]; [`lift`] turns numbers to samples; [`block`] is one block, [`target`] where it goes,
//! [`job`] all of them, and [`array`] chooses the instructions. `wide` does the same as `planes` to `lift` with those of
//! newer processors. [`libzfp`] is the other decoder.

mod array;
mod bits;
mod block;
mod coefficients;
mod decode;
mod error;
mod header;
mod job;
mod libzfp;
mod lift;
mod line;
mod order;
mod params;
mod planes;
mod scalar;
mod square;
mod target;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod wide;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_wide.rs"]
mod wide;

pub(crate) use array::{Instructions, Strides, decode_blocks};
pub(crate) use decode::{Decoder, decode, decode_by_libzfp, padding, shortest};
pub(crate) use header::Header;
