//! Open files and folders.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::ino::Ino;
use super::status::DatasetCounters;
use crate::array::Readers;
use crate::catalog::{Node, NodeId, OpenDataset};
use crate::counters::Counters;
use crate::sync::atomic::AtomicBool;
use crate::sync::{Mutex, RwLock};
use crate::view::{Content, Item, LayerRef, Tree};

/// The greatest number of opens by the read-ahead process that are expected for one file; beyond that the oldest is
/// dropped.
const MAX_EXPECTED: usize = 8;

/// An open file or folder.
pub(crate) enum Handle {
    /// A file that a client has open.
    File(Arc<FileHandle>),
    /// The open file of a client, which the read-ahead process has opened as well.
    Readahead(Arc<FileHandle>),
    /// A folder of the source, whose listing all handles share.
    SourceFolder(Arc<Node>),
    /// A folder of a view whose entries are streamed.
    ViewFolder(Box<ViewFolder>),
    /// Another folder, with its entries as of the moment it was opened.
    Folder(Arc<[FolderEntry]>),
}

/// The open file of a client.
pub(crate) struct FileHandle {
    /// The inode number.
    pub ino: Ino,
    /// The content as of the moment the file was opened.
    pub content: Content,
    /// The dataset and layer that the file belongs to, for log lines.
    pub layer: Option<DatasetLayer>,
    /// What is counted of the dataset, if the file shows samples.
    pub dataset: Option<Arc<DatasetCounters>>,
    /// The readers of the file, if it shows a whole array.
    pub readers: Option<Readers>,
    /// The path relative to the root of the mount, once it was needed.
    pub path: OnceLock<Option<PathBuf>>,
    /// Whether read-ahead was ever requested.
    readahead_requested: AtomicBool,
    /// Whether the content is still that of the file.
    pub state: ContentState,
    /// The number of refreshes of the dataset before the content was found out.
    pub epoch: u32,
    /// Set when the client has closed the file: nobody waits for what is still read.
    pub is_closed: Arc<AtomicBool>,
    /// What makes the content, if the file is in no folder. `ino` is the folder of its layer then.
    pub made_by: Option<Maker>,
}

/// Makes the content of a file for a layer, if there is one.
pub(crate) type Maker = Arc<dyn Fn(LayerRef<'_>) -> Option<Content> + Send + Sync>;

/// Whether the content of an open file is still that of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentState {
    /// It is.
    Current,
    /// The dataset has become another one: reads fail.
    Stale,
    /// The dataset was refreshed, and what the file has now could not be found out: the next read tries again.
    Unknown,
}

impl FileHandle {
    /// Creates the handle of a file that was just opened, in this epoch of its dataset.
    pub(crate) fn new(
        ino: Ino,
        content: Content,
        (layer, dataset): (Option<DatasetLayer>, Option<Arc<DatasetCounters>>),
        epoch: u32,
    ) -> Self {
        let readers = content.array().filter(|array| array.part_of().is_none());
        Self {
            ino,
            readers: readers.map(|array| Readers::new(array.info(), content.order())),
            content,
            layer,
            dataset,
            path: OnceLock::new(),
            readahead_requested: AtomicBool::new(false),
            state: ContentState::Current,
            epoch,
            is_closed: Arc::default(),
            made_by: None,
        }
    }

    /// Returns the counters of the dataset, if the file shows samples.
    pub(crate) fn counters(&self) -> Option<Arc<Counters>> {
        self.dataset.as_ref().map(|dataset| Arc::clone(&dataset.counters))
    }

    /// Counts a read for the dataset; it has this number among all reads of the mount.
    pub(crate) fn count_read(&self, number: u64) {
        self.dataset.as_ref().inspect(|dataset| dataset.count_read(number));
    }

    /// Counts bytes that were delivered, for the mount and for the dataset.
    pub(crate) fn count_bytes_read(&self, mount: &Counters, n: u64) {
        mount.add(self.dataset.as_ref().map(|dataset| &*dataset.counters), |counters| &counters.bytes_read, n);
    }

