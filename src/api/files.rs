//! The files of a dataset as a mount shows them, read in process.

use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;

use super::engine::Engine;
use super::{Dataset, OpenError, Opened, ReadError};
use crate::array::ReadRequest;
use crate::format::FormatError;
use crate::memory::Buffer;
use crate::source::Blocking;
use crate::sync::Mutex;
use crate::view::{Content, Item, SampleRequest, Step, Tree, registry as views};

/// Bytes that are read at a time: a read keeps its bytes in memory of its own.
const PIECE: usize = 8 << 20;

/// Computed files that are kept, and the most bytes of each.
const KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();
const MOST_KEPT: usize = 64 << 10;

/// Computed files, by their paths: clients ask for the size of a file and then for parts of it.
pub(super) struct Computed(Mutex<LruCache<String, Arc<[u8]>>>);

impl Default for Computed {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(KEPT)))
    }
}

impl Dataset {
    /// The names in a folder of the dataset, as a mount shows them; those of folders end in `/`. The folder `""` is that
    /// of the dataset, which has `dataset.json`, `LAYER/`, `LAYER.ome.zarr/`, ... Returns `None` if there is no such
    /// folder.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn list(&self, folder: &str) -> Result<Option<Vec<String>>, OpenError> {
        let opened = self.0.opened()?;
        let found = opened.find(folder).map_err(|error| self.failed(error))?;
        Ok(found.filter(|folder| opened.tree().is_folder(*folder)).map(|folder| opened.names(folder)))
    }

    /// The bytes of a file that a mount shows, such as `LAYER/lod0.raw`; `None` if there is no such file.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn file_size(&self, path: &str) -> Result<Option<u64>, OpenError> {
        let content = self.0.opened()?.content(path).map_err(|error| self.failed(error))?;
        Ok(content.map(|content| content.len()))
    }

    /// Reads bytes of a file that a mount shows into `out`, from `offset` on. Returns how many there were: fewer than
    /// asked for at the end of the file.
    ///
    /// # Errors
    /// If there is no such file, or if it cannot be read.
    pub fn read_file(&self, path: &str, offset: u64, out: &mut [u8]) -> Result<usize, ReadError> {
        let name = || format!("{}/{path}", self.name());
        let opened = self.0.opened().map_err(|error| ReadError::of_open(name(), error))?;
        let content = opened.content(path).map_err(|error| ReadError::of_file(name(), error))?;
        let Some(content) = content else {
            let (message, kind) = ("there is no such file".into(), ErrorKind::NotFound);
            return Err(ReadError::Io { array: name(), message, kind });
        };
        let length = content.len().saturating_sub(offset).min(out.len() as u64) as usize;
        for (piece, n) in out[..length].chunks_mut(PIECE).zip(0..) {
            let read = opened.read_piece(&content, offset + n * PIECE as u64, piece.len(), &name)?;
            piece.copy_from_slice(&read);
        }
        Ok(length)
    }

    fn failed(&self, error: FormatError) -> OpenError {
        OpenError::new(&self.0.origin.path, error.into())
    }
}

impl Opened {
    fn tree(&self) -> &Tree {
        self.tree.get_or_init(|| Tree::new(&self.dataset, views()))
    }

    fn find(&self, path: &str) -> Result<Option<Item>, FormatError> {
        let mut found = Item::DATASET;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if !self.tree().is_folder(found) {
                return Ok(None);
            }
            let Some(inside) = self.tree().find(&self.dataset, found, name, Blocking::Yes)? else { return Ok(None) };
            found = inside;
        }
        Ok(Some(found))
    }

    fn names(&self, folder: Item) -> Vec<String> {
        let (tree, mut names) = (self.tree(), Vec::new());
        tree.list(&self.dataset, folder, 0, &mut |item, _| {
            names.push(tree.name(item) + if tree.is_folder(item) { "/" } else { "" });
            true
        });
        names
    }

    /// Returns the content of a file, if there is one.
    fn content(&self, path: &str) -> Result<Option<Content>, FormatError> {
        if let Some(kept) = self.computed.0.lock().get(path) {
            return Ok(Some(Content::Bytes(Arc::clone(kept))));
        }
        let Some(item) = self.find(path)? else { return Ok(None) };
        let content = self.tree().content(&self.dataset, item, Blocking::Yes)?;
        if let Some(Content::Bytes(bytes)) = content.as_ref()
            && bytes.len() <= MOST_KEPT
        {
            self.computed.0.lock().put(path.to_owned(), Arc::clone(bytes));
        }
        Ok(content)
    }

    /// Reads bytes that lie within a file.
    fn read_piece(
        &self,
        content: &Content,
        start: u64,
        length: usize,
        name: &dyn Fn() -> String,
    ) -> Result<Buffer, ReadError> {
        let failed = |error: FormatError| ReadError::of_file(name(), error);
        let engine = Engine::get();
        let buffers = engine.reader.buffers();
        let read = content.read(start..start + length as u64, buffers);
        let (mut read, mut samples) = (read.map_err(|error| failed(error.into()))?, None);
        loop {
            match read.step(samples.take(), buffers).map_err(failed)? {
                Step::Done(bytes) => return Ok(bytes),
                Step::Read { samples: SampleRequest { array, selections, mut memory, .. }, is_last } => {
                    let bulkhead = self.bulkhead;
                    let request =
                        ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: false };
                    self.read(&name(), request, &mut memory, None)?;
                    if is_last {
                        return Ok(memory);
                    }
                    samples = Some(memory);
                }
            }
        }
    }
}
