//! Lists a folder of the source although a look at one of its entries may hang.
//!
//! An entry may be the mount point of a server that is gone, and a look at it may never return. A thread of the pool
//! looks at one entry after the other while the caller waits. When there is no progress for a moment, a new thread
//! continues with the next entries, and the entry that hangs is listed by its name alone. Other listings skip it until
//! the first thread returns.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::error::CatalogError;
use super::node::{Node, NodeId};
use super::source_tree::Catalog;
use crate::pool::{Bulkhead, Pool};
use crate::source::EntryKind;
use crate::sync::{Condvar, Mutex};

/// A look at an entry that takes longer counts as hanging.
const TIMEOUT: Duration = Duration::from_millis(30);
/// Timeouts after which a listing ends; the remaining entries are listed by their names alone.
const MAX_TIMEOUTS: usize = 2;

/// An entry of a folder.
#[derive(Clone)]
pub enum Listed {
    /// The entry was looked at.
    Found(Arc<Node>),
    /// The look hangs or fails, or there was no time for it: the name of a folder, or of a file with the extension of a format.
    Unseen(OsString),
}

impl Listed {
    /// Returns the entry's name in its folder.
    #[must_use]
    pub fn name(&self) -> &OsString {
        match self {
            Self::Found(node) => &node.name,
            Self::Unseen(name) => name,
        }
    }
}

/// Returns the pool's bulkhead for looks at one name of a folder: a name that hangs blocks no other.
#[must_use]
pub fn bulkhead(folder: NodeId, name: &OsStr) -> Bulkhead {
    let mut hasher = DefaultHasher::new();
    (folder, name).hash(&mut hasher);
    // the bulkheads of datasets are their numbers, which are small
    Bulkhead::new(hasher.finish() | 1 << 63)
}

/// One listing in progress.
struct Listing {
    catalog: Arc<Catalog>,
    folder: Arc<Node>,
    /// Names, and whether each is a folder.
    names: Vec<(OsString, bool)>,
    /// The index of the first name that no thread has taken.
    next: AtomicUsize,
    results: Mutex<Results>,
    progress: Condvar,
}

#[derive(Default)]
struct Results {
    /// For each name: not looked at yet, or what was found.
    found: Vec<Option<Option<Arc<Node>>>>,
    /// Names that were looked at.
    count: usize,
}

/// Returns all that `folder` shows, by name, looked at on threads of `pool`.
///
/// # Errors
/// [`CatalogError::Stale`] if the folder is gone, [`CatalogError::Io`] where the system fails.
pub fn list(catalog: &Arc<Catalog>, folder: &Arc<Node>, pool: &Arc<Pool>) -> Result<Vec<Listed>, CatalogError> {
    let names = names(catalog, folder)?;
    let results = Mutex::new(Results { found: vec![None; names.len()], count: 0 });
    let (catalog, folder) = (Arc::clone(catalog), Arc::clone(folder));
    let (next, progress) = (AtomicUsize::new(0), Condvar::new());
    let listing = Arc::new(Listing { catalog, folder, names, next, results, progress });
    listing.start_thread(pool);
    let mut timeouts = 0;
    let mut results = listing.results.lock();
    while results.count < listing.names.len() {
        let before = results.count;
        let (now, timed_out) = listing.progress.wait_timeout(results, TIMEOUT);
        results = now;
        if timed_out && results.count == before {
            timeouts += 1;
            if timeouts > MAX_TIMEOUTS || listing.next.load(Ordering::Relaxed) >= listing.names.len() {
                break;
            }
            listing.start_thread(pool);
        }
    }
    let entries = results.found.iter().zip(&listing.names).filter_map(|(found, (name, is_folder))| match found {
        Some(found) => found.clone().map(Listed::Found),
        None => (*is_folder || listing.catalog.has_dataset_extension(name)).then(|| Listed::Unseen(name.clone())),
    });
    Ok(entries.collect())
}

/// Returns the names in a folder in order, and whether each is a folder as far as that is known without a look at it.
fn names(catalog: &Catalog, folder: &Arc<Node>) -> Result<Vec<(OsString, bool)>, CatalogError> {
    if let Some(only) = catalog.only_of(folder) {
        return Ok(vec![(only.clone(), false)]);
    }
    let names = catalog.names_in(folder)?;
    let mut names: Vec<_> = names.into_iter().map(|(name, kind)| (name, kind == EntryKind::Folder)).collect();
    names.sort_unstable();
    Ok(names)
}

impl Listing {
    /// Has a thread of the pool look at the names that no thread has taken, in the bulkhead of the first of them.
    fn start_thread(self: &Arc<Self>, pool: &Arc<Pool>) {
        let index = self.next.load(Ordering::Relaxed);
        let Some((name, _)) = self.names.get(index) else { return };
        let listing = Arc::clone(self);
        pool.submit(bulkhead(self.folder.id, name), move || listing.run());
    }

    fn run(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((name, _)) = self.names.get(index) else { return };
            let key = (self.folder.id, name.clone());
            let in_flight_for = self.catalog.lookups.begin(&key);
            // the look of another listing hangs
            if in_flight_for > TIMEOUT {
                continue;
            }
            // an entry that cannot be looked at does not hide the others, and is listed by its name
            let found = self.catalog.find(&self.folder, name).ok();
            self.catalog.lookups.end(&key);
            let mut results = self.results.lock();
            results.count += 1;
            if let Some(result) = results.found.get_mut(index) {
                *result = found;
            }
            drop(results);
            self.progress.notify_all();
        }
    }
}
