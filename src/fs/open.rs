//! Opening and closing of files.

use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use lru::LruCache;

use super::Volfs;
use super::error::{FsError, content_error};
use super::handles::{ContentState, DatasetLayer, FileHandle, Handle, Maker};
use super::ino::Ino;
use super::resolve::{Resolved, path_of};
use super::status::DatasetCounters;
use crate::catalog::{Node, OpenDataset};
use crate::source::Blocking;
use crate::sync::Mutex;
use crate::view::{BoxFile, BoxOf, Content, Item, LayerRef, Rows, json_text};
use crate::volume::ArrayInfo;

/// Refreshes of a dataset that may come between while a file of it is opened.
const MAX_ATTEMPTS: usize = 4;

/// A new handle, and how the kernel may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenReply {
    /// The handle.
    pub handle: u64,
    /// How the kernel may use its page cache for the file.
    pub pages: Pages,
}

/// How the kernel may use its page cache for an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// The pages that it has from earlier opens are still right.
    Keep,
    /// It must drop the pages that it has, and may keep those that are read from now on.
    Drop,
    /// It must not cache anything.
    Bypass,
}

impl Volfs {
    /// Opens a file for reading.
    pub(crate) fn open(self: &Arc<Self>, ino: Ino, blocking: Blocking) -> Result<OpenReply, FsError> {
        self.open_content(ino, blocking, None)
    }

    /// Opens a file that is in no folder: what `make` returns for the layer whose folder this is. Fails with
    /// [`FsError::IsAFolder`] if that is nothing.
    pub(crate) fn open_made(
        self: &Arc<Self>,
        folder: Ino,
        blocking: Blocking,
        make: Maker,
    ) -> Result<OpenReply, FsError> {
        self.open_content(folder, blocking, Some(make))
    }

    /// Returns the current content of a file that was made for the layer whose folder this is, or of one in a folder.
    pub(super) fn content_made(
        &self,
        resolved: &Resolved,
        made_by: Option<&Maker>,
        blocking: Blocking,
    ) -> Result<Content, FsError> {
        let Some(make) = made_by else { return self.content(resolved, blocking) };
        let Resolved::Inside(_, open, tree, item) = resolved else { return Err(FsError::NotFound) };
        let layer = tree.layer_of_folder(*item).ok_or(FsError::NotFound)?;
        make(LayerRef { open, layer, views: self.registries.views }).ok_or(FsError::IsAFolder)
    }

    fn open_content(
        self: &Arc<Self>,
        ino: Ino,
        blocking: Blocking,
        made_by: Option<Maker>,
    ) -> Result<OpenReply, FsError> {
        for _ in 0..MAX_ATTEMPTS {
            let mut resolved = self.resolve(ino, blocking)?;
            self.check_now(&resolved, blocking)?;
            let node = resolved.node().cloned();
            if let Some(node) = &node
                && node.recent().is_some_and(|recent| recent.is_due())
            {
                self.refresh_if_due(node);
                // the numbers of its files may be those of other files now
                if node.has_changed() {
                    return Err(FsError::Stale);
                }
            }
            let epoch = node.as_ref().map_or(0, |node| node.epoch());
            if epoch > 0 {
                resolved = self.resolve(ino, blocking)?;
            }
            let content = self.content_made(&resolved, made_by.as_ref(), blocking)?;
            let pages = match resolved.is_volatile() || self.options.direct_io {
                true => Pages::Bypass,
                false if self.refreshes.keeps_pages(ino, epoch) => Pages::Keep,
                false => Pages::Drop,
            };
            let dataset = match &content {
                Content::Bytes(_) => None,
                Content::Array(_) | Content::Computed(_) => node.as_ref().map(|node| self.counters_of(node)),
            };
            let slowest = matches!(content, Content::Array(_)).then(|| content.order().axis(0));
            let mut file = FileHandle::new(ino, content, (resolved.layer(), dataset), epoch);
            file.made_by.clone_from(&made_by);
            let handle = self.handles.add(Handle::File(Arc::new(file)));
            // a refresh in between may not have seen this handle
            if node.is_none_or(|node| node.epoch() == epoch) {
                self.prepare_for_reads(&resolved, slowest, blocking);
                return Ok(OpenReply { handle, pages });
            }
            self.release(handle);
        }
        Err(FsError::Stale)
    }

    /// Prepares for a client that has opened a file of a layer: whoever opens its description is likely to read samples
    /// next. The planes of samples lie across the axis `slowest`.
    fn prepare_for_reads(&self, opened: &Resolved, slowest: Option<usize>, blocking: Blocking) {
        let Some(DatasetLayer { open, layer }) = opened.layer() else { return };
        if let Some(finest) = open.dataset.layers().get(layer).and_then(|layer| layer.levels.first()) {
            self.reader.prefault_slice(&**finest, slowest, blocking);
        }
    }

