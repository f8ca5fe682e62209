//! What goes wrong in the file system, and the errno that says so: the only place that knows one.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::catalog::CatalogError;
use crate::format::FormatError;

/// Why an operation of the file system fails.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FsError {
    /// Only with [`Wait::No`](crate::source::Wait::No): the answer takes time.
    #[error("not at hand")]
    WouldBlock,
    /// There is no such name.
    #[error("no such file or folder")]
    NotFound,
    /// The file or folder belongs to a source that changed since; its name leads to the new one.
    #[error("the source changed")]
    Stale,
    /// A folder was expected.
    #[error("not a folder")]
    NotAFolder,
    /// A file was expected.
    #[error("a folder")]
    IsAFolder,
    /// The file system can only be read.
    #[error("read-only")]
    ReadOnly,
    /// The file has no such extended attribute.
    #[error("no such attribute")]
    NoAttribute,
    /// The source may not be looked at.
    #[error("permission denied")]
    Denied,
    /// A handle that was not given out.
    #[error("no such handle")]
    BadHandle,
    /// The bytes cannot be had.
    #[error("input/output error")]
    Io,
}

impl FsError {
    /// The system's number for it.
    #[must_use]
    pub fn errno(&self) -> i32 {
        let errno = match self {
            Self::WouldBlock => Errno::AGAIN,
            Self::NotFound => Errno::NOENT,
            Self::Stale => Errno::STALE,
            Self::NotAFolder => Errno::NOTDIR,
            Self::IsAFolder => Errno::ISDIR,
            Self::ReadOnly => Errno::ROFS,
            Self::NoAttribute => Errno::NODATA,
            Self::Denied => Errno::ACCESS,
            Self::BadHandle => Errno::BADF,
            Self::Io => Errno::IO,
        };
        errno.raw_os_error()
    }
}

impl From<CatalogError> for FsError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Stale(_) => Self::Stale,
            CatalogError::Io { kind: io::ErrorKind::PermissionDenied, .. } => Self::Denied,
            CatalogError::Io { .. } => {
                log::warn!("{error}");
                Self::Io
            }
        }
    }
}

impl From<FormatError> for FsError {
    fn from(error: FormatError) -> Self {
        if error.would_block() { Self::WouldBlock } else { Self::Io }
    }
}
