//! The windows of all files that are open: a bounded number, those in use last.
//!
//! Only of files that are read again and again, and only what the kernel holds in memory already, is read through a window: it is
//! copied from where it lies, without a call for each piece and without a second copy. Everything else is read with `pread`.

use crate::sync::{Mutex, MutexGuard};
use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Instant;

use lru::LruCache;
use rustix::fs::fstatfs;

use super::window::{Window, can_be_asked, page_size};

/// Bytes of a window. The tables of the processor for it take a five-hundredth of that.
const WINDOW: u64 = 256 << 20;
/// Windows that are kept.
const KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// A window is opened when its part of the file is asked for so often.
const OFTEN: u32 = 4;
/// Bytes of which it is looked up at once whether they are in memory.
const BLOCK: usize = 256 << 10;
/// That they are is believed for so long, in milliseconds.
const BELIEVED: u32 = 100;

/// Local file systems that keep what they have read in the kernel's page cache: there a page that goes away just after it was
/// seen costs one read of a disk, while a server that does not answer would hold up the thread for ever.
const LOCAL: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994]; // ext2 to ext4, XFS, Btrfs, F2FS, tmpfs

/// Others of this machine: a look at a file waits for no server. Overlay, ZFS, ramfs, SquashFS, EROFS, FAT, exFAT, NTFS.
const NEAR: [u32; 8] =
    [0x794c_7630, 0x2fc1_2fc1, 0x8584_58f6, 0x7371_7368, 0xe0f5_e1e2, 0x4d44, 0x2011_bab0, 0x7366_746e];

static WINDOWS: LazyLock<Mutex<LruCache<(u64, u64), Seen>>> = LazyLock::new(|| Mutex::new(LruCache::new(KEPT)));

/// A part of a file, and how often it was asked for.
#[derive(Default)]
struct Seen {
    asked: u32,
    mapped: Option<Arc<MappedWindow>>,
}

/// The windows of one file.
pub(super) struct Windows {
    id: u64,
    size: u64,
    local: bool,
    near: bool,
    honest: OnceLock<bool>,
}

impl Windows {
    /// Those of a file of `size` bytes. May wait for its disk.
    pub fn of(file: &File, size: u64) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let kind = fstatfs(file).map_or(0, |s| i128::from(s.f_type));
        let is_one_of = |magics: &[u32]| magics.iter().any(|magic| i128::from(*magic) == kind);
        let (local, near) = (is_one_of(&LOCAL), is_one_of(&LOCAL) || is_one_of(&NEAR));
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), size, local, near, honest: OnceLock::new() }
    }

    /// Whether the file is on a file system of this machine.
    pub fn are_near(&self) -> bool {
        self.near
    }

    /// The number of the window that a range of the file lies in, and the place of its first byte there; `None` if it lies in
    /// none.
    pub fn number(&self, offset: u64, length: usize) -> Option<(u64, usize)> {
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.size)?;
        let number = offset / WINDOW;
        (self.local && length > 0 && (end - 1) / WINDOW == number).then_some((number, (offset % WINDOW) as usize))
    }

    /// A window, if it is open or worth opening.
    pub fn window(&self, file: &File, number: u64) -> Option<Arc<MappedWindow>> {
        if !self.local || self.honest.get() == Some(&false) {
            return None;
        }
        let mut windows = lock();
        let key = (self.id, number);
        if !windows.contains(&key) {
            // unmapping takes its time: not under the lock
            let dropped = windows.push(key, Seen { asked: 1, mapped: None });
            drop(windows);
            drop(dropped);
            return None;
        }
        let seen = windows.get_mut(&key)?;
        if let Some(mapped) = &seen.mapped {
            if !mapped.is_broken() {
                return Some(Arc::clone(mapped));
            }
            *seen = Seen::default();
        }
        seen.asked += 1;
        if seen.asked < OFTEN {
            return None;
        }
        seen.asked = 0;
        if !*self.honest.get_or_init(|| can_be_asked(file, self.size)) {
            return None;
        }
        let offset = number * WINDOW;
        let length = self.size.saturating_sub(offset).min(WINDOW) as usize;
        seen.mapped = Some(Arc::new(MappedWindow::new(Window::open(file, offset, length)?)));
        seen.mapped.clone()
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        let mut windows = lock();
        let keys: Vec<_> = windows.iter().map(|(key, _)| *key).filter(|key| key.0 == self.id).collect();
        let dropped: Vec<_> = keys.iter().filter_map(|key| windows.pop(key)).collect();
        drop(windows);
        drop(dropped);
    }
}

