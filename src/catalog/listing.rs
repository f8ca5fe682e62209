//! Lists a folder of the source although a look at one of its entries may hang.
//!
//! An entry may be the mount point of a server that is gone, and a look at it may never return. A thread of the pool
//! looks at one entry after the other while the caller waits. When there is no progress for a moment, a new thread
//! continues with the next entries, and the entry that hangs is listed by its name alone. Other listings skip it until
//! the first thread returns.

use std::ffi::OsStr;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::node::{Node, NodeId, ROOT};
use super::recognise::NodeKind;
use super::{Catalog, CatalogError};
use crate::format::{OpenWith, Registry};
use crate::memory::has_memory;
use crate::pool::{Bulkhead, Pool};
use crate::source::{EntryKind, IndexCache, Origin, hash_of};
use crate::sync::{Condvar, Mutex};

/// A look at an entry that takes longer counts as hanging.
const TIMEOUT: Duration = Duration::from_millis(30);
/// The same of an object store, where each look is a request or several, which end by themselves.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);
/// Entries of an object store that are looked at at a time.
const STORE_LOOKS: usize = 8;
/// Timeouts after which a listing ends; the remaining entries are listed by their names alone.
const MAX_TIMEOUTS: usize = 2;
/// Bytes of tables that are cached while datasets are counted.
const INDEX_BYTES: usize = 1 << 20;

/// An entry of a listing: the number of a node, or, with the top bit, of a name that could not be looked at. A number
/// means the same name in the same folder for as long as the catalog exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryNumber(pub(crate) u32);

/// The bit of numbers of names that could not be looked at.
const UNSEEN: u32 = 1 << 31;

/// What a folder shows, by name. A hundred thousand entries take 400 KB.
pub(crate) type Listing = Arc<[EntryNumber]>;

#[derive(Clone)]
pub(crate) enum Listed {
    Found(Arc<Node>),
    /// The look hangs or fails, or there was no time for it: the name of a folder, or of a file with the extension of a
    /// format.
    Unseen(Arc<OsStr>),
}

impl Listed {
    pub(crate) fn name(&self) -> &OsStr {
        match self {
            Self::Found(node) => &node.name,
            Self::Unseen(name) => name,
        }
    }
}

/// Returns the pool's bulkhead for looks at one name of a folder: a name that hangs blocks no other.
pub(crate) fn bulkhead_of_name(folder: NodeId, name: &OsStr) -> Bulkhead {
    // the bulkheads of datasets are their numbers, which are small
    Bulkhead::new(hash_of((folder, name)) | 1 << 63)
}

#[derive(Default)]
struct Names {
    /// All names without separators: each in an allocation of its own would leave holes between the nodes.
    bytes: Vec<u8>,
    /// Where each name begins and ends, and whether it is that of a folder as far as that is known without a look.
    entries: Vec<(u32, u32, bool)>,
}

impl Names {
    /// Adds a name; `false` if there is no more room, which takes 4 GiB of names.
    fn push(&mut self, name: &OsStr, is_folder: bool) -> bool {
        let from = u32::try_from(self.bytes.len());
        self.bytes.extend_from_slice(name.as_bytes());
        let (Ok(from), Ok(to)) = (from, u32::try_from(self.bytes.len())) else { return false };
        self.entries.push((from, to, is_folder));
        true
    }

    fn sort(&mut self) {
        let Self { bytes, entries } = self;
        entries.sort_unstable_by_key(|(from, to, _)| bytes.get(*from as usize..*to as usize).unwrap_or_default());
    }

    fn get(&self, index: usize) -> Option<(&OsStr, bool)> {
        let (from, to, is_folder) = *self.entries.get(index)?;
        Some((OsStr::from_bytes(self.bytes.get(from as usize..to as usize)?), is_folder))
    }
}

struct Progress {
    catalog: Arc<Catalog>,
    folder: Arc<Node>,
    names: Names,
    is_of_store: bool,
    /// The index of the first name that no thread has taken.
    next: AtomicUsize,
    results: Mutex<Results>,
    progress: Condvar,
}

/// Not looked at yet.
const PENDING: u32 = u32::MAX;
/// Nothing that is shown.
const NOTHING: u32 = u32::MAX - 1;

struct Results {
    /// For each name: the number of its node, or one of the above.
    found: Vec<u32>,
    /// Names that were looked at.
    count: usize,
}

impl Catalog {
    /// Returns the entry with a number, also if its folder does not show it any more.
    pub(crate) fn entry(&self, number: EntryNumber) -> Option<Listed> {
        if number.0 & UNSEEN == 0 {
            return self.node(number.0).map(Listed::Found);
        }
        let index = (number.0 & !UNSEEN) as usize;
        self.unseen.lock().by_number.get(index).cloned().map(Listed::Unseen)
    }

    /// Returns how many entries of a listing come before the name of entry `last`, or are that entry.
    pub(crate) fn position_after(&self, listing: &Listing, last: EntryNumber) -> usize {
        let Some(last) = self.entry(last) else { return listing.len() };
        listing.partition_point(|number| self.entry(*number).is_some_and(|entry| entry.name() <= last.name()))
    }

