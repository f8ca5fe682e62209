//! Pages that are left for readers to ask for, so that it is seen how far they have come.
//!
//! They are read with what follows them, ahead of the reader, and kept here until it asks: by then nobody may know the bricks
//! around them any more.

use crate::sync::Mutex;
use std::num::NonZeroUsize;

use lru::LruCache;

use super::Ino;

/// How many are kept, all readers together. Of a file whose page is no longer here it is read like any other.
const PAGES: NonZeroUsize = NonZeroUsize::new(128).unwrap();

/// A file and an offset in it.
type LayerRef = (Ino, u64);

/// Pages by where they are.
pub struct LeftPages {
    pages: Mutex<LruCache<LayerRef, Box<[u8]>>>,
}

impl Default for LeftPages {
    fn default() -> Self {
        Self { pages: Mutex::new(LruCache::new(PAGES)) }
    }
}

impl LeftPages {
    /// Keeps a page of a file until it is taken.
    pub fn put(&self, file: Ino, offset: u64, page: &[u8]) {
        self.pages.lock().put((file, offset), page.into());
    }

    /// The page, once.
    pub fn take(&self, file: Ino, offset: u64) -> Option<Box<[u8]>> {
        self.pages.lock().pop(&(file, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_given_once_and_memory_is_bounded() {
        let left = LeftPages::default();
        let number = |n: u64| n.to_le_bytes();
        for n in 0..1000 {
            left.put(Ino(7), n * 4096, &number(n));
        }
        assert_eq!(left.take(Ino(7), 999 * 4096).as_deref(), Some(&number(999)[..]));
        assert_eq!(left.take(Ino(7), 999 * 4096), None);
        assert_eq!(left.take(Ino(8), 998 * 4096), None);
        assert_eq!(left.take(Ino(7), 0), None);
        assert_eq!(left.pages.lock().len(), PAGES.get() - 1);
    }
}
