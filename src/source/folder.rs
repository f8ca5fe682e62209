//! The trait of sources that are folders of objects.

use std::sync::Arc;

use thiserror::Error;

use super::{EntryKind, Permissions, Source, SourceError};

/// A source whose objects are files below a folder: names with `/` between them.
pub(crate) trait Folder: Source {
    /// Opens the folder at `path`, which is absolute or relative to this folder and may have `..` in it.
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder>;

    /// Visits the entries of the folder `below` this one, in no order, until `visit` returns `false`. A folder that
    /// does not exist has no entries; names that are not UTF-8 are skipped.
    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), SourceError>;

    /// Returns the device and inode number, which are the same on every path to this folder.
    fn identity(&self) -> (u64, u64);

    /// Returns whether anything here is known to have changed. Checks the folder itself and the files that were used
    /// last.
    fn is_changed(&self) -> bool;

    /// Settles who may read what, where that is [asked for](super::Origin::permissions): from now on a file that fewer may
    /// read than the folder it is in cannot be read. Returns who may read all that was read so far, here and in folders
    /// that were opened from here. To be called when the dataset is open.
    fn settle_permissions(&self) -> Option<Permissions> {
        None
    }

    /// Returns the first failure of the system, or the first change that was noticed, since the folder was opened, here
    /// or in a folder that was opened from here. What was concluded from the answers may be wrong then.
    fn failure(&self) -> Option<SourceError> {
        None
    }
}

/// Why a folder cannot be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum NoFolder {
    /// Nothing is there, or a link leads to nothing.
    #[error("there is no such folder")]
    Absent,
    /// The path is not that of a folder.
    #[error("it is not a folder")]
    NotAFolder,
    /// Links lead in a circle.
    #[error("its links lead in a circle")]
    Loop,
    /// The path leads out of the source, and links may not. Whether anything is there remains unsaid.
    #[error("it is absent or lies outside of the source (where --follow-links would show it)")]
    Outside,
    /// The operating system reported an error.
    #[error(transparent)]
    Source(#[from] SourceError),
}
