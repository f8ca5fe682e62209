//! The interface through which the file system requests read-ahead. The kernel's page cache can be filled only from
//! outside the daemon, so the code that mounts the file system passes an implementation in.

use std::ops::Range;
use std::path::Path;

use super::ino::Ino;

/// Makes the kernel read pages of a file before a client asks for them.
pub(crate) trait Readahead: Send + Sync {
    /// The number of requests in flight; `None` if no more can be made.
    fn in_flight(&self) -> Option<usize>;

    /// Requests that the kernel reads bytes of a file. `path` is relative to the root of the mount. Never waits, and
    /// promises nothing.
    fn request(&self, file: Ino, path: &Path, bytes: Range<u64>);

    /// Cancels all requests for a file, which no client reads any more.
    fn cancel(&self, file: Ino);
}
