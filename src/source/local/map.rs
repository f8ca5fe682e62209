//! Memory maps of files that survive truncation. No other file of the crate maps files.
//!
//! Reading a map behind the new end of a truncated file raises SIGBUS, which by default ends the process. The handler
//! in this file maps a page of zeros where the fault was and sets a flag: the map is *broken*. A reader checks the
//! flag after it has copied.
#![allow(unsafe_code)]

use std::fs::File;
use std::mem::{self, MaybeUninit};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use memmap2::{Mmap, MmapOptions};
use nix::libc::{self, c_int, c_void, siginfo_t};
use rustix::param::page_size;

/// The number of maps at a time, those included that are about to be unmapped.
const MAX_MAPS: usize = 128;

/// The address ranges of all maps, for the signal handler, which may neither wait nor allocate.
static SLOTS: [Slot; MAX_MAPS] = [const { Slot::new() }; MAX_MAPS];
static GUARD: OnceLock<Guard> = OnceLock::new();

/// The address range of one map. It is written by the owner of the slot and read by the signal handler at any moment,
/// so it is a sequence lock: a range counts only if it was not written while it was read.
struct Slot {
    taken: AtomicBool,
    /// Odd while the range is being written.
    sequence: AtomicU64,
    /// The range; empty if both are equal.
    start: AtomicUsize,
    end: AtomicUsize,
    broken: AtomicBool,
}

impl Slot {
    const fn new() -> Self {
        let (start, end) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { taken: AtomicBool::new(false), sequence: AtomicU64::new(0), start, end, broken: AtomicBool::new(false) }
    }

    /// Writes the range. Only the owner may call this.
    fn set(&self, start: usize, end: usize) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Returns whether the range has the address `at`; `false` also if it is written at the same time. That cannot be
    /// the range of the map in which the fault is: it stays as it is while somebody reads the map.
    fn has(&self, at: usize) -> bool {
        let before = self.sequence.load(Ordering::Acquire);
        let range = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let is_whole = before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before;
        is_whole && range.contains(&at)
    }
}

struct Guard {
    page: usize,
    /// The action before ours, which still gets the faults outside of our maps; `None` if our handler could not be
    /// installed.
    former: Option<libc::sigaction>,
}

fn guard() -> &'static Guard {
    GUARD.get_or_init(|| {
        // SAFETY: an action of zeros has no flags and blocks no signals; the handler has the signature that SA_SIGINFO
        // requires, and uses only what is async-signal-safe. A call that succeeds has written the action before to
        // `former`.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = on_fault as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            let mut former = MaybeUninit::<libc::sigaction>::zeroed();
            let is_installed = libc::sigaction(libc::SIGBUS, &raw const action, former.as_mut_ptr()) == 0;
            Guard { page: page_size(), former: is_installed.then(|| former.assume_init()) }
        }
    })
}

/// Handles SIGBUS, with atomics and system calls only: the thread may be anywhere.
extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // until `GUARD` is set a fault of another thread repeats
    let Some(guard) = GUARD.get() else { return };
    // SAFETY: the kernel passes a valid siginfo; it has an address if the signal comes from a fault, which is when
    // si_code is above 0. The page that is mapped anew lies within one of our maps, which lives on while it is read,
    // and only its readers use its addresses. errno belongs to this thread.
    unsafe {
        let at = if (*info).si_code > 0 { (*info).si_addr() as usize } else { 0 };
        if let Some(slot) = SLOTS.iter().find(|slot| slot.has(at)) {
            slot.broken.store(true, Ordering::SeqCst);
            let errno = libc::__errno_location();
            let before = *errno;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let page = (at & !(guard.page - 1)) as *mut c_void;
            let zeros = libc::mmap(page, guard.page, libc::PROT_READ, flags, -1, 0);
            *errno = before;
            if zeros != libc::MAP_FAILED {
                return;
            }
        }
    }
    pass_on(guard, signal, info, context);
}

