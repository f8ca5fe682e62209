//! The folders and datasets of SOURCE, as far as they were looked up.

use std::ffi::{OsStr, OsString};
use std::fs::ReadDir;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lru::LruCache;

use super::entry::{Entry, NodeKind};
use super::error::CatalogError;
use super::lookups::LookupsInFlight;
use super::node::{Node, NodeId, OpenResult, ROOT};
use super::nodes::Nodes;
use super::open::{OpenContext, open};
use super::recognise::Recogniser;
use super::unseen::UnseenNames;
use crate::counters::Counters;
use crate::format::{OpenWith, Registry};
use crate::source::{Folders, SymlinkPolicy};
use crate::sync::{Mutex, MutexGuard, RwLock};

/// Datasets that stay open although nothing reads them: each may hold a file descriptor.
const KEPT_OPEN: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The folders and datasets of SOURCE, as far as they were looked up.
pub struct Catalog {
    /// The folder that the root shows.
    base: PathBuf,
    /// The name of the only entry that the root shows, if SOURCE is one dataset.
    only: Option<OsString>,
    policy: Arc<SymlinkPolicy>,
    recogniser: Arc<Recogniser>,
    nodes: RwLock<Nodes>,
    pub(super) unseen: UnseenNames,
    pub(super) lookups: LookupsInFlight,
    open: Mutex<LruCache<NodeId, Arc<Node>>>,
    context: OpenContext,
    known_bytes: AtomicU64,
}

impl Catalog {
    /// Creates a catalog of the datasets of `formats` at `source`, the absolute path of a folder or of one dataset.
    ///
    /// # Errors
    /// [`CatalogError::Io`] if it is not there.
    pub fn new(
        formats: Registry,
        source: &Path,
        follow_links: bool,
        with: OpenWith,
        counters: Arc<Counters>,
    ) -> Result<Self, CatalogError> {
        let recogniser = Arc::new(Recogniser::new(formats));
        let (base, only) = base_of(source, &recogniser)?;
        let policy = Arc::new(SymlinkPolicy::below(source, follow_links));
        let metadata = base.metadata().map_err(|e| CatalogError::io(&base, &e))?;
        let root = Node::root(base.clone(), Entry::new(NodeKind::Folder, &metadata));
        let folders = Folders::new(Arc::clone(&policy), Arc::clone(&counters));
        Ok(Self {
            base,
            only,
            policy,
            recogniser: Arc::clone(&recogniser),
            nodes: RwLock::new(Nodes::new(root)),
            unseen: UnseenNames::default(),
            lookups: LookupsInFlight::default(),
            open: Mutex::new(LruCache::new(KEPT_OPEN)),
            context: OpenContext { recogniser, with, folders, counters },
            known_bytes: AtomicU64::new(0),
        })
    }

