//! Opening and closing of files.

use std::sync::Arc;

use super::dataset_counters::DatasetCounters;
use super::error::FsError;
use super::handles::{DatasetLayer, FileHandle, Handle};
use super::ino::Ino;
use super::inode_path::path_of;
use super::resolve::Resolved;
use super::volfs::Volfs;
use crate::catalog::Node;
use crate::source::Blocking;
use crate::view::Content;

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
        for _ in 0..MAX_ATTEMPTS {
            let mut resolved = self.resolve(ino, blocking)?;
            self.check_now(&resolved, blocking)?;
            let node = resolved.node().cloned();
            if let Some(node) = &node
                && node.is_refresh_due()
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
            let content = self.content(&resolved, blocking)?;
            let pages = match resolved.is_volatile() || self.options.direct_io {
                true => Pages::Bypass,
                false if self.refreshes.keeps_pages(ino, epoch) => Pages::Keep,
                false => Pages::Drop,
            };
            let dataset = match &content {
                Content::Bytes(_) => None,
                Content::Array(_) | Content::Computed(_) => node.as_ref().map(|node| self.counters_of(node)),
            };
            let file = FileHandle::new(ino, content, (resolved.layer(), dataset), epoch);
            let handle = self.handles.add(Handle::File(Arc::new(file)));
            // a refresh in between may not have seen this handle
            if node.is_none_or(|node| node.epoch() == epoch) {
                self.prepare_for_reads(&resolved, blocking);
                return Ok(OpenReply { handle, pages });
            }
            self.release(handle);
        }
        Err(FsError::Stale)
    }

    /// Prepares for a client that has opened a file of a layer: whoever opens its description is likely to read samples
    /// next.
    fn prepare_for_reads(&self, opened: &Resolved, blocking: Blocking) {
        let Some(DatasetLayer { open, layer }) = opened.layer() else { return };
        if let Some(finest) = open.dataset.layers().get(layer).and_then(|layer| layer.levels.first()) {
            self.reader.prefault_slice(&**finest, blocking);
        }
    }

    /// Returns the counters of a dataset.
    fn counters_of(&self, node: &Node) -> Arc<DatasetCounters> {
        let path = || path_of(node).to_string_lossy().into_owned();
        let new = || DatasetCounters::new(path(), self.started.elapsed(), self.counters.reads.get());
        self.datasets.of(node.id, new)
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
}
