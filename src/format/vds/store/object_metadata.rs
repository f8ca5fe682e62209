//! The metadata that object stores keep with each object. A copy of a dataset has it in extended attributes, or in one
//! JSON file.

use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::format::FormatError;
use crate::format::bytes::check_values;
use crate::memory::try_zeroed;
use crate::source::{Blocking, Folder, IndexCache, SourceError};

/// The key of a chunk's metadata.
const NAME: &str = "vdschunkmetadata";
/// Its key in old datasets.
const OLD_NAME: &str = "vds-chunk-metadata";
/// The file in the root of a copy that has the metadata of all objects.
const FILE: &str = "ObjectMetadata.json";
/// The longest such file that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The longest metadata of an object, in bytes.
const MAX_METADATA: usize = 24;

/// The metadata in the JSON file, in little memory: as long as the longest file that is read fits into the cache of index
/// tables, it is read once.
#[derive(Default)]
struct Listed {
    /// The names of all objects, one after the other.
    names: String,
    /// By name.
    objects: Vec<ListedObject>,
}

/// The metadata of one object.
struct ListedObject {
    /// Where its name begins and ends.
    name: (u32, u32),
    /// Bytes of the metadata.
    length: u8,
    metadata: [u8; MAX_METADATA],
}

impl Listed {
    /// Adds an object; metadata that is too long is cut.
    fn push(&mut self, name: &str, metadata: &[u8]) {
        let begin = self.names.len() as u32;
        self.names.push_str(name);
        let mut object =
            ListedObject { name: (begin, self.names.len() as u32), length: 0, metadata: [0; MAX_METADATA] };
        for (to, byte) in object.metadata.iter_mut().zip(metadata) {
            *to = *byte;
            object.length += 1;
        }
        self.objects.push(object);
    }

    /// Sorts the objects, so that they are found.
    fn sort(&mut self) {
        let Self { names, objects } = self;
        objects.sort_by_key(|object| name_in(names, object));
        names.shrink_to_fit();
        objects.shrink_to_fit();
    }

    fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.objects.binary_search_by_key(&name, |object| name_in(&self.names, object));
        let object = self.objects.get(found.ok()?)?;
        object.metadata.get(..usize::from(object.length))
    }

    /// Returns the bytes that it takes.
    fn bytes(&self) -> usize {
        self.names.capacity() + self.objects.capacity() * size_of::<ListedObject>()
    }
}

fn name_in<'a>(names: &'a str, object: &ListedObject) -> &'a str {
    names.get(object.name.0 as usize..object.name.1 as usize).unwrap_or_default()
}

/// The metadata of the objects of one dataset.
pub(crate) struct ObjectMetadata {
    folder: Arc<dyn Folder>,
    cache: Arc<IndexCache>,
    id: u64,
}

impl ObjectMetadata {
    pub(crate) fn new(folder: Arc<dyn Folder>, cache: Arc<IndexCache>) -> Self {
        Self { folder, cache, id: IndexCache::new_id() }
    }

    /// Reads the metadata of an object: 8 or 24 bytes. May wait.
    pub(crate) fn get(&self, object: &str) -> Result<Option<Vec<u8>>, FormatError> {
        if let Some(tag) = self.folder.tag(object, NAME)? {
            let bytes = decode(&tag).ok_or_else(|| {
                FormatError::Damaged(format!("{object}: its attribute {NAME} is no metadata of a chunk"))
            });
            return bytes.map(Some);
        }
        Ok(self.listed()?.get(object).map(<[u8]>::to_vec))
    }

    /// Visits the names of the objects in the JSON file. May wait.
    pub(crate) fn visit_listed(&self, visit: impl FnMut(&str)) -> Result<(), FormatError> {
        let listed = self.listed()?;
        listed.objects.iter().map(|object| name_in(&listed.names, object)).for_each(visit);
        Ok(())
    }

    /// Returns the metadata in the JSON file; empty if there is none.
    fn listed(&self) -> Result<Arc<Listed>, FormatError> {
        let key = (self.id, 0, 0);
        if let Some(listed) = self.cache.get(key) {
            return Ok(listed);
        }
        let length = match self.folder.len(FILE) {
            // stores deny what is not there to those who may not list, and have the metadata with each object
            Err(SourceError::Io { kind: io::ErrorKind::PermissionDenied, .. }) if self.folder.fetches_ahead() => None,
            length => length?,
        };
        let listed = Arc::new(match length {
            Some(length) if length <= MAX_FILE_BYTES => self.read(length)?,
            _ => Listed::default(),
        });
        self.cache.insert(key, &listed, listed.bytes());
        Ok(listed)
    }

    fn read(&self, length: u64) -> Result<Listed, FormatError> {
        let mut text = try_zeroed(length as usize)?;
        self.folder.read_at(FILE, 0, &mut text, Blocking::Yes)?;
        let damaged = |why: String| FormatError::Damaged(format!("{FILE}: {why}"));
        check_values(&text, b",[{").map_err(damaged)?;
        let json: Value = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        let Value::Object(objects) = json else { return Err(damaged("it is no JSON object".into())) };
        let mut listed = Listed::default();
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
            listed.push(&object, &bytes);
        }
        listed.sort();
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
    fn the_longest_list_fits_into_the_cache() {
        // the cache of a mount keeps so many bytes of parts of tables
        let cache = (41 << 20) / 5;
        // each object takes one entry, whose value is an object with one entry, and so two of the values that a
        // description may have
        let (objects, name) = ((1 << 17) / 2, "layer/1234567");
        let entry = format!("\"{name}\":{{\"vdschunkmetadata\":\"AAAZQwEBAQE=\"}},").len();
        let mut listed = Listed::default();
        for n in 0..objects.min(MAX_FILE_BYTES as usize / entry) {
            listed.push(&format!("layer/{n:07}"), &(n as u64).to_le_bytes());
        }
        listed.push("a", &[7; 24]);
        listed.sort();
        assert!(listed.bytes() + 4096 < cache, "{}", listed.bytes());
        assert!(4 * objects + MAX_FILE_BYTES as usize + objects * size_of::<ListedObject>() < cache);
        assert_eq!(listed.get("layer/0004711"), Some(&4711u64.to_le_bytes()[..]));
        assert_eq!((listed.get("a"), listed.get("b"), listed.get("")), (Some(&[7; 24][..]), None, None));
    }

    #[test]
    fn metadata_is_decoded_from_base64_or_used_as_it_is() {
        assert_eq!(decode(b"AAAZQwEBAQE="), Some(vec![0, 0, 0x19, 0x43, 1, 1, 1, 1]));
        assert_eq!(decode(&[7; 24]), Some(vec![7; 24]));
        assert_eq!(decode(b"AAAZQwEBAQE"), None);
        assert_eq!(decode(b"AAAA"), None);
        assert_eq!(decode(b""), None);
    }
}
