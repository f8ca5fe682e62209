//! The formats: one folder for each, and the traits that they implement.
//!
//! A format says which arrays a dataset has and where each of their bricks is to be had; it never caches samples and knows
//! nothing of who reads them. A new format is a folder here and a line of [`registry`].

mod byte_reader;
pub mod vds;
pub mod wkw;
pub mod zgy;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::source::{Folder, IndexCache, Source, SourceError, Wait};
use crate::volume::{ArrayInfo, Brick, BrickCounts, Coded, DatasetInfo, Dims, Dtype, NativeJson};

/// Every format, in the order in which they are asked whether a file is theirs.
#[must_use]
pub fn registry() -> &'static [&'static dyn Format] {
    &[&zgy::Zgy, &wkw::Wkw, &vds::Vds]
}

/// One format.
pub trait Format: Send + Sync {
    /// The format's name as JSON has it: `zgy`.
    fn name(&self) -> &'static str;

    /// The extension, lower case and without the dot, that says that a file is meant to be of this format.
    fn extension(&self) -> Option<&'static str> {
        None
    }

    /// Whether a file that begins with `head` (16 bytes, or all that there are) is of this format.
    fn is_file(&self, _head: &[u8]) -> bool {
        false
    }

    /// Whether a folder is a dataset of this format.
    fn is_folder(&self, _folder: &Path) -> bool {
        false
    }

    /// The file in a dataset's folder whose version is the dataset's; where there is none, the folder's own version counts.
    fn folder_file(&self) -> Option<&'static str> {
        None
    }

    /// Reads and checks the headers of a dataset that is a file.
    ///
    /// # Errors
    /// [`FormatError`]: what is wrong with it, or why it cannot be read.
    fn open(&self, _source: Arc<dyn Source>, _with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        Err(FormatError::NotThisFormat(format!("{} is not a format of files", self.name())))
    }

    /// Reads and checks the headers of a dataset that is a folder.
    ///
    /// # Errors
    /// [`FormatError`]: what is wrong with it, or why it cannot be read.
    fn open_folder(&self, _folder: Arc<dyn Folder>, _with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        Err(FormatError::NotThisFormat(format!("{} is not a format of folders", self.name())))
    }
}

/// What a dataset is opened with.
#[derive(Clone)]
pub struct OpenWith {
    /// Where its tables are kept.
    pub index: Arc<IndexCache>,
    /// How much is left out where a codec allows less than its best: 0 is a residual that makes lossy samples exact, each
    /// further one a bit plane. `None` leaves nothing out.
    pub quality: Option<u8>,
}

impl OpenWith {
    /// All of the samples, tables in `index`.
    #[must_use]
    pub fn new(index: Arc<IndexCache>) -> Self {
        Self { index, quality: None }
    }
}

/// An open dataset.
pub trait Dataset: Send + Sync {
    /// What is known of the dataset as a whole.
    fn info(&self) -> &DatasetInfo;

    /// The layers that can be read, in the dataset's own order.
    fn layers(&self) -> &[Layer];

    /// The layers that cannot be shown, and why.
    fn hidden(&self) -> &[HiddenLayer] {
        &[]
    }

    /// Every metadata entry of the dataset, for formats that have a list of them. Not kept, since there may be a lot of it: may
    /// read from the source.
    ///
    /// # Errors
    /// Those of the source, and what is wrong with it now.
    fn metadata(&self) -> Result<Option<Value>, FormatError> {
        Ok(None)
    }

    /// Whether the dataset is known to be not what it was when it was opened, so that it has to be opened anew. May look at
    /// the source.
    fn is_changed(&self) -> bool {
        false
    }
}

/// One layer: an array at several levels of detail.
pub struct Layer {
    /// The layer's name as the dataset has it.
    pub name: String,
    /// The levels, the finest first; the index is the LOD. Never empty.
    pub levels: Vec<Arc<dyn Array>>,
    /// What dataset.json says of the layer beside that.
    pub native: NativeJson,
}

/// A layer that cannot be shown.
pub struct HiddenLayer {
    /// The layer's name as the dataset has it.
    pub name: String,
    /// The type of its samples, if known.
    pub dtype: Option<Dtype>,
    /// Its shape at LOD 0, if known.
    pub shape: Option<Dims>,
    /// Why it cannot be shown.
    pub reason: String,
    /// What dataset.json says of the layer beside that.
    pub native: NativeJson,
}

/// One layer at one LOD, brick by brick. Many threads read one array at a time.
pub trait Array: Send + Sync {
    /// What is known of it.
    fn info(&self) -> &ArrayInfo;

    /// The source that its bricks name objects of.
    fn source(&self) -> &dyn Source;

    /// Where the samples of the brick at `at` (its place in the grid) are to be had. The layout holds all samples that
    /// the brick owns.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if the dataset's tables make no sense for this brick, and those of the source;
    /// [`SourceError::WouldBlock`] if a table has to be read and `wait` is [`Wait::No`].
    fn brick(&self, at: &Dims, wait: Wait) -> Result<Brick, FormatError>;

    /// Decodes the stored bytes of a brick. `stored` has `coded.length` bytes and then `coded.padding` zeros; `out` has
    /// `coded.decoded` bytes of arbitrary content.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if the bytes do not decode to exactly the brick.
    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError>;

    /// How many bricks of each kind there are, and how they are coded; `None` where finding out is not cheap.
    ///
    /// # Errors
    /// Those of the source.
    fn census(&self) -> Result<Option<Census>, FormatError>;
}

/// The bricks of an array, counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Census {
    /// How many of each kind.
    pub counts: BrickCounts,
    /// How the stored ones are coded: `raw`, `zfp`, ..., or `mixed`.
    pub codec: &'static str,
    /// The format's own keys of lodN.json.
    pub native: NativeJson,
}

/// Why a dataset, or a part of one, cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FormatError {
    /// The file is something else.
    #[error("{0}")]
    NotThisFormat(String),
    /// The file is in order but needs what we do not have.
    #[error("{0}")]
    Unsupported(String),
    /// The file is at fault; the text says where.
    #[error("{0}")]
    Damaged(String),
    /// An object that holds many bricks is at fault, and all of them with it; the text says which.
    #[error("{0}")]
    DamagedObject(String),
    /// The bytes could not be had.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl FormatError {
    /// Whether the only fault is that the answer is not at hand.
    #[must_use]
    pub fn would_block(&self) -> bool {
        *self == Self::Source(SourceError::WouldBlock)
    }
}
