//! The public API: datasets in process, without a mount.
//!
//! [`open`] reads headers only, and [`Array`] reads samples. All arrays of a process share one engine: a cache of
//! bounded size and its workers. A dataset belongs to no process: a forked child, which has none of its parent's
//! threads, opens it anew and makes an engine of its own when it first reads.

mod array;
mod engine;
mod error;
mod files;
mod region;

use std::fmt;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::Value;

pub use self::array::{Array, Axis, Sample, Selection};
pub use self::engine::{cache_size, set_cache_size};
pub use self::error::{OpenError, ReadError};
pub use self::region::{IntoRegion, Slice};
pub use crate::volume::Dtype;

use self::array::LevelState;
use self::engine::Engine;
use self::files::Computed;
use crate::catalog::{OpenDataset, open_source};
use crate::format::{OpenWith, registry as formats};
use crate::pool::Bulkhead;
use crate::source::{Origin, StoreOption, StoreUrl, is_local, is_url};
use crate::sync::{Mutex, PerProcess, enter};
use crate::view::{self, Tree, find_layer, layer_folders, registry as views};

/// Opens a dataset: a ZGY or VDS file, a folder in VDS' cloud layout or WKW, or the URL of one in an object store
/// (`s3://`, `az://`, `gs://`, `https://`). Reads its headers, and no samples.
///
/// # Errors
/// If nothing is there, if it is no dataset, or if its headers are damaged.
pub fn open(source: impl AsRef<Path>) -> Result<Dataset, OpenError> {
    OpenOptions::new().open(source)
}

/// How a dataset is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    quality: Option<u8>,
    follow_links: bool,
    /// `NAME=VALUE`.
    store_options: Vec<String>,
}

impl OpenOptions {
    /// The defaults, which [`open`] uses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes only a part of wavelet-coded data: level 0 leaves out the data that makes lossy samples exact, and each
    /// further level one more bit plane, up to 15.
    #[must_use]
    pub fn quality(mut self, level: u8) -> Self {
        self.quality = Some(level.min(15));
        self
    }

    /// Follows links in a folder that lead out of it.
    #[must_use]
    pub fn follow_links(mut self, follow: bool) -> Self {
        self.follow_links = follow;
        self
    }

    /// Sets an option of object stores, such as `endpoint`, `region` or `anonymous`: those of `volfs mount
    /// --store-option`.
    #[must_use]
    pub fn store_option(mut self, name: &str, value: &str) -> Self {
        self.store_options.push(format!("{name}={value}"));
        self
    }

    /// Opens a dataset: see [`open`].
    ///
    /// # Errors
    /// Those of [`open`], and wrong options of a store.
    pub fn open(&self, source: impl AsRef<Path>) -> Result<Dataset, OpenError> {
        enter();
        let typed = source.as_ref();
        let failed = |error: io::Error| OpenError::io(typed, &error);
        let path = match is_url(typed) {
            true => StoreUrl::parse(typed).map_err(|error| failed(io::Error::other(error.to_string())))?.path(),
            // a child may have another working directory by then
            false => path::absolute(typed).map_err(failed)?,
        };
        let store_options = self.store_options.iter().map(|option| option.parse());
        let store_options = store_options.collect::<Result<Vec<StoreOption>, String>>();
        let store_options =
            store_options.map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let origin = Origin { path, follow_links: self.follow_links, store_options, ..Origin::default() };
        let opened = Opened::open(&origin, self.quality)?;
        let (name, format) = (opened.dataset.name.clone(), opened.dataset.format);
        let layers = opened.layers.iter().map(|levels| levels.iter().map(|level| Arc::clone(&level.facts)).collect());
        let shared = Shared {
            name,
            format,
            is_local: !is_url(typed) && is_local(&origin.path),
            folders: layer_folders(&opened.dataset),
            layers: layers.collect(),
            origin,
            quality: self.quality,
            opened: PerProcess::new(),
        };
        shared.opened.get_or_init(|| opened);
        Ok(Dataset(Arc::new(shared)))
    }
}

/// A dataset: its layers, and all that is known of it. A clone is the same dataset.
#[derive(Clone)]
pub struct Dataset(Arc<Shared>);

/// What a dataset, its layers and its arrays share.
struct Shared {
    name: String,
    format: &'static str,
    is_local: bool,
    /// The names of the layers' folders in a mount.
    folders: Vec<String>,
    /// What is known of each level of each layer.
    layers: Vec<Vec<Arc<array::Facts>>>,
    origin: Origin,
    quality: Option<u8>,
    opened: PerProcess<Opened>,
}

