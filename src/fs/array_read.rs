//! Reads of open files that show an array.

use std::sync::Arc;

use super::error::FsError;
use super::handles::{ContentState, FileHandle, Handle};
use super::read::ReadRequest;
use super::volfs::Volfs;
use crate::array;
use crate::log_limit::warn_seldom;
use crate::memory::Buffer;
use crate::pool::Bulkhead;
use crate::view::Content;

impl Volfs {
    /// Like [`Volfs::read`], for whoever keeps the bytes: those of an array are not copied.
    pub(crate) fn read_owned(
        self: &Arc<Self>,
        read: ReadRequest,
        done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static,
    ) {
        let open = self.handles.get(read.handle);
        let file = match open.as_deref() {
            Some(Handle::File(file)) if file.state == ContentState::Current => Arc::clone(file),
            _ => return self.read_copied(read, done),
        };
        if !matches!(file.content, Content::Array(_)) {
            return self.read_copied(read, done);
        }
        file.count_read(self.counters.reads.increment());
        let (fs, of_file) = (Arc::clone(self), Arc::clone(&file));
        self.read_array_owned(file, read, false, move |read| {
            match &read {
                Ok(bytes) => of_file.count_bytes_read(&fs.counters, bytes.len() as u64),
                Err(_) => fs.counters.add(of_file.counters().as_deref(), |counters| &counters.errors, 1),
            }
            done(read);
        });
    }

    fn read_copied(self: &Arc<Self>, read: ReadRequest, done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static) {
        let buffers = Arc::clone(self.reader.buffers());
        self.read(read, move |read| {
            done(read.and_then(|bytes| {
                let mut copy = buffers.try_take(bytes.len()).map_err(|_| FsError::NoMemory)?;
                copy.copy_from_slice(bytes);
                Ok(copy)
            }));
        });
    }

    /// Reads from a file that shows an array, maybe `ahead` of the client that will want it.
    pub(super) fn read_array(
        self: &Arc<Self>,
        file: Arc<FileHandle>,
        read: ReadRequest,
        ahead: bool,
        done: impl FnOnce(Result<&[u8], FsError>) + Send + 'static,
    ) {
        self.read_array_owned(file, read, ahead, |read| done(read.as_deref().map_err(Clone::clone)));
    }

    /// Like [`Volfs::read_array`], and leaves the bytes to `done`.
    fn read_array_owned(
        self: &Arc<Self>,
        file: Arc<FileHandle>,
        read: ReadRequest,
        ahead: bool,
        done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static,
    ) {
        let Content::Array(array_file) = &file.content else { return done(Err(FsError::Io)) };
        let bulkhead = Bulkhead::new(file.ino.node().into());
        let (scans, counters) = (Some(Arc::clone(&file.scans)), file.counters());
        let slice = array_file.slice(read.offset, read.size);
        let samples = slice.samples.clone();
        let (array, permutation) = (Arc::clone(array_file.array()), array_file.permutation());
        let page_cached = self.is_page_cached(&read);
        let request = array::ReadRequest { array, permutation, samples, bulkhead, scans, page_cached, ahead, counters };
        let fs = Arc::clone(self);
        let array_file = array_file.clone();
        self.reader.read(request, move |stored| {
            done(match stored {
                Ok(stored) => array_file.assemble(&slice, stored, fs.reader.buffers()).map_err(|error| {
                    warn_seldom(&error.to_string());
                    FsError::NoMemory
                }),
                Err(error) => Err(fs.read_errors.client_error(
                    fs.catalog_and_pool(),
                    file.layer.as_ref(),
                    array_file.array().info(),
                    &error,
                )),
            });
        });
    }
}
