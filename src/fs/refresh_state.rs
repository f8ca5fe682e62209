//! What the file system knows of refreshes: those that are due, and whose pages the kernel may keep.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::ino::Ino;
use super::page_cache::PageCache;
use crate::pool::Pool;
use crate::source::RefreshQueue;
use crate::sync::{Condvar, Mutex};

/// Files of refreshed datasets whose pages the kernel may keep when they are opened again. The pages of others are
/// dropped at each open.
const KEPT_FILES: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// After this time the kernel has dropped the pages of a file that it was told to drop when the file was opened.
const DROPPED_AFTER: Duration = Duration::from_secs(1);

/// The state of refreshes.
pub(crate) struct Refreshes {
    pub queue: Arc<RefreshQueue>,
    pub page_cache: OnceLock<Box<dyn PageCache>>,
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
        Self { queue: Arc::default(), page_cache: OnceLock::new(), droppers: Pool::new(), kept, root_look }
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
