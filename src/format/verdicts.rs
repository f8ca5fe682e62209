//! Remembers whether files that may describe datasets do, so that a folder can be asked often.

use std::num::NonZeroUsize;

use lru::LruCache;

use crate::source::ObjectVersion;
use crate::sync::{LazyPerProcess, Mutex};

/// The number of files whose verdict is remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Verdicts of one format, by the versions of the files.
pub(super) struct Verdicts(LazyPerProcess<Mutex<LruCache<ObjectVersion, bool>>>);

impl Verdicts {
    pub(super) const fn new() -> Self {
        Self(LazyPerProcess::new(|| Mutex::new(LruCache::new(REMEMBERED))))
    }

    /// Returns the verdict on a file of this version. One that `find` has is remembered; `None` of it is a file that
    /// cannot be read.
    pub(super) fn of(&self, version: ObjectVersion, find: impl FnOnce() -> Option<bool>) -> Option<bool> {
        if let Some(verdict) = self.0.lock().get(&version) {
            return Some(*verdict);
        }
        let verdict = find()?;
        self.0.lock().put(version, verdict);
        Some(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_again_if_that_has_failed() {
        static VERDICTS: Verdicts = Verdicts::new();
        let version = |size| ObjectVersion { size, mtime: (0, 0), inode: (1, 2), etag: None };
        assert_eq!(VERDICTS.of(version(1), || None), None);
        assert_eq!(VERDICTS.of(version(1), || Some(true)), Some(true));
        assert_eq!(VERDICTS.of(version(1), || panic!("it is known")), Some(true));
        assert_eq!(VERDICTS.of(version(2), || Some(false)), Some(false));
    }
}
