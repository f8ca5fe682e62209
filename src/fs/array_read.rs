//! Reads of open files that show an array.

use std::sync::Arc;

use super::error::FsError;
use super::handles::{ContentState, FileHandle, Handle};
use super::read::ReadRequest;
use super::volfs::Volfs;
use crate::array::{self, FileRange, Selection};
use crate::format::Array;
use crate::logging::warn_seldom;
use crate::memory::{Buffer, OutOfMemory};
use crate::pool::Bulkhead;
use crate::view::Content;
use crate::volume::AxisPermutation;

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
        let slice = array_file.slice(read.offset, read.size);
        let (array, samples) = (Arc::clone(array_file.array()), slice.samples.clone());
        let order = array_file.permutation().unwrap_or(AxisPermutation::IDENTITY);
        let selections = Selection::from_range(array.info(), &order, &samples, 0);
        let page_cached = self.is_page_cached(&read);
        let from_file = FileRange { scans: Arc::clone(&file.scans), order, samples, page_cached, ahead };
        let (fs, array_file) = (Arc::clone(self), array_file.clone());
        self.read_selections(&file, array, selections, Some(from_file), move |stored| {
            done(stored.and_then(|stored| {
                array_file.assemble(&slice, stored, fs.reader.buffers()).map_err(|error| no_memory(&error))
            }));
        });
    }

    /// Reads samples of an array that an open file shows or is computed from.
    pub(super) fn read_selections(
        self: &Arc<Self>,
        file: &Arc<FileHandle>,
        array: Arc<dyn Array>,
        selections: Vec<Selection>,
        from_file: Option<FileRange>,
        done: impl FnOnce(Result<Buffer, FsError>) + Send + 'static,
    ) {
        let samples = selections.iter().map(Selection::samples).sum::<u64>() as usize;
        let out = match self.reader.buffers().take_reply(samples * array.info().dtype.size()) {
            Ok(out) => out,
            Err(error) => return done(Err(no_memory(&error))),
        };
        let (bulkhead, counters) = (Bulkhead::new(file.ino.node().into()), file.counters());
        let (fs, file, read_from) = (Arc::clone(self), Arc::clone(file), Arc::clone(&array));
        let request = array::ReadRequest { array, selections, bulkhead, counters, from_file };
        self.reader.read(request, out, move |read| {
            done(read.map_err(|error| {
                let source = fs.catalog_and_pool();
                fs.read_errors.client_error(source, file.layer.as_ref(), read_from.info(), &error)
            }));
        });
    }
}

fn no_memory(error: &OutOfMemory) -> FsError {
    warn_seldom(&error.to_string());
    FsError::NoMemory
}
