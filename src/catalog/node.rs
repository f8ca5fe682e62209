//! One folder or dataset of the source, as it was found.

use crate::sync::{Mutex, MutexGuard};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::open::{OpenDataset, OpenError};
use super::probe::Found;
use crate::source::FileStamp;

/// Numbers folders and datasets, in the order in which they were found. Never used twice.
pub type NodeId = u32;

/// The number of the top folder.
pub const ROOT: NodeId = 0;

/// A source that was looked at so lately is not looked at again. With the time for which the kernel remembers a name, the sum
/// stays below a second.
const LATELY: Duration = Duration::from_millis(150);

/// A dataset that could not be reached is tried again after this time, even if it looks unchanged.
const RETRY: Duration = Duration::from_secs(1);

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder of the source, with folders and datasets in it.
    Folder,
    /// A dataset, or a file that is meant to be one.
    Dataset,
}

/// A dataset that is open, or why it does not open.
pub type Opened = Result<Arc<OpenDataset>, Arc<OpenError>>;

/// One folder or dataset.
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// The folder that shows it; none for the root.
    pub parent: Option<Arc<Node>>,
    /// Its name in that folder; for the root its whole path.
    pub name: OsString,
    /// What it is.
    pub kind: Kind,
    seen: Mutex<Seen>,
    opened: Mutex<Option<(Opened, Instant)>>,
    /// Held while the headers are read, so that they are read once.
    opening: Mutex<()>,
    counted: AtomicBool,
    /// Whether the dataset was found to be not what it was although its stamp is the same.
    changed: AtomicBool,
}

struct Seen {
    stamp: FileStamp,
    changed: SystemTime,
    at: Instant,
}

impl Node {
    pub(super) fn root(path: PathBuf, found: Found) -> Self {
        Self::with(ROOT, None, path.into(), found)
    }

    pub(super) fn new(id: NodeId, parent: Arc<Self>, name: OsString, found: Found) -> Self {
        Self::with(id, Some(parent), name, found)
    }

    fn with(id: NodeId, parent: Option<Arc<Self>>, name: OsString, found: Found) -> Self {
        Self {
            id,
            parent,
            name,
            kind: found.kind,
            seen: Mutex::new(Seen { stamp: found.stamp, changed: found.changed, at: Instant::now() }),
            opened: Mutex::default(),
            opening: Mutex::default(),
            counted: AtomicBool::new(false),
            changed: AtomicBool::new(false),
        }
    }

    /// Where it lies in the source.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.parent {
            Some(parent) => parent.path().join(&self.name),
            None => PathBuf::from(&self.name),
        }
    }

    /// Its version: for a dataset the one that has this number, for a folder the last one seen.
    #[must_use]
    pub fn stamp(&self) -> FileStamp {
        self.seen().stamp
    }

    /// When it was last written to, and when anything about it last changed.
    #[must_use]
    pub fn times(&self) -> (SystemTime, SystemTime) {
        let seen = self.seen();
        (seen.stamp.modified(), seen.changed)
    }

    /// Whether what was found now is this node. A folder may change and is still itself.
    pub(super) fn is_still(&self, found: &Found) -> bool {
        let mut seen = self.seen();
        let changed = self.changed.load(Ordering::Relaxed) || seen.stamp != found.stamp;
        if self.kind != found.kind || (self.kind == Kind::Dataset && changed) {
            return false;
        }
        *seen = Seen { stamp: found.stamp, changed: found.changed, at: Instant::now() };
        true
    }

    /// Asks the dataset, if it is open, whether it is still what was opened. What is not is never this node again.
    pub(super) fn note_change(&self) {
        let opened = self.lock_opened().as_ref().and_then(|(opened, _)| opened.clone().ok());
        if opened.is_some_and(|open| open.dataset.is_changed()) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn checked_lately(&self) -> bool {
        self.seen().at.elapsed() < LATELY
    }

    /// What is known of opening it; an old failure of the system is not worth knowing.
    pub(super) fn opened(&self) -> Option<Opened> {
        match &*self.lock_opened() {
            Some((Err(e), at)) if e.may_pass() && at.elapsed() > RETRY => None,
            Some((opened, _)) => Some(opened.clone()),
            None => None,
        }
    }

    /// Opens it with `open` unless that was done already.
    pub(super) fn open_with(&self, open: impl FnOnce() -> Result<OpenDataset, OpenError>) -> Opened {
        let _one_at_a_time = self.opening.lock();
        if let Some(opened) = self.opened() {
            return opened;
        }
        let opened = open().map(Arc::new).map_err(Arc::new);
        if let Err(e) = &opened {
            log::warn!("{}: {e}", self.path().display());
        }
        *self.lock_opened() = Some((opened.clone(), Instant::now()));
        opened
    }

    /// Forgets that it is open. Who reads it goes on doing so.
    pub(super) fn close(&self) {
        let closed = self.lock_opened().take();
        drop(closed);
    }

    /// Whether this is the first call.
    pub(super) fn count_once(&self) -> bool {
        !self.counted.swap(true, Ordering::Relaxed)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }

    fn lock_opened(&self) -> MutexGuard<'_, Option<(Opened, Instant)>> {
        self.opened.lock()
    }
}
