//! The trait that all sources implement.

use std::ops::Range;
use std::sync::Arc;

use super::{Blocking, FileStamp, OpenFile, Permissions, SourceError};

/// The name of the only object of a source that is a single file.
pub(crate) const WHOLE: &str = "";

/// Named objects whose ranges can be read by many threads at a time.
pub(crate) trait Source: Send + Sync {
    /// Returns the bytes that an object has; `None` if it does not exist.
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError>;

    /// Fills `out` with the bytes of `object` from `offset` on; `false` if the object does not exist. Fails with
    /// [`SourceError::TooShort`] if the object ends before, and with [`SourceError::WouldBlock`] if `blocking` is
    /// [`Blocking::No`] and the bytes are not in memory.
    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError>;

    /// Reads the metadata that is stored with an object under `name` (an extended attribute of a file); `None` if there
    /// is none, or no such object. May wait.
    fn tag(&self, _object: &str, _name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        Ok(None)
    }

    /// Returns where the next byte from `offset` on lies that is stored, as far as the system tells without reading:
    /// those before it are zeros. It is `offset` itself where the system does not tell, and the end of the object or
    /// beyond if all that is left is zeros. May wait.
    fn next_stored(&self, object: &str, offset: u64) -> Result<u64, SourceError> {
        let _ = object;
        Ok(offset)
    }

    /// Returns whether it takes long to ask for bytes, so that [`Source::will_need`] should be called before they are
    /// read.
    fn fetches_ahead(&self) -> bool {
        false
    }

    /// Begins to fetch ranges of objects that are about to be read. Objects may end before their ranges do, or not exist.
    /// Does not wait. Returns whether there was room for all of them: if not, it is to be called again when some were
    /// read. There is always room for those that a thread is about to wait for (`awaited`).
    fn will_need(&self, ranges: &[(&str, Range<u64>)], awaited: bool) -> bool {
        let _ = (ranges, awaited);
        true
    }

    /// Opens the file of an object for several reads in a row; `None` if the object is not a local file or does not
    /// exist.
    fn open_object(&self, object: &str, blocking: Blocking) -> Result<Option<Arc<OpenFile>>, SourceError> {
        let _ = (object, blocking);
        Ok(None)
    }

    /// Returns who may read all of it, where it consists of files of its own in folders of its own; `None` if that is not
    /// [asked for](super::Origin::permissions), or said by whoever has found the source.
    fn permissions(&self) -> Option<Permissions> {
        None
    }

    /// Checks that all that was read so far is of one version. To be called after reading, before anything that was
    /// read is delivered or kept.
    fn check_unchanged(&self) -> Result<(), SourceError>;

    /// Like [`Source::check_unchanged`], but with [`Blocking::No`] it does not wait. Fails with
    /// [`SourceError::WouldBlock`] if it has to wait.
    fn check_unchanged_or(&self, blocking: Blocking) -> Result<(), SourceError> {
        let _ = blocking;
        self.check_unchanged()
    }
}

/// A source that is one file or one object, in the version that it had when it was opened.
pub(crate) trait FileSource: Source {
    /// Returns the version that is read.
    fn stamp(&self) -> FileStamp;

    /// Returns whether a change was noticed at any time, even if the file is now as it was.
    fn has_changed(&self) -> bool;
}
