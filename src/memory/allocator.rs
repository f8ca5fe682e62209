//! Settings of the C library's allocator that make it return memory to the system.

#![allow(unsafe_code)]

/// Blocks from this size on are maps of their own, which return to the system when they are freed. By default the
/// allocator raises this threshold to the largest block that it has freed.
const MMAP_THRESHOLD: i32 = 128 << 10;
/// Bytes that the allocator requests in addition when its heap grows: small bricks are allocated by the thousand.
const TOP_PAD: i32 = 1 << 20;

/// Limits how much freed memory the allocator keeps. By default it creates an arena for every other thread, and memory
/// that one thread frees in the arena of another is reused by neither.
///
/// Must be called before threads are started. Has no effect if the C library is not glibc.
pub(crate) fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt only sets parameters of the allocator, here to values within their ranges, and there is no other
    // thread that could be allocating.
    unsafe {
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, 2);
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        nix::libc::mallopt(nix::libc::M_TOP_PAD, TOP_PAD);
    }
}

/// Returns freed memory that lies between blocks in use to the system, which takes some milliseconds. Has no effect if
/// the C library is not glibc.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim accepts any number, and the allocator takes its own locks.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