    /// Returns the folder or dataset with this number, also if it is stale.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<Arc<Node>> {
        self.nodes.read().get(id)
    }

    /// Returns the bytes of all arrays of all datasets that were opened so far.
    #[must_use]
    pub fn known_bytes(&self) -> u64 {
        self.known_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether a file of this name is shown, whatever its content.
    pub(super) fn has_dataset_extension(&self, name: &OsStr) -> bool {
        self.recogniser.has_dataset_extension(Path::new(name))
    }

    /// Returns what `folder` shows under `name`, `None` if nothing. Looks at the disk.
    ///
    /// # Errors
    /// [`CatalogError::Io`] where the system fails.
    pub fn find(&self, folder: &Arc<Node>, name: &OsStr) -> Result<Option<Arc<Node>>, CatalogError> {
        if self.only_of(folder).is_some_and(|only| only != name) {
            return Ok(None);
        }
        let path = folder.path().join(name);
        let is_above = |inode| folder.is_or_lies_in(inode);
        let entry = self.recogniser.look(&path, &self.policy, is_above).map_err(|e| CatalogError::io(&path, &e))?;
        // an open dataset may have noticed a change that its stamp does not show; asking it may take time
        if let Some(known) = self.known(folder, name) {
            known.ask_for_change();
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

    pub(super) fn read_folder(&self, folder: &Node) -> Result<ReadDir, CatalogError> {
        let path = folder.path();
        path.read_dir().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => CatalogError::Stale(path.display().to_string()),
            _ => CatalogError::io(&path, &e),
        })
    }

    /// Returns all that `folder` shows, by name. Looks at the disk, and waits for entries that hang, which
    /// [`listing::list`](super::listing::list) does not.
    ///
    /// # Errors
    /// [`CatalogError::Stale`] if the folder is gone, [`CatalogError::Io`] where the system fails.
    pub fn list(&self, folder: &Arc<Node>) -> Result<Vec<Arc<Node>>, CatalogError> {
        if let Some(only) = self.only_of(folder) {
            return Ok(self.find(folder, only)?.into_iter().collect());
        }
        let mut nodes = Vec::new();
        for entry in self.read_folder(folder)? {
            let name = entry.map_err(|e| CatalogError::io(&folder.path(), &e))?.file_name();
            // an entry that cannot be looked at does not hide the others
            if let Ok(Some(node)) = self.find(folder, &name) {
                nodes.push(node);
            }
        }
        nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(nodes)
    }

    /// Checks that a folder or dataset is unchanged. Looks at the disk unless the last look was a moment ago.
    ///
    /// # Errors
    /// [`CatalogError::Stale`] if it is not.
    pub fn check(&self, node: &Arc<Node>) -> Result<(), CatalogError> {
        if node.checked_lately() { Ok(()) } else { self.check_now(node) }
    }

    /// Returns whether [`Catalog::check`] needs no look at the disk.
    #[must_use]
    pub fn checked_lately(&self, node: &Node) -> bool {
        node.parent.is_none() || node.checked_lately()
    }

    /// Checks that a folder or dataset is unchanged, with a look at the disk in any case.
    ///
    /// # Errors
    /// [`CatalogError::Stale`] if it is not.
    pub fn check_now(&self, node: &Arc<Node>) -> Result<(), CatalogError> {
        let Some(parent) = &node.parent else { return Ok(()) };
        match self.find(parent, &node.name)? {
            Some(now) if now.id == node.id => Ok(()),
            _ => Err(CatalogError::Stale(node.path().display().to_string())),
        }
    }

    /// Returns the dataset if it is open, or the error if it is known not to open. Does not look at the disk.
    #[must_use]
    pub fn opened(&self, node: &Arc<Node>) -> Option<OpenResult> {
        let opened = node.opened()?;
        self.lock_open().promote(&node.id);
        Some(opened)
    }

    /// Returns the dataset; reads its headers if it is not open.
    ///
    /// # Errors
    /// [`OpenError`](super::OpenError): why it does not open.
    pub fn open(&self, node: &Arc<Node>) -> OpenResult {
        let opened = node.open_with(|| {
            let mut name = node.path();
            if let Ok(below) = name.strip_prefix(&self.base) {
                name = below.to_owned();
            }
            open(&node.path(), &name, node.stamp(), &self.context)
        });
        if let Ok(open) = &opened
            && node.count_once()
        {
            self.known_bytes.fetch_add(open.bytes(), Ordering::Relaxed);
        }
        let dropped = self.lock_open().push(node.id, Arc::clone(node));
        if let Some((_, other)) = dropped
            && other.id != node.id
        {
            other.close();
        }
        opened
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
                let new = entry.and_then(|entry| nodes.add(folder, name, entry));
                (new, known)
            }
        };
        drop(nodes);
        if let Some(gone) = gone {
            self.forget(&gone);
        }
        node
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
fn base_of(source: &Path, recogniser: &Recogniser) -> Result<(PathBuf, Option<OsString>), CatalogError> {
    let failed = |e| CatalogError::io(source, &e);
    let is_folder = source.metadata().map_err(failed)?.is_dir();
    if is_folder && recogniser.format_of(source).map_err(failed)?.is_none() {
        return Ok((source.to_owned(), None));
    }
    match (source.parent(), source.file_name()) {
        (Some(parent), Some(name)) => Ok((parent.to_owned(), Some(name.to_owned()))),
        _ => Ok((source.to_owned(), None)),
    }
}
