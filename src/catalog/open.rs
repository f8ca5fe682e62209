//! Opens a dataset with the format that it is of.

use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::recognise::Recogniser;
use crate::format::{Dataset, FilesBeside, Format, FormatError, OpenWith, Registry};
use crate::source::{
    FileSource, Folder, FolderProbe, LocalTree, NoFolder, ObjectVersion, Permissions, RecentWrites, Source,
    SourceError, Tree, tells_what_is_there,
};

pub(crate) struct OpenDataset {
    pub(crate) name: String,
    /// Its path relative to SOURCE.
    pub(crate) path: String,
    /// The version of the file or folder that was opened.
    pub(crate) version: ObjectVersion,
    /// Bytes of its file; `None` for a folder, whose files are not counted.
    pub(crate) size: Option<u64>,
    pub(crate) format: &'static str,
    pub(crate) dataset: Box<dyn Dataset>,
    /// Its file; `None` for a folder.
    pub(crate) file: Option<Arc<dyn FileSource>>,
}

impl OpenDataset {
    /// Returns whether it is known to have changed since it was opened.
    pub(crate) fn is_changed(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.has_changed()) || self.dataset.is_changed()
    }

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
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("cannot read it: {message}")]
    Io { message: String, kind: io::ErrorKind },
}

impl OpenError {
    /// Returns whether opening may succeed later although the file does not change.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Io { .. } | Self::Format(FormatError::Source(SourceError::Io { .. } | SourceError::Changed))
        )
    }

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

pub(super) struct OpenContext {
    pub(super) recogniser: Recogniser,
    pub(super) tree: Arc<dyn Tree>,
    pub(super) with: OpenWith,
}

impl OpenContext {
    /// Opens the dataset at a path, which is `below` relative to SOURCE. It must have this version, and this device and
    /// inode number if these count. `recent` gets a record of files that were written a moment ago, and `read` who may
    /// read all files that were read, if they are several and that is asked for.
    pub(super) fn open(
        &self,
        (path, below): (&Path, &Path),
        (version, inode): (ObjectVersion, Option<(u64, u64)>),
        recent: &Arc<RecentWrites>,
        read: &mut Option<Permissions>,
    ) -> Result<OpenDataset, OpenError> {
        let unknown = || OpenError::Unknown(self.recogniser.formats.names());
        // resolved once: what is recognised is what is opened
        let place = self.tree.look(path)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let is_folder = place.about().is_folder();
        if inode.is_some_and(|inode| inode != place.about().version.inode) {
            return Err(FormatError::from(SourceError::Changed).into());
        }
        let (format, dataset, file) = if is_folder {
            let folder = FolderProbe::new(place);
            let format = self.recogniser.format_of_folder(&folder)?.ok_or_else(unknown)?;
            let folder = folder.place.open_folder(recent).map_err(|why| match why {
                NoFolder::Source(error) => error.into(),
                why => FormatError::NotThisFormat(why.to_string()),
            })?;
            let dataset = self.open_folder(format, &folder, (path, version), read)?;
            (format, dataset, None)
        } else {
            let format = self.recogniser.format_of_file(path, &*place)?.ok_or_else(unknown)?;
            let file = place.open_file(path, recent).map_err(FormatError::from)?;
            let mut real = path.to_owned();
            if place.about().by_links {
                // where programs look for the files that this one names
                real = real.canonicalize().unwrap_or(real);
            }
            let dataset = self.open_file(format, &file, (&real, version), recent, read)?;
            (format, dataset, Some(file))
        };
        Ok(OpenDataset {
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            path: below.to_string_lossy().into_owned(),
            version,
            size: (!is_folder).then_some(version.size),
            format: format.name(),
            dataset,
            file,
        })
    }

    fn open_file(
        &self,
        format: &dyn Format,
        file: &Arc<dyn FileSource>,
        (path, version): (&Path, ObjectVersion),
        recent: &Arc<RecentWrites>,
        read: &mut Option<Permissions>,
    ) -> Result<Box<dyn Dataset>, FormatError> {
        if file.version() != version {
            return Err(SourceError::Changed.into());
        }
        let with = OpenWith { beside: Some(self.beside(path, recent)), ..self.with.clone() };
        let dataset = format.open(Arc::clone(file) as Arc<dyn Source>, &with);
        if let Some(folder) = with.beside.as_ref().and_then(FilesBeside::opened) {
            *read = folder.settle_permissions();
            if folder.is_changed() {
                return Err(SourceError::Changed.into());
            }
            // a source that could not be looked for may have been taken for one that is not there
            if let Some(error) = folder.failure() {
                return Err(error.into());
            }
        }
        // headers of two versions contradict each other: then neither the dataset nor its error means anything
        file.check_unchanged()?;
        if file.has_changed() { Err(SourceError::Changed.into()) } else { dataset }
    }

    fn beside(&self, path: &Path, recent: &Arc<RecentWrites>) -> FilesBeside {
        let (tree, recent) = (Arc::clone(&self.tree), Arc::clone(recent));
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        FilesBeside::new(path, move || {
            let failed = |error: io::Error| match error.kind() {
                kind if tells_what_is_there(kind) => NoFolder::Outside,
                _ => SourceError::io(format!("cannot look at {}", folder.display()), &error).into(),
            };
            tree.look(&folder).map_err(failed)?.ok_or(NoFolder::Outside)?.open_shared_folder(&recent)
        })
    }

    fn open_folder(
        &self,
        format: &dyn Format,
        folder: &Arc<dyn Folder>,
        (path, version): (&Path, ObjectVersion),
        read: &mut Option<Permissions>,
    ) -> Result<Box<dyn Dataset>, FormatError> {
        let dataset = format.open_folder(Arc::clone(folder), &self.with);
        *read = folder.settle_permissions();
        let now = self.recogniser.version_of(path, &*self.tree);
        if now.map_err(|error| SourceError::io("cannot look at it", &error))? != version || folder.is_changed() {
            return Err(SourceError::Changed.into());
        }
        // a format may take a level that it could not read for one that is not there: such a dataset would have other
        // levels under the same names
        folder.failure().map_or(dataset, |error| Err(error.into()))
    }
}

/// Opens the local dataset of one of `formats` at `path`, with tables of its own. `quality` is that of [`OpenWith`].
/// Links in a folder are followed if they stay in it.
pub(crate) fn open_dataset(formats: Registry, path: &Path, quality: Option<u8>) -> Result<OpenDataset, OpenError> {
    open_source(formats, LocalTree::below(path), OpenWith::for_one(quality))
}

/// Opens the dataset of one of `formats` that SOURCE is, as [`open_dataset`] does.
pub(crate) fn open_source(formats: Registry, tree: Arc<dyn Tree>, with: OpenWith) -> Result<OpenDataset, OpenError> {
    let context = OpenContext { recogniser: Recogniser::new(formats), tree: Arc::clone(&tree), with };
    let path = tree.source();
    let (below, version) = (path.file_name().map_or(path, Path::new), context.recogniser.version_of(path, &*tree)?);
    context.open((path, below), (version, None), &RecentWrites::ignored(), &mut None)
}