fn pass_on(guard: &Guard, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let former = guard.former.as_ref().map(|f| (f.sa_sigaction, f.sa_flags));
    // SAFETY: a former action other than SIG_DFL and SIG_IGN is the address of a function, whose signature follows from
    // the flags. SIGBUS is blocked while it is handled, so that the raised one arrives after the return and takes the
    // default action, which ends the process.
    unsafe {
        match former {
            Some((handler, flags)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
                if flags & libc::SA_SIGINFO != 0 {
                    type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                    mem::transmute::<usize, Handler>(handler)(signal, info, context);
                } else {
                    mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
                }
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
}

pub(super) struct GuardedMmap {
    map: Mmap,
    slot: &'static Slot,
}

impl GuardedMmap {
    /// Maps `length` bytes of a file from `offset` on, if there is a free slot. The file may be shorter.
    pub(super) fn open(file: &File, offset: u64, length: usize) -> Option<Self> {
        guard().former?;
        let slot = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::Acquire))?;
        // SAFETY: the bytes of the map may change or vanish at any time. They are only ever copied, no decision depends
        // on them, and the signal handler replaces those that vanish.
        let Ok(map) = (unsafe { MmapOptions::new().offset(offset).len(length).map(file) }) else {
            slot.taken.store(false, Ordering::Release);
            return None;
        };
        let start = map.as_ptr() as usize;
        slot.broken.store(false, Ordering::Relaxed);
        slot.set(start, start + map.len());
        Some(Self { map, slot })
    }

    /// Returns the bytes, only to be copied. The copy counts if the map [is not broken](Self::is_broken) afterwards.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Returns whether some of the bytes that were read did not come from the file.
    pub(super) fn is_broken(&self) -> bool {
        self.slot.broken.load(Ordering::SeqCst)
    }

    /// Fills `pages` by mincore(2): the low bit of each byte tells whether the page is in the page cache, from the byte
    /// `at` of the map on, a multiple of the page size. Returns `false` if that fails.
    pub(super) fn mincore(&self, at: usize, pages: &mut [u8]) -> bool {
        let length = (pages.len() * page_size()).min(self.map.len().saturating_sub(at));
        if length == 0 || length.div_ceil(page_size()) < pages.len() {
            return false;
        }
        // SAFETY: the range lies within the map, and `pages` has a byte for each of its pages.
        unsafe {
            let at = self.map.as_ptr().add(at).cast_mut().cast();
            libc::mincore(at, length, pages.as_mut_ptr()) == 0
        }
    }
}

impl Drop for GuardedMmap {
    fn drop(&mut self) {
        // the file is unmapped after this, and its addresses may be reused
        self.slot.set(0, 0);
        self.slot.taken.store(false, Ordering::Release);
    }
}

/// Returns whether mincore(2) is reliable for a file. For files that the process neither owns nor may write, the kernel
/// reports all pages as in memory, even those behind the end of the file: so this function asks for one of these.
pub(super) fn mincore_is_reliable(file: &File, size: u64) -> bool {
    let page = page_size();
    let behind = size.next_multiple_of(page as u64);
    let mut pages = [1; 1];
    GuardedMmap::open(file, behind, page).is_some_and(|map| map.mincore(0, &mut pages) && pages[0] & 1 == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    fn file_of(bytes: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        file
    }

    #[test]
    fn an_address_between_two_ranges_of_one_slot_is_in_neither() {
        let (slot, stop, writes) = (Slot::new(), AtomicBool::new(false), AtomicUsize::new(0));
        let (ranges, between) = ([(100, 200), (700, 800), (0, 0)], 450);
        let (mut found, mut is_mixed, mut n) = ([0; 2], false, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (start, end) = ranges[writes.fetch_add(1, Ordering::Relaxed) % ranges.len()];
                    slot.set(start, end);
                }
            });
            // a busy machine may run one of the two threads alone for a while
            let is_enough = |n: usize, found: [usize; 2]| {
                n > 3_000_000 && found.iter().all(|n| *n > 0) && writes.load(Ordering::Relaxed) > 1000
            };
            let began = Instant::now();
            while !is_mixed && !is_enough(n, found) && began.elapsed() < Duration::from_secs(30) {
                found[n % 2] += usize::from(slot.has([150, 750][n % 2]));
                is_mixed = slot.has(between);
                n += 1;
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(!is_mixed, "a start and an end of two maps were taken for one range");
        assert!(found.iter().all(|n| *n > 0), "{found:?}");
    }

    #[test]
    fn truncating_a_file_breaks_its_map_and_no_other() {
        let (page, file, other) = (page_size(), file_of(64 * page_size()), file_of(page_size()));
        let map = GuardedMmap::open(&file, 0, 64 * page).unwrap();
        let whole = GuardedMmap::open(&other, 0, page).unwrap();
        assert!(map.bytes().iter().all(|b| *b == 7) && !map.is_broken());
        file.set_len(page as u64).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut copy = vec![1; 64 * page];
                    copy.copy_from_slice(map.bytes());
                    assert!(copy[..page].iter().all(|b| *b == 7) && copy[page..].iter().all(|b| *b == 0));
                    assert!(map.is_broken());
                });
            }
        });
        assert!(whole.bytes().iter().all(|b| *b == 7) && !whole.is_broken());
        drop(map);
        let again = GuardedMmap::open(&file, 0, page).unwrap();
        assert!(again.bytes().iter().all(|b| *b == 7) && !again.is_broken());
    }

    #[test]
    fn mincore_tells_which_pages_are_in_memory() {
        let (page, file) = (page_size(), file_of(8 * page_size()));
        assert!(mincore_is_reliable(&file, 8 * page as u64 - 5));
        let map = GuardedMmap::open(&file, 0, 8 * page - 5).unwrap();
        let mut pages = [0; 8];
        assert!(map.mincore(0, &mut pages) && pages.iter().all(|p| p & 1 == 1), "just written");
        assert!(!map.mincore(page, &mut pages), "one page too many");
    }
}