    /// Counts the bytes or the error of a read, for the mount and for the dataset.
    pub(crate) fn count_outcome<E>(&self, mount: &Counters, read: Result<&[u8], E>) {
        match read {
            Ok(bytes) => self.count_bytes_read(mount, bytes.len() as u64),
            Err(_) => {
                mount.add(self.dataset.as_ref().map(|dataset| &*dataset.counters), |counters| &counters.errors, 1)
            }
        }
    }

    /// Returns the open file with the content of another epoch: nothing of its readers is known yet.
    pub(crate) fn with_content(&self, content: Content, layer: Option<DatasetLayer>, epoch: u32) -> Self {
        let requested = AtomicBool::new(self.readahead_requested.load(Ordering::Relaxed));
        let new = Self::new(self.ino, content, (layer, self.dataset.clone()), epoch);
        let (is_closed, made_by) = (Arc::clone(&self.is_closed), self.made_by.clone());
        Self { readahead_requested: requested, is_closed, made_by, ..new }
    }

    /// Returns the open file with the content that it had, which is not to be read any more.
    pub(crate) fn outdated(&self, state: ContentState, epoch: u32) -> Self {
        Self { state, ..self.with_content(self.content.clone(), None, epoch) }
    }
}

/// A layer of an open dataset. Keeps the dataset open.
pub(crate) struct DatasetLayer {
    /// The dataset.
    pub open: Arc<OpenDataset>,
    /// The index of the layer.
    pub layer: usize,
}

/// An open folder of a view whose entries are streamed.
pub(crate) struct ViewFolder {
    /// The folder or dataset of the source that it belongs to.
    pub node: NodeId,
    /// The dataset.
    pub open: Arc<OpenDataset>,
    /// Its files.
    pub tree: Arc<Tree>,
    /// The folder among them.
    pub folder: Item,
}

/// One entry of an open folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderEntry {
    /// The inode number.
    pub ino: Ino,
    /// The name.
    pub name: OsString,
    /// Whether it is a folder itself.
    pub folder: bool,
}

/// All open handles by number.
#[derive(Default)]
pub(crate) struct Handles {
    open: RwLock<HashMap<u64, Arc<Handle>>>,
    next: AtomicU64,
    readahead: Mutex<ReadaheadState>,
    /// The entries of open folders.
    entries: Mutex<HashMap<Ino, Weak<[FolderEntry]>>>,
}

#[derive(Default)]
struct ReadaheadState {
    /// The clients' files for which read-ahead was requested and that the read-ahead process has not opened yet, oldest
    /// first.
    expected: HashMap<Ino, VecDeque<Weak<FileHandle>>>,
    /// The number of open handles of the read-ahead process, by dataset.
    open: HashMap<NodeId, usize>,
}

