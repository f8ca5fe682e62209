//! Refreshes of datasets that were opened a moment after a write: what was read then may be old although the timestamps
//! have not changed since (see [`RecentWrites`](crate::source::RecentWrites)).
//!
//! A refresh opens the dataset again, so that no brick, table or header of before is used, gives the new arrays to the
//! files that clients have open, and drops the pages of these files from the kernel's page cache. Files that are opened
//! later do not reuse pages of before. Clients notice nothing, unless the dataset has become another one: then their
//! reads fail.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

use lru::LruCache;

use super::Volfs;
use super::error::FsError;
use super::handles::{ContentState, FileHandle};
use super::ino::Ino;
use super::resolve::Resolved;
use super::stall::{LOOK, StallWatch};
use crate::catalog::{Node, OpenDataset, OpenResult};
use crate::memory::trim_code;
use crate::pool::{Bulkhead, Pool};
use crate::source::{Blocking, RefreshQueue};
use crate::sync::{Condvar, Mutex};
use crate::view::{Content, Tree};
use crate::volume::{Dims, Dtype};

/// The number of the bulkhead of jobs that close files.
const CLOSING: u64 = 1 << 32;
/// The time between two looks for deleted sources: up to so long they keep their space on the disk.
const SWEEP: Duration = Duration::from_secs(1);
/// Source files that were not used for so long, or twice as long, are closed: then nothing has to be looked for.
const UNUSED: Duration = Duration::from_secs(60);

impl Volfs {
    /// Sets what drops pages from the kernel's page cache. Only the first call has an effect.
    pub(crate) fn set_drop_pages(&self, drop_pages: DropPages) {
        let _ = self.refreshes.drop_pages.set(drop_pages);
    }

    /// Starts the thread that refreshes datasets when they are due, lets go of sources that were deleted, and notices
    /// those that stall. It never waits for a source, and ends when the file system is dropped.
    pub(crate) fn start_refreshes(self: &Arc<Self>) -> io::Result<()> {
        let (queue, fs) = (Arc::clone(&self.refreshes.queue), Arc::downgrade(self));
        let wakes = Arc::clone(&queue);
        if let Some(files) = self.catalog.tree().open_files() {
            files.on_first(Box::new(move || wakes.wake()));
        }
        let wakes = Arc::clone(&queue);
        self.pool().on_first_job(Box::new(move || wakes.wake()));
        let run = move || {
            let (mut swept, mut closed_unused, mut has_open_files) = (Instant::now(), Instant::now(), true);
            let (mut idle_memory, mut is_store) = (IdleMemory::default(), false);
            let (mut stalls, mut is_busy) = (StallWatch::default(), false);
            loop {
                let at_most = match has_open_files {
                    true => Some(SWEEP.saturating_sub(swept.elapsed())),
                    false if is_busy => Some(LOOK),
                    // where no file is open none can be deleted: then the thread sleeps. Nobody tells it when a store
                    // is read
                    false => (is_store || idle_memory.is_awaited()).then_some(UNUSED),
                };
                let next = queue.next(at_most);
                let Some(fs) = fs.upgrade() else { return };
                if swept.elapsed() >= SWEEP {
                    fs.close_gone();
                    swept = Instant::now();
                }
                if closed_unused.elapsed() >= UNUSED {
                    fs.catalog.tree().open_files().inspect(|files| files.close_unused());
                    closed_unused = Instant::now();
                }
                fs.look_for_stalls(&mut stalls);
                let tree = fs.catalog.tree();
                (has_open_files, is_store) =
                    (tree.open_files().is_some_and(|files| files.are_any()), tree.store_status().is_some());
                is_busy = !has_open_files && !fs.pool().rest();
                let decoded = fs.counters.bricks_decoded.get();
                if idle_memory.look(decoded, Instant::now(), UNUSED) || !(has_open_files || is_store) {
                    fs.reader.buffers().release_idle();
                    fs.registries.formats.iter().for_each(|format| format.release_idle());
                    if !is_busy {
                        trim_code();
                    }
                }
                let Some(number) = next else { continue };
                let Some(node) = u32::try_from(number).ok().and_then(|id| fs.catalog.node(id)) else { continue };
                let pool = Arc::clone(fs.pool());
                pool.submit(Bulkhead::new(number), move || fs.refresh_if_due(&node));
            }
        };
        thread::Builder::new().name("volfs-refresh".into()).spawn(run).map(drop)
    }

