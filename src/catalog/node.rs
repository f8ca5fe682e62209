//! One folder or dataset of SOURCE, and the numbers of all that were found.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::open::{OpenDataset, OpenError};
use super::recognise::{Entry, NodeKind};
use crate::logging::warn_seldom;
use crate::source::{Permissions, RecentWrites};
use crate::sync::Mutex;

/// The number of a folder or dataset, in the order in which they were found. No number is used twice.
pub(crate) type NodeId = u32;

pub(crate) const ROOT: NodeId = 0;

/// All numbers are smaller: an inode number has 24 bits for them.
const MAX_NODES: usize = 1 << 24;

/// The most unseen names: a source whose entries fail under ever new names must not fill the memory.
const MAX_UNSEEN: usize = 1 << 16;

/// How long a look at the disk counts. Together with the kernel's own cache of names it stays below a second.
const CHECK_TTL: Duration = Duration::from_millis(150);

/// Opening, also for a refresh, is tried again after this time if it failed with a transient error, even if the file is
/// unchanged.
pub(super) const RETRY: Duration = Duration::from_secs(1);

pub(crate) type OpenResult = Result<Arc<OpenDataset>, Arc<OpenError>>;

pub(crate) struct Node {
    pub(crate) id: NodeId,
    /// The folder that shows it; none for the root.
    pub(crate) parent: Option<Arc<Node>>,
    /// Its name in that folder; for the root its whole path.
    pub(crate) name: Box<OsStr>,
    pub(crate) kind: NodeKind,
    found: Mutex<(Entry, Instant)>,
    /// Only of datasets that were opened or that replace another: a folder may have a hundred thousand others.
    dataset: OnceLock<Box<DatasetState>>,
}

#[derive(Default)]
pub(super) struct DatasetState {
    pub(super) opened: Mutex<Option<(OpenResult, Instant)>>,
    /// Who may read all that was read to open it.
    pub(super) read: Mutex<Option<Permissions>>,
    /// Locked while the headers are read, so that only one thread reads them.
    pub(super) opening: Mutex<()>,
    pub(super) counted: AtomicBool,
    /// Set when the dataset noticed a change that its version does not show.
    pub(super) changed: AtomicBool,
    /// When this version was first seen, if it replaces another one.
    pub(super) replaces_since: Option<Instant>,
    /// Tells when it has to be refreshed; set when it is opened for the first time.
    pub(super) recent: OnceLock<Arc<RecentWrites>>,
    /// Number of refreshes. What was read in an earlier epoch may be old.
    pub(super) epoch: AtomicU32,
}

impl Node {
    /// Creates a node, which replaces another one of its name if `replaces`.
    pub(super) fn new(id: NodeId, parent: Option<Arc<Self>>, name: &OsStr, entry: Entry, replaces: bool) -> Self {
        let state = || Box::new(DatasetState { replaces_since: Some(Instant::now()), ..Default::default() });
        let dataset = if replaces { OnceLock::from(state()) } else { OnceLock::new() };
        Self { id, parent, name: name.into(), kind: entry.kind, found: Mutex::new((entry, Instant::now())), dataset }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match &self.parent {
            Some(parent) => parent.path().join(&*self.name),
            None => PathBuf::from(&*self.name),
        }
    }

    /// Returns what the last look found. The version of a dataset never changes.
    pub(super) fn entry(&self) -> Entry {
        self.found.lock().0
    }

    /// Returns the times of the last change of its content (mtime), and of its content or attributes (ctime), that the
    /// last look found, and how long ago that was.
    pub(crate) fn last_look(&self) -> ((SystemTime, SystemTime), Duration) {
        let (entry, at) = *self.found.lock();
        ((entry.version.modified(), entry.changed), at.elapsed())
    }

    /// Returns who may list and search the folder that shows it, by the last look, if permissions are asked for.
    pub(crate) fn permissions(&self) -> Option<Permissions> {
        self.entry().permissions
    }

    /// Returns who may learn what the dataset as a whole is, or why it does not open: those who may read all that was
    /// read to open it.
    pub(crate) fn description_permissions(&self) -> Option<Permissions> {
        let shown = self.permissions()?;
        let read = self.dataset.get().and_then(|state| *state.read.lock());
        Some(read.map_or(shown, |read| shown.restrict(read)))
    }

    /// Returns whether this folder, or one that contains it, has this device and inode number.
    pub(super) fn is_or_lies_in(&self, inode: (u64, u64)) -> bool {
        self.entry().version.inode == inode || self.parent.as_ref().is_some_and(|parent| parent.is_or_lies_in(inode))
    }

    /// Returns whether the entry that was just found is this node. A folder that changes stays the same node.
    pub(super) fn is_still(&self, entry: &Entry) -> bool {
        let mut found = self.found.lock();
        let last = found.0;
        // which of a dataset's files were read depends on who might read them
        let has_other_readers = entry.has_files && last.permissions != entry.permissions;
        // and the kernel lets in whom the folder allows that it knows, not one that has taken its place
        let is_other = entry.permissions.is_some() && last.inode != entry.inode && self.parent.is_some();
        let changed = self.has_changed() || last.version != entry.version || has_other_readers;
        if self.kind != entry.kind || is_other || (self.kind == NodeKind::Dataset && changed) {
            return false;
        }
        // other attributes have changed, or new content was given the old time
        if let (true, Some(recent)) = (last.changed != entry.changed, self.recent()) {
            recent.record_change();
        }
        *found = (*entry, Instant::now());
        true
    }

