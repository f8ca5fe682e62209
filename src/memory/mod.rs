//! Memory with a limit: a pool of buffers, and a cache that evicts by weight.

mod allocator;
mod block;
mod buffer_pool;
mod free_list;
mod lru_by_weight;
mod slab;

pub use allocator::{limit_arenas, trim_heap};
pub use buffer_pool::{Buffer, BufferPool, OutOfMemory};
pub use lru_by_weight::{LruByWeight, entry_weight};