    /// Closes the sources that were deleted or replaced. Threads of the pool close them, since that may take time.
    fn close_gone(&self) {
        let gone = self.catalog.tree().open_files().map(|files| files.take_gone()).unwrap_or_default();
        if !gone.is_empty() {
            self.pool().submit(Bulkhead::new(CLOSING), move || drop(gone));
        }
    }

    /// Refreshes a dataset if that is due. Reads the source. Pages of the kernel are dropped later, by another thread.
    pub(super) fn refresh_if_due(self: &Arc<Self>, node: &Arc<Node>) {
        let Some(recent) = node.recent() else { return };
        if !recent.is_due() {
            return recent.requeue();
        }
        let files = self.handles.files_of(node.id);
        let in_use = files.iter().find_map(|(_, file)| file.layer.as_ref()).map(|layer| Ok(Arc::clone(&layer.open)));
        let is_alike = |old: &OpenResult, new: &OpenResult| self.is_alike(old, new);
        if !self.catalog.refresh(node, (!files.is_empty(), in_use), is_alike) {
            return;
        }
        log::debug!("{} is read again, since it was written a moment before it was read", node.path().display());
        let mut files = HashSet::new();
        for (number, file) in self.handles.files_of(node.id) {
            files.insert(file.ino);
            // another refresh that has begun meanwhile replaces it by what is newer
            let is_current = |new: &FileHandle| new.epoch == node.epoch();
            self.handles.replace(number, &file, Arc::new(self.refreshed(&file, node)), is_current);
        }
        if files.is_empty() || self.refreshes.drop_pages.get().is_none() {
            return;
        }
        let fs = Arc::clone(self);
        self.refreshes.droppers.submit(Bulkhead::new(node.id.into()), move || {
            if let Some(drop_pages) = fs.refreshes.drop_pages.get() {
                files.into_iter().for_each(drop_pages);
            }
        });
    }

    /// Returns the open file with the content of now; one of unknown content if the system fails, and a stale one if it
    /// has no such content any more, or the dataset has become another one, whose files may have other numbers.
    fn refreshed(&self, file: &FileHandle, node: &Node) -> FileHandle {
        let epoch = node.epoch();
        if node.has_changed() {
            return file.outdated(ContentState::Stale, epoch);
        }
        let now = self.resolve(file.ino, Blocking::Yes);
        let content = |now: &Resolved| self.content_made(now, file.made_by.as_ref(), Blocking::Yes);
        match now.and_then(|now| Ok((content(&now)?, now.layer()))) {
            Ok((content, layer)) if continues(&file.content, &content) => file.with_content(content, layer, epoch),
            Err(FsError::Io | FsError::NoMemory | FsError::Denied) => file.outdated(ContentState::Unknown, epoch),
            _ => file.outdated(ContentState::Stale, epoch),
        }
    }

    /// Returns an open file whose content could not be found out at the last refresh, with the content of now if that
    /// is known. Waits for the source.
    pub(super) fn found_again(&self, number: u64, file: &Arc<FileHandle>) -> Arc<FileHandle> {
        let Some(node) = self.catalog.node(file.ino.node()) else { return Arc::clone(file) };
        let found = Arc::new(self.refreshed(file, &node));
        if found.state != ContentState::Unknown {
            self.handles.replace(number, file, Arc::clone(&found), |found| found.epoch == node.epoch());
        }
        found
    }

    /// Returns whether a dataset has the same files as before, with arrays of the same shapes and types.
    fn is_alike(&self, old: &OpenResult, new: &OpenResult) -> bool {
        let tree = |open| Tree::new(open, self.registries.views);
        match (old, new) {
            (Ok(old), Ok(new)) => arrays_of(old).eq(arrays_of(new)) && tree(old).has_files_of(old, &tree(new), new),
            (Err(_), Err(_)) => true,
            _ => false,
        }
    }
}

/// Returns the shape and type of each array of a dataset.
fn arrays_of(open: &OpenDataset) -> impl Iterator<Item = (Dims, Dtype)> {
    let arrays = open.dataset.layers().iter().flat_map(|layer| &layer.levels);
    arrays.map(|array| (array.info().shape(), array.info().dtype))
}

