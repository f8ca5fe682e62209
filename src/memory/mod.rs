//! Memory with a limit: a pool of buffers, a cache that evicts by weight, and the allocator.

#[cfg(target_os = "linux")]
mod allocator;
#[cfg(not(target_os = "linux"))]
#[path = "no_allocator.rs"]
mod allocator;
mod lru;
mod pool;
#[cfg(not(target_os = "linux"))]
#[path = "no_slab.rs"]
mod slab;
#[cfg(target_os = "linux")]
mod slab;

#[cfg(target_os = "linux")]
pub use allocator::ReservingAllocator;
pub(crate) use allocator::{Claim, OutOfMemory, claim, has_memory, trim_heap, try_with_capacity};
#[cfg(target_os = "linux")]
pub(crate) use allocator::{bytes_refused, is_out_of_memory, keep_reserve, limit_arenas, trim_code};
pub(crate) use lru::{LruByWeight, entry_weight};
pub(crate) use pool::{Buffer, BufferPool};

pub(crate) fn try_zeroed(length: usize) -> Result<Vec<u8>, OutOfMemory> {
    let mut bytes = try_with_capacity(length)?;
    bytes.resize(length, 0);
    Ok(bytes)
}
