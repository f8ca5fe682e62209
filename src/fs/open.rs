//! Opening and closing of files.

use std::sync::Arc;

use super::error::FsError;
use super::handles::{FileHandle, Handle};
use super::ino::Ino;
use super::volfs::Volfs;
use crate::source::Wait;

/// A new handle, and how the kernel may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReply {
    /// The handle.
    pub handle: u64,
    /// Whether the kernel must not keep what is read in its page cache.
    pub uncached: bool,
}

impl Volfs {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`FsError::Stale`] if it belongs to a source that has changed, [`FsError::Io`] if its content cannot be
    /// computed.
    pub fn open(&self, ino: Ino, wait: Wait) -> Result<OpenReply, FsError> {
        let resolved = self.resolve(ino, wait)?;
        self.check_now(&resolved, wait)?;
        let content = self.content(&resolved, wait)?;
        let uncached = resolved.is_volatile() || self.options.direct_io;
        let file = FileHandle::new(ino, content, resolved.layer());
        Ok(OpenReply { handle: self.handles.add(Handle::File(Arc::new(file))), uncached })
    }

    /// Opens a file for read-ahead. The handle shares the client's open file for which the read-ahead was requested:
    /// its content, and its record of sequential readers.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if there was no such request, or the client has closed the file.
    pub fn open_for_readahead(&self, ino: Ino) -> Result<OpenReply, FsError> {
        let file = self.handles.take_expected(ino).ok_or(FsError::NotFound)?;
        Ok(OpenReply { handle: self.handles.add(Handle::Readahead(file)), uncached: false })
    }

    /// Closes a file or folder. Cancels read-ahead requests for a file that a client has closed.
    pub fn release(&self, handle: u64) {
        if let (Some(file), Some(readahead)) = (self.handles.remove(handle), self.readahead.get()) {
            readahead.cancel(file);
        }
    }
}
