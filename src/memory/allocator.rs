//! The C library's allocator, told to give memory back.

#![allow(unsafe_code)]

/// Blocks from this size on are maps of their own, which go back to the system when they are freed. Left to itself the allocator
/// raises this limit to the largest block that it has seen.
const MAPPED: i32 = 128 << 10;
/// The allocator asks for so much more than it needs when its memory grows: small bricks come by the thousand.
const AT_ONCE: i32 = 1 << 20;

/// Keeps the allocator from holding on to memory: it makes an arena for every other thread, and what one thread frees in the arena
/// of another is used again by neither.
///
/// To be called before there are threads. Without effect where the C library is not glibc.
pub fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt only sets parameters of the allocator, here to values within their ranges, and there is no other thread
    // that could be allocating.
    unsafe {
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, 2);
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, MAPPED);
        nix::libc::mallopt(nix::libc::M_TOP_PAD, AT_ONCE);
    }
}

/// Gives what has been freed, but lies between blocks in use, back to the system. That takes some milliseconds. Without effect where the
/// C library is not glibc.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes any number, and the allocator takes its own locks.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
