//! The allocator of the program: that of the C library, with a reserve of addresses for when the system gives no more
//! memory.
//!
//! Rust's collections end the process when they get no memory. What is large and follows the size of data asks with
//! [`has_memory`] or [`try_with_capacity`] first, and fails as one request. What is small cannot ask, so it gets the
//! reserve, and from then on everything that asks fails, until there is memory for a new reserve.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, ptr};

use nix::libc;
use rustix::process::{Resource, getrlimit};
use thiserror::Error;

use crate::sync::LazyPerProcess;

/// Blocks from this size on are maps of their own, which return to the system when they are freed. By default the
/// allocator raises this threshold to the largest block that it has freed.
const MMAP_THRESHOLD: i32 = 128 << 10;
/// Bytes that the allocator requests in addition when its heap grows: small bricks are allocated by the thousand.
const TOP_PAD: i32 = 1 << 20;
/// Bytes of addresses of the reserve. They take no memory.
const RESERVE: usize = 16 << 20;
/// Larger blocks do not get the reserve.
const MAX_FROM_RESERVE: usize = 2 << 20;
const TRIES: usize = 16;
/// Bytes of the least that the system gives to a new thread: a stack for signals, and its guard page.
const LEAST: usize = 16 << 10;
/// How a message of the standard library says that the system has no memory.
const ENOMEM: &str = "(os error 12)";

/// The system has no more memory for this many bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("no memory for {0} bytes; choose a smaller --cache-size, or allow the process more memory")]
pub(crate) struct OutOfMemory(pub(super) usize);

impl From<OutOfMemory> for io::Error {
    fn from(error: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, error)
    }
}

/// Values of [`ADDRESS`]: there is no reserve yet, or it was given away.
const NONE_YET: usize = 0;
const GIVEN_AWAY: usize = 1;

static ADDRESS: AtomicUsize = AtomicUsize::new(NONE_YET);

