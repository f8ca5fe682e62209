//! The sizes of files whose content is computed, so that programs which look at a folder again and again do not have it
//! computed each time.

use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use lru::LruCache;

use super::ino::Ino;
use crate::catalog::OpenDataset;
use crate::sync::Mutex;

/// The number of files whose size is kept.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// The sizes of the files that were looked at last.
pub struct ComputedSizes {
    /// With the dataset as it was opened: its headers may have changed when it is opened again.
    sizes: Mutex<LruCache<Ino, (Weak<OpenDataset>, u64)>>,
}

impl Default for ComputedSizes {
    fn default() -> Self {
        Self { sizes: Mutex::new(LruCache::new(KEPT)) }
    }
}

impl ComputedSizes {
    /// Returns the size of a file, in bytes, if it is known.
    pub fn get(&self, ino: Ino, open: &Arc<OpenDataset>) -> Option<u64> {
        let mut sizes = self.sizes.lock();
        let (of, size) = sizes.get(&ino)?;
        std::ptr::eq(of.as_ptr(), Arc::as_ptr(open)).then_some(*size)
    }

    /// Sets the size of a file, in bytes.
    pub fn put(&self, ino: Ino, open: &Arc<OpenDataset>, size: u64) {
        let evicted = self.sizes.lock().push(ino, (Arc::downgrade(open), size));
        drop(evicted); // not under the lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Layer;
    use crate::view::fixture::one_layer;
    use crate::volume::NativeJson;

    #[test]
    fn a_dataset_that_was_opened_again_has_sizes_of_its_own() {
        let opened = || {
            let layer = Layer { name: "a".into(), levels: Vec::new(), native: NativeJson::new() };
            Arc::new(one_layer("zgy", layer))
        };
        let (sizes, open) = (ComputedSizes::default(), opened());
        assert_eq!(sizes.get(Ino(5), &open), None);
        sizes.put(Ino(5), &open, 70);
        assert_eq!((sizes.get(Ino(5), &open), sizes.get(Ino(6), &open)), (Some(70), None));
        let again = opened();
        assert_eq!(sizes.get(Ino(5), &again), None);
        sizes.put(Ino(5), &again, 71);
        assert_eq!((sizes.get(Ino(5), &again), sizes.get(Ino(5), &open)), (Some(71), None));
    }
}