    /// Returns the counters of a dataset.
    fn counters_of(&self, node: &Node) -> Arc<DatasetCounters> {
        let path = || path_of(node).to_string_lossy().into_owned();
        let new = || DatasetCounters::new(path(), self.started.elapsed(), self.counters.reads.get());
        self.datasets.of(node.id, new)
    }

    /// Opens a box of the level that an open file shows: a handle, and the rows if the file is a table. The inner error
    /// says why there is none.
    pub(crate) fn open_box(
        &self,
        handle: u64,
        choose: impl FnOnce(&ArrayInfo) -> Result<BoxOf, String>,
    ) -> Result<Result<(u64, Option<Rows>), String>, FsError> {
        let handle = self.handles.get(handle).ok_or(FsError::BadHandle)?;
        let Handle::File(file) = &*handle else { return Err(FsError::IsAFolder) };
        if file.state != ContentState::Current {
            return Err(FsError::Stale);
        }
        let (Some(DatasetLayer { open, layer }), Some(array), true) =
            (&file.layer, file.content.array(), file.content.order().is_identity())
        else {
            return Ok(Err("the file has no samples in the order of the array; lodN.raw has them".to_owned()));
        };
        let of_layer = LayerRef { open, layer: *layer, views: self.registries.views };
        let BoxFile { content, rows } =
            match choose(array.info()).and_then(|of| BoxFile::new(of_layer, array.info().lod, of)) {
                Ok(made) => made,
                Err(why) => return Ok(Err(why)),
            };
        let layer = DatasetLayer { open: Arc::clone(open), layer: *layer };
        let boxed = FileHandle::new(file.ino, content, (Some(layer), file.dataset.clone()), file.epoch);
        let handle = self.handles.add(Handle::File(Arc::new(boxed)));
        // a refresh in between may not have seen this handle
        if self.catalog.node(file.ino.node()).is_some_and(|node| node.epoch() != file.epoch) {
            self.release(handle);
            return Err(FsError::Stale);
        }
        Ok(Ok((handle, rows)))
    }

    /// Opens a file for read-ahead. The handle shares the client's open file for which the read-ahead was requested:
    /// its content, and its record of sequential readers.
    pub(crate) fn open_for_readahead(&self, ino: Ino) -> Result<OpenReply, FsError> {
        let file = self.handles.take_expected(ino).ok_or(FsError::NotFound)?;
        let epoch = file.epoch;
        let handle = self.handles.add(Handle::Readahead(file));
        // a refresh since the request may not have seen this handle, whose pages would stay in the kernel's page cache
        if self.catalog.node(ino.node()).is_some_and(|node| node.epoch() != epoch) {
            self.release(handle);
            return Err(FsError::NotFound);
        }
        Ok(OpenReply { handle, pages: Pages::Keep })
    }

    /// Closes a file or folder. Cancels read-ahead requests for a file that a client has closed.
    pub(crate) fn release(&self, handle: u64) {
        if let (Some(file), Some(readahead)) = (self.handles.remove(handle), self.readahead.get()) {
            readahead.cancel(file);
        }
    }

    /// Returns the current content of a file.
    pub(super) fn content(&self, resolved: &Resolved, blocking: Blocking) -> Result<Content, FsError> {
        match resolved {
            Resolved::State(Ino::STATUS) => Ok(json_text(&self.status(true)).into()),
            Resolved::State(Ino::PUBLIC_STATUS) => Ok(json_text(&self.status(false)).into()),
            Resolved::State(Ino::LOG) => Ok(self.log.text().into()),
            Resolved::Error(node, error) => Ok(format!("{}: {error}\n", node.name.to_string_lossy()).into()),
            Resolved::Inside(_, open, tree, item) => {
                let ino = resolved.ino();
                if let Some(text) = self.computed_contents.text(ino, open) {
                    return Ok(Content::Bytes(text));
                }
                let failed = |error| content_error(self.catalog_and_pool(), open, &error);
                let content = tree.content(open, *item, blocking).map_err(failed)?.ok_or(FsError::IsAFolder)?;
                // the description names files that turn out to be missing when they are opened
                self.computed_contents.put(ino, open, &content, *item != Item::DESCRIPTION);
                Ok(content)
            }
            _ => Err(FsError::IsAFolder),
        }
    }
}

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
    use crate::view::tests::one_layer;
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