thread_local! {
    /// The bytes of the last block that this thread did not get, unless it goes on without.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// The allocator of the C library, with the reserve.
pub struct ReservingAllocator;

// SAFETY: all blocks come from the system's allocator, and go back to it, with the layouts that the caller gives.
unsafe impl GlobalAlloc for ReservingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this function, which is that of the system's allocator.
        with_reserve(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above
        with_reserve(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; a block that could not be moved stays as it is, and may be moved again
        with_reserve(size, || unsafe { System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn with_reserve(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let block = allocate();
    if block.is_null() { retry(size, allocate) } else { block }
}

/// Gives the reserve away, and allocates again. Another thread may have given it away before, and a third one may have
/// made a new reserve of what this one has given away, so that one try is not enough.
#[cold]
fn retry(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let tries = if size <= MAX_FROM_RESERVE { TRIES } else { 0 };
    for _ in 0..tries {
        give_away();
        let block = allocate();
        if !block.is_null() {
            return block;
        }
    }
    // a thread that is about to end has no such variable any more
    let _ = REFUSED.try_with(|refused| refused.set(size));
    ptr::null_mut()
}

/// Returns the bytes of the last block that this thread did not get; 0 if it got all, or goes on without. For a handler
/// of signals.
pub(crate) fn bytes_refused() -> usize {
    REFUSED.try_with(Cell::get).unwrap_or(0)
}

/// Returns whether a panic of this thread comes from missing memory: its message has the error of the system, or there
/// is no memory now. Then [`bytes_refused`] tells so, too. The standard library panics where a thread that starts gets
/// no stack for its signals, and that ends the process.
pub(crate) fn is_out_of_memory(message: &str) -> bool {
    let is_out = message.contains(ENOMEM) || !is_there(LEAST);
    if is_out {
        let _ = REFUSED.try_with(|refused| refused.set(refused.get().max(LEAST)));
    }
    is_out
}

fn give_away() {
    let taken = ADDRESS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |at| (at > GIVEN_AWAY).then_some(GIVEN_AWAY));
    if let Ok(at) = taken {
        // SAFETY: the addresses are those of the reserve, which are unused, and one thread has taken it
        unsafe { libc::munmap(at as *mut libc::c_void, RESERVE) };
    }
}

/// Reserves the addresses. From then on [`has_memory`] tells whether they are still there.
pub(crate) fn keep_reserve() {
    let _ = reserve(NONE_YET);
}

/// Makes the reserve in place of what [`ADDRESS`] has now. Returns whether there is one.
fn reserve(instead_of: usize) -> bool {
    let Some(at) = map(RESERVE) else { return false };
    let kept = ADDRESS.compare_exchange(instead_of, at as usize, Ordering::AcqRel, Ordering::Acquire);
    if kept.is_err() {
        // SAFETY: the map was just made, and nobody knows of it. Another thread was faster
        unsafe { libc::munmap(at, RESERVE) };
    }
    true
}

/// Returns whether memory is left: not while small blocks take from the reserve. What is large, or becomes large step
/// by step, asks at each step, and fails without. A process that keeps no reserve always has memory.
pub(crate) fn has_memory() -> bool {
    match ADDRESS.load(Ordering::Acquire) {
        GIVEN_AWAY => reserve(GIVEN_AWAY),
        _ => true,
    }
}

/// Returns an empty vector with room for `count` elements.
pub(crate) fn try_with_capacity<T>(count: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut elements = Vec::new();
    let refused = OutOfMemory(count.saturating_mul(size_of::<T>()));
    if !has_memory() || elements.try_reserve_exact(count).is_err() {
        // this thread goes on without, and may end for another reason
        let _ = REFUSED.try_with(|refused| refused.set(0));
        return Err(refused);
    }
    Ok(elements)
}

/// The bytes of all claims. A child has no claims of the other threads of its parent.
static CLAIMED: LazyPerProcess<AtomicUsize> = LazyPerProcess::new(|| AtomicUsize::new(0));

/// Whether the system promises no more memory than it has.
static IS_STRICT: LazyPerProcess<bool> =
    LazyPerProcess::new(|| fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2"));

/// Memory that is about to be allocated by something that ends the process if it gets none. A claim takes no memory.
#[derive(Debug)]
pub(crate) struct Claim(usize);

impl Drop for Claim {
    fn drop(&mut self) {
        CLAIMED.fetch_sub(self.0, Ordering::AcqRel);
    }
}

/// Claims memory: while the value exists, others cannot claim the same. Costs nothing where the memory of the process
/// is not limited. Fails if the system does not have so much besides all claims.
pub(crate) fn claim(bytes: usize) -> Result<Claim, OutOfMemory> {
    let claimed = CLAIMED.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
    let claim = Claim(bytes);
    // other systems promise all memory that is asked for, unless the addresses or the data of the process are limited
    let is_limited = || [Resource::As, Resource::Data].iter().any(|limit| getrlimit(*limit).current.is_some());
    let may_refuse = *IS_STRICT || is_limited();
    if has_memory() && (!may_refuse || is_there(claimed)) { Ok(claim) } else { Err(OutOfMemory(bytes)) }
}

fn is_there(bytes: usize) -> bool {
    let Some(at) = map(bytes) else { return false };
    // SAFETY: the map was just made, and nobody knows of it
    unsafe { libc::munmap(at, bytes) };
    true
}

/// Makes a new map at an address that the kernel chooses. It takes addresses, and no memory until it is used.
fn map(bytes: usize) -> Option<*mut libc::c_void> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: nothing that exists is touched
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes.max(1), protection, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at)
}

/// Limits how much freed memory the allocator keeps. By default it creates an arena for every other thread, and memory
/// that one thread frees in the arena of another is reused by neither.
///
/// Must be called before threads are started. Has no effect if the C library is not glibc.
pub(crate) fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt only sets parameters of the allocator, here to values within their ranges, and there is no other
    // thread that could be allocating.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TOP_PAD, TOP_PAD);
    }
}

/// Returns freed memory that lies between blocks in use to the system, which takes some milliseconds. Has no effect if
/// the C library is not glibc.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim accepts any number, and the allocator takes its own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives back the pages of the program's code. They are those of its file and stay in the page cache, so that a function
/// that runs again is mapped again, without a read. The system maps 64 KiB around each function that runs, and most of
/// what has run by the time that a mount is idle does not run again.
pub(crate) fn trim_code() {
    let here = trim_code as *const () as usize;
    for line in fs::read_to_string("/proc/self/maps").unwrap_or_default().lines() {
        let Some((range, rest)) = line.split_once(' ').filter(|(_, rest)| rest.starts_with("r-xp ")) else { continue };
        let mut ends = range.split('-').filter_map(|end| usize::from_str_radix(end, 16).ok());
        if let (Some(start), Some(end)) = (ends.next(), ends.next())
            && (start..end).contains(&here)
            && rest.contains(" /")
        {
            // SAFETY: this map of a file cannot be written to, and nothing of it was relocated, since the program's code
            // is independent of its position: its pages come back from the file as they were.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_given_back_and_goes_on() {
        let mapped =
            || fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(2).unwrap().parse::<u64>().unwrap();
        let gives_back = |_| {
            let before = mapped();
            trim_code();
            mapped() < before
        };
        // other tests map files meanwhile
        assert!((0..100).any(gives_back));
    }

    #[test]
    fn small_blocks_get_the_reserve_and_then_nothing_has_memory() {
        // no other test of this process keeps a reserve, and its allocator is another one
        assert!(has_memory());
        keep_reserve();
        assert!(ADDRESS.load(Ordering::SeqCst) > GIVEN_AWAY && has_memory());
        let tries = Cell::new(0);
        let mut memory = [0u8; 1];
        let place = memory.as_mut_ptr();
        let second = || {
            tries.set(tries.get() + 1);
            if tries.get() < 2 { ptr::null_mut() } else { place }
        };
        assert!(!with_reserve(100, second).is_null());
        assert_eq!((tries.get(), ADDRESS.load(Ordering::SeqCst)), (2, GIVEN_AWAY));
        assert!(has_memory() && ADDRESS.load(Ordering::SeqCst) > GIVEN_AWAY, "there is a new reserve");
        // another thread makes a new reserve before this one has got its block
        let taken_away = || {
            tries.set(tries.get() + 1);
            if has_memory() && tries.get() < 5 { ptr::null_mut() } else { place }
        };
        assert!(!with_reserve(100, taken_away).is_null());
        assert!(with_reserve(MAX_FROM_RESERVE + 1, ptr::null_mut).is_null());
        assert!(ADDRESS.load(Ordering::SeqCst) > GIVEN_AWAY, "large blocks do not get it");
        assert_eq!(bytes_refused(), MAX_FROM_RESERVE + 1);
        let claimed = claim(5).unwrap();
        assert!(CLAIMED.load(Ordering::SeqCst) >= 5 && is_there(1 << 20) && !is_there(1 << 62));
        drop(claimed);
        assert_eq!(super::super::try_zeroed(5).unwrap(), [0; 5]);
        assert!(super::super::try_zeroed(1 << 60).is_err() && try_with_capacity::<u64>(1 << 60).is_err());
        assert_eq!(bytes_refused(), 0, "this thread goes on without");
        assert!(!is_out_of_memory("index out of bounds") && bytes_refused() == 0);
        let no_stack =
            format!("failed to allocate an alternative stack: {}", io::Error::from_raw_os_error(libc::ENOMEM));
        assert!(is_out_of_memory(&no_stack) && bytes_refused() == LEAST, "its thread ends for want of memory");
    }
}
