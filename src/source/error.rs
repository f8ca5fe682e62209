//! The version of a source that was read, why bytes of it cannot be read, and the first failure of a dataset.

#[cfg(target_os = "linux")]
use std::fs::Metadata;
use std::io;
#[cfg(target_os = "linux")]
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;

use crate::memory::OutOfMemory;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// It may not: it answers from memory or fails with [`SourceError::WouldBlock`].
    No,
    Yes,
}

/// Identifies one version of a file, a folder or an object of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectVersion {
    pub(crate) size: u64,
    /// Time of the last change of the content: seconds and nanoseconds since 1970.
    pub(crate) mtime: (i64, i64),
    /// Device and inode number, the same on every path to it; of an object of a store 0 and a hash of its key.
    pub(crate) inode: (u64, u64),
    /// A hash of the etag that a store gives.
    pub(crate) etag: Option<u64>,
}

impl ObjectVersion {
    #[cfg(target_os = "linux")]
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        let mtime = (metadata.mtime(), metadata.mtime_nsec());
        Self { size: metadata.size(), mtime, inode: (metadata.dev(), metadata.ino()), etag: None }
    }

    /// Returns what tells a folder that has files of others, too, from another one in its place: not when they came.
    pub(crate) fn of_shared_folder(self) -> Self {
        Self { size: 0, mtime: (0, 0), ..self }
    }

    pub(crate) fn modified(&self) -> SystemTime {
        system_time(self.mtime.0, self.mtime.1)
    }
}

pub(super) fn system_time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds.clamp(0, 999_999_999).unsigned_abs());
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|t| t.checked_add(part)).unwrap_or(UNIX_EPOCH)
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum SourceError {
    /// Only with [`Blocking::No`]: the call would have to wait.
    #[error("not in memory")]
    WouldBlock,
    #[error("{length} bytes at {offset} are beyond the end of the file, which has {size}")]
    TooShort { offset: u64, length: u64, size: u64 },
    #[error("the file was changed while it was in use; open it again")]
    Changed,
    /// The operating system reported an error. `doing` is the action that failed, with the path of the file.
    #[error("{doing}: {message}")]
    Io { doing: String, message: String, kind: io::ErrorKind },
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
    use io::ErrorKind::{
        CrossesDevices, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound, Other, PermissionDenied,
        Unsupported,
    };
    // unsupported: by the file system, for good
    let answers = [NotFound, NotADirectory, IsADirectory, PermissionDenied, InvalidInput, Unsupported, Other];
    let odd_paths = [io::Error::from_raw_os_error(LOOP).kind(), InvalidFilename, CrossesDevices];
    answers.contains(&kind) || odd_paths.contains(&kind)
}

/// The numbers of errors of the system: nothing is there, which has this number everywhere; links lead in a circle.
const NOT_FOUND: i32 = 2;
#[cfg(target_os = "linux")]
const LOOP: i32 = nix::libc::ELOOP;
#[cfg(windows)]
const LOOP: i32 = 1921;
#[cfg(not(any(target_os = "linux", windows)))]
const LOOP: i32 = 62;

pub(crate) fn not_found() -> io::Error {
    io::Error::from_raw_os_error(NOT_FOUND)
}

pub(crate) fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(LOOP)
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum NoFolder {
    /// Nothing is there, or a link leads to nothing.
    #[error("there is no such folder")]
    Absent,
    #[error("it is not a folder")]
    NotAFolder,
    #[error("its links lead in a circle")]
    Loop,
    /// The path leads out of the source, and links may not. Whether anything is there remains unsaid.
    #[error("it is absent or lies outside of the source (where --follow-links would show it)")]
    Outside,
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// The first failure of the system, or the first change, in a folder and in all that was opened from it: those share
/// it. What was concluded from the answers may be wrong then.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstFailure(Arc<OnceLock<SourceError>>);

impl FirstFailure {
    /// Returns a result, and remembers a failure of the system or a change.
    pub(super) fn noted<T>(&self, result: Result<T, SourceError>) -> Result<T, SourceError> {
        result.inspect_err(|error| self.note(error))
    }

    pub(super) fn note(&self, error: &SourceError) {
        if error.is_failure_of_system() || *error == SourceError::Changed {
            let _ = self.0.set(error.clone());
        }
    }

    pub(super) fn get(&self) -> Option<SourceError> {
        self.0.get().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_remembered_by_all_that_share_it() {
        let first = FirstFailure::default();
        let shared = first.clone();
        let too_short = SourceError::TooShort { offset: 0, length: 1, size: 0 };
        assert_eq!(first.noted(Err::<(), _>(too_short.clone())), Err(too_short), "the file's fault, not the system's");
        assert_eq!((shared.noted(Ok(1)), shared.get()), (Ok(1), None));
        let failed = SourceError::io("cannot read it", &std::io::ErrorKind::TimedOut.into());
        assert!(shared.noted(Err::<(), _>(failed.clone())).is_err());
        assert!(first.noted(Err::<(), _>(SourceError::Changed)).is_err());
        assert_eq!(first.get(), Some(failed));
    }
}
