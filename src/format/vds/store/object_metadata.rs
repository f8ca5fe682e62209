//! The metadata that object stores keep with each object. A copy of a dataset has it in extended attributes, or in one
//! JSON file.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::format::FormatError;
use crate::format::value_limit::check_values;
use crate::source::{Folder, IndexCache, Wait};

/// The key of a chunk's metadata.
const NAME: &str = "vdschunkmetadata";
/// Its key in old datasets.
const OLD_NAME: &str = "vds-chunk-metadata";
/// The file in the root of a copy that has the metadata of all objects.
const FILE: &str = "ObjectMetadata.json";
/// The longest such file that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Bytes of a cached entry of the file, without its name.
const ENTRY: usize = 96;

type Listed = HashMap<Box<str>, Vec<u8>>;

/// The metadata of the objects of one dataset.
pub struct ObjectMetadata {
    folder: Arc<dyn Folder>,
    cache: Arc<IndexCache>,
    id: u64,
}

impl ObjectMetadata {
    pub fn new(folder: Arc<dyn Folder>, cache: Arc<IndexCache>) -> Self {
        Self { folder, cache, id: IndexCache::new_id() }
    }

    /// Reads the metadata of an object: 8 or 24 bytes. May wait.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] for any other length, and those of the source.
    pub fn get(&self, object: &str) -> Result<Option<Vec<u8>>, FormatError> {
        if let Some(tag) = self.folder.tag(object, NAME)? {
            let bytes = decode(&tag).ok_or_else(|| {
                FormatError::Damaged(format!("{object}: its attribute {NAME} is no metadata of a chunk"))
            });
            return bytes.map(Some);
        }
        Ok(self.listed()?.get(object).cloned())
    }

    /// Visits the names of the objects in the JSON file. May wait.
    ///
    /// # Errors
    /// Those of [`ObjectMetadata::get`].
    pub fn visit_listed(&self, visit: impl FnMut(&str)) -> Result<(), FormatError> {
        self.listed()?.keys().map(|object| &**object).for_each(visit);
        Ok(())
    }

    /// Returns the metadata in the JSON file; empty if there is none.
    fn listed(&self) -> Result<Arc<Listed>, FormatError> {
        let key = (self.id, 0, 0);
        if let Some(listed) = self.cache.get(key) {
            return Ok(listed);
        }
        let listed = Arc::new(match self.folder.len(FILE)? {
            Some(length) if length <= MAX_FILE_BYTES => self.read(length)?,
            _ => Listed::new(),
        });
        let weight = listed.keys().map(|name| name.len() + ENTRY).sum();
        self.cache.insert(key, &listed, weight);
        Ok(listed)
    }

    fn read(&self, length: u64) -> Result<Listed, FormatError> {
        let mut text = vec![0; length as usize];
        self.folder.read_at(FILE, 0, &mut text, Wait::Yes)?;
        let damaged = |why: String| FormatError::Damaged(format!("{FILE}: {why}"));
        check_values(&text, b",[{").map_err(damaged)?;
        let json: Value = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        let Value::Object(objects) = json else { return Err(damaged("it is no JSON object".into())) };
        let mut listed = Listed::new();
        for (object, entries) in objects {
            let ours = |key: &str| {
                let key = key.to_ascii_lowercase();
                key.ends_with(NAME) || key.ends_with(OLD_NAME)
            };
            let entry = entries.as_object().and_then(|entries| entries.iter().find(|(key, _)| ours(key)));
            let Some((_, value)) = entry else { continue };
            let bytes = value.as_str().and_then(|text| decode(text.as_bytes()));
            let bytes =
                bytes.ok_or_else(|| damaged(format!("{object} has {value}, which is no metadata of a chunk")))?;
            listed.insert(object.into(), bytes);
        }
        Ok(listed)
    }
}

/// Decodes metadata, which may be base64, as in object stores, or binary.
fn decode(tag: &[u8]) -> Option<Vec<u8>> {
    let whole = |bytes: &[u8]| matches!(bytes.len(), 8 | 24);
    if whole(tag) {
        return Some(tag.to_vec());
    }
    STANDARD.decode(tag.trim_ascii()).ok().filter(|bytes| whole(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_decoded_from_base64_or_used_as_it_is() {
        assert_eq!(decode(b"AAAZQwEBAQE="), Some(vec![0, 0, 0x19, 0x43, 1, 1, 1, 1]));
        assert_eq!(decode(&[7; 24]), Some(vec![7; 24]));
        assert_eq!(decode(b"AAAZQwEBAQE"), None);
        assert_eq!(decode(b"AAAA"), None);
        assert_eq!(decode(b""), None);
    }
}
