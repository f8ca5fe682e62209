//! Parts of files in memory, as the kernel holds them: the only place of the crate where files are mapped.
//!
//! What lies behind the new end of a file that is cut short cannot be read through a map: the kernel sends SIGBUS, which ends a
//! process that does not expect it. Here it is expected: a page of zeros is put where the fault was, and the window is *broken*,
//! which whoever copied from it finds when it looks afterwards.
#![allow(unsafe_code)]

use std::fs::File;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memmap2::{Mmap, MmapOptions};
use nix::libc::{self, c_int, c_void, siginfo_t};

/// Windows at a time, those included that are on their way out.
const WINDOWS: usize = 128;

/// Where windows are, for the handler of the signal: it may neither wait nor allocate.
static PLACES: [LayerRef; WINDOWS] = [const { LayerRef::new() }; WINDOWS];
static GUARD: OnceLock<Guard> = OnceLock::new();

struct LayerRef {
    taken: AtomicBool,
    /// The addresses of a window; none while both are the same.
    start: AtomicUsize,
    end: AtomicUsize,
    broken: AtomicBool,
}

impl LayerRef {
    const fn new() -> Self {
        let (start, end) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { taken: AtomicBool::new(false), start, end, broken: AtomicBool::new(false) }
    }
}

/// The handler is in place.
struct Guard {
    page: usize,
    /// Who handled the signal before, and still does where the fault is none of ours; `None` if there is no handler here.
    former: Option<libc::sigaction>,
}

/// The handler, from the first call on.
fn guard() -> &'static Guard {
    let guard = GUARD.get_or_init(|| {
        // SAFETY: sysconf only looks; sigaction with no new action only tells what is, to memory that is large enough.
        unsafe {
            let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(0);
            let mut former = MaybeUninit::<libc::sigaction>::zeroed();
            let told = libc::sigaction(libc::SIGBUS, ptr::null(), former.as_mut_ptr()) == 0 && page.is_power_of_two();
            Guard { page, former: told.then(|| former.assume_init()) }
        }
    });
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // only now: the handler needs to know who was there before
        if guard.former.is_some() {
            // SAFETY: an action of zeros is one without flags and blocked signals. The handler has the signature that
            // SA_SIGINFO stands for, and does only what a handler may.
            unsafe {
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = on_fault as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
                libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
            }
        }
    });
    guard
}

