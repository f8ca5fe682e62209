//! What the file system knows of refreshes: those that are due, and whose pages the kernel may keep.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use lru::LruCache;

use super::ino::Ino;
use super::page_cache::PageCache;
use crate::pool::Pool;
use crate::source::RefreshQueue;
use crate::sync::Mutex;

/// Files of refreshed datasets whose pages the kernel may keep when they are opened again. The pages of others are
/// dropped at each open.
const KEPT_FILES: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// The state of refreshes.
pub struct Refreshes {
    pub queue: Arc<RefreshQueue>,
    pub page_cache: OnceLock<Box<dyn PageCache>>,
    /// The threads that drop pages. They wait for reads in flight, and so they are not those that answer reads.
    pub droppers: Arc<Pool>,
    /// The epoch of the dataset at the last open of a file. Has only files of datasets that were refreshed.
    kept: Mutex<LruCache<Ino, u32>>,
}

impl Default for Refreshes {
    fn default() -> Self {
        let kept = Mutex::new(LruCache::new(KEPT_FILES));
        Self { queue: Arc::default(), page_cache: OnceLock::new(), droppers: Pool::new(), kept }
    }
}

impl Refreshes {
    /// Returns whether the kernel may keep the pages that it has of a file which is opened in this epoch.
    pub fn keeps_pages(&self, file: Ino, epoch: u32) -> bool {
        epoch == 0 || self.kept.lock().put(file, epoch) == Some(epoch)
    }
}
