//! The traits that a format implements, and the types that they exchange.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::{Finding, FormatError, SegyImport};
use crate::codec;
use crate::source::{Blocking, Folder, FolderProbe, IndexCache, NoFolder, Source};
use crate::volume::{
    ArrayInfo, Brick, BrickCounts, BrickSet, Coded, DatasetInfo, Dims, Dtype, Element, NativeJson, ObjectName, Region,
};

/// One format. A format recognises only its own files and folders: the catalog's recogniser combines the answers of
/// all formats.
pub(crate) trait Format: Send + Sync {
    /// Returns the format's name as JSON has it: `zgy`.
    fn name(&self) -> &'static str;

    /// Returns the extensions of the format's files, lower case and without the first dot. A file with one of them is
    /// shown as a dataset even if its content is not of the format; opening it then gives the reason.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether a file that begins with `head` (16 bytes, or the whole file if it is shorter) is of this format.
    fn is_file(&self, _head: &[u8]) -> bool {
        false
    }

    /// Returns whether a file that begins with `head` may be of this format if it is opened by its own name, although it
    /// is not shown in a folder: files of other kinds begin the same.
    fn may_be_file(&self, _head: &[u8]) -> bool {
        false
    }

    /// Returns whether the description in a folder makes it a dataset of this format: the strong sign. `None` if the
    /// folder has no description, `Some(false)` if it has one of other data.
    fn described_folder(&self, _folder: &FolderProbe) -> Option<bool> {
        None
    }

    /// Returns whether a folder holds the data of one layer: the weak sign. Without a description such a folder is a
    /// dataset, or a layer of the dataset in its parent.
    fn is_layer_folder(&self, _folder: &FolderProbe) -> bool {
        false
    }

    /// Frees memory that decoders keep for the next calls.
    fn release_idle(&self) {
        codec::release_idle();
    }

    /// Returns the names of the files that describe a dataset in a folder: the version of the first that is there is
    /// the version of the dataset. Without such a file it is the version of the folder.
    fn folder_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the names that descriptions of other formats give to arrays of this one.
    fn array_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether the format counts axes from the fastest one, and its arrays from the slowest.
    fn counts_axes_from_the_fastest(&self) -> bool {
        false
    }

    /// Returns whether an array is described in the folder above its own, as one of the scales of a volume with the axes
    /// z, y, x, and before them the channel if there are several.
    fn describes_scales(&self) -> bool {
        false
    }

    /// Opens one array that the description of another format names by its folder, or, if the format describes scales,
    /// by the folder of the volume and the scale's name.
    fn open_array(
        &self,
        _folder: Arc<dyn Folder>,
        _scale: &str,
        _with: &OpenWith,
    ) -> Result<Arc<dyn Array>, FormatError> {
        Err(FormatError::NotThisFormat(format!("arrays of {} are not opened by themselves", self.name())))
    }

    /// Reads and checks the headers of a dataset that is a file.
    fn open(&self, _source: Arc<dyn Source>, _with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        Err(FormatError::NotThisFormat(format!("{} is not a format of files", self.name())))
    }

    /// Reads and checks the headers of a dataset that is a folder.
    fn open_folder(&self, _folder: Arc<dyn Folder>, _with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        Err(FormatError::NotThisFormat(format!("{} is not a format of folders", self.name())))
    }
}

/// Bytes of the tables of a dataset that shares them with no other.
const OWN_INDEX_BYTES: usize = 41 << 20;

/// The options and shared tables that a dataset is opened with.
#[derive(Clone)]
pub(crate) struct OpenWith {
    /// Caches the dataset's tables.
    pub index: Arc<IndexCache>,
    /// Precision to leave out where a codec can decode less than all: 0 leaves out the residual that makes lossy
    /// samples exact, each further level one bit plane. `None` leaves nothing out.
    pub quality: Option<u8>,
    /// The files beside the dataset's own; `None` if it is a folder, or these are not to be read.
    pub beside: Option<FilesBeside>,
}

type OpenFolder = dyn Fn() -> Result<Arc<dyn Folder>, NoFolder> + Send + Sync;

/// The files beside one that is a dataset, for formats whose files name others.
#[derive(Clone)]
pub(crate) struct FilesBeside {
    /// Where the file itself is.
    pub path: PathBuf,
    open: Arc<OpenFolder>,
    opened: Arc<OnceLock<Arc<dyn Folder>>>,
}

