//! What was found at one path of SOURCE.

use std::time::SystemTime;

use crate::source::{About, FileStamp};

/// What a path of SOURCE is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A folder that is shown with the folders and datasets in it.
    Folder,
    /// A dataset, or a file with the extension of a format.
    Dataset,
}

/// A folder or dataset as it was at one look.
pub struct Entry {
    pub kind: NodeKind,
    pub stamp: FileStamp,
    /// The time of the last change of content or attributes (ctime).
    pub changed: SystemTime,
}

impl Entry {
    pub fn new(kind: NodeKind, about: &About) -> Self {
        Self { kind, stamp: about.stamp, changed: about.changed }
    }
}
