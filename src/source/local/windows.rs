//! Windows of the open files that are read often: memory maps in an LRU cache.
//!
//! Bytes that are in the kernel's page cache are copied directly from the map, without a system call for each piece and
//! without a second copy. Everything else is read with `pread`.

use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use lru::LruCache;
use rustix::fs::{StatFs, fstatfs, statfs};
use rustix::param::page_size;

use super::map::{GuardedMmap, mincore_is_reliable};
use crate::source::new_number;
use crate::sync::{LazyPerProcess, Mutex};

/// Bytes of a window. Its page tables take a five-hundredth of that.
const WINDOW_BYTES: u64 = 256 << 20;
/// Windows in the cache, mapped or only counted.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// A window is mapped at this number of requests for it at different times: a read of many bricks is one.
const MAP_AFTER: u32 = 4;
/// A window is mapped at once for a request of so many bytes: to read them takes longer than to map it.
const MAP_AT_ONCE: usize = 512 << 10;
/// Bytes of one call of mincore(2).
const BLOCK: usize = 256 << 10;
/// How long the answer that a block is in memory is used, in milliseconds.
const RESIDENCY_TTL: u32 = 100;

/// Local file systems whose files are mapped: they read through the kernel's page cache. If a page is evicted right
/// after mincore saw it, a copy waits for one read of a disk; on a network file system it might wait forever:
/// ext2 to ext4, XFS, Btrfs, F2FS, tmpfs.
const MAPPED: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// Other local file systems: a stat of a file waits for no server. Overlay, ZFS, ramfs, SquashFS, EROFS, FAT, exFAT,
/// NTFS.
const OTHER_LOCAL: [u32; 8] =
    [0x794c_7630, 0x2fc1_2fc1, 0x8584_58f6, 0x7371_7368, 0xe0f5_e1e2, 0x4d44, 0x2011_bab0, 0x7366_746e];

/// The windows of all files, by file and number.
static CACHE: LazyPerProcess<Mutex<LruCache<(u64, u64), CachedWindow>>> =
    LazyPerProcess::new(|| Mutex::new(LruCache::new(CAPACITY)));

/// A window in the cache, which is mapped once it is requested often.
#[derive(Default)]
struct CachedWindow {
    requests: u32,
    /// When it was last requested.
    requested_at: CoarseInstant,
    mapped: Option<Arc<MappedWindow>>,
}

fn is_one_of(system: &rustix::io::Result<StatFs>, magics: &[u32]) -> bool {
    let kind = system.as_ref().map_or(0, |system| i128::from(system.f_type));
    magics.iter().any(|magic| i128::from(*magic) == kind)
}

/// Returns whether a file or folder is on a local file system: it waits for no server.
pub(crate) fn is_local(path: &Path) -> bool {
    let system = statfs(path);
    is_one_of(&system, &MAPPED) || is_one_of(&system, &OTHER_LOCAL)
}

pub(super) struct FileWindows {
    id: u64,
    size: u64,
    is_mapped: bool,
    pub(super) is_local: bool,
    mincore_is_reliable: OnceLock<bool>,
}

impl FileWindows {
    /// Creates the windows of a file of `size` bytes. May wait for its disk.
    pub(super) fn new(file: &File, size: u64) -> Self {
        let system = fstatfs(file);
        let is_mapped = is_one_of(&system, &MAPPED);
        let is_local = is_mapped || is_one_of(&system, &OTHER_LOCAL);
        Self { id: new_number(), size, is_mapped, is_local, mincore_is_reliable: OnceLock::new() }
    }