impl FilesBeside {
    /// Those in the folder of the file at `path`, which `open` opens.
    pub(crate) fn new(
        path: &Path,
        open: impl Fn() -> Result<Arc<dyn Folder>, NoFolder> + Send + Sync + 'static,
    ) -> Self {
        Self { path: path.to_owned(), open: Arc::new(open), opened: Arc::default() }
    }

    /// Returns the folder that the file is in, and opens it the first time.
    pub(crate) fn folder(&self) -> Result<Arc<dyn Folder>, NoFolder> {
        if let Some(opened) = self.opened() {
            return Ok(opened);
        }
        let opened = (self.open)()?;
        Ok(Arc::clone(self.opened.get_or_init(|| opened)))
    }

    /// Returns the folder if anything in it was asked for.
    pub(crate) fn opened(&self) -> Option<Arc<dyn Folder>> {
        self.opened.get().cloned()
    }

    /// The path of the folder that the file is in.
    pub(crate) fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Returns the path of a file that this one names. One whose absolute path is not there has been moved, and lies
    /// beside it.
    pub(crate) fn place_of(&self, name: &str) -> PathBuf {
        let name = Path::new(name);
        let (Some(last), true) = (name.file_name(), name.is_absolute()) else {
            return without_dots(self.parent(), name);
        };
        let is_there = || {
            let folder = self.folder().ok()?.folder(name.parent()?.to_str()?).ok()?;
            folder.len(last.to_str()?).ok().flatten()
        };
        if is_there().is_some() { without_dots(Path::new(""), name) } else { self.parent().join(last) }
    }
}

/// Returns the path of a name relative to a folder, without `.` and `..`.
fn without_dots(folder: &Path, name: &Path) -> PathBuf {
    let mut path = folder.to_owned();
    for part in name.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path
}

impl OpenWith {
    /// Opens datasets at full precision, with their tables in `index`.
    pub(crate) fn new(index: Arc<IndexCache>) -> Self {
        Self { index, quality: None, beside: None }
    }

    /// Opens one dataset, with tables of its own.
    pub(crate) fn for_one(quality: Option<u8>) -> Self {
        Self { index: IndexCache::new(OWN_INDEX_BYTES), quality, beside: None }
    }
}

pub(crate) trait Dataset: Send + Sync {
    fn info(&self) -> &DatasetInfo;

    /// Returns the layers that can be read, in the dataset's own order.
    fn layers(&self) -> &[Layer];

    /// Returns the layers that cannot be shown, with the reasons.
    fn hidden(&self) -> &[HiddenLayer] {
        &[]
    }

    /// Returns every metadata entry of the dataset, for formats that have a list of them. The list may be large and is
    /// not kept: each call may read it from the source.
    fn metadata(&self) -> Result<Option<Value>, FormatError> {
        Ok(None)
    }

    /// Describes the SEG-Y file that the dataset was imported from, or returns the reason why the file cannot be made
    /// again, byte for byte. `None` if datasets of the format are not imported from such files.
    fn segy_import(&self) -> Option<Result<&SegyImport, &str>> {
        None
    }

    /// Checks the dataset's tables for faults that reading bricks one by one does not notice: bricks that overlap,
    /// levels that are missing, and other contradictions of the format. Takes time, and bounded memory for tables of
    /// any size. May report any number of findings. A fault that [`Array::brick`] returns is not reported again.
    fn check_structure(&self, _report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        Ok(())
    }

    /// Returns whether the dataset is known to have changed since it was opened, so that it has to be opened anew. May
    /// look at the source.
    fn is_changed(&self) -> bool {
        false
    }
}

/// One layer: an array at several levels of detail.
pub(crate) struct Layer {
    pub name: String,
    /// The levels, the finest first; the index is the LOD. Never empty.
    pub levels: Vec<Arc<dyn Array>>,
    pub native: NativeJson,
}

#[derive(Default)]
pub(crate) struct HiddenLayer {
    pub name: String,
    pub dtype: Option<Dtype>,
    pub shape: Option<Dims>,
    pub reason: String,
    /// Whether data that should be there are damaged or missing; otherwise they are of a kind that is not read.
    pub damaged: bool,
    pub native: NativeJson,
}

/// One layer at one LOD, brick by brick. Many threads read one array at a time.
pub(crate) trait Array: Send + Sync {
    /// Describes the array: shape, type of samples, axes, brick grid.
    fn info(&self) -> &ArrayInfo;

    /// Returns the source of the objects that its bricks name.
    fn source(&self) -> &dyn Source;

    /// Returns the array that this one is a box of, and where in it the box begins: the samples are read from there.
    fn part_of(&self) -> Option<(&Arc<dyn Array>, &Dims)> {
        None
    }

