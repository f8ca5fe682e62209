//! Finds the datasets below the source, and opens them when they are first needed.
//!
//! Nothing is walked in advance: a folder is read when it is listed, a name is looked up when a client asks for it, and
//! a header is parsed when the dataset's folder is entered. [`Recogniser`] decides what a path is, by asking the
//! formats of a registry. [`Catalog`] gives each folder and dataset a number, which it keeps (and with it its inode
//! numbers) while it is unchanged; a changed dataset is a new one with a new number.

#[cfg(feature = "mount")]
mod listing;
mod node;
mod open;
mod recognise;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lru::LruCache;
use thiserror::Error;

#[cfg(feature = "mount")]
pub(crate) use listing::{DatasetCount, EntryNumber, Listed, Listing, bulkhead_of_name, count_datasets};
pub(crate) use node::{Node, NodeId, OpenResult, ROOT};
pub(crate) use open::{OpenDataset, OpenError, open_dataset, open_source};
pub(crate) use recognise::{NodeKind, Recogniser};

use node::{Nodes, RETRY, UnseenNames};
use open::OpenContext;
use recognise::Entry;

use crate::format::{OpenWith, Registry};
use crate::logging::{LogLimit, warn_seldom};
use crate::memory::{claim, has_memory};
use crate::source::{EntryKind, Place, RecentWrites, RefreshQueue, Tree, tells_what_is_there};
use crate::sync::{Mutex, RwLock};

/// Datasets whose headers stay in memory although nothing reads them.
const KEPT_OPEN: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The most bytes that the description of a dataset takes while it is parsed.
const OPENING: usize = 48 << 20;

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum CatalogError {
    /// It is gone, or another one has taken its place.
    #[error("{0}: changed or gone")]
    Stale(String),
    #[error("cannot look at {path}: {message}")]
    Io { path: String, message: String, kind: io::ErrorKind },
}

impl CatalogError {
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io { path: path.display().to_string(), message: error.to_string(), kind: error.kind() }
    }

    fn stale(path: &Path) -> Self {
        Self::Stale(path.display().to_string())
    }

    fn no_memory(path: &Path) -> Self {
        Self::io(path, &io::ErrorKind::OutOfMemory.into())
    }

    /// Returns whether the system failed, so that nothing is known of what is there: the same look may succeed later.
    fn is_failure_of_system(&self) -> bool {
        matches!(self, Self::Io { kind, .. } if !tells_what_is_there(*kind))
    }
}

pub(crate) struct Catalog {
    base: PathBuf,
    /// The name of the only entry that the root shows, if SOURCE is one dataset.
    only: Option<OsString>,
    context: OpenContext,
    /// Whether SOURCE itself was gone at the last look.
    was_gone: AtomicBool,
    /// Each change of that is worth a line, but a source may come and go many times a second.
    presence_lines: LogLimit,
    nodes: RwLock<Nodes>,
    /// The names that listings look up at this moment, and since when.
    in_flight: Mutex<HashMap<(NodeId, OsString), Instant>>,
    unseen: Mutex<UnseenNames>,
    open: Mutex<LruCache<NodeId, Arc<Node>>>,
    refreshes: Arc<RefreshQueue>,
    known_bytes: AtomicU64,
}

impl Catalog {
    /// Creates a catalog of the datasets of `formats` in `tree`, whose SOURCE is a folder or one dataset. `refreshes`
    /// gets the number of each dataset that [`Catalog::refresh`] is due for. Fails if SOURCE is not there.
    pub(crate) fn new(
        formats: Registry,
        tree: Arc<dyn Tree>,
        with: OpenWith,
        refreshes: Arc<RefreshQueue>,
    ) -> Result<Self, CatalogError> {
        let recogniser = Recogniser::new(formats);
        let (base, only) = base_of(&*tree, &recogniser)?;
        let top = tree.about_base(&base).map_err(|e| CatalogError::io(&base, &e))?;
        let root = Node::new(ROOT, None, base.as_os_str(), Entry::new(NodeKind::Folder, &top), false);
        Ok(Self {
            base,
            only,
            context: OpenContext { recogniser, tree, with },
            was_gone: AtomicBool::new(false),
            presence_lines: LogLimit::new(Duration::ZERO),
            nodes: RwLock::new(Nodes::new(root)),
            in_flight: Mutex::default(),
            unseen: Mutex::default(),
            open: Mutex::new(LruCache::new(KEPT_OPEN)),
            refreshes,
            known_bytes: AtomicU64::new(0),
        })
    }

