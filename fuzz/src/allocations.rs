//! The allocator of the tests and of the fuzz targets: that of the system, which counts what each thread allocates.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated, less those that it has freed.
    static NOW: Cell<i64> = const { Cell::new(0) };
    /// The most of them since the measurement began.
    static MOST: Cell<i64> = const { Cell::new(0) };
    /// Allocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(block: *mut u8, more: usize, less: usize) -> *mut u8 {
    if !block.is_null() {
        NOW.set(NOW.get().wrapping_add(more as i64).wrapping_sub(less as i64));
        MOST.set(MOST.get().max(NOW.get()));
        COUNT.set(COUNT.get() + u64::from(more > 0));
    }
    block
}

// SAFETY: all blocks come from the system's allocator, and go back to it, with the layouts that the caller gives.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this function, which is that of the system's allocator.
        count(unsafe { System.alloc(layout) }, layout.size(), 0)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above
        count(unsafe { System.alloc_zeroed(layout) }, layout.size(), 0)
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above
        count(unsafe { System.realloc(block, layout, size) }, size, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(block, 0, layout.size());
        // SAFETY: as above
        unsafe { System.dealloc(block, layout) }
    }
}

/// What this thread has allocated while it ran a function.
pub struct Allocated {
    /// The most bytes at a time.
    pub most: u64,
    /// The number of allocations.
    pub count: u64,
}

/// Runs `work` on this thread, and measures what it allocates.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Allocated) {
    let (begin, outer, count) = (NOW.get(), MOST.replace(NOW.get()), COUNT.get());
    let result = work();
    let allocated = Allocated { most: (MOST.get() - begin) as u64, count: COUNT.get() - count };
    MOST.set(MOST.get().max(outer));
    (result, allocated)
}