/// Returns whether a client that has read some of a file may read the rest from the new content.
fn continues(old: &Content, new: &Content) -> bool {
    match (old, new) {
        (Content::Bytes(old), Content::Bytes(new)) => old == new,
        (Content::Array(old), Content::Array(new)) => old.has_layout_of(new),
        (Content::Computed(old), Content::Computed(new)) => {
            (old.len(), old.fingerprint()) == (new.len(), new.fingerprint())
        }
        _ => false,
    }
}

/// Files of refreshed datasets whose pages the kernel may keep when they are opened again. The pages of others are
/// dropped at each open.
const KEPT_FILES: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// After this time the kernel has dropped the pages of a file that it was told to drop when the file was opened.
const DROPPED_AFTER: Duration = Duration::from_secs(1);

/// The state of refreshes.
pub(crate) struct Refreshes {
    pub queue: Arc<RefreshQueue>,
    pub drop_pages: OnceLock<DropPages>,
    /// The threads that drop pages. They wait for reads in flight, and so they are not those that answer reads.
    pub droppers: Arc<Pool>,
    /// The epoch of the dataset at the last open of a file, and when it was first opened in that epoch. Has only files
    /// of datasets that were refreshed.
    kept: Mutex<LruCache<Ino, (u32, Instant)>>,
    pub root_look: RootLook,
}

/// The look at the root of the source that is in flight, which need not end.
#[derive(Default)]
pub(crate) struct RootLook {
    pub since: Mutex<Option<Instant>>,
    pub done: Condvar,
}

impl Default for Refreshes {
    fn default() -> Self {
        let kept = Mutex::new(LruCache::new(KEPT_FILES));
        let root_look = RootLook::default();
        Self { queue: Arc::default(), drop_pages: OnceLock::new(), droppers: Pool::new(), kept, root_look }
    }
}

impl Refreshes {
    /// Returns whether the kernel may keep the pages that it has of a file which is opened in this epoch. Not at the
    /// first open, nor at others that the kernel may finish before that one.
    pub(crate) fn keeps_pages(&self, file: Ino, epoch: u32) -> bool {
        if epoch == 0 {
            return true;
        }
        let mut kept = self.kept.lock();
        match kept.get(&file) {
            Some((known, first)) if *known == epoch => first.elapsed() > DROPPED_AFTER,
            _ => {
                kept.put(file, (epoch, Instant::now()));
                false
            }
        }
    }
}

/// Drops all pages of a file from the kernel's page cache, also those that a process has mapped. Waits for reads of the
/// file that are in flight.
type DropPages = Box<dyn Fn(Ino) + Send + Sync>;

/// Watches the number of decoded bricks.
#[derive(Default)]
pub(super) struct IdleMemory {
    decoded: u64,
    /// When the number changed last; `None` if nothing was decoded since the memory was given back.
    since: Option<Instant>,
}

impl IdleMemory {
    /// Records that `decoded` bricks were decoded until `now`. Returns whether the memory is to be given back: once,
    /// when none was decoded for as long as `unused`.
    pub(crate) fn look(&mut self, decoded: u64, now: Instant, unused: Duration) -> bool {
        if decoded != self.decoded {
            *self = Self { decoded, since: Some(now) };
        }
        self.since.take_if(|since| now.duration_since(*since) >= unused).is_some()
    }

    /// Returns whether there may be memory to be given back.
    pub(crate) fn is_awaited(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_when_nobody_has_decoded_for_a_while() {
        let (mut idle, begin, unused) = (IdleMemory::default(), Instant::now(), Duration::from_secs(60));
        let mut look = |decoded, seconds| {
            let now = begin + Duration::from_secs(seconds);
            (idle.look(decoded, now, unused), idle.is_awaited())
        };
        assert_eq!(look(0, 100), (false, false), "nobody has decoded yet");
        assert_eq!(look(5, 110), (false, true));
        assert_eq!(look(5, 169), (false, true));
        assert_eq!(look(6, 170), (false, true), "somebody decodes");
        assert_eq!(look(6, 230), (true, false));
        assert_eq!(look(6, 900), (false, false), "it was given back");
        assert_eq!(look(7, 901), (false, true));
    }

    #[test]
    fn the_kernel_keeps_pages_of_one_version_from_the_second_open_on() {
        let refreshes = Refreshes::default();
        let keeps = |epoch| refreshes.keeps_pages(Ino::ROOT, epoch);
        assert!(keeps(0) && !keeps(1));
        std::thread::sleep(DROPPED_AFTER + Duration::from_millis(1));
        assert!(keeps(1) && !keeps(2));
    }
}