    /// Returns the folder or dataset with this number, also if it is stale.
    pub(crate) fn node(&self, id: NodeId) -> Option<Arc<Node>> {
        self.nodes.read().get(id)
    }

    /// Returns the bytes of all arrays of all datasets that were opened so far.
    pub(crate) fn known_bytes(&self) -> u64 {
        self.known_bytes.load(Ordering::Relaxed)
    }

    /// Returns the source, which knows its open files.
    pub(crate) fn tree(&self) -> &dyn Tree {
        &*self.context.tree
    }

    /// Returns whether SOURCE itself is gone, as the cause of a failure of something in it. Looks at the disk. Logs
    /// that it has gone, or come back, once.
    pub(crate) fn source_is_gone(&self) -> bool {
        let is_gone = self.tree().is_gone();
        let has_changed = self.was_gone.swap(is_gone, Ordering::Relaxed) != is_gone;
        if has_changed && self.presence_lines.admit(is_gone, Instant::now()).is_some() {
            let source = self.tree().source().display();
            if is_gone {
                log::error!(
                    "the source {source} is gone: it was deleted, moved or unmounted, and nothing of it can be read \
                     until it is there again"
                );
            } else {
                log::info!("the source {source} is there again");
            }
        }
        is_gone
    }

    /// Returns what `folder` shows under `name`, `None` if nothing. Looks at the disk.
    pub(crate) fn find(&self, folder: &Arc<Node>, name: &OsStr) -> Result<Option<Arc<Node>>, CatalogError> {
        if self.only_of(folder).is_some_and(|only| only != name) {
            return Ok(None);
        }
        let path = folder.path().join(name);
        // what is found stays in memory
        if !has_memory() {
            return Err(CatalogError::no_memory(&path));
        }
        let place = match folder.permissions() {
            // in the folder that the kernel has let the client into
            Some(_) if self.only_of(folder).is_none() => self.place_of(folder)?.find(Path::new(name)),
            _ => self.tree().look(&path),
        };
        let entry = self.context.recogniser.look(&path, place, |inode| folder.is_or_lies_in(inode));
        let entry = entry.map_err(|e| CatalogError::io(&path, &e))?;
        // an open dataset may have noticed a change that its version does not show; asking it may take time
        if let Some(known) = self.known(folder, name) {
            known.ask_for_change();
        }
        // anything that is found in a source that was gone shows that it has come back
        if folder.id == ROOT && (entry.is_none() || self.was_gone.load(Ordering::Relaxed)) {
            self.source_is_gone();
        }
        Ok(self.intern(folder, name, entry))
    }

    /// Returns what `folder` had under `name` when it was looked up last.
    fn known(&self, folder: &Node, name: &OsStr) -> Option<Arc<Node>> {
        self.nodes.read().child(folder.id, name)
    }

    /// Returns the only name that a folder shows, if SOURCE is one dataset.
    fn only_of(&self, folder: &Node) -> Option<&OsString> {
        self.only.as_ref().filter(|_| folder.id == ROOT)
    }

    fn visit_names(&self, folder: &Node, mut visit: impl FnMut(&OsStr, EntryKind) -> bool) -> Result<(), CatalogError> {
        self.place_of(folder)?.visit(&mut visit).map_err(|e| failure_in(folder, &e))
    }

    /// Returns what is at the path of a folder of the source. Fails if that is another folder by now where the folder
    /// decides who may enter.
    fn place_of(&self, folder: &Node) -> Result<Box<dyn Place>, CatalogError> {
        let path = folder.path();
        let stale = || CatalogError::stale(&path);
        let place = self.tree().look(&path).map_err(|e| failure_in(folder, &e))?.ok_or_else(stale)?;
        let entry = folder.entry();
        let is_other = entry.permissions.is_some() && place.about().version.inode != entry.inode;
        if is_other { Err(stale()) } else { Ok(place) }
    }

