//! Copies samples from one layout to another, from memory to memory: gather, transpose, interleave, fill. No sources,
//! no cache.

mod batch;
mod extract;
mod gather;
mod interleave;
mod transpose;

pub(crate) use batch::{Batch, Member};
pub(crate) use extract::extract;
pub(crate) use gather::Loops;