    /// Returns the number of the window that a range of the file lies in, and the offset of the range in it; `None` if
    /// no window has all of it.
    pub(super) fn locate(&self, offset: u64, length: usize) -> Option<(u64, usize)> {
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.size)?;
        let number = offset / WINDOW_BYTES;
        let is_in_one = self.is_mapped && length > 0 && (end - 1) / WINDOW_BYTES == number;
        is_in_one.then_some((number, (offset % WINDOW_BYTES) as usize))
    }

    pub(super) fn window(
        &self,
        file: &File,
        number: u64,
        bytes: usize,
        now: CoarseInstant,
    ) -> Option<Arc<MappedWindow>> {
        self.window_or(number, bytes, now, || self.map(file, number))
    }

    /// Returns a window if it is mapped, or else maps it with `map` once it is requested often. The cache is locked for
    /// lookups only: windows are mapped and unmapped outside of the lock, since that takes time.
    fn window_or(
        &self,
        number: u64,
        bytes: usize,
        now: CoarseInstant,
        map: impl FnOnce() -> Option<MappedWindow>,
    ) -> Option<Arc<MappedWindow>> {
        if !self.is_mapped || self.mincore_is_reliable.get() == Some(&false) {
            return None;
        }
        let key = (self.id, number);
        // dropped after the lock
        let _evicted;
        let mut cache = CACHE.lock();
        _evicted = if cache.contains(&key) { None } else { cache.push(key, CachedWindow::default()) };
        let window = cache.get_mut(&key)?;
        match &window.mapped {
            Some(mapped) if !mapped.is_broken() => return Some(Arc::clone(mapped)),
            Some(_) => {
                let broken = std::mem::take(window);
                drop(cache);
                drop(broken);
                return None;
            }
            None => {}
        }
        let is_other_time = std::mem::replace(&mut window.requested_at, now) != now;
        window.requests += if bytes >= MAP_AT_ONCE { MAP_AFTER } else { u32::from(is_other_time) };
        if window.requests < MAP_AFTER {
            return None;
        }
        // the requests that come while the window is being mapped read
        window.requests = 0;
        drop(cache);
        let mapped = Arc::new(map()?);
        // evicted meanwhile if it is not there
        let former = CACHE.lock().get_mut(&key).and_then(|window| window.mapped.replace(Arc::clone(&mapped)));
        drop(former);
        Some(mapped)
    }

    fn map(&self, file: &File, number: u64) -> Option<MappedWindow> {
        if !*self.mincore_is_reliable.get_or_init(|| mincore_is_reliable(file, self.size)) {
            return None;
        }
        let offset = number * WINDOW_BYTES;
        let length = self.size.saturating_sub(offset).min(WINDOW_BYTES) as usize;
        Some(MappedWindow::new(GuardedMmap::open(file, offset, length)?))
    }
}

impl Drop for FileWindows {
    fn drop(&mut self) {
        let mut cache = CACHE.lock();
        let keys: Vec<_> = cache.iter().map(|(key, _)| *key).filter(|key| key.0 == self.id).collect();
        let removed: Vec<_> = keys.iter().filter_map(|key| cache.pop(key)).collect();
        // unmapped after the lock is released
        drop(cache);
        drop(removed);
    }
}

/// A window of a file that is mapped.
pub(crate) struct MappedWindow {
    map: GuardedMmap,
    /// For each block the time at which all of it was last seen in memory, as in [`CoarseInstant`]; 0 for never.
    resident_at: Box<[AtomicU32]>,
}

