//! Versions of local files, and their times.

use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Identifies one version of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileStamp {
    /// Bytes.
    pub size: u64,
    /// Time of the last change of the content (mtime): seconds and nanoseconds since 1970.
    pub mtime: (i64, i64),
    /// Device and inode number.
    pub inode: (u64, u64),
}

impl FileStamp {
    /// Returns the stamp of a file with this metadata.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }

    /// Returns a hash of the stamp, never 0.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish() | 1
    }

    /// Returns the time of the last change of the content (mtime).
    pub(crate) fn modified(&self) -> SystemTime {
        system_time(self.mtime.0, self.mtime.1)
    }
}

/// Converts seconds and nanoseconds since 1970.
pub(crate) fn system_time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds.clamp(0, 999_999_999).unsigned_abs());
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|t| t.checked_add(part)).unwrap_or(UNIX_EPOCH)
}
