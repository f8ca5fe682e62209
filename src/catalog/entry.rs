//! What was found at one path of SOURCE.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use crate::source::{FileStamp, system_time};

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
    pub fn new(kind: NodeKind, metadata: &Metadata) -> Self {
        Self { kind, stamp: FileStamp::of(metadata), changed: system_time(metadata.ctime(), metadata.ctime_nsec()) }
    }
}
