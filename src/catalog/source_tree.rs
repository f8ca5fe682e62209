//! The folders and datasets of SOURCE, as far as they were looked up.

use std::ffi::{OsStr, OsString};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lru::LruCache;

use super::entry::{Entry, NodeKind};
use super::error::CatalogError;
use super::lookups::LookupsInFlight;
use super::node::{Node, NodeId, OpenResult, ROOT, Reopened};
use super::nodes::Nodes;
use super::open::{OpenContext, OpenDataset, OpenError, open};
use super::presence::Presence;
use super::recognise::Recogniser;
use super::unseen::UnseenNames;
use crate::format::{OpenWith, Registry};
use crate::log_limit::warn_seldom;
use crate::memory::{claim, has_memory};
use crate::source::{EntryKind, Place, RecentWrites, RefreshQueue, Tree};
use crate::sync::{Mutex, MutexGuard, RwLock};

/// Datasets whose headers stay in memory although nothing reads them.
const KEPT_OPEN: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The most bytes that the description of a dataset takes while it is parsed.
const OPENING: usize = 48 << 20;

/// The folders and datasets of SOURCE, as far as they were looked up.
pub(crate) struct Catalog {
    /// The folder that the root shows.
    base: PathBuf,
    /// The name of the only entry that the root shows, if SOURCE is one dataset.
    only: Option<OsString>,
    presence: Presence,
    tree: Arc<dyn Tree>,
    recogniser: Arc<Recogniser>,
    nodes: RwLock<Nodes>,
    pub(super) unseen: UnseenNames,
    pub(super) lookups: LookupsInFlight,
    open: Mutex<LruCache<NodeId, Arc<Node>>>,
    context: OpenContext,
    refreshes: Arc<RefreshQueue>,
    known_bytes: AtomicU64,
}