impl MappedWindow {
    fn new(map: GuardedMmap) -> Self {
        let blocks = map.bytes().len().div_ceil(BLOCK);
        Self { map, resident_at: (0..blocks).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Returns the bytes, only to be copied where they are [in memory](Self::is_resident). The copy counts if the
    /// window [is not broken](Self::is_broken) afterwards.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    /// Returns whether some of the bytes that were read did not come from the file.
    pub(crate) fn is_broken(&self) -> bool {
        self.map.is_broken()
    }

    /// Returns whether these bytes are in the kernel's page cache at the time `now`.
    pub(crate) fn is_resident(&self, range: Range<usize>, now: CoarseInstant) -> bool {
        let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
        blocks.into_iter().all(|block| {
            let Some(resident_at) = self.resident_at.get(block) else { return false };
            let at = resident_at.load(Ordering::Relaxed);
            at != 0 && now.0.wrapping_sub(at) < RESIDENCY_TTL || self.ask(block, &range, resident_at, now)
        })
    }

    /// Asks the kernel whether the part of `range` in a block is in memory, and remembers it if all of the block is.
    fn ask(&self, block: usize, range: &Range<usize>, resident_at: &AtomicU32, now: CoarseInstant) -> bool {
        const MAX_PAGES: usize = BLOCK / 4096;
        let (page, begin) = (page_size(), block * BLOCK);
        let length = BLOCK.min(self.bytes().len() - begin);
        let mut pages = [0; MAX_PAGES];
        let Some(pages) = pages.get_mut(..length.div_ceil(page)) else { return false };
        if !BLOCK.is_multiple_of(page) || !self.map.mincore(begin, pages) {
            return false;
        }
        if pages.iter().all(|page| page & 1 == 1) {
            resident_at.store(now.0, Ordering::Relaxed);
            return true;
        }
        let (from, to) = (range.start.max(begin) - begin, range.end.min(begin + length) - begin);
        pages[from / page..to.div_ceil(page)].iter().all(|page| page & 1 == 1)
    }
}

/// A time in steps of two milliseconds modulo 2^32, never 0; to be measured once for many calls of
/// [`MappedWindow::is_resident`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoarseInstant(u32);

impl CoarseInstant {
    pub(crate) fn now() -> Self {
        static START: LazyPerProcess<Instant> = LazyPerProcess::new(Instant::now);
        Self((START.elapsed().as_millis() as u32).wrapping_add(RESIDENCY_TTL) | 1)
    }
}

/// In tests every window checks that it is not unmapped under the lock.
#[cfg(test)]
impl Drop for MappedWindow {
    fn drop(&mut self) {
        tests::check_not_locked();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    thread_local! {
        /// Checks of this thread that found the lock free, and those that did not.
        static CHECKS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }

    /// Checks that this thread does not hold the lock of the cache: another one gets it.
    pub(super) fn check_not_locked() {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            drop(CACHE.lock());
            let _ = sender.send(());
        });
        let free = receiver.recv_timeout(Duration::from_secs(3)).is_ok();
        CHECKS.with(|checks| checks.set((checks.get().0 + usize::from(free), checks.get().1 + usize::from(!free))));
    }

    #[test]
    fn windows_are_mapped_and_unmapped_outside_of_the_lock() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100]).unwrap();
        let windows = FileWindows::new(&file, 100);
        let map = || {
            check_not_locked();
            windows.map(&file, 0)
        };
        let now = CoarseInstant;
        let request = || (1..=MAP_AFTER).map(|n| windows.window_or(0, 1, now(n), map)).last().flatten();
        let Some(mapped) = request() else { return }; // not on a local file system
        file.set_len(0).unwrap();
        assert!(mapped.bytes()[0] == 0 && mapped.is_broken());
        drop(mapped);
        assert_eq!(CHECKS.get(), (1, 0), "mapped");
        assert!(windows.window_or(0, 1, now(0), map).is_none());
        assert_eq!(CHECKS.get(), (2, 0), "unmapped since it is broken");
        assert!(request().is_some());
        for number in 1..=CAPACITY.get() as u64 {
            assert!(windows.window_or(number, 1, now(0), || None).is_none());
        }
        assert_eq!(CHECKS.get(), (4, 0), "unmapped since it is evicted");
        assert!(request().is_some());
        drop(windows);
        assert_eq!(CHECKS.get(), (6, 0), "unmapped with its file");
    }

    #[test]
    fn a_window_is_mapped_once_it_is_requested_often_and_unmapped_with_its_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 3 * BLOCK + 10]).unwrap();
        let windows = FileWindows::new(&file, 3 * BLOCK as u64 + 10);
        assert_eq!(windows.locate(3 * BLOCK as u64, 11), None, "beyond the end");
        let Some(located) = windows.locate(5, 3 * BLOCK) else { return }; // not on a local file system
        assert_eq!(located, (0, 5));
        let opened: Vec<_> = (0..MAP_AFTER + 1).map(|n| windows.window(&file, 0, 1, CoarseInstant(n))).collect();
        assert!(opened[..MAP_AFTER as usize - 1].iter().all(Option::is_none));
        let mapped = opened[MAP_AFTER as usize].clone().unwrap();
        assert!(mapped.is_resident(0..3 * BLOCK + 10, CoarseInstant::now()), "just written");
        assert!(mapped.bytes().iter().all(|b| *b == 7));
        file.set_len(10).unwrap();
        assert_eq!(mapped.bytes()[BLOCK], 0);
        assert!(mapped.is_broken());
        assert!(windows.window(&file, 0, 1, CoarseInstant(9)).is_none(), "a broken window is not given out");
        drop(windows);
        drop(opened);
        assert_eq!(Arc::strong_count(&mapped), 1, "the cache keeps it");
    }
}
