//! Finds the datasets below the source, and opens them when they are first needed.
//!
//! Nothing is walked in advance: a folder is looked at when somebody lists it, a file when somebody asks for its name, a header
//! when its dataset is entered. What was found keeps its number (and with it its inode numbers) while it is unchanged; a
//! changed dataset is a new one with a new number.

pub mod listing;
mod node;
mod open;
mod probe;
mod survey;

use crate::sync::{Mutex, MutexGuard, RwLock};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::ReadDir;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lru::LruCache;
use thiserror::Error;

pub use node::{Kind, Node, NodeId, Opened, ROOT};
pub use open::{OpenDataset, OpenError, open_dataset};
pub use survey::{Survey, survey};

use crate::counters::Counters;
use crate::format::OpenWith;
use crate::source::{Folders, SymlinkPolicy};
use open::Shared;
use probe::{Found, Prober};

/// Datasets that stay open although nobody reads them: each may hold a file.
const KEPT_OPEN: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Why a folder or dataset of the source cannot be looked at.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CatalogError {
    /// It is no longer there, or no longer what it was.
    #[error("{0}: changed or gone")]
    Stale(String),
    /// The operating system's fault, or the disk's.
    #[error("cannot look at {path}: {message}")]
    Io {
        /// What was looked at.
        path: String,
        /// The system's words.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
}

impl CatalogError {
    fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io { path: path.display().to_string(), message: error.to_string(), kind: error.kind() }
    }
}

/// All that is known of the source.
pub struct Catalog {
    prober: Prober,
    /// Where SOURCE is one dataset: its name, the only one that the root shows.
    only: Option<OsString>,
    nodes: RwLock<Vec<Arc<Node>>>,
    children: Mutex<HashMap<(NodeId, OsString), Arc<Node>>>,
    looks: listing::Looks,
    open: Mutex<LruCache<NodeId, Arc<Node>>>,
    shared: Shared,
    known_bytes: AtomicU64,
}

impl Catalog {
    /// A catalog of `source`, an absolute path: a folder, or one dataset.
    ///
    /// # Errors
    /// [`CatalogError::Io`] if it is not there.
    pub fn new(
        source: &Path,
        follow_links: bool,
        with: OpenWith,
        counters: Arc<Counters>,
    ) -> Result<Self, CatalogError> {
        let (base, only) = base_of(source)?;
        let links = Arc::new(SymlinkPolicy::below(source, follow_links));
        let prober = Prober::new(base.clone(), Arc::clone(&links));
        let found = prober.look_at_base().map_err(|e| CatalogError::io(&base, &e))?;
        let root = Arc::new(Node::root(base, found));
        Ok(Self {
            prober,
            only,
            nodes: RwLock::new(vec![root]),
            children: Mutex::default(),
            looks: Mutex::default(),
            open: Mutex::new(LruCache::new(KEPT_OPEN)),
            shared: Shared { with, folders: Folders::new(links, Arc::clone(&counters)), counters },
            known_bytes: AtomicU64::new(0),
        })
    }