impl Catalog {
    /// Creates a catalog of the datasets of `formats` in `tree`, whose SOURCE is a folder or one dataset. `refreshes`
    /// gets the number of each dataset that [`Catalog::refresh`] is due for.
    pub(crate) fn new(
        formats: Registry,
        tree: Arc<dyn Tree>,
        with: OpenWith,
        refreshes: Arc<RefreshQueue>,
    ) -> Result<Self, CatalogError> {
        let recogniser = Arc::new(Recogniser::new(formats));
        let (base, only) = base_of(&*tree, &recogniser)?;
        let top = tree.about_base(&base).map_err(|e| CatalogError::io(&base, &e))?;
        let root = Node::root(base.clone(), Entry::new(NodeKind::Folder, &top));
        Ok(Self {
            base,
            only,
            presence: Presence::of(Arc::clone(&tree)),
            tree: Arc::clone(&tree),
            recogniser: Arc::clone(&recogniser),
            nodes: RwLock::new(Nodes::new(root)),
            unseen: UnseenNames::default(),
            lookups: LookupsInFlight::default(),
            open: Mutex::new(LruCache::new(KEPT_OPEN)),
            context: OpenContext { recogniser, tree, with },
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

    /// Returns whether SOURCE itself is gone, as the cause of a failure of something in it. Looks at the disk. Logs that
    /// it has gone, or come back, once.
    pub(crate) fn source_is_gone(&self) -> bool {
        self.presence.look_if_gone()
    }

    /// Returns whether a file of this name is shown, whatever its content.
    pub(super) fn has_dataset_extension(&self, name: &OsStr) -> bool {
        self.recogniser.has_dataset_extension(Path::new(name))
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
        let is_above = |inode| folder.is_or_lies_in(inode);
        let place = match folder.permissions() {
            // in the folder that the kernel has let the client into
            Some(_) if self.only_of(folder).is_none() => self.place_of(folder)?.find(Path::new(name)),
            _ => self.tree.look(&path),
        };
        let entry = self.recogniser.look(&path, place, is_above).map_err(|e| CatalogError::io(&path, &e))?;
        // an open dataset may have noticed a change that its stamp does not show; asking it may take time
        if let Some(known) = self.known(folder, name) {
            known.ask_for_change();
        }
        // one that has come back is noticed by anything that is found in it
        if folder.id == ROOT && (entry.is_none() || self.presence.was_gone()) {
            self.presence.look_if_gone();
        }
        Ok(self.intern(folder, name, entry))
    }

    /// Returns what `folder` had under `name` when it was looked up last.
    fn known(&self, folder: &Node, name: &OsStr) -> Option<Arc<Node>> {
        self.nodes.read().child(folder.id, name)
    }

    /// Returns the only name that a folder shows, if SOURCE is one dataset.
    pub(super) fn only_of(&self, folder: &Node) -> Option<&OsString> {
        self.only.as_ref().filter(|_| folder.id == ROOT)
    }

    /// Passes the names in a folder of the source, and their types, to `visit` until it returns `false`.
    pub(super) fn visit_names(
        &self,
        folder: &Node,
        mut visit: impl FnMut(&OsStr, EntryKind) -> bool,
    ) -> Result<(), CatalogError> {
        let failed = |e| self.failure_in(folder, &e);
        self.place_of(folder)?.visit(&mut visit).map_err(failed)
    }

    /// Returns what is at the path of a folder of the source.
    fn place_of(&self, folder: &Node) -> Result<Box<dyn Place>, CatalogError> {
        let path = folder.path();
        let stale = || CatalogError::Stale(path.display().to_string());
        let place = match self.tree.look(&path) {
            Ok(place) => place.ok_or_else(stale)?,
            Err(e) => return Err(self.failure_in(folder, &e)),
        };
        let is_other = || place.about().stamp.inode != folder.place();
        if folder.permissions().is_some() && is_other() {
            return Err(stale());
        }
        Ok(place)
    }

    fn failure_in(&self, folder: &Node, error: &io::Error) -> CatalogError {
        let path = folder.path();
        match error.kind() {
            io::ErrorKind::NotFound => CatalogError::Stale(path.display().to_string()),
            _ => CatalogError::io(&path, error),
        }
    }

    /// Returns the names in a folder of the source, in no order.
    pub(crate) fn names(&self, folder: &Node) -> io::Result<Vec<OsString>> {
        let place = self.tree.look(&folder.path())?.ok_or(io::ErrorKind::NotFound)?;
        let mut names = Vec::new();
        place.visit(&mut |name, _| {
            names.push(name.to_owned());
            true
        })?;
        Ok(names)
    }

    /// Returns whether a listing of a folder of the source takes many requests.
    pub(super) fn is_crowd(&self, folder: &Node) -> bool {
        self.tree.look(&folder.path()).is_ok_and(|place| place.is_some_and(|place| place.is_crowd()))
    }

    /// Returns the source, which knows its open files.
    pub(crate) fn tree(&self) -> &dyn Tree {
        &*self.tree
    }

    /// Returns all that `folder` shows, by name. Looks at the disk, and waits for entries that hang, which
    /// [`listing::list`](super::listing::list) does not.
    pub(crate) fn list(&self, folder: &Arc<Node>) -> Result<Vec<Arc<Node>>, CatalogError> {
        if let Some(only) = self.only_of(folder) {
            return Ok(self.find(folder, only)?.into_iter().collect());
        }
        let (mut names, mut nodes) = (Vec::new(), Vec::new());
        self.visit_names(folder, |name, _| {
            names.push(name.to_owned());
            true
        })?;
        for name in names {
            // an entry that cannot be looked at does not hide the others
            if let Ok(Some(node)) = self.find(folder, &name) {
                nodes.push(node);
            }
        }
        nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(nodes)
    }

    /// Checks that a folder or dataset is unchanged. Looks at the disk unless the last look was a moment ago.
    pub(crate) fn check(&self, node: &Arc<Node>) -> Result<(), CatalogError> {
        if node.checked_lately() { Ok(()) } else { self.check_now(node) }
    }

    /// Returns whether [`Catalog::check`] needs no look at the disk.
    pub(crate) fn checked_lately(&self, node: &Node) -> bool {
        node.parent.is_none() || node.checked_lately()
    }

    /// Checks that a folder or dataset is unchanged, with a look at the disk in any case.
    pub(crate) fn check_now(&self, node: &Arc<Node>) -> Result<(), CatalogError> {
        let Some(parent) = &node.parent else { return Ok(()) };
        match self.find(parent, &node.name)? {
            Some(now) if now.id == node.id => Ok(()),
            _ => Err(CatalogError::Stale(node.path().display().to_string())),
        }
    }

    /// Looks at the folder that the root shows, and notes its times and permissions. May wait for ever.
    pub(crate) fn look_at_root(&self) {
        // one that is gone stays as it was
        if let (Some(root), Ok(about)) = (self.node(ROOT), self.tree.about_base(&self.base)) {
            root.is_still(&Entry::new(NodeKind::Folder, &about));
        }
    }

    /// Returns the dataset if it is open, or the error if it is known not to open. Does not look at the disk.
    pub(crate) fn opened(&self, node: &Arc<Node>) -> Option<OpenResult> {
        let opened = node.opened()?;
        self.lock_open().promote(&node.id);
        Some(opened)
    }

    /// Returns the dataset; reads its headers if it is not open.
    pub(crate) fn open(&self, node: &Arc<Node>) -> OpenResult {
        let log_failure = |error: &OpenError| {
            if !self.presence.look_if_gone() {
                warn_seldom(&format!("{}: {error}", node.path().display()));
            }
        };
        let opened = node.open_with(&self.refreshes, |recent| self.open_now(node, recent), log_failure);
        if let Ok(open) = &opened
            && node.count_once()
        {
            self.known_bytes.fetch_add(open.bytes(), Ordering::Relaxed);
        }
        self.keep_open(node);
        opened
    }

    /// Counts a dataset among those that stay open, and closes the one that was used the longest time ago.
    fn keep_open(&self, node: &Arc<Node>) {
        let dropped = self.lock_open().push(node.id, Arc::clone(node));
        if let Some((_, other)) = dropped
            && other.id != node.id
        {
            other.close();
        }
    }

    fn open_now(&self, node: &Node, recent: &Arc<RecentWrites>) -> Result<OpenDataset, OpenError> {
        let path = node.path();
        let below = path.strip_prefix(&self.base).unwrap_or(&path);
        // parsers of descriptions allocate without asking
        let _claim = claim(OPENING).map_err(io::Error::from)?;
        let wanted = (node.stamp(), node.permissions().is_some().then(|| node.place()));
        let mut read = None;
        let opened = open((&path, below), wanted, recent, &self.context, &mut read);
        node.note_read(read);
        opened
    }

    /// Opens a dataset again if a refresh is due, since it was opened a moment after a write. `in_use` is a result of
    /// opening it that readers hold; some have files open that need none. The new result counts if `is_alike` tells that
    /// it has the files of the old one; otherwise the dataset is stale from then on. After a failure of the system all
    /// stays as it is for readers, and the refresh is due again soon; without readers the dataset is closed. Returns
    /// whether a refresh was due and did not fail so.
    pub(crate) fn refresh(
        &self,
        node: &Arc<Node>,
        (has_readers, in_use): (bool, Option<OpenResult>),
        is_alike: impl FnOnce(&OpenResult, &OpenResult) -> bool,
    ) -> bool {
        let is_done = node.refresh(|recent, known| {
            // what nobody reads is read anew when somebody does, and the system may fail for ever
            let failed = if has_readers { Reopened::Failed } else { Reopened::NotNeeded };
            let Some(old) = known.or(in_use) else { return Reopened::NotNeeded };
            match self.check_now(node) {
                Ok(()) => {}
                Err(error) if error.is_failure_of_system() => return failed,
                Err(_) => return Reopened::Other,
            }
            // the check may have noticed once more what this refresh is for
            recent.clear();
            let new = self.open_now(node, recent).map(Arc::new).map_err(Arc::new);
            if is_alike(&old, &new) {
                return Reopened::Alike(new);
            }
            match new {
                Err(error) if error.is_failure_of_system() => failed,
                _ => Reopened::Other,
            }
        });
        // it may have been closed before, while readers held it
        if is_done && node.opened().is_some() {
            self.keep_open(node);
        }
        is_done
    }

    /// Returns the node of an entry that was just found: the known one if it is unchanged, else a new one.
    fn intern(&self, folder: &Arc<Node>, name: &OsStr, entry: Option<Entry>) -> Option<Arc<Node>> {
        if let (Some(known), Some(entry)) = (self.known(folder, name), &entry)
            && known.is_still(entry)
        {
            return Some(known);
        }
        let mut nodes = self.nodes.write();
        // another thread may have been faster
        let known = nodes.child(folder.id, name);
        let (node, gone) = match (known, entry) {
            (Some(known), Some(entry)) if known.is_still(&entry) => (Some(known), None),
            (known, entry) => {
                nodes.remove_child(folder.id, name);
                let new = entry.and_then(|entry| nodes.add(folder, name, entry, known.is_some()));
                (new, known)
            }
        };
        drop(nodes);
        if let Some(gone) = gone {
            self.forget(&gone);
        }
        node
    }

    /// Closes a dataset if it is open, and forgets why it did not open. Those who hold it may go on reading.
    pub(crate) fn close(&self, node: &Arc<Node>) {
        self.forget(node);
    }

    fn forget(&self, node: &Arc<Node>) {
        self.lock_open().pop(&node.id);
        node.close();
    }

    fn lock_open(&self) -> MutexGuard<'_, LruCache<NodeId, Arc<Node>>> {
        self.open.lock()
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
