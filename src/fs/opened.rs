//! What is known of an open file, and boxes of the array that it shows: for whoever serves files without a kernel.

use std::sync::Arc;

use super::error::FsError;
use super::handles::{ContentState, Handle};
use super::ino::Ino;
use super::volfs::Volfs;
use crate::array::Selection;
use crate::catalog::NodeKind;
use crate::memory::Buffer;
use crate::view::{Content, ShownArray};
use crate::volume::Region;

/// What is known of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Size in bytes.
    pub size: u64,
    /// The number of refreshes of the dataset before the content was found out: a file has one content for each inode
    /// number and epoch.
    pub epoch: u32,
    /// Whether the dataset was written so shortly before it was read that it will be read again.
    pub is_recent: bool,
    /// Shape and type of the samples, if the file consists of the samples of an array in its own order.
    pub samples: Option<ShownArray>,
}

impl Volfs {
    /// Returns what is known of an open file; `None` if there is no such handle.
    pub(crate) fn opened(&self, handle: u64) -> Option<Opened> {
        let handle = self.handles.get(handle)?;
        let Handle::File(file) = &*handle else { return None };
        let is_recent = self.catalog.node(file.ino.node()).is_some_and(|node| node.is_refresh_pending());
        let samples = match &file.content {
            Content::Array(array) if array.header_bytes() == 0 && array.permutation().is_none() => {
                let shown = ShownArray::stored(array.array().info());
                let bytes = shown.shape.product().and_then(|samples| samples.checked_mul(shown.dtype.size() as u64));
                (bytes == Some(file.content.len())).then_some(shown)
            }
            _ => None,
        };
        Some(Opened { size: file.content.len(), epoch: file.epoch, is_recent, samples })
    }

    /// Reads a box of the array that an open file consists of; see [`Opened::samples`]. Calls `done` with the samples in
    /// C order, little-endian: from within this call if nothing has to be waited for, otherwise on a thread of the pool.
    pub(crate) fn read_box(
        self: &Arc<Self>,
        handle: u64,
        region: Region,
        done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static,
    ) {
        let number = self.counters.reads.increment();
        let Some(open) = self.handles.get(handle) else { return done(Err(FsError::BadHandle)) };
        let Handle::File(file) = &*open else { return done(Err(FsError::IsAFolder)) };
        let Content::Array(shown) = &file.content else { return done(Err(FsError::Io)) };
        let array = Arc::clone(shown.array());
        if file.state != ContentState::Current || !Region::whole(array.info().shape()).contains(&region) {
            return done(Err(FsError::Io));
        }
        file.count_read(number);
        let (fs, file) = (Arc::clone(self), Arc::clone(file));
        let selection = Selection::new(&region, 0, array.info().dtype.size());
        let of_file = Arc::clone(&file);
        self.read_selections(&of_file, array, vec![selection], None, move |read| {
            match &read {
                Ok(samples) => file.count_bytes_read(&fs.counters, samples.len() as u64),
                Err(_) => fs.counters.add(file.counters().as_deref(), |counters| &counters.errors, 1),
            }
            done(read);
        });
    }

    /// Returns whether an inode is the folder of a dataset.
    pub(crate) fn is_dataset(&self, ino: Ino) -> bool {
        ino.index() == 0 && self.catalog.node(ino.node()).is_some_and(|node| node.kind == NodeKind::Dataset)
    }
}
