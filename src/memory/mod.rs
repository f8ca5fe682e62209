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

/// Makes room for more elements at the end of a vector that grows with data.
pub(crate) fn make_room<T>(elements: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if elements.capacity() - elements.len() < more {
        let mut longer = try_with_capacity((2 * elements.len()).max(elements.len() + more).max(4))?;
        longer.append(elements);
        *elements = longer;
    }
    Ok(())
}

/// Adds an element to a vector that grows with data.
pub(crate) fn try_push<T>(elements: &mut Vec<T>, element: T) -> Result<(), OutOfMemory> {
    make_room(elements, 1)?;
    elements.push(element);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_grow_or_fail() {
        let mut numbers = Vec::new();
        (0..1000u64).try_for_each(|n| try_push(&mut numbers, n)).unwrap();
        assert!(numbers.iter().copied().eq(0..1000) && numbers.capacity() < 3000);
        make_room(&mut numbers, 5000).unwrap();
        assert!(numbers.capacity() >= 6000);
        assert!(make_room(&mut numbers, 1 << 60).is_err() && numbers.len() == 1000, "what was there is still there");
    }
}