    /// Returns all that `folder` shows, by name, looked at on threads of `pool`. Fails as [`Catalog::list`] does, but
    /// does not wait for entries that hang.
    pub(crate) fn listing(self: &Arc<Self>, folder: &Arc<Node>, pool: &Arc<Pool>) -> Result<Listing, CatalogError> {
        let names = self.names_to_list(folder)?;
        let results = Mutex::new(Results { found: vec![PENDING; names.entries.len()], count: 0 });
        let (catalog, folder) = (Arc::clone(self), Arc::clone(folder));
        let (next, progress) = Default::default();
        let is_of_store = self.tree().store_status().is_some();
        let listing = Arc::new(Progress { catalog, folder, names, is_of_store, next, results, progress });
        let found = listing.wait(pool);
        // an entry for which there was no memory is no reason to show less
        if !has_memory() {
            return Err(CatalogError::no_memory(&listing.folder.path()));
        }
        let numbers = found.iter().enumerate().filter_map(|(index, found)| match *found {
            NOTHING => None,
            PENDING => {
                let (name, is_folder) = listing.names.get(index)?;
                // what an earlier listing did not wait for
                if listing.is_of_store
                    && let Some(known) = self.known(&listing.folder, name)
                {
                    return Some(EntryNumber(known.id));
                }
                let is_shown = is_folder || self.context.recogniser.has_dataset_extension(Path::new(name));
                let number = || self.unseen.lock().number(listing.folder.id, name);
                is_shown.then(number)?.map(|number| EntryNumber(UNSEEN | number))
            }
            node => Some(EntryNumber(node)),
        });
        Ok(numbers.collect())
    }

    /// Returns the names in a folder in order, and whether each is a folder, as far as that is known without a look.
    fn names_to_list(&self, folder: &Arc<Node>) -> Result<Names, CatalogError> {
        let mut names = Names::default();
        if let Some(only) = self.only_of(folder) {
            names.push(only, false);
            return Ok(names);
        }
        self.visit_names(folder, |name, kind| has_memory() && names.push(name, kind == EntryKind::Folder))?;
        if !has_memory() {
            return Err(CatalogError::no_memory(&folder.path()));
        }
        names.sort();
        Ok(names)
    }
}

impl Progress {
    /// Has threads of the pool look at all names, and returns the results once no more come.
    fn wait(self: &Arc<Self>, pool: &Arc<Pool>) -> Vec<u32> {
        (0..if self.is_of_store { STORE_LOOKS } else { 1 }).for_each(|ahead| self.start_thread(pool, ahead));
        let mut timeouts = 0;
        let mut results = self.results.lock();
        while results.count < self.names.entries.len() {
            let before = results.count;
            let waited = self.progress.wait_for(&mut results, self.timeout());
            if waited.timed_out() && results.count == before {
                timeouts += 1;
                if timeouts > MAX_TIMEOUTS || self.next.load(Ordering::Relaxed) >= self.names.entries.len() {
                    break;
                }
                // a pool without threads would run the job here, and the job takes the lock
                drop(results);
                self.start_thread(pool, 0);
                results = self.results.lock();
            }
        }
        mem::take(&mut results.found)
    }

    fn timeout(&self) -> Duration {
        if self.is_of_store { STORE_TIMEOUT } else { TIMEOUT }
    }

    /// Has a thread of the pool look at the names that no thread has taken, in the bulkhead of one of them: the first, or
    /// one so many `ahead`.
    fn start_thread(self: &Arc<Self>, pool: &Arc<Pool>, ahead: usize) {
        let index = self.next.load(Ordering::Relaxed) + ahead;
        let Some((name, _)) = self.names.get(index) else { return };
        let listing = Arc::clone(self);
        pool.submit(bulkhead_of_name(self.folder.id, name), move || listing.run());
    }

    fn run(&self) {
        let in_flight = &self.catalog.in_flight;
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((name, _)) = self.names.get(index) else { return };
            let key = (self.folder.id, name.to_owned());
            // the look of another listing hangs
            if in_flight.lock().entry(key.clone()).or_insert_with(Instant::now).elapsed() > self.timeout() {
                continue;
            }
            let found = self.catalog.find(&self.folder, name);
            in_flight.lock().remove(&key);
            let mut results = self.results.lock();
            results.count += 1;
            // an entry that cannot be looked at stays pending, and does not hide the others
            if let (Some(result), Ok(found)) = (results.found.get_mut(index), found) {
                *result = found.map_or(NOTHING, |node| node.id);
            }
            let done = results.count == self.names.entries.len();
            drop(results);
            // progress until then is seen by the count, without waking the thread that waits for each of many names
            if done {
                self.progress.notify_all();
            }
        }
    }
}

/// The datasets found below a source within a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatasetCount {
    /// Datasets found, also those that do not open.
    pub(crate) datasets: usize,
    /// Whether the time was long enough to find all.
    pub(crate) complete: bool,
    /// The first dataset by name that opens: its path below the mount point.
    pub(crate) first: Option<PathBuf>,
}

/// Counts the datasets of `formats` below a source until the time is up.
pub(crate) fn count_datasets(formats: Registry, origin: &Origin, until: Instant) -> DatasetCount {
    let mut count = DatasetCount::default();
    let with = OpenWith::new(IndexCache::new(INDEX_BYTES));
    if let Ok(tree) = origin.tree(formats.folder_files(), false, Arc::default())
        && let Ok(catalog) = Catalog::new(formats, tree, with, Arc::default())
        && let Some(root) = catalog.node(ROOT)
    {
        count.complete = count.add(&catalog, &root, Path::new(""), until);
    }
    count
}

impl DatasetCount {
    /// Adds the datasets below a folder; `false` if the time was up before all were found, or they would take many
    /// requests.
    fn add(&mut self, catalog: &Catalog, folder: &Arc<Node>, below: &Path, until: Instant) -> bool {
        !catalog.is_crowd(folder)
            && catalog.list(folder, &mut |_, _| {}).unwrap_or_default().into_iter().all(|node| {
                if Instant::now() >= until {
                    return false;
                }
                let path = below.join(&*node.name);
                if node.kind == NodeKind::Folder {
                    return self.add(catalog, &node, &path, until);
                }
                self.datasets += 1;
                if self.first.is_none() && catalog.open(&node).is_ok() {
                    self.first = Some(path);
                }
                true
            })
    }
}
