//! What callers get when something cannot be opened or read.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::Dtype;
use crate::array;
use crate::catalog;
use crate::format::FormatError;
use crate::source::{SourceError, shown};
use crate::volume::{Dims, Region};

/// Why a dataset cannot be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// Nothing is there.
    #[error("{}: there is no such file or folder", .0.display())]
    NotFound(PathBuf),
    /// It is no dataset, or uses what this version does not read.
    #[error("{}: {reason}", path.display())]
    Unsupported {
        /// What was to be opened.
        path: PathBuf,
        /// What it uses.
        reason: String,
    },
    /// Its headers are damaged, or contradict each other.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// What was to be opened.
        path: PathBuf,
        /// What is damaged.
        reason: String,
    },
    /// It was changed while it was opened, or is another one than the one that this dataset was opened as.
    #[error("{}: it was changed meanwhile; open it again", .0.display())]
    Changed(PathBuf),
    /// The system or the object store failed, or does not let this user read it.
    #[error("{}: {message}", path.display())]
    Io {
        /// What was to be opened.
        path: PathBuf,
        /// What failed.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        let path = shown(path);
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            kind => Self::Io { path, message: error.to_string(), kind },
        }
    }

    pub(super) fn new(path: &Path, error: catalog::OpenError) -> Self {
        let reason = error.to_string();
        match error {
            catalog::OpenError::Format(FormatError::Source(SourceError::Changed)) => Self::Changed(shown(path)),
            catalog::OpenError::Io { kind: io::ErrorKind::NotFound, .. } => Self::NotFound(shown(path)),
            catalog::OpenError::Io { message, kind }
            | catalog::OpenError::Format(FormatError::Source(SourceError::Io { message, kind, .. })) => {
                Self::Io { path: shown(path), message, kind }
            }
            catalog::OpenError::Unknown(_)
            | catalog::OpenError::Format(FormatError::NotThisFormat(_) | FormatError::Unsupported(_)) => {
                Self::Unsupported { path: shown(path), reason }
            }
            catalog::OpenError::Format(_) => Self::Damaged { path: shown(path), reason },
        }
    }
}

/// Why samples cannot be read. The memory that they were to go to has arbitrary content then.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The array does not have the region.
    #[error("there is no {0}")]
    Region(String),
    /// The samples are of another type, or of one that Rust does not have.
    #[error("the samples are {stored}, not {asked}{}", if has_type(*stored) { "" } else { HOW_TO_READ })]
    Dtype {
        /// The type of the stored samples.
        stored: Dtype,
        /// The type that was asked for.
        asked: Dtype,
    },
    /// The memory for the samples is too small or too large, or they overlap in it.
    #[error("the samples do not fit the memory: {0}")]
    Memory(String),
    /// A brick cannot be decoded. All others can still be read.
    #[error("{array}, brick {brick:?} ({region:?}): {reason}; read around it")]
    DamagedBrick {
        /// Dataset, layer and level, or dataset and file.
        array: String,
        /// The brick's index in the grid, slowest axis first.
        brick: Vec<u64>,
        /// The samples that the brick has, along each axis.
        region: Vec<Range<u64>>,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of [`Dataset::read_file`](super::Dataset::read_file) cannot be made: what it is made of is damaged.
    #[error("{file}: {reason}")]
    DamagedFile {
        /// Dataset and file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The dataset was changed since it was opened.
    #[error("{0}: it was changed since it was opened; open it again")]
    Changed(String),
    /// The system or the object store failed.
    #[error("{array}: {message}")]
    Io {
        /// Dataset, layer and level, or dataset and file.
        array: String,
        /// What failed.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
    /// The caller asked to stop.
    #[error("the read was interrupted")]
    Interrupted,
}

/// How samples are read for which Rust has no type.
const HOW_TO_READ: &str = ", and Rust has no type for them: read them with read_bytes_into or read_selections";

fn has_type(dtype: Dtype) -> bool {
    !dtype.is_complex() && dtype != Dtype::Float16
}

impl ReadError {
    /// Describes the failure of a read. `held` is what the brick has.
    pub(super) fn new(array: String, error: array::ReadError, held: impl FnOnce() -> Option<Region>) -> Self {
        match error.cause {
            FormatError::Source(SourceError::Changed) => Self::Changed(array),
            FormatError::Source(SourceError::Io { message, kind, .. }) => Self::Io { array, message, kind },
            cause => {
                let ranges = |held: Region| (0..held.axes()).map(|a| held.start[a]..held.end(a)).collect();
                let (brick, region) = (error.brick.to_vec(), held().map(ranges).unwrap_or_default());
                Self::DamagedBrick { array, brick, region, reason: cause.to_string() }
            }
        }
    }

    /// Describes why a file cannot be made.
    pub(super) fn of_file(file: String, cause: FormatError) -> Self {
        match Self::new(file, array::ReadError { brick: Dims::filled(0, 0), cause }, || None) {
            Self::DamagedBrick { array: file, reason, .. } => Self::DamagedFile { file, reason },
            other => other,
        }
    }

    /// Describes why the dataset of a read cannot be opened in this process.
    pub(super) fn of_open(array: String, error: OpenError) -> Self {
        match error {
            OpenError::Io { message, kind, .. } => Self::Io { array, message, kind },
            OpenError::NotFound(_) => {
                Self::Io { array, message: "it is no longer there".into(), kind: io::ErrorKind::NotFound }
            }
            // whatever it is now, it is not what was opened
            OpenError::Changed(_) | OpenError::Unsupported { .. } | OpenError::Damaged { .. } => Self::Changed(array),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_a_type_that_rust_does_not_have_is_told_how_to_read() {
        let text = |stored| ReadError::Dtype { stored, asked: Dtype::Float32 }.to_string();
        assert_eq!(text(Dtype::Int8), "the samples are int8, not float32");
        for stored in [Dtype::Float16, Dtype::Complex64, Dtype::Complex128] {
            assert!(text(stored).contains(&format!("{stored}, not float32, and")), "{}", text(stored));
            assert!(text(stored).ends_with("read_bytes_into or read_selections"), "{}", text(stored));
        }
    }
}
