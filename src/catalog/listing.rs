//! Listing a folder of the source although one of its entries may hang.
//!
//! To look at an entry may take for ever: it may be the mount point of a server that is gone. So one thread looks at the entries
//! in turn while another waits; when there is no progress for a moment the next entries are given to a new thread, and the entry
//! that hangs is listed as what its name and the folder say of it. It is not looked at again before the thread comes back.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::node::{Node, NodeId};
use super::probe::is_promised;
use super::{Catalog, CatalogError};
use crate::pool::{Bulkhead, Pool};

/// An entry that takes longer holds up nobody else.
const PATIENCE: Duration = Duration::from_millis(30);
/// So many entries may hold up a listing, each for that long; the others are then listed without a look.
const STALLS: usize = 2;

/// An entry of a folder.
#[derive(Clone)]
pub enum Listed {
    /// It was looked at.
    Found(Arc<Node>),
    /// It hangs, or there was no time: a name that probably leads to something.
    Unseen(OsString),
}

impl Listed {
    /// The entry's name in its folder.
    #[must_use]
    pub fn name(&self) -> &OsString {
        match self {
            Self::Found(node) => &node.name,
            Self::Unseen(name) => name,
        }
    }
}

/// The bulkhead of the pool for looking at one name of a folder: a name that hangs stops itself.
#[must_use]
pub fn bulkhead(folder: NodeId, name: &std::ffi::OsStr) -> Bulkhead {
    let mut hasher = DefaultHasher::new();
    (folder, name).hash(&mut hasher);
    // the bulkheads of datasets are their numbers, which are small
    Bulkhead::new(hasher.finish() | 1 << 63)
}

/// Names that some thread is looking at for a listing, and since when.
pub(super) type Looks = Mutex<HashMap<(NodeId, OsString), Instant>>;

/// One listing under way.
struct Walk {
    catalog: Arc<Catalog>,
    folder: Arc<Node>,
    /// Names, and whether each is a folder.
    names: Vec<(OsString, bool)>,
    next: AtomicUsize,
    seen: Mutex<Seen>,
    progress: Condvar,
}

#[derive(Default)]
struct Seen {
    /// By place in `names`: not looked at yet, or what was found.
    found: Vec<Option<Option<Arc<Node>>>>,
    count: usize,
}

/// All that `folder` shows, by name, looked at on threads of `pool`.
///
/// # Errors
/// [`CatalogError::Stale`] if the folder is gone, [`CatalogError::Io`] where the system fails.
pub fn list(catalog: &Arc<Catalog>, folder: &Arc<Node>, pool: &Arc<Pool>) -> Result<Vec<Listed>, CatalogError> {
    let names = catalog.names(folder)?;
    let seen = Mutex::new(Seen { found: vec![None; names.len()], count: 0 });
    let (catalog, folder) = (Arc::clone(catalog), Arc::clone(folder));
    let walk = Arc::new(Walk { catalog, folder, names, next: AtomicUsize::new(0), seen, progress: Condvar::new() });
    walk.start(pool);
    let mut stalls = 0;
    let mut seen = walk.seen();
    while seen.count < walk.names.len() {
        let before = seen.count;
        let (now, timed_out) = walk.progress.wait_timeout(seen, PATIENCE);
        seen = now;
        if timed_out && seen.count == before {
            stalls += 1;
            if stalls > STALLS || walk.next.load(Ordering::Relaxed) >= walk.names.len() {
                break;
            }
            walk.start(pool);
        }
    }
    let entries = seen.found.iter().zip(&walk.names).filter_map(|(found, (name, folder))| match found {
        Some(found) => found.clone().map(Listed::Found),
        None => (*folder || is_promised(Path::new(name))).then(|| Listed::Unseen(name.clone())),
    });
    Ok(entries.collect())
}

impl Walk {
    fn start(self: &Arc<Self>, pool: &Arc<Pool>) {
        let place = self.next.load(Ordering::Relaxed);
        let Some((name, _)) = self.names.get(place) else { return };
        let walk = Arc::clone(self);
        pool.submit(bulkhead(self.folder.id, name), move || walk.go_on());
    }

    fn go_on(&self) {
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((name, _)) = self.names.get(place) else { return };
            let key = (self.folder.id, name.clone());
            // another listing has waited for this one: it hangs
            let since = *self.catalog.looks().entry(key.clone()).or_insert_with(Instant::now);
            if since.elapsed() > PATIENCE {
                continue;
            }
            // what cannot be looked at does not hide the others
            let found = self.catalog.find(&self.folder, name).unwrap_or_default();
            self.catalog.looks().remove(&key);
            let mut seen = self.seen();
            seen.count += 1;
            if let Some(at) = seen.found.get_mut(place) {
                *at = Some(found);
            }
            drop(seen);
            self.progress.notify_all();
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }
}

impl Catalog {
    /// The names in a folder, in order, and whether each is a folder as far as that is known without a look.
    fn names(&self, folder: &Arc<Node>) -> Result<Vec<(OsString, bool)>, CatalogError> {
        let mut names = Vec::new();
        if let Some(only) = self.only_of(folder) {
            names.push((only.clone(), false));
            return Ok(names);
        }
        for entry in self.read_folder(folder)? {
            let entry = entry.map_err(|e| CatalogError::io(&folder.path(), &e))?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            names.push((entry.file_name(), is_folder));
        }
        names.sort_unstable();
        Ok(names)
    }

    fn looks(&self) -> MutexGuard<'_, HashMap<(NodeId, OsString), Instant>> {
        self.looks.lock()
    }
}
