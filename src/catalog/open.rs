//! Opens a dataset with the format that it is of.

use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::recognise::Recogniser;
use crate::format::{Dataset, Format, FormatError, OpenWith, Registry};
use crate::source::{
    FileSource, FolderProbe, IndexCache, LocalTree, NoFolder, ObjectVersion, Permissions, Place, RecentWrites, Source,
    SourceError, Tree, tells_what_is_there,
};

/// Bytes of tables that are cached for a dataset that is opened without a mount.
const INDEX_BYTES: usize = 41 << 20;

/// A dataset with its headers read.
pub(crate) struct OpenDataset {
    /// The name of its file or folder.
    pub(crate) name: String,
    /// Its path relative to SOURCE.
    pub(crate) path: String,
    /// The version of the file or folder that was opened.
    pub(crate) stamp: ObjectVersion,
    /// Bytes of its file; `None` for a folder, whose files are not counted.
    pub(crate) size: Option<u64>,
    /// The name of its format.
    pub(crate) format: &'static str,
    /// The dataset itself.
    pub(crate) dataset: Box<dyn Dataset>,
    /// Its file; `None` for a folder.
    pub(crate) file: Option<Arc<dyn FileSource>>,
}

impl OpenDataset {
    /// Returns whether it is known to have changed since it was opened.
    pub(crate) fn is_changed(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.has_changed()) || self.dataset.is_changed()
    }

    /// Returns the bytes of all arrays, every layer and level.
    pub(super) fn bytes(&self) -> u64 {
        let levels = self.dataset.layers().iter().flat_map(|layer| &layer.levels);
        levels.fold(0, |sum, level| sum.saturating_add(level.info().bytes()))
    }
}

/// Why a dataset does not open; its text is that of error.txt.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// It is of no known format; the text lists these.
    #[error("not a dataset of a format that this version reads ({0})")]
    Unknown(String),
    /// Its format cannot read it.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The operating system reported an error.
    #[error("cannot read it: {message}")]
    Io {
        /// The system's message.
        message: String,
        /// The kind of failure.
        kind: io::ErrorKind,
    },
}

impl OpenError {
    /// Returns whether opening may succeed later although the file does not change.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Io { .. } | Self::Format(FormatError::Source(SourceError::Io { .. } | SourceError::Changed))
        )
    }

    /// Returns whether there was no memory to open it.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Io { kind, .. } => *kind == io::ErrorKind::OutOfMemory,
            Self::Format(error) => error.is_out_of_memory(),
            Self::Unknown(_) => false,
        }
    }

    /// Returns whether the system failed, so that nothing is known of what is there.
    pub(super) fn is_failure_of_system(&self) -> bool {
        match self {
            Self::Io { kind, .. } => !tells_what_is_there(*kind),
            Self::Format(FormatError::Source(error)) => error.is_failure_of_system(),
            Self::Format(_) | Self::Unknown(_) => false,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io { message: error.to_string(), kind: error.kind() }
    }
}

/// What all datasets of a source are opened with.
pub(super) struct OpenContext {
    pub(super) recogniser: Recogniser,
    pub(super) tree: Arc<dyn Tree>,
    pub(super) with: OpenWith,
}

/// The dataset to open.
pub(super) struct Wanted<'a> {
    pub(super) path: &'a Path,
    /// Its path relative to SOURCE.
    pub(super) below: &'a Path,
    /// The version that it must have.
    pub(super) stamp: ObjectVersion,
    /// The device and inode number that it must have, if these count.
    pub(super) inode: Option<(u64, u64)>,
    /// Gets a record of files that were written a moment ago.
    pub(super) recent: &'a Arc<RecentWrites>,
}

/// A dataset that is one file, and that file.
type FileDataset = (Box<dyn Dataset>, Arc<dyn FileSource>);