    pub(crate) fn names(&self, folder: &Node) -> Result<Vec<OsString>, CatalogError> {
        let mut names = Vec::new();
        self.visit_names(folder, |name, _| {
            names.push(name.to_owned());
            true
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// Returns whether a listing of a folder of the source takes many requests.
    fn is_crowd(&self, folder: &Node) -> bool {
        self.tree().look(&folder.path()).is_ok_and(|place| place.is_some_and(|place| place.is_crowd()))
    }

    /// Returns all that `folder` shows, by name. Looks at the disk, and waits for entries that hang, which
    /// [`Catalog::listing`] does not. `unseen` gets the names at which the system failed to look.
    pub(crate) fn list(
        &self,
        folder: &Arc<Node>,
        unseen: &mut dyn FnMut(&OsStr, CatalogError),
    ) -> Result<Vec<Arc<Node>>, CatalogError> {
        if let Some(only) = self.only_of(folder) {
            return Ok(self.find(folder, only)?.into_iter().collect());
        }
        let mut nodes = Vec::new();
        for name in self.names(folder)? {
            match self.find(folder, &name) {
                Ok(node) => nodes.extend(node),
                // such an entry does not hide the others
                Err(error) if error.is_failure_of_system() => unseen(&name, error),
                Err(_) => {}
            }
        }
        Ok(nodes)
    }

    /// Checks that a folder or dataset is unchanged, with a look at the disk in any case.
    pub(crate) fn check_now(&self, node: &Arc<Node>) -> Result<(), CatalogError> {
        let Some(parent) = &node.parent else { return Ok(()) };
        match self.find(parent, &node.name)? {
            Some(now) if now.id == node.id => Ok(()),
            _ => Err(CatalogError::stale(&node.path())),
        }
    }

    /// Looks at the folder that the root shows, and notes its times and permissions. May wait for ever.
    pub(crate) fn look_at_root(&self) {
        // one that is gone stays as it was
        if let (Some(root), Ok(about)) = (self.node(ROOT), self.tree().about_base(&self.base)) {
            root.is_still(&Entry::new(NodeKind::Folder, &about));
        }
    }

    /// Returns the dataset if it is open, or the error if it is known not to open. Does not look at the disk.
    pub(crate) fn opened(&self, node: &Arc<Node>) -> Option<OpenResult> {
        let opened = node.opened()?;
        self.open.lock().promote(&node.id);
        Some(opened)
    }

    pub(crate) fn open(&self, node: &Arc<Node>) -> OpenResult {
        let state = node.state();
        let one_at_a_time = state.opening.lock();
        let opened = node.opened().unwrap_or_else(|| {
            let new_recent = || RecentWrites::new(node.id.into(), Arc::clone(&self.refreshes), state.replaces_since);
            let opened = self.open_now(node, state.recent.get_or_init(new_recent));
            if let Err(error) = &opened
                && !self.source_is_gone()
            {
                warn_seldom(&format!("{}: {error}", node.path().display()));
            }
            *state.opened.lock() = Some((opened.clone(), Instant::now()));
            opened
        });
        drop(one_at_a_time);
        if let Ok(open) = &opened
            && !state.counted.swap(true, Ordering::Relaxed)
        {
            self.known_bytes.fetch_add(open.bytes(), Ordering::Relaxed);
        }
        self.keep_open(node);
        opened
    }

    /// Counts a dataset among those that stay open, and closes the one that was used the longest time ago.
    fn keep_open(&self, node: &Arc<Node>) {
        let dropped = self.open.lock().push(node.id, Arc::clone(node));
        if let Some((_, other)) = dropped
            && other.id != node.id
        {
            other.close();
        }
    }

    fn open_now(&self, node: &Node, recent: &Arc<RecentWrites>) -> OpenResult {
        // parsers of descriptions allocate without asking
        let _claim = claim(OPENING).map_err(|error| OpenError::from(io::Error::from(error)))?;
        let path = &*node.path();
        let entry = node.entry();
        let below = path.strip_prefix(&self.base).unwrap_or(path);
        let inode = entry.permissions.map(|_| entry.inode);
        let mut read = None;
        let opened = self.context.open((path, below), (entry.version, inode), recent, &mut read);
        *node.state().read.lock() = read;
        opened.map(Arc::new).map_err(Arc::new)
    }

    /// Opens a dataset again if a refresh is due, since it was opened a moment after a write. `in_use` is a result of
    /// opening it that readers hold; some have files open that need none. The new result counts if `is_alike` tells
    /// that it has the files of the old one; otherwise the dataset is stale from then on. After a failure of the system
    /// all stays as it is for readers, and the refresh is due again soon; without readers the dataset is closed.
    /// Returns whether a refresh was due and did not fail so.
    pub(crate) fn refresh(
        &self,
        node: &Arc<Node>,
        (has_readers, in_use): (bool, Option<OpenResult>),
        is_alike: impl FnOnce(&OpenResult, &OpenResult) -> bool,
    ) -> bool {
        let state = node.state();
        let one_at_a_time = state.opening.lock();
        let Some(recent) = state.recent.get().filter(|recent| recent.is_due()) else { return false };
        recent.clear();
        // fails with whether the system has failed; otherwise it is another dataset by now, or gone
        let reopen = |old: OpenResult| {
            self.check_now(node).map_err(|error| error.is_failure_of_system())?;
            // the check may have noticed once more what this refresh is for
            recent.clear();
            let new = self.open_now(node, recent);
            if is_alike(&old, &new) { Ok(new) } else { Err(new.is_err_and(|error| error.is_failure_of_system())) }
        };
        let known = state.opened.lock().as_ref().map(|(opened, _)| opened.clone());
        let new = match known.or(in_use).map(reopen) {
            Some(Ok(new)) => Some((new, Instant::now())),
            Some(Err(true)) if has_readers => {
                recent.set_due(Instant::now() + RETRY);
                return false;
            }
            // it is opened anew when it is needed, and the system may fail for ever
            None | Some(Err(true)) => None,
            Some(Err(false)) => {
                state.changed.store(true, Ordering::Release);
                None
            }
        };
        // it may have been closed before, while readers held it
        let is_open = new.is_some();
        let dropped = mem::replace(&mut *state.opened.lock(), new);
        state.epoch.fetch_add(1, Ordering::AcqRel);
        drop(one_at_a_time);
        drop(dropped);
        if is_open {
            self.keep_open(node);
        }
        true
    }

    /// Returns the node of an entry that was just found: the known one if it is unchanged, else a new one.
    fn intern(&self, folder: &Arc<Node>, name: &OsStr, entry: Option<Entry>) -> Option<Arc<Node>> {
        let is_still = |known: &Arc<Node>| entry.as_ref().is_some_and(|entry| known.is_still(entry));
        if let Some(known) = self.known(folder, name).filter(is_still) {
            return Some(known);
        }
        let mut nodes = self.nodes.write();
        // another thread may have been faster
        let known = nodes.child(folder.id, name);
        if known.as_ref().is_some_and(is_still) {
            return known;
        }
        nodes.remove_child(folder.id, name);
        let new = entry.and_then(|entry| nodes.add(folder, name, entry, known.is_some()));
        drop(nodes);
        if let Some(gone) = known {
            self.close(&gone);
        }
        new
    }

    /// Closes a dataset if it is open, and forgets why it did not open. Readers that hold it may go on reading.
    pub(crate) fn close(&self, node: &Node) {
        self.open.lock().pop(&node.id);
        node.close();
    }
}

fn failure_in(folder: &Node, error: &io::Error) -> CatalogError {
    match error.kind() {
        io::ErrorKind::NotFound => CatalogError::stale(&folder.path()),
        _ => CatalogError::io(&folder.path(), error),
    }
}

/// Returns the folder that the root shows for SOURCE, and the only name in it if SOURCE is one dataset.
fn base_of(tree: &dyn Tree, recogniser: &Recogniser) -> Result<(PathBuf, Option<OsString>), CatalogError> {
    let source = tree.source();
    let failed = |e| CatalogError::io(source, &e);
    let is_folder = tree.about_base(source).map_err(failed)?.is_folder();
    if is_folder && recogniser.format_at(tree, source).map_err(failed)?.is_none() {
        return Ok((source.to_owned(), None));
    }
    match (source.parent(), source.file_name()) {
        (Some(parent), Some(name)) => Ok((parent.to_owned(), Some(name.to_owned()))),
        _ => Ok((source.to_owned(), None)),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::format::registry;
    use crate::source::{Blocking, IndexCache, LocalTree};
    use crate::test_support::exchange::Exchange;

    const TIME: Duration = Duration::from_millis(800);

    fn data() -> Vec<u8> {
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/zgy/v3_int16.zgy")).unwrap()
    }

    /// Reads the last bytes of a dataset.
    fn last_bytes(open: &OpenDataset) -> Option<[u8; 16]> {
        let source = open.dataset.layers()[0].levels[0].source();
        let mut out = [0; 16];
        let size = source.len("").ok()??;
        source.read_at("", size - 16, &mut out, Blocking::Yes).ok()?.then_some(out)
    }

    /// Exchanges two names while the dataset `x/x.zgy` is looked up, opened and read; fails if it is ever the one
    /// outside.
    fn exchange(catalog: &Catalog, folder: &Path, (one, other): (&str, &str), expected: [u8; 16]) {
        let _exchange = Exchange::begin(File::open(folder).unwrap(), one, other);
        let (mut inside, began) = (0, Instant::now());
        while began.elapsed() < TIME {
            let root = catalog.node(ROOT).unwrap();
            let folder = catalog.find(&root, OsStr::new("x")).ok().flatten();
            let node = folder.and_then(|folder| catalog.find(&folder, OsStr::new("x.zgy")).ok().flatten());
            let open = node.and_then(|node| catalog.open(&node).ok());
            let found = open.and_then(|open| last_bytes(&open));
            assert!(found.is_none_or(|found| found == expected), "read a file outside");
            inside += usize::from(found.is_some());
        }
        assert!(inside > 10, "opened {inside} times");
    }

    fn check(catalog: impl Fn(&Path) -> Catalog) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["source/x", "outside"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        let mut bytes = data();
        fs::write(at("source/x/x.zgy"), &bytes).unwrap();
        let end = bytes.len() - 16;
        let expected: [u8; 16] = bytes[end..].try_into().unwrap();
        bytes[end..].iter_mut().for_each(|byte| *byte ^= 0xFF);
        fs::write(at("outside/x.zgy"), &bytes).unwrap();
        symlink(at("outside/x.zgy"), at("source/x/other")).unwrap();
        symlink(at("outside"), at("source/y")).unwrap();
        let catalog = catalog(&at("source"));
        exchange(&catalog, &at("source/x"), ("x.zgy", "other"), expected);
        exchange(&catalog, &at("source"), ("x", "y"), expected);
    }

    fn with() -> OpenWith {
        OpenWith::new(IndexCache::new(1 << 20))
    }

    #[test]
    fn a_dataset_that_is_exchanged_with_a_link_never_shows_a_file_outside() {
        check(|source| {
            let tree = LocalTree::below(source);
            Catalog::new(registry(), tree, with(), Arc::default()).unwrap()
        });
    }

    #[test]
    fn nor_on_a_kernel_without_openat2() {
        check(|source| {
            let tree = LocalTree::without_openat2(source);
            Catalog::new(registry(), tree, with(), Arc::default()).unwrap()
        });
    }

    #[test]
    fn a_dataset_that_replaced_another_keeps_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zgy");
        fs::write(&path, data()).unwrap();
        let catalog = Catalog::new(registry(), LocalTree::below(folder.path()), with(), Arc::default()).unwrap();
        let number = || {
            let root = catalog.node(ROOT).unwrap();
            catalog.find(&root, OsStr::new("x.zgy")).unwrap().unwrap().id
        };
        let before = number();
        fs::write(folder.path().join("new"), data()).unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        let after = number();
        assert!(after != before && number() == after && number() == after);
    }

    #[test]
    fn a_source_goes_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        let tree_at = |path: &Path| LocalTree::below(path);
        let catalog = Catalog::new(registry(), tree_at(&source), with(), Arc::default()).unwrap();
        let was_gone = || catalog.was_gone.load(Ordering::Relaxed);
        assert!(!catalog.source_is_gone() && !was_gone());
        fs::remove_dir(&source).unwrap();
        assert!(catalog.source_is_gone() && catalog.source_is_gone() && was_gone());
        fs::write(&source, "").unwrap();
        assert!(was_gone() && !catalog.source_is_gone() && !was_gone());
        // a folder above it may be gone as well, or be a file now
        assert!(tree_at(&source.join("below")).is_gone());
    }
}
