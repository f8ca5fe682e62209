//! Memory with a limit: a pool of buffers, and a cache that evicts by weight.

mod allocator;
mod block;
mod buffer_pool;
mod free_list;
mod lru_by_weight;
mod out_of_memory;
mod prefaulted;
mod reserve;
mod slab;
mod small_blocks;

pub(crate) use allocator::{limit_arenas, trim_heap};
pub(crate) use buffer_pool::{Buffer, BufferPool};
pub(crate) use lru_by_weight::{LruByWeight, entry_weight};
pub(crate) use out_of_memory::OutOfMemory;
pub use reserve::ReservingAllocator;
pub(crate) use reserve::{
    Claim, bytes_refused, claim, has_memory, is_out_of_memory, keep_reserve, try_with_capacity, try_zeroed,
};