/// Handles SIGBUS: only atomics and system calls, whatever the thread was doing.
extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(guard) = GUARD.get() else { return };
    // SAFETY: the kernel gives the handler a siginfo; an address is in it where the signal comes from a fault, and then its code
    // is above 0. The page that is mapped anew lies within a window, which lives on while anybody reads from it, and nobody but
    // readers of the window has its address. errno belongs to this thread.
    unsafe {
        let at = if (*info).si_code > 0 { (*info).si_addr() as usize } else { 0 };
        let hit =
            |place: &&LayerRef| (place.start.load(Ordering::Acquire)..place.end.load(Ordering::Acquire)).contains(&at);
        if let Some(place) = PLACES.iter().find(hit) {
            place.broken.store(true, Ordering::SeqCst);
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

/// A signal that is not for us goes where it would have gone.
fn pass_on(guard: &Guard, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let former = guard.former.as_ref().map(|f| (f.sa_sigaction, f.sa_flags));
    // SAFETY: a former action that is neither default nor to ignore is the address of a function, of the signature that its flags
    // say. SIGBUS is blocked in here, so that what is raised arrives after the return, with the default action: the end.
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

/// Part of a file, as the kernel holds it.
pub(super) struct Window {
    map: Mmap,
    place: &'static LayerRef,
}

impl Window {
    /// `length` bytes of a file from `offset` on, if there is room for one more window. The file need not be as long.
    pub fn open(file: &File, offset: u64, length: usize) -> Option<Self> {
        guard().former?;
        let free = |p: &&LayerRef| p.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let place = PLACES.iter().find(free)?;
        // SAFETY: what is in the map may change and go away at any time. Bytes are only ever copied out of it, nothing is decided
        // by them, and the guard is there for those that go away.
        let Ok(map) = (unsafe { MmapOptions::new().offset(offset).len(length).map(file) }) else {
            place.taken.store(false, Ordering::Release);
            return None;
        };
        let start = map.as_ptr() as usize;
        place.broken.store(false, Ordering::Relaxed);
        // the end first: until the start is there, no address is within
        place.start.store(usize::MAX, Ordering::Relaxed);
        place.end.store(start + map.len(), Ordering::Release);
        place.start.store(start, Ordering::Release);
        Some(Self { map, place })
    }

    /// The bytes, to be copied. Whether they were there shows afterwards.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Whether some of the bytes that were looked at were none of the file's.
    pub fn is_broken(&self) -> bool {
        self.place.broken.load(Ordering::SeqCst)
    }

    /// Whether the kernel has the page at `at` in memory, for each page from there on: the low bit of a byte of `pages`.
    /// `false` if it does not say. `at` is a multiple of the page's size.
    pub fn pages_in_memory(&self, at: usize, pages: &mut [u8]) -> bool {
        let length = (pages.len() * page_size()).min(self.map.len().saturating_sub(at));
        if length == 0 || length.div_ceil(page_size()) < pages.len() {
            return false;
        }
        // SAFETY: the range lies within the map, and there is a byte in `pages` for each of its pages.
        unsafe {
            let at = self.map.as_ptr().add(at).cast_mut().cast();
            libc::mincore(at, length, pages.as_mut_ptr()) == 0
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // the start first, as above; the map goes when this is done, and its addresses may then be somebody else's
        self.place.start.store(usize::MAX, Ordering::SeqCst);
        self.place.end.store(0, Ordering::SeqCst);
        self.place.taken.store(false, Ordering::Release);
    }
}

/// Bytes of a page.
pub(super) fn page_size() -> usize {
    guard().page
}

/// Whether the kernel says truly which pages of a file are in memory: of files that are not ours it says that all are, also
/// those that do not exist.
pub(super) fn can_be_asked(file: &File, size: u64) -> bool {
    let page = page_size();
    let behind = size.next_multiple_of(page as u64);
    let mut there = [1; 1];
    Window::open(file, behind, page).is_some_and(|window| window.pages_in_memory(0, &mut there) && there[0] & 1 == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use super::*;

    fn file_of(bytes: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        file
    }

    #[test]
    fn a_file_that_is_cut_short_breaks_its_window_and_nothing_else() {
        let (page, file, other) = (page_size(), file_of(64 * page_size()), file_of(page_size()));
        let window = Window::open(&file, 0, 64 * page).unwrap();
        let whole = Window::open(&other, 0, page).unwrap();
        assert!(window.bytes().iter().all(|b| *b == 7) && !window.is_broken());
        file.set_len(page as u64).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut copy = vec![1; 64 * page];
                    copy.copy_from_slice(window.bytes());
                    assert!(copy[..page].iter().all(|b| *b == 7) && copy[page..].iter().all(|b| *b == 0));
                    assert!(window.is_broken());
                });
            }
        });
        assert!(whole.bytes().iter().all(|b| *b == 7) && !whole.is_broken());
        drop(window);
        let again = Window::open(&file, 0, page).unwrap();
        assert!(again.bytes().iter().all(|b| *b == 7) && !again.is_broken());
    }

    #[test]
    fn the_kernel_tells_which_pages_it_has() {
        let (page, file) = (page_size(), file_of(8 * page_size()));
        assert!(can_be_asked(&file, 8 * page as u64 - 5));
        let window = Window::open(&file, 0, 8 * page - 5).unwrap();
        let mut pages = [0; 8];
        assert!(window.pages_in_memory(0, &mut pages) && pages.iter().all(|p| p & 1 == 1), "just written");
        assert!(!window.pages_in_memory(page, &mut pages), "one page too many");
    }
}
