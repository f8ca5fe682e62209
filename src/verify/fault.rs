//! Whose fault it is that something cannot be read.

use std::io;

use crate::catalog::{CatalogError, OpenError};
use crate::format::FormatError;
use crate::source::{SourceError, tells_what_is_there};

/// Whose fault it is that something cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The file's: it is damaged, or not what it should be.
    File,
    /// The system's: the disk or the network fails, a limit is reached, the file may not be read. What is stored is
    /// unknown.
    System,
}

/// An error of something that is checked.
pub(super) trait Failure {
    /// Returns the kind of the operating system's error, if it is one.
    fn kind(&self) -> Option<io::ErrorKind>;

    /// Returns whose fault it is.
    fn fault(&self) -> Fault {
        let of_system = |kind| kind == io::ErrorKind::PermissionDenied || !tells_what_is_there(kind);
        if self.kind().is_some_and(of_system) { Fault::System } else { Fault::File }
    }

    /// Returns whether the same call may succeed a moment later.
    fn may_pass(&self) -> bool {
        self.kind().is_some_and(|kind| !tells_what_is_there(kind))
    }
}

impl Failure for io::Error {
    fn kind(&self) -> Option<io::ErrorKind> {
        Some(Self::kind(self))
    }
}

impl Failure for FormatError {
    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Source(SourceError::Io { kind, .. }) => Some(*kind),
            _ => None,
        }
    }
}

impl Failure for OpenError {
    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { kind, .. } => Some(*kind),
            Self::Format(error) => error.kind(),
            Self::Unknown(_) => None,
        }
    }
}

impl Failure for CatalogError {
    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { kind, .. } => Some(*kind),
            Self::Stale(_) => None,
        }
    }
}