    /// The folder or dataset with this number, also if it is stale.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<Arc<Node>> {
        self.nodes.read().get(id as usize).cloned()
    }

    /// Bytes of all arrays of all datasets that were opened so far.
    #[must_use]
    pub fn known_bytes(&self) -> u64 {
        self.known_bytes.load(Ordering::Relaxed)
    }

    /// What `folder` shows under `name`. Looks at the disk.
    ///
    /// # Errors
    /// [`CatalogError::Io`] where the system fails; that nothing is there is an answer.
    pub fn find(&self, folder: &Arc<Node>, name: &OsStr) -> Result<Option<Arc<Node>>, CatalogError> {
        if self.only_of(folder).is_some_and(|only| only != name) {
            return Ok(None);
        }
        let path = folder.path().join(name);
        let found = self.prober.look(folder, &path).map_err(|e| CatalogError::io(&path, &e))?;
        // a dataset that is open may know better than a look at its name; it may take time to say so
        if let Some(known) = self.known(folder, name) {
            known.note_change();
        }
        Ok(self.settle(folder, name, found))
    }

    /// What `folder` had under `name` when it was looked at last.
    fn known(&self, folder: &Node, name: &OsStr) -> Option<Arc<Node>> {
        let children = self.children.lock();
        children.get(&(folder.id, name.to_owned())).cloned()
    }

    /// The one name that a folder shows, if SOURCE is one dataset.
    fn only_of(&self, folder: &Node) -> Option<&OsString> {
        self.only.as_ref().filter(|_| folder.id == ROOT)
    }

    fn read_folder(&self, folder: &Node) -> Result<ReadDir, CatalogError> {
        let path = folder.path();
        path.read_dir().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => CatalogError::Stale(path.display().to_string()),
            _ => CatalogError::io(&path, &e),
        })
    }

    /// All that `folder` shows, by name. Looks at the disk, and waits for whatever takes long: see [`listing::list`].
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
            // what cannot be looked at does not hide the others
            if let Ok(Some(node)) = self.find(folder, &name) {
                nodes.push(node);
            }
        }
        nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(nodes)
    }

    /// Makes sure that a folder or dataset is still what it was. Looks at the disk if it was not looked at just now.
    ///
    /// # Errors
    /// [`CatalogError::Stale`] if it is not.
    pub fn check(&self, node: &Arc<Node>) -> Result<(), CatalogError> {
        if node.checked_lately() { Ok(()) } else { self.check_now(node) }
    }

    /// Whether [`Catalog::check`] has no need to look at the disk.
    #[must_use]
    pub fn checked_lately(&self, node: &Node) -> bool {
        node.parent.is_none() || node.checked_lately()
    }

    /// As [`Catalog::check`], with a look at the disk in any case.
    ///
    /// # Errors
    /// [`CatalogError::Stale`] if it is not what it was.
    pub fn check_now(&self, node: &Arc<Node>) -> Result<(), CatalogError> {
        let Some(parent) = &node.parent else { return Ok(()) };
        match self.find(parent, &node.name)? {
            Some(now) if now.id == node.id => Ok(()),
            _ => Err(CatalogError::Stale(node.path().display().to_string())),
        }
    }

    /// The dataset, if it is open or is known not to open. Looks at nothing.
    #[must_use]
    pub fn opened(&self, node: &Arc<Node>) -> Option<Opened> {
        let opened = node.opened()?;
        self.lock_open().promote(&node.id);
        Some(opened)
    }

    /// The dataset; its headers are read if it is not open.
    ///
    /// # Errors
    /// [`OpenError`]: why it does not open.
    pub fn open(&self, node: &Arc<Node>) -> Opened {
        let opened = node.open_with(|| {
            let mut name = node.path();
            if let Ok(below) = name.strip_prefix(self.prober.base()) {
                name = below.to_owned();
            }
            open::open(&node.path(), &name, node.stamp(), &self.shared)
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

    /// Gives what was found its number: the one that it has already, if it is the same.
    fn settle(&self, folder: &Arc<Node>, name: &OsStr, found: Option<Found>) -> Option<Arc<Node>> {
        let key = (folder.id, name.to_owned());
        let mut children = self.children.lock();
        let known = children.get(&key).cloned();
        let Some(found) = found else {
            children.remove(&key);
            drop(children);
            if let Some(gone) = known {
                self.forget(&gone);
            }
            return None;
        };
        if let Some(known) = &known
            && known.is_still(&found)
        {
            return Some(Arc::clone(known));
        }
        let node = {
            let mut nodes = self.nodes.write();
            let id = NodeId::try_from(nodes.len()).ok()?;
            let node = Arc::new(Node::new(id, Arc::clone(folder), name.to_owned(), found));
            nodes.push(Arc::clone(&node));
            node
        };
        children.insert(key, Arc::clone(&node));
        drop(children);
        if let Some(old) = known {
            self.forget(&old);
        }
        Some(node)
    }

    fn forget(&self, node: &Arc<Node>) {
        self.lock_open().pop(&node.id);
        node.close();
    }

    fn lock_open(&self) -> MutexGuard<'_, LruCache<NodeId, Arc<Node>>> {
        self.open.lock()
    }
}

/// The folder to show for SOURCE, and the only name in it if SOURCE is one dataset.
fn base_of(source: &Path) -> Result<(PathBuf, Option<OsString>), CatalogError> {
    let metadata = source.metadata().map_err(|e| CatalogError::io(source, &e))?;
    if metadata.is_dir() && !probe::is_dataset_folder(source) {
        return Ok((source.to_owned(), None));
    }
    match (source.parent(), source.file_name()) {
        (Some(parent), Some(name)) => Ok((parent.to_owned(), Some(name.to_owned()))),
        _ => Ok((source.to_owned(), None)),
    }
}
