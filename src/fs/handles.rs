//! What is open.

use crate::sync::{Mutex, MutexGuard, RwLock};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::Ino;
use super::readahead_window::Runs;
use crate::array::Scans;
use crate::catalog::{NodeId, OpenDataset};
use crate::view::Content;

/// Times that a file is to be opened once more, and was not yet.
const LEADERS: usize = 8;

/// Something that a client has open.
pub enum Handle {
    /// A file: its content as of the moment it was opened.
    File(Arc<OpenFile>),
    /// The same file, open for whoever reads it ahead of that client.
    Ahead(Arc<OpenFile>),
    /// A folder: its entries as of the moment it was opened.
    Folder(Vec<FolderEntry>),
}

/// An open file.
pub struct OpenFile {
    /// Its number.
    pub ino: Ino,
    /// Its bytes.
    pub content: Content,
    /// Where it belongs, for messages.
    pub of: Option<Belongs>,
    /// Who reads it, and whether in order.
    pub scans: Arc<Scans>,
    /// How far they have come, and what is asked for ahead of them.
    pub runs: Runs,
    /// Its path below the top of the mount, once that was asked for.
    pub path: OnceLock<Option<PathBuf>>,
    /// It was read ahead at some time.
    pub led: AtomicBool,
}

impl OpenFile {
    /// A file that nobody has read yet.
    pub fn new(ino: Ino, content: Content, of: Option<Belongs>) -> Self {
        Self {
            ino,
            content,
            of,
            scans: Arc::default(),
            runs: Runs::default(),
            path: OnceLock::new(),
            led: AtomicBool::new(false),
        }
    }
}

/// The dataset and layer of a file. Keeps the dataset open while the file is.
pub struct Belongs {
    /// The dataset.
    pub open: Arc<OpenDataset>,
    /// Which of its layers.
    pub layer: usize,
}

/// One entry of an open folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its inode number.
    pub ino: Ino,
    /// Its name.
    pub name: OsString,
    /// Whether it is a folder itself.
    pub folder: bool,
}

/// Files that are read ahead of their readers.
#[derive(Default)]
struct Ahead {
    /// For which readers' sake a file is about to be opened once more.
    leaders: HashMap<Ino, VecDeque<Weak<OpenFile>>>,
    /// Handles that read ahead, by dataset.
    handles: HashMap<NodeId, usize>,
}

/// All open handles by number.
#[derive(Default)]
pub struct Handles {
    open: RwLock<HashMap<u64, Arc<Handle>>>,
    next: AtomicU64,
    ahead: Mutex<Ahead>,
}

impl Handles {
    /// Keeps a handle and gives it a number.
    pub fn add(&self, handle: Handle) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Handle::Ahead(file) = &handle {
            *self.ahead().handles.entry(file.ino.node()).or_default() += 1;
        }
        self.open.write().insert(number, Arc::new(handle));
        number
    }

    /// The handle with a number.
    pub fn get(&self, number: u64) -> Option<Arc<Handle>> {
        self.open.read().get(&number).cloned()
    }

    /// Drops a handle. Gives the file whose reader has closed it, if it was read ahead.
    pub fn remove(&self, number: u64) -> Option<Ino> {
        let removed = self.open.write().remove(&number);
        match removed.as_deref()? {
            Handle::File(file) if file.led.load(Ordering::Relaxed) => {
                let mut ahead = self.ahead();
                if let Some(leaders) = ahead.leaders.get_mut(&file.ino) {
                    leaders.retain(|leader| leader.as_ptr() != Arc::as_ptr(file));
                    if leaders.is_empty() {
                        ahead.leaders.remove(&file.ino);
                    }
                }
                Some(file.ino)
            }
            Handle::Ahead(file) => {
                let mut ahead = self.ahead();
                if let Entry::Occupied(mut handles) = ahead.handles.entry(file.ino.node()) {
                    *handles.get_mut() -= 1;
                    if *handles.get() == 0 {
                        handles.remove();
                    }
                }
                None
            }
            Handle::File(_) | Handle::Folder(_) => None,
        }
    }

    /// How many handles read ahead in a dataset, and how many in all.
    pub fn reading_ahead(&self, dataset: NodeId) -> (usize, usize) {
        let ahead = self.ahead();
        (ahead.handles.get(&dataset).copied().unwrap_or_default(), ahead.handles.values().sum())
    }

    /// A file that a client has open is going to be opened once more, to be read ahead.
    pub fn lead(&self, file: &Arc<OpenFile>) {
        file.led.store(true, Ordering::Relaxed);
        let mut ahead = self.ahead();
        let leaders = ahead.leaders.entry(file.ino).or_default();
        if leaders.len() >= LEADERS {
            leaders.pop_front();
        }
        leaders.push_back(Arc::downgrade(file));
    }

    /// The client's file for whose sake a file is now opened once more.
    pub fn leader(&self, ino: Ino) -> Option<Arc<OpenFile>> {
        let mut ahead = self.ahead();
        let leaders = ahead.leaders.get_mut(&ino)?;
        let leader = leaders.pop_front();
        if leaders.is_empty() {
            ahead.leaders.remove(&ino);
        }
        leader?.upgrade()
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock()
    }
}
