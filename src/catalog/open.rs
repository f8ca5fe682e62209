//! Opens a dataset with the format that it is of.

use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::recognise::Recogniser;
use crate::codec::zfp::Decoder;
use crate::format::{Dataset, Format, FormatError, OpenWith, Registry};
use crate::source::{
    FileSource, FileStamp, FolderProbe, IndexCache, LocalTree, NoFolder, Permissions, Place, RecentWrites, Source,
    SourceError, Tree, tells_what_is_there,
};

/// Bytes of tables that are cached for a dataset that is opened without a mount.
const INDEX_BYTES: usize = 41 << 20;

/// A dataset with its headers read.
pub(crate) struct OpenDataset {
    /// The name of its file or folder.
    pub name: String,
    /// Its path relative to SOURCE.
    pub path: String,
    /// The version of the file or folder that was opened.
    pub stamp: FileStamp,
    /// Bytes of its file; `None` for a folder, whose files are not counted.
    pub size: Option<u64>,
    /// The name of its format.
    pub format: &'static str,
    /// The dataset itself.
    pub dataset: Box<dyn Dataset>,
    /// Its file; `None` for a folder.
    pub file: Option<Arc<dyn FileSource>>,
}

impl OpenDataset {
    /// Returns whether it is known to have changed since it was opened.
    pub(crate) fn is_changed(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.has_changed()) || self.dataset.is_changed()
    }

    /// Returns the bytes of all arrays, every layer and level.
    pub(crate) fn bytes(&self) -> u64 {
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
    pub(crate) fn is_failure_of_system(&self) -> bool {
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
pub(crate) struct OpenContext {
    pub recogniser: Arc<Recogniser>,
    pub tree: Arc<dyn Tree>,
    pub with: OpenWith,
}

/// Opens the dataset at `path`, which must be of the version `stamp`, and have the device and inode number `at` if those
/// count; `below` is its path relative to SOURCE. `recent` gets a record of files that were written a moment ago, and
/// `read` who may read all files that were read, if they are several and that is asked for.
pub(crate) fn open(
    (path, below): (&Path, &Path),
    (stamp, at): (FileStamp, Option<(u64, u64)>),
    recent: &Arc<RecentWrites>,
    context: &OpenContext,
    read: &mut Option<Permissions>,
) -> Result<OpenDataset, OpenError> {
    let unknown = || OpenError::Unknown(context.recogniser.formats().names());
    // resolved once: what is recognised is what is opened
    let place = context.tree.look(path)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let is_folder = place.about().is_folder();
    if at.is_some_and(|at| at != place.about().stamp.inode) {
        return Err(FormatError::from(SourceError::Changed).into());
    }
    let (format, dataset, file) = if is_folder {
        let folder = FolderProbe::new(place);
        let format = context.recogniser.format_of_folder(&folder)?.ok_or_else(unknown)?;
        (format, open_folder(format, (path, folder), (stamp, recent), context, read)?, None)
    } else {
        let format = context.recogniser.format_of_file(path, &*place)?.ok_or_else(unknown)?;
        let (dataset, file) = open_file(format, (path, &*place), (stamp, recent), context)?;
        (format, dataset, Some(file))
    };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let path = below.to_string_lossy().into_owned();
    let size = (!is_folder).then_some(stamp.size);
    Ok(OpenDataset { name, path, stamp, size, format: format.name(), dataset, file })
}

/// A dataset that is one file, and that file.
type OfFile = (Box<dyn Dataset>, Arc<dyn FileSource>);

fn open_file(
    format: &dyn Format,
    (path, file): (&Path, &dyn Place),
    (stamp, recent): (FileStamp, &Arc<RecentWrites>),
    context: &OpenContext,
) -> Result<OfFile, FormatError> {
    let file = file.open_file(path, recent)?;
    if file.stamp() != stamp {
        return Err(SourceError::Changed.into());
    }
    let dataset = format.open(Arc::clone(&file) as Arc<dyn Source>, &context.with);
    // headers of two versions contradict each other: then neither the dataset nor its error means anything
    file.check_unchanged()?;
    if file.has_changed() {
        return Err(SourceError::Changed.into());
    }
    Ok((dataset?, file))
}

fn open_folder(
    format: &dyn Format,
    (path, folder): (&Path, FolderProbe),
    (stamp, recent): (FileStamp, &Arc<RecentWrites>),
    context: &OpenContext,
    read: &mut Option<Permissions>,
) -> Result<Box<dyn Dataset>, FormatError> {
    let cannot = |why: NoFolder| match why {
        NoFolder::Source(error) => error.into(),
        why => FormatError::NotThisFormat(why.to_string()),
    };
    let folder = folder.into_folder(recent).map_err(cannot)?;
    let dataset = format.open_folder(Arc::clone(&folder), &context.with);
    *read = folder.settle_permissions();
    let now =
        context.recogniser.stamp_of(path, &*context.tree).map_err(|e| SourceError::io("cannot look at it", &e))?;
    if now != stamp || folder.is_changed() {
        return Err(SourceError::Changed.into());
    }
    // a format may take a level that it could not read for one that is not there: such a dataset would have other
    // levels under the same names
    match folder.failure() {
        Some(error) => Err(error.into()),
        None => dataset,
    }
}

/// Opens the local dataset of one of `formats` at `path`, without a mount. `quality` is that of [`OpenWith`]. Links in a
/// folder are followed if they stay in it.
pub(crate) fn open_dataset(formats: Registry, path: &Path, quality: Option<u8>) -> Result<OpenDataset, OpenError> {
    open_source(formats, LocalTree::below(path, false, Arc::default()), quality, Decoder::default())
}

/// Opens the dataset of one of `formats` that SOURCE is, as [`open_dataset`] does, with the decoder of ZFP streams.
pub(crate) fn open_source(
    formats: Registry,
    tree: Arc<dyn Tree>,
    quality: Option<u8>,
    zfp: Decoder,
) -> Result<OpenDataset, OpenError> {
    let recogniser = Arc::new(Recogniser::new(formats));
    let source = Arc::clone(&tree);
    let path = source.source();
    let stamp = recogniser.stamp_of(path, &*tree)?;
    let name = path.file_name().map_or(path, Path::new);
    let with = OpenWith { index: IndexCache::new(INDEX_BYTES), quality, zfp };
    let context = OpenContext { recogniser, tree, with };
    open((path, name), (stamp, None), &RecentWrites::ignored(), &context, &mut None)
}
