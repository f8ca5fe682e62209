//! Memory with a bound: buffers that are used again, and a store that forgets by weight.

mod allocator;
mod buffer;
mod slab;
mod weighted;

pub use allocator::{be_modest, give_back};
pub use buffer::{Buffer, Buffers};
pub use weighted::{Weighted, cost};
