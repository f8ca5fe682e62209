//! The origin of an error: the file, or the system.

use std::io;
use std::sync::Arc;

use crate::catalog::{CatalogError, OpenError};
use crate::format::{FormatError, Severity};
use crate::source::{SourceError, tells_what_is_there};

/// The origin of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ErrorOrigin {
    /// The file is damaged, or of another kind than expected.
    File,
    /// The disk or the network fails, a limit is reached, the file may not be read, or volfs has a bug: what is stored is
    /// unknown.
    System,
}

impl ErrorOrigin {
    pub(crate) fn severity(self) -> Severity {
        match self {
            Self::File => Severity::Damage,
            Self::System => Severity::Unread,
        }
    }
}

/// An error whose origin is known.
pub(super) trait HasOrigin {
    /// Returns the kind of the operating system's error, if it is one.
    fn kind(&self) -> Option<io::ErrorKind>;

    /// Returns whether it is a bug in volfs.
    fn is_internal(&self) -> bool {
        false
    }

    fn origin(&self) -> ErrorOrigin {
        let of_system = |kind| kind == io::ErrorKind::PermissionDenied || !tells_what_is_there(kind);
        let is_of_system = self.is_internal() || self.kind().is_some_and(of_system);
        if is_of_system { ErrorOrigin::System } else { ErrorOrigin::File }
    }

    /// Returns whether the same call may succeed a moment later.
    fn may_pass(&self) -> bool {
        self.kind().is_some_and(|kind| !tells_what_is_there(kind))
    }
}

impl HasOrigin for FormatError {
    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Source(SourceError::Io { kind, .. }) => Some(*kind),
            _ => None,
        }
    }

    fn is_internal(&self) -> bool {
        matches!(self, Self::Internal(_))
    }
}

impl HasOrigin for Arc<OpenError> {
    fn kind(&self) -> Option<io::ErrorKind> {
        match &**self {
            OpenError::Io { kind, .. } => Some(*kind),
            OpenError::Format(error) => error.kind(),
            OpenError::Unknown(_) => None,
        }
    }

    fn is_internal(&self) -> bool {
        matches!(&**self, OpenError::Format(error) if error.is_internal())
    }
}

impl HasOrigin for CatalogError {
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
    fn what_the_system_failed_at_is_not_damage_of_the_file() {
        use io::ErrorKind::{IsADirectory, NotFound, OutOfMemory, PermissionDenied, UnexpectedEof};
        let error = |kind| SourceError::Io { doing: "cannot read it".into(), message: String::new(), kind };
        for (kind, origin, may_pass) in [
            (io::Error::from_raw_os_error(5).kind(), ErrorOrigin::System, true),
            (io::Error::from_raw_os_error(24).kind(), ErrorOrigin::System, true),
            (OutOfMemory, ErrorOrigin::System, true),
            (UnexpectedEof, ErrorOrigin::System, true),
            (PermissionDenied, ErrorOrigin::System, false),
            (NotFound, ErrorOrigin::File, false),
            (IsADirectory, ErrorOrigin::File, false),
        ] {
            let (of_format, message) = (FormatError::Source(error(kind)), String::new());
            assert_eq!((of_format.origin(), of_format.may_pass()), (origin, may_pass), "{kind}");
            assert_eq!(Arc::new(OpenError::Format(of_format)).origin(), origin, "{kind}");
            assert_eq!(Arc::new(OpenError::Io { message: message.clone(), kind }).origin(), origin, "{kind}");
            assert_eq!(CatalogError::Io { path: String::new(), message, kind }.origin(), origin, "{kind}");
        }
        for error in [FormatError::Damaged("x".into()), SourceError::Changed.into()] {
            assert_eq!((error.origin(), error.may_pass()), (ErrorOrigin::File, false), "{error}");
        }
        let bug = FormatError::Internal("it panicked".into());
        assert_eq!((bug.origin(), bug.may_pass()), (ErrorOrigin::System, false));
    }
}