    /// Asks the dataset, if it is open, whether it has changed. If so, no later look finds this node again.
    pub(super) fn ask_for_change(&self) {
        let Some(state) = self.dataset.get() else { return };
        let opened = state.opened.lock().as_ref().and_then(|(opened, _)| opened.clone().ok());
        if opened.is_some_and(|open| open.is_changed()) {
            state.changed.store(true, Ordering::Release);
        }
    }

    pub(crate) fn checked_lately(&self) -> bool {
        self.found.lock().1.elapsed() < CHECK_TTL
    }

    /// Returns the result of opening it, if there is one. A transient failure counts only for [`RETRY`].
    pub(super) fn opened(&self) -> Option<OpenResult> {
        let state = self.dataset.get()?.opened.lock();
        let is_over = |(opened, at): &&(OpenResult, Instant)| {
            opened.as_ref().is_err_and(|error| error.is_transient()) && at.elapsed() > RETRY
        };
        state.as_ref().filter(|known| !is_over(known)).map(|(opened, _)| opened.clone())
    }

    /// Returns the number of refreshes so far. What was read before the last one may be old.
    pub(crate) fn epoch(&self) -> u32 {
        self.dataset.get().map_or(0, |state| state.epoch.load(Ordering::Acquire))
    }

    /// Returns whether the dataset is known to have become another one: no later look finds this node again.
    pub(crate) fn has_changed(&self) -> bool {
        self.dataset.get().is_some_and(|state| state.changed.load(Ordering::Acquire))
    }

    /// Drops the open dataset. Readers that hold it may go on reading.
    pub(super) fn close(&self) {
        let closed = self.dataset.get().and_then(|state| state.opened.lock().take());
        drop(closed);
    }

    pub(super) fn state(&self) -> &DatasetState {
        self.dataset.get_or_init(Box::default)
    }

    /// Returns what tells when it has to be refreshed; `None` if it was never opened.
    pub(crate) fn recent(&self) -> Option<&Arc<RecentWrites>> {
        self.dataset.get()?.recent.get()
    }
}

/// All folders and datasets that were ever found, by number and by name. A name is stored once, in its node, and found
/// through a table of numbers.
pub(super) struct Nodes {
    all: Vec<Arc<Node>>,
    by_name: HashTable<NodeId>,
    hasher: DefaultHashBuilder,
}

impl Nodes {
    pub(super) fn new(root: Node) -> Self {
        Self { all: vec![Arc::new(root)], by_name: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }

    /// Returns the node of this number, also if its name has another node now.
    pub(super) fn get(&self, id: NodeId) -> Option<Arc<Node>> {
        self.all.get(id as usize).cloned()
    }

    pub(super) fn child(&self, folder: NodeId, name: &OsStr) -> Option<Arc<Node>> {
        let hash = self.hasher.hash_one((folder, name));
        self.get(*self.by_name.find(hash, |id| is_child(&self.all, *id, folder, name))?)
    }

    /// Adds a node and gives it the name, which another node has had if `replaces`. Returns `None` if there are no more
    /// numbers.
    pub(super) fn add(&mut self, folder: &Arc<Node>, name: &OsStr, entry: Entry, replaces: bool) -> Option<Arc<Node>> {
        if self.all.len() >= MAX_NODES {
            warn_seldom("too many files were found or changed since the mount was made; mount anew to see new ones");
            return None;
        }
        let id = NodeId::try_from(self.all.len()).ok()?;
        let node = Arc::new(Node::new(id, Some(Arc::clone(folder)), name, entry, replaces));
        self.all.push(Arc::clone(&node));
        let Self { all, by_name, hasher } = self;
        let hash_of = |id: &NodeId| {
            let node = all.get(*id as usize);
            hasher.hash_one(node.map(|node| (parent_of(node), &*node.name)).unwrap_or_default())
        };
        by_name.insert_unique(hasher.hash_one((folder.id, name)), id, hash_of);
        Some(node)
    }

    pub(super) fn remove_child(&mut self, folder: NodeId, name: &OsStr) {
        let hash = self.hasher.hash_one((folder, name));
        if let Ok(found) = self.by_name.find_entry(hash, |id| is_child(&self.all, *id, folder, name)) {
            found.remove();
        }
    }
}

fn is_child(all: &[Arc<Node>], id: NodeId, folder: NodeId, name: &OsStr) -> bool {
    all.get(id as usize).is_some_and(|node| *node.name == *name && parent_of(node) == folder)
}

fn parent_of(node: &Node) -> NodeId {
    node.parent.as_ref().map_or(NodeId::MAX, |parent| parent.id)
}

/// Names that listings show although nothing is known of them. Each keeps its number for ever, like a node.
#[derive(Default)]
pub(super) struct UnseenNames {
    pub(super) by_number: Vec<Arc<OsStr>>,
    by_name: HashMap<(NodeId, Arc<OsStr>), u32>,
}

impl UnseenNames {
    /// Returns the number of a name in a folder; `None` if there are too many names.
    pub(super) fn number(&mut self, folder: NodeId, name: &OsStr) -> Option<u32> {
        let key = (folder, Arc::from(name));
        if let Some(number) = self.by_name.get(&key) {
            return Some(*number);
        }
        let number = u32::try_from(self.by_number.len()).ok().filter(|_| self.by_number.len() < MAX_UNSEEN)?;
        self.by_number.push(Arc::clone(&key.1));
        self.by_name.insert(key, number);
        Some(number)
    }
}
