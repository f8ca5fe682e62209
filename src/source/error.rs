//! Why bytes of a source cannot be read.

use std::io;

use thiserror::Error;

/// Why bytes of a source cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SourceError {
    /// Only with [`Wait::No`](super::Wait::No): the call would have to wait.
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
    #[must_use]
    pub fn io(doing: impl Into<String>, error: &io::Error) -> Self {
        Self::Io { doing: doing.into(), message: error.to_string(), kind: error.kind() }
    }
}
