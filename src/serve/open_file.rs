//! A file or folder that is open for one response, and closed with it.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::budget::Share;
use super::calls::call;
use super::problem::Problem;
use crate::fs::{Attributes, FsError, Opened, ReadRequest, Volfs};
use crate::memory::Buffer;
use crate::pool::Bulkhead;
use crate::volume::Region;

/// An open file or folder.
pub(crate) struct OpenFile {
    fs: Arc<Volfs>,
    handle: u64,
    bulkhead: Bulkhead,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.fs.release(self.handle);
    }
}

/// Bytes of a body, with the share of the budget that they hold until they are sent.
struct Piece {
    bytes: Buffer,
    _share: Share,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn piece(bytes: Buffer, share: Share) -> Bytes {
    Bytes::from_owner(Piece { bytes, _share: share })
}

/// A piece that is being read.
pub(crate) type PieceInFlight = oneshot::Receiver<Result<Bytes, FsError>>;

impl OpenFile {
    /// Opens a file.
    pub(crate) async fn open(fs: &Arc<Volfs>, file: &Attributes) -> Result<(Self, Opened), Problem> {
        let ino = file.ino;
        call(fs, Volfs::bulkhead(ino), move |fs, wait| {
            let open = Self { handle: fs.open(ino, wait)?.handle, fs: Arc::clone(fs), bulkhead: Volfs::bulkhead(ino) };
            let opened = fs.opened(open.handle).ok_or(FsError::BadHandle)?;
            Ok((open, opened))
        })
        .await
    }

    /// Opens a folder.
    pub(crate) async fn open_folder(fs: &Arc<Volfs>, folder: &Attributes) -> Result<Self, Problem> {
        let ino = folder.ino;
        call(fs, Volfs::bulkhead(ino), move |fs, wait| {
            Ok(Self { handle: fs.opendir(ino, wait)?.handle, fs: Arc::clone(fs), bulkhead: Volfs::bulkhead(ino) })
        })
        .await
    }

    /// Returns the file system.
    pub(crate) fn fs(&self) -> &Arc<Volfs> {
        &self.fs
    }

    /// Returns the handle.
    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    /// Returns whether the file has still the content of this epoch.
    pub(crate) fn is_of_epoch(&self, epoch: u32) -> bool {
        self.fs.opened(self.handle).is_some_and(|opened| opened.epoch == epoch)
    }

    /// Starts to read bytes.
    pub(crate) fn read(&self, offset: u64, length: usize, share: Share) -> PieceInFlight {
        let (send, receive) = oneshot::channel();
        self.fs.read_owned(self.request(offset, length), move |read| drop(send.send(read.map(|b| piece(b, share)))));
        receive
    }

    /// Starts to read bytes that the client may want next, on a thread of the pool: this one sends meanwhile.
    pub(crate) fn read_ahead(&self, offset: u64, length: usize, share: Share) -> PieceInFlight {
        let (send, receive) = oneshot::channel();
        let (fs, read) = (Arc::clone(&self.fs), self.request(offset, length));
        self.fs.pool().submit(self.bulkhead, move || {
            // the client may be gone by now
            if !send.is_closed() {
                fs.read_owned(read, move |read| drop(send.send(read.map(|b| piece(b, share)))));
            }
        });
        receive
    }

    fn request(&self, offset: u64, length: usize) -> ReadRequest {
        let size = u32::try_from(length).unwrap_or(u32::MAX);
        // as with O_DIRECT: there are no pages of a kernel to read ahead
        ReadRequest { handle: self.handle, offset, size, cached: false }
    }

    /// Starts to read a box of samples.
    pub(crate) fn read_box(&self, region: Region, share: Share) -> PieceInFlight {
        let (send, receive) = oneshot::channel();
        self.fs.read_box(self.handle, region, move |read| drop(send.send(read.map(|b| piece(b, share)))));
        receive
    }
}
