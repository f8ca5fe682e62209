//! The errors of the file system, and the errno of each: only this file decides which errno a client gets.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use crate::catalog::CatalogError;
use crate::logging::warn_seldom;

/// Why an operation of the file system fails.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum FsError {
    /// The answer is not in memory. Only with [`Blocking::No`](crate::source::Blocking::No).
    #[error("would block")]
    WouldBlock,
    /// There is no such name.
    #[error("no such file or folder")]
    NotFound,
    /// A name is longer than the source allows.
    #[error("name too long")]
    NameTooLong,
    /// The file or folder belongs to a source that has changed since; a lookup of its name finds the new one.
    #[error("the source changed")]
    Stale,
    /// A folder was expected.
    #[error("not a folder")]
    NotAFolder,
    /// A file was expected.
    #[error("a folder")]
    IsAFolder,
    /// The file system is read-only.
    #[error("read-only")]
    ReadOnly,
    /// The file has no such extended attribute.
    #[error("no such attribute")]
    NoAttribute,
    /// No file has extended attributes of such a kind.
    #[error("no attributes of this kind")]
    AttributeNotSupported,
    /// The daemon may not read the source.
    #[error("permission denied")]
    Denied,
    /// There is no such handle, or it is a handle of another kind.
    #[error("no such handle")]
    BadHandle,
    /// There is no memory for the answer.
    #[error("out of memory")]
    NoMemory,
    /// The content cannot be read or computed.
    #[error("input/output error")]
    Io,
}

impl FsError {
    /// Returns the error number of the operating system.
    pub(crate) fn errno(&self) -> i32 {
        let errno = match self {
            Self::WouldBlock => Errno::AGAIN,
            Self::NotFound => Errno::NOENT,
            Self::NameTooLong => Errno::NAMETOOLONG,
            Self::Stale => Errno::STALE,
            Self::NotAFolder => Errno::NOTDIR,
            Self::IsAFolder => Errno::ISDIR,
            Self::ReadOnly => Errno::ROFS,
            Self::NoAttribute => Errno::NODATA,
            Self::AttributeNotSupported => Errno::OPNOTSUPP,
            Self::Denied => Errno::ACCESS,
            Self::BadHandle => Errno::BADF,
            Self::NoMemory => Errno::NOMEM,
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
            CatalogError::Io { kind: io::ErrorKind::InvalidFilename, .. } => Self::NameTooLong,
            CatalogError::Io { kind: io::ErrorKind::OutOfMemory, .. } => {
                warn_seldom(&error.to_string());
                Self::NoMemory
            }
            CatalogError::Io { .. } => {
                warn_seldom(&error.to_string());
                Self::Io
            }
        }
    }
}
