//! What is known of computed contents: their sizes, so that programs which look at a folder again and again do not have
//! them computed each time, and the texts that are open, which all handles of a file share.

use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use lru::LruCache;

use super::ino::Ino;
use crate::catalog::OpenDataset;
use crate::sync::Mutex;
use crate::view::Content;

/// The number of files of which something is kept.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// What is known of the contents that were computed last.
pub(crate) struct ComputedContents {
    contents: Mutex<LruCache<Ino, Known>>,
}

/// What is known of one content.
struct Known {
    /// The dataset as it was opened: its headers may have changed when it is opened again.
    of: Weak<OpenDataset>,
    /// In bytes; `None` if it may become another one.
    size: Option<u64>,
    /// Gone once nobody has the file open.
    text: Option<Weak<[u8]>>,
}

impl Default for ComputedContents {
    fn default() -> Self {
        Self { contents: Mutex::new(LruCache::new(KEPT)) }
    }
}

impl ComputedContents {
    /// Returns the size of a file, in bytes, if it is known.
    pub(crate) fn size(&self, ino: Ino, open: &Arc<OpenDataset>) -> Option<u64> {
        self.look_up(ino, open, |known| known.size)
    }

    /// Returns the text of a file if it is open.
    pub(crate) fn text(&self, ino: Ino, open: &Arc<OpenDataset>) -> Option<Arc<[u8]>> {
        self.look_up(ino, open, |known| known.text.as_ref()?.upgrade())
    }

    /// Notes the content of a file that was just computed. Its size counts from now on if it is `fixed`.
    pub(crate) fn put(&self, ino: Ino, open: &Arc<OpenDataset>, content: &Content, fixed: bool) {
        let text = match content {
            Content::Bytes(text) => Some(Arc::downgrade(text)),
            Content::Computed(_) => None,
            // whose header and length cost nothing
            Content::Array(_) => return,
        };
        let known = Known { of: Arc::downgrade(open), size: fixed.then(|| content.len()), text };
        let evicted = self.contents.lock().push(ino, known);
        drop(evicted); // not under the lock
    }

    fn look_up<T>(&self, ino: Ino, open: &Arc<OpenDataset>, get: impl Fn(&Known) -> Option<T>) -> Option<T> {
        let mut contents = self.contents.lock();
        let known = contents.get(&ino).filter(|known| std::ptr::eq(known.of.as_ptr(), Arc::as_ptr(open)))?;
        get(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Layer;
    use crate::view::fixture::one_layer;
    use crate::volume::NativeJson;

    fn opened() -> Arc<OpenDataset> {
        Arc::new(one_layer("zgy", Layer { name: "a".into(), levels: Vec::new(), native: NativeJson::new() }))
    }

    #[test]
    fn a_dataset_that_was_opened_again_has_contents_of_its_own() {
        let (contents, open, again) = (ComputedContents::default(), opened(), opened());
        assert_eq!(contents.size(Ino(5), &open), None);
        contents.put(Ino(5), &open, &"seventy".to_owned().into(), true);
        assert_eq!((contents.size(Ino(5), &open), contents.size(Ino(6), &open)), (Some(7), None));
        assert_eq!(contents.size(Ino(5), &again), None);
        contents.put(Ino(5), &again, &"four".to_owned().into(), true);
        assert_eq!((contents.size(Ino(5), &again), contents.size(Ino(5), &open)), (Some(4), None));
    }

    #[test]
    fn a_text_is_shared_as_long_as_somebody_has_it() {
        let (contents, open) = (ComputedContents::default(), opened());
        let content = Content::from("text".to_owned());
        contents.put(Ino(5), &open, &content, false);
        assert_eq!((contents.text(Ino(5), &open).as_deref(), contents.size(Ino(5), &open)), (Some(&b"text"[..]), None));
        drop(content);
        assert_eq!(contents.text(Ino(5), &open), None);
    }
}
