//! The errors of the file system, and the errno of each: only this file decides which errno a client gets.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::handles::DatasetLayer;
use crate::array::ReadError;
use crate::catalog::{Catalog, CatalogError, OpenDataset, ROOT};
use crate::format::FormatError;
use crate::logging::{LogLimit, warn_seldom};
use crate::pool::{self, Bulkhead, Pool};
use crate::volume::ArrayInfo;

/// Why an operation of the file system fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FsError {
    /// The answer is not in memory. Only with [`Blocking::No`](crate::source::Blocking::No).
    WouldBlock,
    /// There is no such name.
    NotFound,
    /// A name is longer than the source allows.
    NameTooLong,
    /// The file or folder belongs to a source that has changed since; a lookup of its name finds the new one.
    Stale,
    /// A folder was expected.
    NotAFolder,
    /// A file was expected.
    IsAFolder,
    /// The file system is read-only.
    ReadOnly,
    /// The file has no such extended attribute.
    NoAttribute,
    /// No file has extended attributes of such a kind.
    AttributeNotSupported,
    /// The daemon may not read the source.
    Denied,
    /// There is no such handle, or it is a handle of another kind.
    BadHandle,
    /// There is no memory for the answer.
    NoMemory,
    /// The content cannot be read or computed.
    Io,
    /// Samples cannot be read: the brick, and why.
    Samples(String),
}

impl FsError {
    /// Returns the error number of the operating system.
    pub(crate) fn errno(&self) -> i32 {
        let errno = match self {
            Self::WouldBlock => Errno::AGAIN,
            Self::NotFound => Errno::NOENT,
            Self::NameTooLong => Errno::NAMETOOLONG,
            Self::Stale => Errno::STALE,
            Self::NotAFolder => Errno::NOTDIR,
            Self::IsAFolder => Errno::ISDIR,
            Self::ReadOnly => Errno::ROFS,
            Self::NoAttribute => Errno::NODATA,
            Self::AttributeNotSupported => Errno::OPNOTSUPP,
            Self::Denied => Errno::ACCESS,
            Self::BadHandle => Errno::BADF,
            Self::NoMemory => Errno::NOMEM,
            Self::Io | Self::Samples(_) => Errno::IO,
        };
        errno.raw_os_error()
    }
}

impl From<CatalogError> for FsError {
    fn from(error: CatalogError) -> Self {
        let CatalogError::Io { kind, .. } = error else { return Self::Stale };
        match kind {
            io::ErrorKind::PermissionDenied => return Self::Denied,
            io::ErrorKind::InvalidFilename => return Self::NameTooLong,
            _ => warn_seldom(&error.to_string()),
        }
        if kind == io::ErrorKind::OutOfMemory { Self::NoMemory } else { Self::Io }
    }
}

/// The errors that were logged lately.
pub(crate) struct ReadErrors(LogLimit);

impl Default for ReadErrors {
    fn default() -> Self {
        Self(LogLimit::new(Duration::MAX))
    }
}

impl ReadErrors {
    /// Returns the client's error for a read of an array that failed. Logs one line with dataset, layer, LOD, brick and
    /// cause: once for each brick, or once for an object that holds many, but none if the whole source is gone.
    pub(crate) fn client_error(
        &self,
        source: (&Arc<Catalog>, &Arc<Pool>),
        layer: Option<&DatasetLayer>,
        info: &ArrayInfo,
        error: &ReadError,
    ) -> FsError {
        let client_error = match error.cause.is_out_of_memory() {
            true => FsError::NoMemory,
            false => FsError::Samples(format!("lod {}, {error}", info.lod)),
        };
        let Some(layer) = layer else { return client_error };
        let key = match &error.cause {
            FormatError::DamagedObject(_) | FormatError::Source(_) => {
                BuildHasherDefault::<DefaultHasher>::default().hash_one(error.cause.to_string())
            }
            _ => info.grid.count().linear_of(&error.brick),
        };
        // not the array's number: a dataset that is opened again has other arrays
        let array = (&layer.open.path, layer.open.version, layer.layer, info.lod);
        let Some(suppressed) = self.0.admit((array, key), Instant::now()) else { return client_error };
        let name = layer.open.dataset.layers().get(layer.layer).map_or("", |layer| &layer.name);
        let line = format!("{}: layer {name}, lod {}, {error}", layer.open.path, info.lod);
        unless_source_is_gone(source, &error.cause, move || {
            if suppressed > 0 {
                log::warn!("{suppressed} more reads failed, of bricks that are not named here");
            }
            log::warn!("{line}");
        });
        client_error
    }
}

/// Returns the client's error for content that could not be computed when a file was opened. Logs dataset and cause.
pub(crate) fn content_error(source: (&Arc<Catalog>, &Arc<Pool>), open: &OpenDataset, error: &FormatError) -> FsError {
    if error.would_block() {
        return FsError::WouldBlock;
    }
    let line = format!("{}: {error}", open.path);
    unless_source_is_gone(source, error, move || warn_seldom(&line));
    if error.is_out_of_memory() { FsError::NoMemory } else { FsError::Io }
}

/// Logs an error, unless the whole source is gone. Looks at the source only if that may be the cause, and that may wait
/// for its disk: a thread that talks to the kernel leaves the look, and the line, to the pool.
fn unless_source_is_gone(
    (catalog, pool): (&Arc<Catalog>, &Arc<Pool>),
    cause: &FormatError,
    log: impl FnOnce() + Send + 'static,
) {
    if !matches!(cause, FormatError::Source(_)) {
        return log();
    }
    let catalog = Arc::clone(catalog);
    let look_and_log = move || {
        if !catalog.source_is_gone() {
            log();
        }
    };
    if pool::is_worker() {
        return look_and_log();
    }
    pool.submit(Bulkhead::new(ROOT.into()), look_and_log);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::Options;
    use super::super::Volfs;
    use super::*;
    use crate::source::SourceError;

    #[test]
    fn a_thread_that_talks_to_the_kernel_does_not_look_at_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::for_tests(folder.path());
        let fs = Volfs::new(options, Arc::default()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let log = |cause: FormatError| {
            let sender = sender.clone();
            unless_source_is_gone(fs.catalog_and_pool(), &cause, move || sender.send(pool::is_worker()).unwrap());
        };
        let soon = Duration::from_secs(30);
        log(FormatError::Damaged("a brick is cut off".into()));
        assert_eq!(receiver.try_recv(), Ok(false), "it needs no look");
        log(FormatError::Source(SourceError::Changed));
        assert_eq!(receiver.recv_timeout(soon), Ok(true), "the pool looks and logs");
        drop(folder);
        log(FormatError::Source(SourceError::Changed));
        drop(sender);
        drop(fs);
        assert!(receiver.recv_timeout(soon).is_err(), "a source that is gone has a line of its own");
    }
}
