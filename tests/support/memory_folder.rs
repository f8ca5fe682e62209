//! A folder of files in memory, for tests that open many thousands of variants. The fuzz targets include this file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::{Dataset, FilesBeside, Format, FormatError, OpenWith};
use crate::source::{Blocking, EntryKind, Folder, IndexCache, NoFolder, Source, SourceError, WHOLE};

/// Returns the name of the file in which a folder in memory keeps the metadata `name` of an object.
pub fn tag_of(object: &str, name: &str) -> String {
    format!("{object}\0{name}")
}

/// Reads all files below a folder, by their paths relative to it.
pub fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn add(files: &mut BTreeMap<String, Vec<u8>>, folder: &Path, below: &str) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                add(files, &entry.path(), &format!("{name}/"));
            } else {
                files.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    add(&mut files, folder, "");
    files
}

/// The files that are in the folder of one, in memory.
pub fn files_beside(path: PathBuf) -> FilesBeside {
    let folder = path.parent().unwrap().to_owned();
    FilesBeside::new(&path, move || Ok(Arc::new(MemoryFolder::new(files_below(&folder)))))
}

/// Opens a dataset that is one file in memory.
pub fn open_file(format: &dyn Format, bytes: Vec<u8>) -> Result<Box<dyn Dataset>, FormatError> {
    format.open(Arc::new(MemoryFolder::of_one_file(bytes)), &OpenWith::new(IndexCache::new(1 << 20)))
}

/// Opens a dataset that is a folder in memory.
pub fn open_files(format: &dyn Format, files: BTreeMap<String, Vec<u8>>) -> Result<Box<dyn Dataset>, FormatError> {
    format.open_folder(Arc::new(MemoryFolder::new(files)), &OpenWith::new(IndexCache::new(1 << 20)))
}

/// A folder of a tree in memory: `files` has all files of the tree by path, and `below` is the path of this folder
/// (empty, or ending in a slash).
#[derive(Clone)]
pub struct MemoryFolder {
    pub files: Arc<BTreeMap<String, Vec<u8>>>,
    pub below: String,
    /// Whether it can be listed, as folders of web servers cannot.
    pub tells_names: bool,
}

impl MemoryFolder {
    /// Makes a folder of files.
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Self {
        Self { files: Arc::new(files), below: String::new(), tells_names: true }
    }

    /// Makes the source of a dataset that is a single file.
    pub fn of_one_file(bytes: Vec<u8>) -> Self {
        Self::new(BTreeMap::from([(WHOLE.to_owned(), bytes)]))
    }

    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.below)
    }
}

impl Source for MemoryFolder {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        Ok(self.files.get(&self.path(object)).map(|file| file.len() as u64))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], _: Blocking) -> Result<bool, SourceError> {
        let Some(file) = self.files.get(&self.path(object)) else { return Ok(false) };
        let (length, size) = (out.len() as u64, file.len() as u64);
        let bytes = usize::try_from(offset).ok().and_then(|from| file.get(from..)?.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(SourceError::TooShort { offset, length, size })?);
        Ok(true)
    }

    fn tag(&self, object: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        Ok(self.files.get(&self.path(&tag_of(object, name))).cloned())
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        Ok(())
    }
}

impl Folder for MemoryFolder {
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder> {
        let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let below = format!("{}{}/", self.below, parts.join("/"));
        match self.files.keys().any(|name| name.starts_with(&below)) {
            true => Ok(Arc::new(Self { files: Arc::clone(&self.files), below, ..*self })),
            false => Err(NoFolder::Absent),
        }
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<bool, SourceError> {
        if !self.tells_names {
            return Ok(false);
        }
        let folder = if below.is_empty() { self.below.clone() } else { format!("{}{below}/", self.below) };
        let mut last = None;
        for rest in self.files.keys().filter_map(|name| name.strip_prefix(&folder)) {
            let (name, kind) =
                rest.split_once('/').map_or((rest, EntryKind::File), |(name, _)| (name, EntryKind::Folder));
            if last != Some(name) && !visit(name, kind) {
                break;
            }
            last = Some(name);
        }
        Ok(true)
    }

    fn identity(&self) -> (u64, u64) {
        (0, self.below.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(byte.into())))
    }

    fn is_changed(&self) -> bool {
        false
    }
}
