//! Why bytes of a source cannot be read.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::memory::OutOfMemory;

/// Why bytes of a source cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum SourceError {
    /// Only with [`Blocking::No`](super::Blocking::No): the call would have to wait.
    #[error("not in memory")]
    WouldBlock,
    /// The object ends before the bytes asked for.
    #[error("{length} bytes at {offset} are beyond the end of the file, which has {size}")]
    TooShort {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length: u64,
        /// Bytes that the object has.
        size: u64,
    },
    /// The source has changed since it was opened.
    #[error("the file was changed while it was in use; open it again")]
    Changed,
    /// The operating system reported an error.
    #[error("{doing}: {message}")]
    Io {
        /// The action that failed, with the path of the file.
        doing: String,
        /// The system's message.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
}

impl SourceError {
    /// Makes an error of the operating system that occurred while `doing` something.
    pub(crate) fn io(doing: impl Into<String>, error: &io::Error) -> Self {
        Self::Io { doing: doing.into(), message: error.to_string(), kind: error.kind() }
    }

    /// Returns whether the system failed, so that nothing is known of what is there: the same call may succeed later.
    pub(crate) fn is_failure_of_system(&self) -> bool {
        matches!(self, Self::Io { kind, .. } if !tells_what_is_there(*kind))
    }
}

impl From<OutOfMemory> for SourceError {
    fn from(error: OutOfMemory) -> Self {
        Self::io("cannot hold what is read", &error.into())
    }
}

/// Returns whether an error of the system is an answer about the source (nothing is there, it is something else, it may
/// not be read), and not a failure to find out.
pub(crate) fn tells_what_is_there(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound, Other, PermissionDenied, Unsupported};
    // unsupported: by the file system, for good
    let answers = [NotFound, NotADirectory, IsADirectory, PermissionDenied, InvalidInput, Unsupported, Other];
    let odd_paths = [Errno::LOOP, Errno::NAMETOOLONG, Errno::XDEV];
    answers.contains(&kind) || odd_paths.map(|errno| io::Error::from(errno).kind()).contains(&kind)
}