impl Handles {
    /// Adds a handle, and returns its number.
    pub(crate) fn add(&self, handle: Handle) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Handle::Readahead(file) = &handle {
            *self.readahead.lock().open.entry(file.ino.node()).or_default() += 1;
        }
        self.open.write().insert(number, Arc::new(handle));
        number
    }

    /// Returns the number of open files of datasets.
    pub(crate) fn open_files(&self) -> usize {
        let is_of_dataset = |handle: &&Arc<Handle>| match &***handle {
            Handle::File(file) | Handle::Readahead(file) => file.layer.is_some(),
            Handle::SourceFolder(_) | Handle::ViewFolder(_) | Handle::Folder(_) => false,
        };
        self.open.read().values().filter(is_of_dataset).count()
    }

    /// Returns the handle with a number.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Handle>> {
        self.open.read().get(&number).cloned()
    }

    /// Adds a handle of a folder with these entries, and returns its number. Handles with the same entries share them.
    pub(crate) fn add_folder(&self, ino: Ino, entries: Vec<FolderEntry>) -> u64 {
        let mut shared = self.entries.lock();
        let known = shared.get(&ino).and_then(Weak::upgrade).filter(|known| **known == *entries);
        let entries = known.unwrap_or_else(|| {
            let entries: Arc<[FolderEntry]> = entries.into();
            shared.retain(|_, other| other.strong_count() > 0);
            shared.insert(ino, Arc::downgrade(&entries));
            entries
        });
        drop(shared);
        self.add(Handle::Folder(entries))
    }

    /// Returns all open files of a dataset with the numbers of their handles.
    pub(crate) fn files_of(&self, dataset: NodeId) -> Vec<(u64, Arc<FileHandle>)> {
        let open = self.open.read();
        let files = open.iter().filter_map(|(number, handle)| match &**handle {
            Handle::File(file) | Handle::Readahead(file) if file.ino.node() == dataset => {
                Some((*number, Arc::clone(file)))
            }
            _ => None,
        });
        files.collect()
    }

    /// Makes a handle one of `new`, if it is still one of `old` and `is_current` then.
    pub(crate) fn replace(
        &self,
        number: u64,
        old: &Arc<FileHandle>,
        new: Arc<FileHandle>,
        is_current: impl FnOnce(&FileHandle) -> bool,
    ) {
        let mut open = self.open.write();
        let Some(handle) = open.get_mut(&number).filter(|_| is_current(&new)) else { return };
        match &**handle {
            Handle::File(file) if Arc::ptr_eq(file, old) => *handle = Arc::new(Handle::File(new)),
            Handle::Readahead(file) if Arc::ptr_eq(file, old) => *handle = Arc::new(Handle::Readahead(new)),
            _ => {}
        }
    }

    /// Removes a handle. Returns the file if it was a client's and read-ahead was requested for it.
    pub(crate) fn remove(&self, number: u64) -> Option<Ino> {
        let removed = self.open.write().remove(&number);
        if let Some(Handle::File(file)) = removed.as_deref() {
            file.is_closed.store(true, Ordering::Relaxed);
        }
        match removed.as_deref()? {
            Handle::File(file) if file.readahead_requested.load(Ordering::Relaxed) => {
                let mut readahead = self.readahead.lock();
                if let Some(expected) = readahead.expected.get_mut(&file.ino) {
                    expected.retain(|expected| expected.as_ptr() != Arc::as_ptr(file));
                    if expected.is_empty() {
                        readahead.expected.remove(&file.ino);
                    }
                }
                Some(file.ino)
            }
            Handle::Readahead(file) => {
                let mut readahead = self.readahead.lock();
                if let Entry::Occupied(mut open) = readahead.open.entry(file.ino.node()) {
                    *open.get_mut() -= 1;
                    if *open.get() == 0 {
                        open.remove();
                    }
                }
                None
            }
            Handle::File(_) | Handle::SourceFolder(_) | Handle::ViewFolder(_) | Handle::Folder(_) => None,
        }
    }

    /// Returns the number of open handles of the read-ahead process: in a dataset, and in all datasets.
    pub(crate) fn readahead_handles(&self, dataset: NodeId) -> (usize, usize) {
        let readahead = self.readahead.lock();
        (readahead.open.get(&dataset).copied().unwrap_or_default(), readahead.open.values().sum())
    }

    /// Records that read-ahead is requested for a client's file: the read-ahead process is expected to open it.
    pub(crate) fn expect_readahead(&self, file: &Arc<FileHandle>) {
        file.readahead_requested.store(true, Ordering::Relaxed);
        let mut readahead = self.readahead.lock();
        let expected = readahead.expected.entry(file.ino).or_default();
        if expected.len() >= MAX_EXPECTED {
            expected.pop_front();
        }
        expected.push_back(Arc::downgrade(file));
    }

    /// Returns the client's file for which the read-ahead process now opens a file: the oldest that is expected.
    pub(crate) fn take_expected(&self, ino: Ino) -> Option<Arc<FileHandle>> {
        let mut readahead = self.readahead.lock();
        let expected = readahead.expected.get_mut(&ino)?;
        let oldest = expected.pop_front();
        if expected.is_empty() {
            readahead.expected.remove(&ino);
        }
        drop(readahead);
        oldest?.upgrade()
    }
}
