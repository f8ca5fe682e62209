//! Memory with a limit: a pool of buffers, a cache that evicts by weight, and the allocator.

mod allocator;
mod lru;
mod pool;
mod slab;

pub use allocator::ReservingAllocator;
pub(crate) use allocator::{
    Claim, OutOfMemory, bytes_refused, claim, has_memory, is_out_of_memory, keep_reserve, limit_arenas, trim_code,
    trim_heap, try_with_capacity, try_zeroed,
};
pub(crate) use lru::{LruByWeight, entry_weight};
pub(crate) use pool::{Buffer, BufferPool};
