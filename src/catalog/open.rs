//! Opening a dataset: which format, which source, and what is wrong with it if it does not open.

use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::probe::{format_of, stamp_of};
use crate::counters::Counters;
use crate::format::{Dataset, Format, FormatError, OpenWith, registry};
use crate::source::{FileStamp, Folder, Folders, IndexCache, LocalFile, NoFolder, Source, SourceError, SymlinkPolicy};

/// Memory for the tables of datasets that are opened without a mount.
const INDEX_ALONE: usize = 41 << 20;

/// A dataset with its headers read.
pub struct OpenDataset {
    /// The name of its file or folder.
    pub name: String,
    /// Its path relative to SOURCE.
    pub path: String,
    /// The version of the source that was opened.
    pub stamp: FileStamp,
    /// Bytes of its file; of a folder nobody has counted them.
    pub size: Option<u64>,
    /// The name of its format.
    pub format: &'static str,
    /// What the format makes of it.
    pub dataset: Box<dyn Dataset>,
}

impl OpenDataset {
    /// Bytes of all arrays, every layer and level.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let levels = self.dataset.layers().iter().flat_map(|layer| &layer.levels);
        levels.fold(0, |sum, level| sum.saturating_add(level.info().bytes()))
    }
}

/// Why a dataset does not open; its text is what error.txt says.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OpenError {
    /// No format knows it.
    #[error("not a dataset of a format that this version reads ({0})")]
    Unknown(String),
    /// Its format cannot read it.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The operating system's fault, or the disk's.
    #[error("cannot read it: {message}")]
    Io {
        /// The system's words.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
}

impl OpenError {
    /// Whether it may open later although nothing about the file changes.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Io { .. } | Self::Format(FormatError::Source(SourceError::Io { .. } | SourceError::Changed))
        )
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io { message: error.to_string(), kind: error.kind() }
    }
}

/// What the datasets of a source share.
pub struct Shared {
    pub with: OpenWith,
    pub folders: Arc<Folders>,
    pub counters: Arc<Counters>,
}

/// Opens the dataset at `path`, which is to be the version `stamp`; `below` is its path relative to SOURCE.
///
/// # Errors
/// [`OpenError`]: why it does not open.
pub fn open(path: &Path, below: &Path, stamp: FileStamp, shared: &Shared) -> Result<OpenDataset, OpenError> {
    let Some(format) = format_of(path)? else {
        let known: Vec<String> = registry().iter().map(|f| f.name().to_uppercase()).collect();
        return Err(OpenError::Unknown(known.join(", ")));
    };
    let is_folder = path.metadata()?.is_dir();
    let dataset = match is_folder {
        true => open_folder(format, path, stamp, shared),
        false => open_file(format, path, stamp, shared),
    };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let path = below.to_string_lossy().into_owned();
    let size = (!is_folder).then_some(stamp.size);
    Ok(OpenDataset { name, path, stamp, size, format: format.name(), dataset: dataset? })
}

fn open_file(
    format: &dyn Format,
    path: &Path,
    stamp: FileStamp,
    shared: &Shared,
) -> Result<Box<dyn Dataset>, FormatError> {
    let file = LocalFile::open(path, Arc::clone(&shared.counters))?;
    if file.stamp() != stamp {
        return Err(SourceError::Changed.into());
    }
    let source: Arc<dyn Source> = Arc::new(file);
    let dataset = format.open(Arc::clone(&source), &shared.with);
    // headers of two versions make no sense together, and then neither does what was said of them
    source.unchanged()?;
    dataset
}

fn open_folder(
    format: &dyn Format,
    path: &Path,
    stamp: FileStamp,
    shared: &Shared,
) -> Result<Box<dyn Dataset>, FormatError> {
    let cannot = |why: NoFolder| match why {
        NoFolder::Source(error) => error.into(),
        why => FormatError::NotThisFormat(why.to_string()),
    };
    let folder = shared.folders.open(path).map_err(cannot)?;
    let dataset = format.open_folder(Arc::clone(&folder) as Arc<dyn Folder>, &shared.with);
    let now = stamp_of(path).map_err(|e| SourceError::io("cannot look at it", &e))?;
    if now != stamp || folder.is_changed() {
        return Err(SourceError::Changed.into());
    }
    dataset
}

/// Opens one dataset by its path, without a mount, at less than the best `quality` if that is said. Of a folder, links are followed
/// that stay in it.
///
/// # Errors
/// [`OpenError`]: why it does not open.
pub fn open_dataset(path: &Path, quality: Option<u8>) -> Result<OpenDataset, OpenError> {
    let stamp = stamp_of(path)?;
    let below = path.file_name().map_or(path, Path::new);
    let (links, counters) = (Arc::new(SymlinkPolicy::below(path, false)), Arc::<Counters>::default());
    let folders = Folders::new(links, Arc::clone(&counters));
    open(
        path,
        below,
        stamp,
        &Shared { with: OpenWith { index: IndexCache::new(INDEX_ALONE), quality }, folders, counters },
    )
}
