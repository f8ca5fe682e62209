//! The limit of the process on open descriptors, and what of it the cache of open files may take.

use std::num::NonZeroUsize;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that are kept open, if the limit allows it.
const MOST: usize = 384;
/// Files that are kept open in any case.
const FEWEST: usize = 4;
/// Descriptors for everything else: the connections to the kernel, the log, pipes, and lookups in flight.
const RESERVED: u64 = 32;

/// Raises the soft limit on open descriptors to the hard one. To be called before any folder or dataset is opened.
pub fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        log::debug!("the limit on open files stays as it is: {error}");
    }
}

/// Returns how many files may be kept open although nothing reads them.
pub(super) fn most_open_files() -> NonZeroUsize {
    let files = share(getrlimit(Resource::Nofile).current);
    NonZeroUsize::new(files).unwrap_or(NonZeroUsize::MIN)
}

/// Returns the share of a limit that open files may take; `None` is no limit.
fn share(limit: Option<u64>) -> usize {
    let free = limit.unwrap_or(u64::MAX).saturating_sub(RESERVED) / 2;
    usize::try_from(free).unwrap_or(MOST).clamp(FEWEST, MOST)
}

/// Returns whether an error means that the process, or the system, has no descriptor left.
pub(super) fn is_out_of_descriptors(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_take_less_than_half_of_the_limit() {
        let limits = [Some(0), Some(64), Some(128), Some(1024), Some(u64::MAX), None];
        assert_eq!(limits.map(share), [4, 16, 48, 384, 384, 384]);
    }
}