impl OpenContext {
    /// Opens a dataset. `read` gets who may read all files that were read, if they are several and that is asked for.
    pub(super) fn open(&self, wanted: &Wanted<'_>, read: &mut Option<Permissions>) -> Result<OpenDataset, OpenError> {
        let Wanted { path, below, stamp, inode, .. } = *wanted;
        let unknown = || OpenError::Unknown(self.recogniser.formats().names());
        // resolved once: what is recognised is what is opened
        let place = self.tree.look(path)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let is_folder = place.about().is_folder();
        if inode.is_some_and(|inode| inode != place.about().version.inode) {
            return Err(FormatError::from(SourceError::Changed).into());
        }
        let (format, dataset, file) = if is_folder {
            let folder = FolderProbe::new(place);
            let format = self.recogniser.format_of_folder(&folder)?.ok_or_else(unknown)?;
            (format, self.open_folder(format, folder, wanted, read)?, None)
        } else {
            let format = self.recogniser.format_of_file(path, &*place)?.ok_or_else(unknown)?;
            let (dataset, file) = self.open_file(format, &*place, wanted)?;
            (format, dataset, Some(file))
        };
        Ok(OpenDataset {
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            path: below.to_string_lossy().into_owned(),
            stamp,
            size: (!is_folder).then_some(stamp.size),
            format: format.name(),
            dataset,
            file,
        })
    }

    fn open_file(
        &self,
        format: &dyn Format,
        file: &dyn Place,
        wanted: &Wanted<'_>,
    ) -> Result<FileDataset, FormatError> {
        let file = file.open_file(wanted.path, wanted.recent)?;
        if file.version() != wanted.stamp {
            return Err(SourceError::Changed.into());
        }
        let dataset = format.open(Arc::clone(&file) as Arc<dyn Source>, &self.with);
        // headers of two versions contradict each other: then neither the dataset nor its error means anything
        file.check_unchanged()?;
        if file.has_changed() {
            return Err(SourceError::Changed.into());
        }
        Ok((dataset?, file))
    }

    fn open_folder(
        &self,
        format: &dyn Format,
        folder: FolderProbe,
        wanted: &Wanted<'_>,
        read: &mut Option<Permissions>,
    ) -> Result<Box<dyn Dataset>, FormatError> {
        let folder = folder.into_folder(wanted.recent).map_err(|why| match why {
            NoFolder::Source(error) => error.into(),
            why => FormatError::NotThisFormat(why.to_string()),
        })?;
        let dataset = format.open_folder(Arc::clone(&folder), &self.with);
        *read = folder.settle_permissions();
        let now = self.recogniser.stamp_of(wanted.path, &*self.tree);
        let now = now.map_err(|error| SourceError::io("cannot look at it", &error))?;
        if now != wanted.stamp || folder.is_changed() {
            return Err(SourceError::Changed.into());
        }
        // a format may take a level that it could not read for one that is not there: such a dataset would have other
        // levels under the same names
        folder.failure().map_or(dataset, |error| Err(error.into()))
    }
}

/// Opens the local dataset of one of `formats` at `path`, without a mount. `quality` is that of [`OpenWith`]. Links in a
/// folder are followed if they stay in it.
pub(crate) fn open_dataset(formats: Registry, path: &Path, quality: Option<u8>) -> Result<OpenDataset, OpenError> {
    open_source(formats, LocalTree::below(path), quality)
}

/// Opens the dataset of one of `formats` that SOURCE is, as [`open_dataset`] does.
pub(crate) fn open_source(
    formats: Registry,
    tree: Arc<dyn Tree>,
    quality: Option<u8>,
) -> Result<OpenDataset, OpenError> {
    let with = OpenWith { index: IndexCache::new(INDEX_BYTES), quality };
    let context = OpenContext { recogniser: Recogniser::new(formats), tree: Arc::clone(&tree), with };
    let path = tree.source();
    let (below, stamp) = (path.file_name().map_or(path, Path::new), context.recogniser.stamp_of(path, &*tree)?);
    let recent = &RecentWrites::ignored();
    context.open(&Wanted { path, below, stamp, inode: None, recent }, &mut None)
}
