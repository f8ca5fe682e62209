//! The interface to the kernel's cache of file pages. The code that mounts the file system passes an implementation in.

use super::ino::Ino;

/// Drops pages from the kernel's page cache.
pub(crate) trait PageCache: Send + Sync {
    /// Drops all pages of a file, also those that a process has mapped. Waits for reads of the file that are in flight.
    fn drop_pages(&self, file: Ino);
}