fn lock() -> MutexGuard<'static, LruCache<(u64, u64), Seen>> {
    WINDOWS.lock()
}

/// A part of a file in memory.
pub struct MappedWindow {
    window: Window,
    /// For each block the time at which all of it was in memory, in milliseconds; 0 for never.
    seen: Box<[AtomicU32]>,
}

impl MappedWindow {
    fn new(window: Window) -> Self {
        let blocks = window.bytes().len().div_ceil(BLOCK);
        Self { window, seen: (0..blocks).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The bytes, to be copied where they are [at hand](Self::is_at_hand). What was copied counts only if the window is
    /// [not broken](Self::is_broken) afterwards.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.window.bytes()
    }

    /// Whether bytes that were looked at are no longer there.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.window.is_broken()
    }

    /// Whether the kernel has these bytes in memory at the time `now`.
    #[must_use]
    pub fn is_at_hand(&self, range: Range<usize>, now: CoarseInstant) -> bool {
        let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
        blocks.into_iter().all(|block| {
            let Some(seen) = self.seen.get(block) else { return false };
            let at = seen.load(Ordering::Relaxed);
            at != 0 && now.0.wrapping_sub(at) < BELIEVED || self.look(block, &range, seen, now)
        })
    }

    fn look(&self, block: usize, range: &Range<usize>, seen: &AtomicU32, now: CoarseInstant) -> bool {
        const MOST: usize = BLOCK / 4096;
        let (page, begin) = (page_size(), block * BLOCK);
        let length = BLOCK.min(self.bytes().len() - begin);
        let mut pages = [0; MOST];
        let Some(pages) = pages.get_mut(..length.div_ceil(page)) else { return false };
        if !BLOCK.is_multiple_of(page) || !self.window.pages_in_memory(begin, pages) {
            return false;
        }
        if pages.iter().all(|page| page & 1 == 1) {
            seen.store(now.0, Ordering::Relaxed);
            return true;
        }
        let (from, to) = (range.start.max(begin) - begin, range.end.min(begin + length) - begin);
        pages[from / page..to.div_ceil(page)].iter().all(|page| page & 1 == 1)
    }
}

/// A time, as windows measure it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoarseInstant(u32);

impl CoarseInstant {
    /// This moment.
    #[must_use]
    pub fn now() -> Self {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        Self((START.elapsed().as_millis() as u32).wrapping_add(BELIEVED) | 1)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_window_is_opened_for_who_comes_often_and_closed_with_its_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 3 * BLOCK + 10]).unwrap();
        let windows = Windows::of(&file, 3 * BLOCK as u64 + 10);
        assert_eq!(windows.number(3 * BLOCK as u64, 11), None, "beyond the end");
        let Some(place) = windows.number(5, 3 * BLOCK) else { return }; // not on a local file system
        assert_eq!(place, (0, 5));
        let opened: Vec<_> = (0..OFTEN + 1).map(|_| windows.window(&file, 0)).collect();
        assert!(opened[..OFTEN as usize - 1].iter().all(Option::is_none));
        let mapped = opened[OFTEN as usize].clone().unwrap();
        assert!(mapped.is_at_hand(0..3 * BLOCK + 10, CoarseInstant::now()), "just written");
        assert!(mapped.bytes().iter().all(|b| *b == 7));
        file.set_len(10).unwrap();
        assert_eq!(mapped.bytes()[BLOCK], 0);
        assert!(mapped.is_broken());
        assert!(windows.window(&file, 0).is_none(), "a broken window is not given out");
        drop(windows);
        drop(opened);
        assert_eq!(Arc::strong_count(&mapped), 1, "nobody keeps it");
    }
}
