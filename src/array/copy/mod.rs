//! Rows of samples from one layout to another. Bytes only: this folder knows no bricks and no sources.

mod batch;
mod extract;
mod gather;
mod interleave;
mod transpose;

pub use batch::{Batch, Member};
pub use extract::extract;
pub use gather::Loops;