    /// Returns where the samples of the brick at the grid position `at` are stored. The layout covers all samples that
    /// the brick owns. Fails with [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if a table has to
    /// be read and `blocking` is [`Blocking::No`].
    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError>;

    /// Returns the position of sample 0 along x, y and z, in samples, as other formats count.
    fn origin(&self) -> [i64; 3] {
        [0; 3]
    }

    /// Returns the sample that stands in bricks that were never written.
    fn unwritten(&self) -> Element {
        Element::zero(self.info().dtype.size())
    }

    /// Decodes the stored bytes of a coded brick. `stored` has `coded.length` bytes,
    /// `out` has `coded.decoded` bytes of arbitrary content. Formats whose bricks are all constant or plain need not
    /// implement it.
    fn decode(&self, _coded: &Coded, _stored: &[u8], _out: &mut [u8]) -> Result<(), FormatError> {
        Err(FormatError::Unsupported("this format has no coded bricks".into()))
    }

    /// Returns a part of a coded brick that holds `region` and decodes to much less than the brick; `None` if the brick has
    /// none. [`Array::decode`] gets it in place of the brick: its layout says which samples are wanted.
    fn part_around(&self, _coded: &Coded, _region: &Region) -> Option<Coded> {
        None
    }

    /// Returns whether bricks are decoded in about the time that the kernel takes to make new memory for them, or less.
    fn decodes_fast(&self) -> bool {
        false
    }

    /// Returns the samples along each axis that come out of decoding the brick at `at`, padding and margins included;
    /// `None` if no brick of the array has to be decoded. Along each axis all bricks but the last have the same extent.
    fn decoded_shape(&self, _at: &Dims) -> Option<Dims> {
        None
    }

    /// Returns how the brick at `at` is stored, if the dataset's tables alone tell; `None` if they do not, or if they
    /// are too large to be cheap. A brick that cannot be read has no bytes. May wait.
    fn stored_brick(&self, _at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        Ok(None)
    }

    /// Returns the bytes that are read for the brick at `at`, perhaps more, without checking anything about them;
    /// `None` if it has no bytes, or their place is unknown. For sources that take long to answer: the bytes are
    /// requested before [`Array::brick`] checks them. May wait.
    fn stored_range(&self, at: &Dims) -> Result<Option<(ObjectName, Range<u64>)>, FormatError> {
        Ok(match self.brick(at, Blocking::Yes)? {
            Brick::Coded(coded) => Some((coded.object, coded.offset..coded.offset.saturating_add(coded.length.most()))),
            Brick::Constant(_) | Brick::Plain(_) => None,
        })
    }

    /// Returns the bytes of a table that is read to find the brick at `at`, perhaps the
    /// [last](crate::source::last_bytes) of an object: the first table (depth 0), or one whose place the table before
    /// tells. `None` if it is known, or large. For sources that take long to answer: the tables of several bricks are
    /// requested together. May wait for the tables before.
    fn table_range(&self, _at: &Dims, _depth: usize) -> Option<(ObjectName, Range<u64>)> {
        None
    }

    /// Visits all bricks that may have stored bytes, each once, until `visit` returns `false`; no other brick has any.
    /// May wait.
    fn visit_stored(&self, visit: &mut dyn FnMut(BrickSet) -> bool) -> Result<(), FormatError> {
        visit(BrickSet::Run(0..self.info().grid.total()));
        Ok(())
    }

    /// Counts the bricks of each kind and names their codec; `None` if counting is not cheap.
    fn census(&self) -> Result<Option<Census>, FormatError>;
}

/// Bricks of an array are counted if its table has at most this many bytes.
pub(super) const MAX_COUNTED_BYTES: u64 = 8 << 20;

/// Bricks are looked up for a description if the table has at most this many bytes, so that it takes little of the
/// cache that all datasets share.
pub(super) const MAX_DESCRIBED_BYTES: u64 = 4 << 20;

/// How a brick is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredBrick {
    /// The number of stored bytes that decoding it reads; 0 for a constant, `None` if unknown.
    pub bytes: Option<u64>,
    pub is_coded: bool,
}

impl StoredBrick {
    /// A brick without stored bytes.
    pub(crate) const EMPTY: Self = Self { bytes: Some(0), is_coded: false };
}

/// The bricks of an array, counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Census {
    pub counts: BrickCounts,
    /// The codec of the stored ones: `raw`, `zfp`, ..., or `mixed`.
    pub codec: &'static str,
    pub native: NativeJson,
}
