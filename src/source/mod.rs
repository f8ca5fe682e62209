//! Where bytes come from.
//!
//! A source is a set of named objects of which ranges can be read: one file, a folder of files, later an object store. That
//! an object is not there is an answer, not an error. What changes while it is read is an error, never a mixture.

mod file;
mod folder;
mod index;
mod open_file;
mod open_files;
mod pread;
mod symlink_policy;
mod window;
mod windows;

use std::io;
use std::sync::Arc;

use thiserror::Error;

pub use file::{FileStamp, LocalFile, time};
pub use folder::{EntryKind, Folder, Folders, LocalFolder, NoFolder};
pub use index::{Index, IndexCache, PartKey};
pub use open_file::OpenFile;
pub use symlink_policy::SymlinkPolicy;
pub use windows::{CoarseInstant, MappedWindow};

/// The name of the one object of a dataset that is a single file.
pub const WHOLE: &str = "";

/// Whether a call may wait for a disk or a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Answer from memory or give up with [`SourceError::WouldBlock`].
    No,
    /// Take the time it takes.
    Yes,
}

/// Named objects of which ranges can be read by many threads at once.
pub trait Source: Send + Sync {
    /// Bytes of an object, `None` if it is not there.
    ///
    /// # Errors
    /// [`SourceError::Io`] where the system fails.
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError>;

    /// Fills `out` with the bytes of `object` from `offset` on; `false` if the object is not there.
    ///
    /// # Errors
    /// [`SourceError::TooShort`] if the object ends before, [`SourceError::WouldBlock`] if the bytes are not at hand and
    /// `wait` is [`Wait::No`], [`SourceError::Io`] where the system fails.
    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], wait: Wait) -> Result<bool, SourceError>;

    /// Metadata that is kept with an object under `name`; `None` if there is none, or no such object. May wait.
    ///
    /// # Errors
    /// [`SourceError::Io`] where the system fails.
    fn tag(&self, _object: &str, _name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        Ok(None)
    }

    /// The file that an object is, held for several reads in a row; `None` where [`Source::read_at`] is the only way to it, also
    /// since it is not there.
    ///
    /// # Errors
    /// Those of [`Source::read_at`].
    fn hold(&self, object: &str, wait: Wait) -> Result<Option<Arc<OpenFile>>, SourceError> {
        let _ = (object, wait);
        Ok(None)
    }

    /// Makes sure that what was read so far is all of one version. Called after reading and before anything that was read
    /// is delivered or kept.
    ///
    /// # Errors
    /// [`SourceError::Changed`] if the source is not what it was when it was opened.
    fn unchanged(&self) -> Result<(), SourceError>;
}

/// Why bytes could not be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SourceError {
    /// Only with [`Wait::No`]: the answer is not at hand.
    #[error("not at hand")]
    WouldBlock,
    /// The object ends before the bytes asked for.
    #[error("{length} bytes at {offset} are beyond the end of the file, which has {size}")]
    TooShort {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length: u64,
        /// Bytes that there are.
        size: u64,
    },
    /// The source is not what it was when it was opened.
    #[error("the file was changed while it was in use; open it again")]
    Changed,
    /// The operating system's fault, or the disk's.
    #[error("{doing}: {message}")]
    Io {
        /// What was tried, with the name of the file.
        doing: String,
        /// The system's words.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
}

impl SourceError {
    /// An error of the operating system while `doing` something.
    #[must_use]
    pub fn io(doing: impl Into<String>, error: &io::Error) -> Self {
        Self::Io { doing: doing.into(), message: error.to_string(), kind: error.kind() }
    }
}
