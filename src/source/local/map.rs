//! Memory maps of files that survive truncation. No other file of the crate maps files.
//!
//! Reading a map behind the new end of a truncated file raises SIGBUS, which by default ends the process. The handler
//! in this file maps a page of zeros where the fault was and sets a flag: the map is *broken*. A reader checks the
//! flag after it has copied.
#![allow(unsafe_code)]

use std::fs::File;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use memmap2::{Mmap, MmapOptions};
use nix::libc::{self, c_int, c_void, siginfo_t};
use rustix::param::page_size;

use crate::sync::PerProcess;

/// The number of maps at a time, those included that are about to be unmapped.
const MAX_MAPS: usize = 128;

/// The maps of this process, for the signal handler, which may neither wait nor allocate. A child reads no map of its
/// parent, and a slot of the parent may be half written.
static MAPS: PerProcess<Maps> = PerProcess::new();

/// The action for SIGBUS before ours, which still gets the faults outside of our maps: the address of the handler, with
/// [`TAKES_INFO`] if its flags have SA_SIGINFO. Known before our handler is installed. A child has both from its
/// parent.
static FORMER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
/// No address has this bit.
const TAKES_INFO: usize = 1 << (usize::BITS - 1);
/// Whether our handler was installed, in this process or before it was forked.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

struct Maps {
    page: usize,
    slots: [Slot; MAX_MAPS],
}

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

/// Sees to it that SIGBUS reaches our handler. Returns whether it does. Called before each map is made: a library of
/// this process may have taken the handler away since the last one.
fn guard() -> bool {
    // SAFETY: an action of zeros has no flags and blocks no signals; the handler has the signature that SA_SIGINFO
    // requires, and uses only what is async-signal-safe. A call that succeeds has written to what it is given.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) != 0 {
            return false;
        }
        let is_function = now.sa_sigaction != libc::SIG_DFL && now.sa_sigaction != libc::SIG_IGN;
        let handler = on_fault as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        // A handler above ours passes on what it does not know. Ours above that one again would make a circle.
        if now.sa_sigaction == handler || is_function && IS_INSTALLED.load(Ordering::Acquire) {
            return true;
        }
        let takes_info = if now.sa_flags & libc::SA_SIGINFO != 0 { TAKES_INFO } else { 0 };
        FORMER.store(now.sa_sigaction | takes_info, Ordering::Release);
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        let is_installed = libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) == 0;
        IS_INSTALLED.fetch_or(is_installed, Ordering::Release);
        is_installed
    }
}

/// Handles SIGBUS, with atomics and system calls only: the thread may be anywhere.
extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo; it has an address if the signal comes from a fault, which is when
    // si_code is above 0. The page that is mapped anew lies within one of our maps, which lives on while it is read,
    // and only its readers use its addresses. errno belongs to this thread.
    unsafe {
        let at = if (*info).si_code > 0 { (*info).si_addr() as usize } else { 0 };
        if let Some(maps) = MAPS.get()
            && let Some(slot) = maps.slots.iter().find(|slot| slot.has(at))
        {
            slot.broken.store(true, Ordering::SeqCst);
            let errno = libc::__errno_location();
            let before = *errno;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let page = (at & !(maps.page - 1)) as *mut c_void;
            let zeros = libc::mmap(page, maps.page, libc::PROT_READ, flags, -1, 0);
            *errno = before;
            if zeros != libc::MAP_FAILED {
                return;
            }
        }
    }
    pass_on(signal, info, context);
}

fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let former = FORMER.load(Ordering::Acquire);
    // SAFETY: a former action other than SIG_DFL and SIG_IGN is the address of a function, whose signature follows from
    // the flags. SIGBUS is blocked while it is handled, so that the raised one arrives after the return and takes the
    // default action, which ends the process.
    unsafe {
        match former & !TAKES_INFO {
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            handler if former & TAKES_INFO != 0 => {
                type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                mem::transmute::<usize, Handler>(handler)(signal, info, context);
            }
            handler => mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal),
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
        let maps = MAPS.get_or_init(|| Maps { page: page_size(), slots: [const { Slot::new() }; MAX_MAPS] });
        if !guard() {
            return None;
        }
        let slot = maps.slots.iter().find(|slot| !slot.taken.swap(true, Ordering::Acquire))?;
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

    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, alarm, fork};

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

    /// How often [`passes_on`] was called.
    static CALLS: AtomicUsize = AtomicUsize::new(0);

    /// A handler of another library, above ours.
    extern "C" fn passes_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        on_fault(signal, info, context);
    }

    /// A handler of another library, below ours, which repairs what it knows.
    extern "C" fn repairs(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the only fault that it gets is that of a map of the test below.
        unsafe {
            let at = ((*info).si_addr() as usize & !(page_size() - 1)) as *mut c_void;
            libc::mmap(at, page_size(), libc::PROT_READ, flags, -1, 0);
        }
    }

    fn set_handler(handler: usize) {
        // SAFETY: as in `guard`
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handler;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    }

    fn handler() -> usize {
        // SAFETY: as in `guard`
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut action);
            action.sa_sigaction
        }
    }

    /// Reads a map of a file that is truncated.
    fn breaks() -> bool {
        let (page, file) = (page_size(), file_of(2 * page_size()));
        let map = GuardedMmap::open(&file, 0, 2 * page).unwrap();
        file.set_len(page as u64).unwrap();
        map.bytes()[0] == 7 && map.bytes()[page] == 0 && map.is_broken()
    }

    type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

    /// Runs in a child: handlers are those of the whole process.
    fn check_handlers() -> bool {
        let (page, file) = (page_size(), file_of(page_size()));
        let all: Vec<_> = (0..MAX_MAPS).map_while(|_| GuardedMmap::open(&file, 0, page)).collect();
        let is_free = all.len() == MAX_MAPS && GuardedMmap::open(&file, 0, page).is_none();
        drop(all);
        let ours = on_fault as Handler as usize;
        let mut is_right =
            is_free && breaks() && handler() == ours && FORMER.load(Ordering::SeqCst) & !TAKES_INFO != ours;
        // a library takes the handler away, and below the next one of ours is nothing
        set_handler(libc::SIG_DFL);
        is_right &= breaks() && handler() == ours && FORMER.load(Ordering::SeqCst) & !TAKES_INFO == libc::SIG_DFL;
        // one above ours stays there
        set_handler(passes_on as Handler as usize);
        is_right &= breaks() && handler() == passes_on as Handler as usize && CALLS.load(Ordering::SeqCst) == 1;
        // one below ours gets what is not in our maps
        IS_INSTALLED.store(false, Ordering::SeqCst);
        set_handler(repairs as Handler as usize);
        is_right &= breaks() && handler() == ours && CALLS.load(Ordering::SeqCst) == 1;
        // SAFETY: the map is read, and no decision depends on the bytes that vanish.
        let other = unsafe { MmapOptions::new().len(page).map(&file) }.unwrap();
        file.set_len(0).unwrap();
        is_right && other[0] == 0 && CALLS.load(Ordering::SeqCst) == 2
    }

    #[test]
    fn a_child_has_all_slots_and_handlers_of_other_libraries_stay_in_the_chain() {
        crate::sync::enter();
        let (file, page) = (file_of(page_size()), page_size());
        let inherited = GuardedMmap::open(&file, 0, page).unwrap();
        // SAFETY: the child makes files and maps, and allocates, which the C library allows.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                alarm::set(60);
                crate::sync::enter();
                let is_right = check_handlers();
                // SAFETY: it ends the process, without the destructors of the parent.
                unsafe { libc::_exit(if is_right { 0 } else { 1 }) }
            }
            ForkResult::Parent { child } => assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0))),
        }
        assert!(inherited.bytes().iter().all(|b| *b == 7) && !inherited.is_broken());
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
