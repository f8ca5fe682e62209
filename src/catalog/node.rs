//! One folder or dataset of SOURCE.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use super::entry::{Entry, NodeKind};
use super::open::{OpenDataset, OpenError};
use crate::source::{FileStamp, Permissions, RecentWrites, RefreshQueue};
use crate::sync::Mutex;

/// The number of a folder or dataset, in the order in which they were found. No number is used twice.
pub(crate) type NodeId = u32;

/// No node has this number or a greater one: an inode number has 24 bits for it.
pub(crate) const MAX_NODES: usize = 1 << 24;

/// The number of the top folder.
pub(crate) const ROOT: NodeId = 0;

/// How long a look at the disk counts. Together with the time for which the kernel caches a name it stays below a
/// second.
const CHECK_TTL: Duration = Duration::from_millis(150);

/// Opening, also for a refresh, is tried again after this time if it failed with a transient error, even if the file is
/// unchanged.
const RETRY: Duration = Duration::from_secs(1);

/// An open dataset, or why it does not open.
pub(crate) type OpenResult = Result<Arc<OpenDataset>, Arc<OpenError>>;

/// How opening a dataset again for a refresh ended.
pub(crate) enum Reopened {
    /// Nothing that was read of it is in use, or may be any more: it is opened anew when somebody needs it.
    NotNeeded,
    /// It has the same files as before: whoever reads them may go on.
    Alike(OpenResult),
    /// It is another dataset by now, or gone.
    Other,
    /// The system failed: what there is now is unknown.
    Failed,
}

/// One folder or dataset.
pub(crate) struct Node {
    /// Its number.
    pub id: NodeId,
    /// The folder that shows it; none for the root.
    pub parent: Option<Arc<Node>>,
    /// Its name in that folder; for the root its whole path.
    pub name: Box<OsStr>,
    /// What it is.
    pub kind: NodeKind,
    last_look: Mutex<Look>,
    /// What only datasets need that were opened once, or that replace another: there may be a hundred thousand others
    /// in one folder.
    dataset: OnceLock<Box<DatasetState>>,
}

/// What is known of a dataset that was opened once.
#[derive(Default)]
struct DatasetState {
    opened: Mutex<Option<(OpenResult, Instant)>>,
    /// Who may read all that was read to open it.
    read: Mutex<Option<Permissions>>,
    /// Locked while the headers are read, so that only one thread reads them.
    opening: Mutex<()>,
    counted: AtomicBool,
    /// Set when the dataset noticed a change that its stamp does not show.
    changed: AtomicBool,
    /// When this version was first seen, if it replaces another one.
    replaces_since: Option<Instant>,
    /// Tells when it has to be refreshed; set when it is opened for the first time.
    recent: OnceLock<Arc<RecentWrites>>,
    /// Number of refreshes. What was read in an earlier epoch may be old.
    epoch: AtomicU32,
}

/// What the last look at the disk found.
struct Look {
    stamp: FileStamp,
    changed: SystemTime,
    permissions: Option<Permissions>,
    place: (u64, u64),
    at: Instant,
}

impl Look {
    fn now(entry: &Entry) -> Self {
        let Entry { stamp, changed, permissions, place, .. } = *entry;
        Self { stamp, changed, permissions, place, at: Instant::now() }
    }
}

impl Node {
    pub(super) fn root(path: PathBuf, entry: Entry) -> Self {
        Self::with(ROOT, None, path.as_os_str(), &entry, false)
    }

    pub(super) fn new(id: NodeId, parent: Arc<Self>, name: &OsStr, entry: Entry, replaces: bool) -> Self {
        Self::with(id, Some(parent), name, &entry, replaces)
    }

    fn with(id: NodeId, parent: Option<Arc<Self>>, name: &OsStr, entry: &Entry, replaces: bool) -> Self {
        let dataset = OnceLock::new();
        if replaces {
            dataset
                .get_or_init(|| Box::new(DatasetState { replaces_since: Some(Instant::now()), ..Default::default() }));
        }
        let last_look = Mutex::new(Look::now(entry));
        Self { id, parent, name: name.into(), kind: entry.kind, last_look, dataset }
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.parent {
            Some(parent) => parent.path().join(&*self.name),
            None => PathBuf::from(&*self.name),
        }
    }

    /// Returns its version: that of a dataset never changes, that of a folder is the one of the last look.
    pub(crate) fn stamp(&self) -> FileStamp {
        self.last_look.lock().stamp
    }

    /// Returns the times of the last change of its content (mtime), and of its content or attributes (ctime).
    pub(crate) fn times(&self) -> (SystemTime, SystemTime) {
        self.last_look().0
    }

    /// Returns the [times](Self::times) that the last look found, and how long ago that was.
    pub(crate) fn last_look(&self) -> ((SystemTime, SystemTime), Duration) {
        let look = self.last_look.lock();
        ((look.stamp.modified(), look.changed), look.at.elapsed())
    }

    /// Returns who may list and search the folder that shows it, by the last look, if that is asked for.
    pub(crate) fn permissions(&self) -> Option<Permissions> {
        self.last_look.lock().permissions
    }

    /// Returns who may read all that was read of a dataset to open it, its description above all: what is told of the
    /// dataset as a whole, or why it does not open.
    pub(crate) fn description_permissions(&self) -> Option<Permissions> {
        let shown = self.permissions()?;
        let read = self.dataset.get().and_then(|state| *state.read.lock());
        Some(read.map_or(shown, |read| shown.restrict(read)))
    }

    /// Notes who may read all that was read to open it.
    pub(super) fn note_read(&self, read: Option<Permissions>) {
        *self.dataset.get_or_init(Box::default).read.lock() = read;
    }

