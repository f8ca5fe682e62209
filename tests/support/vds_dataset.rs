//! VDS datasets of the test data, opened with the library, also from memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::memory_folder::{files_below, open_file, open_files, tag_of};
pub use super::vds::{Container, data, expected};
use crate::format::vds::Vds;
use crate::format::{Array, Dataset, Format, FormatError, OpenWith};
use crate::source::{IndexCache, LocalTree};

/// Opens a dataset of the test data.
pub fn open(name: &str) -> Box<dyn Dataset> {
    open_path(&data().join(name))
}

/// Opens any dataset.
pub fn open_path(path: &Path) -> Box<dyn Dataset> {
    try_open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Opens a file or folder, and returns the error of the format if that fails.
pub fn try_open(path: &Path) -> Result<Box<dyn Dataset>, FormatError> {
    if path.is_dir() {
        Vds.open_folder(LocalTree::folder(path, path), &OpenWith::new(IndexCache::new(1 << 20)))
    } else {
        Vds.open(LocalTree::file(path).unwrap(), &OpenWith::new(IndexCache::new(1 << 20)))
    }
}

/// Opens a dataset of the test data together with the metadata of its objects, if those are not in a file.
pub fn open_tagged(name: &str) -> Box<dyn Dataset> {
    if expected()["tags"].get(name).is_none() { open(name) } else { Cloud::read(name).open().unwrap() }
}

/// Returns the stored layer of this name.
pub fn find(dataset: &dyn Dataset, stored: &str) -> Arc<dyn Array> {
    let levels =
        dataset.layers().iter().flat_map(|layer| layer.levels.iter().zip(layer.native["stored"].as_array().unwrap()));
    let found = levels.into_iter().find(|(_, name)| *name == stored);
    Arc::clone(found.unwrap_or_else(|| panic!("no layer {stored}")).0)
}

impl Container {
    /// Opens the dataset from memory.
    pub fn open(&self) -> Result<Box<dyn Dataset>, FormatError> {
        open_file(&Vds, self.0.clone())
    }
}

/// A dataset in a folder of objects, with the metadata that an object store keeps for each of them.
#[derive(Clone)]
pub struct Cloud(pub BTreeMap<String, Vec<u8>>);

impl Cloud {
    /// Reads a folder of the test data, with the metadata of its objects.
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

    /// Sets the metadata of an object.
    pub fn tag(&mut self, object: &str, value: &[u8]) {
        self.0.insert(tag_of(object, "vdschunkmetadata"), value.to_vec());
    }

    /// Opens the dataset from memory.
    pub fn open(&self) -> Result<Box<dyn Dataset>, FormatError> {
        open_files(&Vds, self.0.clone())
    }

    /// Changes the record of the first layer in LayerStatus.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let status = self.0.get_mut("LayerStatus").unwrap();
        let mut layers: Value = serde_json::from_slice(status).unwrap();
        change(&mut layers[0]);
        *status = layers.to_string().into_bytes();
    }

    /// Returns the bytes of an object for changes.
    pub fn object(&mut self, name: &str) -> &mut Vec<u8> {
        self.0.get_mut(name).unwrap_or_else(|| panic!("no object {name}"))
    }
}
