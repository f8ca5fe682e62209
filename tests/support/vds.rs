//! VDS datasets for tests: what is expected of the fixtures, opening them, and taking apart and damaging them.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "memory_folder.rs"]
pub mod memory_folder;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memory_folder::{MemoryFolder, files_below, tag_of};
use serde_json::Value;
use volfs::format::vds::Vds;
use volfs::format::{Array, Dataset, Format, FormatError, OpenWith};
use volfs::source::{Folders, IndexCache, LocalFile, SymlinkPolicy, WHOLE};

/// The folder of the fixtures.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vds")
}

/// What scripts/make_vds_fixtures.py says of them.
pub fn expected() -> Value {
    serde_json::from_slice(&fs::read(data().join("expected.json")).unwrap()).unwrap()
}

/// CRC-32 as the fixtures have it.
pub fn crc(bytes: &[u8]) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    format!("{:08x}", crc.sum())
}

/// Opens a dataset of the fixtures.
pub fn open(name: &str) -> Box<dyn Dataset> {
    open_path(&data().join(name))
}

pub fn open_path(path: &Path) -> Box<dyn Dataset> {
    try_open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn try_open(path: &Path) -> Result<Box<dyn Dataset>, FormatError> {
    if path.is_dir() {
        let folders = Folders::new(Arc::new(SymlinkPolicy::below(path, false)), Arc::default());
        Vds.open_folder(folders.open(path).unwrap(), &OpenWith::new(IndexCache::new(1 << 20)))
    } else {
        Vds.open(Arc::new(LocalFile::open(path, Arc::default()).unwrap()), &OpenWith::new(IndexCache::new(1 << 20)))
    }
}

/// Opens a dataset of the fixtures together with the metadata of its objects, if those are not in a file.
pub fn open_tagged(name: &str) -> Box<dyn Dataset> {
    if expected()["tags"].get(name).is_none() { open(name) } else { Cloud::read(name).open().unwrap() }
}

/// The stored layer of this name.
pub fn find(dataset: &dyn Dataset, stored: &str) -> Arc<dyn Array> {
    let levels =
        dataset.layers().iter().flat_map(|layer| layer.levels.iter().zip(layer.native["stored"].as_array().unwrap()));
    let found = levels.into_iter().find(|(_, name)| *name == stored);
    Arc::clone(found.unwrap_or_else(|| panic!("no layer {stored}")).0)
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A dataset in a single file, to be changed where it hurts.
#[derive(Clone)]
pub struct Container(pub Vec<u8>);

impl Container {
    /// A file of the fixtures.
    pub fn read(name: &str) -> Self {
        Self(fs::read(data().join(name)).unwrap())
    }

    pub fn open(&self) -> Result<Box<dyn Dataset>, FormatError> {
        let files = BTreeMap::from([(WHOLE.to_owned(), self.0.clone())]);
        Vds.open(
            Arc::new(MemoryFolder { files: Arc::new(files), below: String::new() }),
            &OpenWith::new(IndexCache::new(1 << 20)),
        )
    }

    pub fn i32(&self, at: usize) -> i32 {
        i32::from_le_bytes(*self.0[at..].first_chunk().unwrap())
    }

    pub fn i64(&self, at: usize) -> i64 {
        i64::from_le_bytes(*self.0[at..].first_chunk().unwrap())
    }

    /// Overwrites bytes.
    pub fn put(&mut self, at: usize, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn put_i32(&mut self, at: usize, number: i32) {
        self.put(at, number.to_le_bytes());
    }

    pub fn put_i64(&mut self, at: usize, number: i64) {
        self.put(at, number.to_le_bytes());
    }

    /// Where the entry of a file is in the file table.
    pub fn entry(&self, name: &str) -> usize {
        let (table, count, length) = (self.i64(16) as usize, self.i32(24) as usize, self.i32(28) as usize);
        let mut entries = (0..count).map(|n| table + n * (32 + length));
        let named = |at: &usize| {
            let stored = &self.0[at + 32..at + 32 + length];
            stored.split(|byte| *byte == 0).next() == Some(name.as_bytes())
        };
        entries.find(named).unwrap_or_else(|| panic!("no file {name}"))
    }

    /// The names of all files.
    pub fn files(&self) -> Vec<String> {
        let (table, count, length) = (self.i64(16) as usize, self.i32(24) as usize, self.i32(28) as usize);
        let name = |n: usize| {
            let at = table + n * (32 + length) + 32;
            String::from_utf8_lossy(&self.0[at..at + length]).trim_end_matches('\0').to_owned()
        };
        (0..count).map(name).collect()
    }

    /// Where a file's newest page directory is.
    pub fn directory(&self, name: &str) -> usize {
        self.i64(self.entry(name)) as usize
    }

    /// Where a file's metadata is.
    pub fn metadata(&self, name: &str) -> usize {
        self.directory(name) + 16
    }

    /// Where the offset is of the index page that has a chunk.
    pub fn page(&self, name: &str, chunk: usize) -> usize {
        let entry = self.entry(name);
        let (per_page, metadata) = (self.i32(entry + 16) as usize, self.i32(entry + 28) as usize);
        self.metadata(name) + metadata + 8 * (chunk / per_page)
    }

    /// Where the entry of a chunk is: offset, length, reserved, metadata.
    pub fn index(&self, name: &str, chunk: usize) -> usize {
        let entry = self.entry(name);
        let (per_page, metadata) = (self.i32(entry + 16) as usize, self.i32(entry + 24) as usize);
        self.i64(self.page(name, chunk)) as usize + chunk % per_page * (16 + metadata)
    }

    /// Where the bytes of a chunk are.
    pub fn chunk(&self, name: &str, chunk: usize) -> Range<usize> {
        let index = self.index(name, chunk);
        let offset = self.i64(index) as usize;
        offset..offset + self.i32(index + 8) as usize
    }

    /// Gives a chunk other bytes, at the end of the file.
    pub fn replace(&mut self, name: &str, chunk: usize, bytes: &[u8]) {
        let (index, end) = (self.index(name, chunk), self.0.len());
        self.put_i64(index, end as i64);
        self.put_i32(index + 8, bytes.len() as i32);
        self.0.extend(bytes);
    }

    /// Changes the description.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut layout: Value = serde_json::from_slice(&self.0[self.chunk("VolumeDataLayout", 0)]).unwrap();
        change(&mut layout);
        self.replace("VolumeDataLayout", 0, layout.to_string().as_bytes());
    }
}

/// A dataset in a folder of objects, with the metadata that a store has beside them.
#[derive(Clone)]
pub struct Cloud(pub BTreeMap<String, Vec<u8>>);

impl Cloud {
    /// A folder of the fixtures, with its tags.
    pub fn read(name: &str) -> Self {
        let mut cloud = Self::untagged(name);
        for (object, tag) in expected()["tags"].get(name).and_then(Value::as_object).into_iter().flatten() {
            cloud.tag(object, tag.as_str().unwrap().as_bytes());
        }
        cloud
    }

    fn untagged(name: &str) -> Self {
        Self(files_below(&data().join(name)))
    }

    /// Gives an object its metadata.
    pub fn tag(&mut self, object: &str, value: &[u8]) {
        self.0.insert(tag_of(object, "vdschunkmetadata"), value.to_vec());
    }

    pub fn open(&self) -> Result<Box<dyn Dataset>, FormatError> {
        let folder = MemoryFolder { files: Arc::new(self.0.clone()), below: String::new() };
        Vds.open_folder(Arc::new(folder), &OpenWith::new(IndexCache::new(1 << 20)))
    }

    /// Changes what is said of the first layer.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let status = self.0.get_mut("LayerStatus").unwrap();
        let mut layers: Value = serde_json::from_slice(status).unwrap();
        change(&mut layers[0]);
        *status = layers.to_string().into_bytes();
    }

    /// Changes the bytes of an object.
    pub fn object(&mut self, name: &str) -> &mut Vec<u8> {
        self.0.get_mut(name).unwrap_or_else(|| panic!("no object {name}"))
    }
}
