//! Memory with a bound: buffers that are used again, and a store that forgets by weight.

mod allocator;
mod buffer;
mod lru_by_weight;
mod slab;

pub use allocator::{give_back, limit_arenas};
pub use buffer::{Buffer, BufferPool};
pub use lru_by_weight::{LruByWeight, cost};