/// A dataset as one process has it open.
struct Opened {
    dataset: OpenDataset,
    /// The readers of each level of each layer.
    layers: Vec<Vec<LevelState>>,
    /// Its files and folders, once they are asked for.
    tree: OnceLock<Tree>,
    computed: Computed,
    bulkhead: Bulkhead,
    /// When it was last looked whether the source has changed; `None` if it has, or could not be looked at.
    looked: Mutex<Option<Instant>>,
}

impl Opened {
    fn open(origin: &Origin, quality: Option<u8>) -> Result<Self, OpenError> {
        let engine = Engine::get();
        let tree = origin.tree(formats().folder_files(), true, Arc::clone(&engine.counters));
        let tree = tree.map_err(|e| OpenError::io(&origin.path, &e))?;
        let with = OpenWith { index: Arc::clone(&engine.index), quality, beside: None };
        let dataset = open_source(formats(), tree, with).map_err(|error| OpenError::new(&origin.path, error))?;
        let levels = |layer: &crate::format::Layer| layer.levels.iter().map(LevelState::new).collect();
        let layers = dataset.dataset.layers().iter().map(levels).collect();
        let (tree, computed) = (OnceLock::new(), Computed::default());
        let (bulkhead, looked) = (Bulkhead::new(number()), Mutex::new(Some(Instant::now())));
        Ok(Self { dataset, layers, tree, computed, bulkhead, looked })
    }
}

/// Returns a number that no dataset of this process has.
fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Shared {
    /// Returns the dataset as this process has it open; opens it in a forked child.
    fn opened(&self) -> Result<&Opened, OpenError> {
        enter();
        self.opened.get_or_try_init(|| {
            let opened = Opened::open(&self.origin, self.quality)?;
            let facts = opened.layers.iter().flatten().map(|level| &*level.facts);
            let same = opened.layers.iter().map(Vec::len).eq(self.layers.iter().map(Vec::len))
                && facts.eq(self.layers.iter().flatten().map(|facts| &**facts));
            if same { Ok(opened) } else { Err(OpenError::Changed(self.origin.path.clone())) }
        })
    }
}

impl Dataset {
    /// The name of its file or folder.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The format, in lower case: `zgy`, `zarr`, ...
    #[must_use]
    pub fn format(&self) -> &str {
        self.0.format
    }

    /// The absolute path, or the URL.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        crate::source::shown(&self.0.origin.path)
    }

    /// Whether it is on a file system of this machine, as far as that is known: on others, and in object stores, reads wait
    /// for a server, which may not answer.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.0.is_local
    }

    /// The layers that can be read, in the dataset's own order. The metadata tell why others cannot.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = Layer> + use<'_> {
        (0..self.0.folders.len()).map(|layer| Layer { dataset: Arc::clone(&self.0), layer })
    }

    /// Finds a layer by its name, in any case. `data` is the first layer of every dataset that has none of that name.
    ///
    /// # Errors
    /// In a forked child, which opens the dataset anew.
    pub fn layer(&self, name: &str) -> Result<Option<Layer>, OpenError> {
        let found = find_layer(&self.0.opened()?.dataset, name);
        Ok(found.map(|layer| Layer { dataset: Arc::clone(&self.0), layer }))
    }

    /// All that is known of the dataset: the content of `dataset.json` in a mount.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn metadata(&self) -> Result<Value, OpenError> {
        let opened = self.0.opened()?;
        let metadata = view::json::dataset(&opened.dataset, views());
        metadata.map_err(|error| OpenError::new(&self.0.origin.path, error.into()))
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({:?}, {})", self.path(), self.format())
    }
}

/// A layer of a dataset: an array at several levels of detail.
#[derive(Clone)]
pub struct Layer {
    dataset: Arc<Shared>,
    layer: usize,
}

impl Layer {
    /// The name, as the folder of a mount has it: what cannot be in the name of a file is percent-encoded.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.dataset.folders[self.layer]
    }

    /// The number of levels of detail, 1 or more.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.dataset.layers[self.layer].len()
    }

    /// A level of detail. 0 is the finest.
    #[must_use]
    pub fn level(&self, lod: usize) -> Option<Array> {
        let facts = self.dataset.layers[self.layer].get(lod)?;
        Some(Array { dataset: Arc::clone(&self.dataset), facts: Arc::clone(facts), layer: self.layer, lod })
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layer({:?}, {} levels)", self.name(), self.levels())
    }
}
