//! The limit of the process on open descriptors, and what of it open files and connections may take.

use std::num::NonZeroUsize;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that are kept open, if the limit allows it.
const MOST_FILES: usize = 384;
/// Open files, or connections, that there may be in any case.
const FEWEST: usize = 4;
/// Descriptors for everything else: the connections to the kernel, the log, pipes, and lookups in flight.
const RESERVED: u64 = 32;
/// Connections to one object store, if the limit allows them.
#[cfg(feature = "store")]
const MOST_CONNECTIONS: usize = 512;

/// Raises the soft limit on open descriptors to the hard one. To be called before any folder or dataset is opened.
pub(crate) fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        log::debug!("the limit on open files stays as it is: {error}");
    }
}

/// Returns how many files may be kept open although nothing reads them.
pub(super) fn most_open_files() -> NonZeroUsize {
    let files = share(getrlimit(Resource::Nofile).current, 2, MOST_FILES);
    NonZeroUsize::new(files).unwrap_or(NonZeroUsize::MIN)
}

/// Returns how many connections to one object store there may be.
#[cfg(feature = "store")]
pub(super) fn most_connections() -> usize {
    share(getrlimit(Resource::Nofile).current, 4, MOST_CONNECTIONS)
}

/// Returns the `part`-th part of a limit without what is reserved, and at most `most`; `None` is no limit.
fn share(limit: Option<u64>, part: u64, most: usize) -> usize {
    let free = limit.unwrap_or(u64::MAX).saturating_sub(RESERVED) / part;
    usize::try_from(free).unwrap_or(most).clamp(FEWEST, most)
}

/// Returns whether an error means that the process, or the system, has no descriptor left.
pub(super) fn is_out_of_descriptors(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_take_less_than_half_of_the_limit_and_connections_less_than_a_quarter() {
        let limits = [Some(0), Some(64), Some(128), Some(1024), Some(u64::MAX), None];
        assert_eq!(limits.map(|limit| share(limit, 2, 384)), [4, 16, 48, 384, 384, 384]);
        assert_eq!(limits.map(|limit| share(limit, 4, 512)), [4, 8, 24, 248, 512, 512]);
    }
}