    /// Returns the device and inode number of the file or folder itself, by the last look.
    pub(super) fn place(&self) -> (u64, u64) {
        self.last_look.lock().place
    }

    /// Returns whether this folder, or one that it lies in, has this device and inode number.
    pub(super) fn is_or_lies_in(&self, inode: (u64, u64)) -> bool {
        self.stamp().inode == inode || self.parent.as_ref().is_some_and(|parent| parent.is_or_lies_in(inode))
    }

    /// Returns whether the entry that was just found is this node. A folder that changes stays the same node.
    pub(super) fn is_still(&self, entry: &Entry) -> bool {
        let mut last = self.last_look.lock();
        let state = self.dataset.get();
        // which of a dataset's files were read depends on who might read them
        let has_other_readers = entry.has_files && last.permissions != entry.permissions;
        // and the kernel lets in whom the folder lets in that it knows, not another one that has come in its place
        let is_other = entry.permissions.is_some() && last.place != entry.place && self.parent.is_some();
        let changed = self.has_changed() || last.stamp != entry.stamp || has_other_readers;
        if self.kind != entry.kind || is_other || (self.kind == NodeKind::Dataset && changed) {
            return false;
        }
        // other attributes have changed, or new content was given the old time
        if let (true, Some(recent)) = (last.changed != entry.changed, state.and_then(|state| state.recent.get())) {
            recent.record_change();
        }
        *last = Look::now(entry);
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

    /// Returns whether the last look still counts.
    pub(crate) fn checked_lately(&self) -> bool {
        self.last_look.lock().at.elapsed() < CHECK_TTL
    }

    /// Returns the result of opening it, if there is one. A transient failure counts only for [`RETRY`].
    pub(super) fn opened(&self) -> Option<OpenResult> {
        match &*self.dataset.get()?.opened.lock() {
            Some((Err(e), at)) if e.is_transient() && at.elapsed() > RETRY => None,
            Some((opened, _)) => Some(opened.clone()),
            None => None,
        }
    }

    /// Opens it with `open` unless it is open already. Its refreshes go to `queue`, and a failure to `log_failure`.
    pub(super) fn open_with(
        &self,
        queue: &Arc<RefreshQueue>,
        open: impl FnOnce(&Arc<RecentWrites>) -> Result<OpenDataset, OpenError>,
        log_failure: impl FnOnce(&OpenError),
    ) -> OpenResult {
        let state = self.dataset.get_or_init(Box::default);
        let _one_at_a_time = state.opening.lock();
        if let Some(opened) = self.opened() {
            return opened;
        }
        let new_recent = || RecentWrites::new(self.id.into(), Arc::clone(queue), state.replaces_since);
        let opened = open(state.recent.get_or_init(new_recent)).map(Arc::new).map_err(Arc::new);
        if let Err(e) = &opened {
            log_failure(e);
        }
        *state.opened.lock() = Some((opened.clone(), Instant::now()));
        opened
    }

    /// Returns the number of refreshes so far. What was read before the last one may be old.
    pub(crate) fn epoch(&self) -> u32 {
        self.dataset.get().map_or(0, |state| state.epoch.load(Ordering::Acquire))
    }

    /// Returns whether the dataset is known to have become another one: no later look finds this node again.
    pub(crate) fn has_changed(&self) -> bool {
        self.dataset.get().is_some_and(|state| state.changed.load(Ordering::Acquire))
    }

    /// Returns whether a refresh is due.
    pub(crate) fn is_refresh_due(&self) -> bool {
        self.dataset.get().and_then(|state| state.recent.get()).is_some_and(|recent| recent.is_due())
    }

    /// Returns whether it was written so shortly before it was read that it will be read again.
    pub(crate) fn is_refresh_pending(&self) -> bool {
        self.dataset.get().and_then(|state| state.recent.get()).is_some_and(|recent| recent.is_pending())
    }

    /// Queues the refresh that is due later, if there is one.
    pub(crate) fn requeue_refresh(&self) {
        if let Some(recent) = self.dataset.get().and_then(|state| state.recent.get()) {
            recent.requeue();
        }
    }

    /// Begins a new epoch if a refresh is due: calls `reopen` with the result of opening it, if there is one, and keeps
    /// what that returns. Returns whether there is a new epoch.
    pub(super) fn refresh(&self, reopen: impl FnOnce(&Arc<RecentWrites>, Option<OpenResult>) -> Reopened) -> bool {
        let Some(state) = self.dataset.get() else { return false };
        let _one_at_a_time = state.opening.lock();
        let Some(recent) = state.recent.get().filter(|recent| recent.is_due()) else { return false };
        recent.clear();
        let known = state.opened.lock().as_ref().map(|(opened, _)| opened.clone());
        let dropped = match reopen(recent, known) {
            Reopened::NotNeeded => state.opened.lock().take(),
            Reopened::Failed => {
                recent.record_failure(RETRY);
                return false;
            }
            Reopened::Alike(opened) => state.opened.lock().replace((opened, Instant::now())),
            Reopened::Other => {
                state.changed.store(true, Ordering::Release);
                state.opened.lock().take()
            }
        };
        state.epoch.fetch_add(1, Ordering::AcqRel);
        drop(dropped);
        true
    }

    /// Drops the open dataset. Readers that hold it may go on reading.
    pub(super) fn close(&self) {
        let closed = self.dataset.get().and_then(|state| state.opened.lock().take());
        drop(closed);
    }

    /// Returns `true` at the first call.
    pub(super) fn count_once(&self) -> bool {
        !self.dataset.get_or_init(Box::default).counted.swap(true, Ordering::Relaxed)
    }
}
