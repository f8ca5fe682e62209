//! Whose fault it is that something cannot be read.

use std::io;

use crate::catalog::{CatalogError, OpenError};
use crate::format::FormatError;
use crate::source::{SourceError, tells_what_is_there};

/// Whose fault it is that something cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_failed_at_is_not_the_files_fault() {
        use io::ErrorKind::{IsADirectory, NotFound, OutOfMemory, PermissionDenied, UnexpectedEof};
        let error = |kind| SourceError::Io { doing: "cannot read it".into(), message: String::new(), kind };
        for (kind, fault, may_pass) in [
            (io::Error::from_raw_os_error(5).kind(), Fault::System, true),
            (io::Error::from_raw_os_error(24).kind(), Fault::System, true),
            (OutOfMemory, Fault::System, true),
            (UnexpectedEof, Fault::System, true),
            (PermissionDenied, Fault::System, false),
            (NotFound, Fault::File, false),
            (IsADirectory, Fault::File, false),
        ] {
            let (of_format, message) = (FormatError::Source(error(kind)), String::new());
            assert_eq!((of_format.fault(), of_format.may_pass()), (fault, may_pass), "{kind}");
            assert_eq!(OpenError::Format(of_format).fault(), fault, "{kind}");
            assert_eq!(OpenError::Io { message: message.clone(), kind }.fault(), fault, "{kind}");
            assert_eq!(CatalogError::Io { path: String::new(), message, kind }.fault(), fault, "{kind}");
        }
        for error in [FormatError::Damaged("x".into()), SourceError::Changed.into()] {
            assert_eq!((error.fault(), error.may_pass()), (Fault::File, false), "{error}");
        }
    }
}
