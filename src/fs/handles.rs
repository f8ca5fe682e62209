//! What is open.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::Ino;
use crate::array::Scans;
use crate::catalog::{NodeId, OpenDataset};
use crate::view::Content;

/// Something that a client has open.
pub enum Handle {
    /// A file: its content as of the moment it was opened.
    File(OpenFile),
    /// A folder: its entries as of the moment it was opened.
    Folder(Vec<FolderEntry>),
}

/// An open file.
pub struct OpenFile {
    /// Its bytes.
    pub content: Content,
    /// Where it belongs, for messages.
    pub of: Option<Belongs>,
    /// The dataset's number: the lane of its work.
    pub node: NodeId,
    /// Who reads it, and whether in order.
    pub scans: Arc<Scans>,
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

/// All open handles by number.
#[derive(Default)]
pub struct Handles {
    open: RwLock<HashMap<u64, Arc<Handle>>>,
    next: AtomicU64,
}

impl Handles {
    /// Keeps a handle and gives it a number.
    pub fn add(&self, handle: Handle) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(handle));
        number
    }

    /// The handle with a number.
    pub fn get(&self, number: u64) -> Option<Arc<Handle>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Drops a handle.
    pub fn remove(&self, number: u64) {
        let removed = self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
        drop(removed);
    }
}
