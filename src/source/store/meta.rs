//! What a store tells of an object.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use object_store::{Attribute, GetResult, ObjectMeta};

use super::super::{About, FileStamp, PlaceKind, system_time};
use super::http::UserHeaders;

/// One version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Bytes.
    pub size: u64,
    /// Seconds since 1970. Stores give fractions only in listings.
    pub modified: i64,
    /// The etag without its quotes; `None` if the store gives none.
    pub etag: Option<Arc<str>>,
    /// The headers that were written with the object; `None` if they were not asked for.
    pub headers: Option<Arc<UserHeaders>>,
}

impl Meta {
    /// Returns what a listing says of an object.
    pub(crate) fn of_listed(meta: &ObjectMeta) -> Self {
        let etag = meta.e_tag.as_deref().map(|etag| etag.trim_matches('"').into());
        Self { size: meta.size, modified: meta.last_modified.timestamp(), etag, headers: None }
    }

    /// Returns what an answer says of its object.
    pub(crate) fn of_answer(answer: &GetResult) -> Self {
        let mut headers = answer.extensions.get::<UserHeaders>().cloned().unwrap_or_default();
        headers.0.extend(answer.attributes.iter().filter_map(|(attribute, value)| match attribute {
            Attribute::Metadata(name) => Some((name.as_ref().into(), value.as_bytes().into())),
            _ => None,
        }));
        Self { headers: Some(Arc::new(headers)), ..Self::of_listed(&answer.meta) }
    }

    /// Returns whether both are one version, as far as the store tells.
    pub(crate) fn is_same_version(&self, other: &Self) -> bool {
        match (&self.etag, &other.etag) {
            (Some(one), Some(other)) => one == other,
            _ => (self.size, self.modified) == (other.size, other.modified),
        }
    }

    /// Returns the etag as a condition has it; `None` if there is none, or it is a weak one, which is no condition.
    pub(crate) fn condition(&self) -> Option<String> {
        let etag = self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))?;
        Some(format!("\"{etag}\""))
    }

    /// Returns the value of the header whose name ends with `name`, in any case.
    pub(crate) fn header(&self, name: &str) -> Option<Vec<u8>> {
        let ends = |header: &str| {
            let end = header.len().checked_sub(name.len()).and_then(|at| header.get(at..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(name))
        };
        let found = self.headers.as_ref()?.0.iter().find(|(header, _)| ends(header));
        found.map(|(_, value)| value.to_vec())
    }

    /// Returns the version of the object with this key.
    pub(crate) fn stamp(&self, key: &str) -> FileStamp {
        let etag = self.etag.as_deref().map_or(0, hash_of);
        FileStamp { size: self.size, mtime: (self.modified, 0), inode: (etag, hash_of(key)) }
    }

    /// Returns what a look at the object has found.
    pub(crate) fn about(&self, key: &str) -> About {
        let stamp = self.stamp(key);
        About { kind: PlaceKind::File, stamp, changed: stamp.modified(), by_links: false, permissions: None }
    }
}

/// Returns what a look at a folder has found. Stores keep nothing about folders, not even that they are there.
pub(crate) fn about_folder(key: &str) -> About {
    let stamp = FileStamp { size: 0, mtime: (0, 0), inode: (0, hash_of(key)) };
    About { kind: PlaceKind::Folder, stamp, changed: system_time(0, 0), by_links: false, permissions: None }
}

/// Returns a number for a key or an etag.
pub(crate) fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(etag: Option<&str>, size: u64) -> Meta {
        let headers = UserHeaders(vec![("x-amz-meta-VDSChunkMetadata".into(), b"AAA=".as_slice().into())]);
        Meta { size, modified: 7, etag: etag.map(Into::into), headers: Some(Arc::new(headers)) }
    }

    #[test]
    fn versions_are_compared_by_etag_or_else_by_size_and_time() {
        assert!(meta(Some("a"), 1).is_same_version(&meta(Some("a"), 2)));
        assert!(!meta(Some("a"), 1).is_same_version(&meta(Some("b"), 1)));
        assert!(meta(Some("a"), 1).is_same_version(&meta(None, 1)));
        assert!(!meta(None, 1).is_same_version(&meta(None, 2)));
        assert_eq!((meta(Some("W/\"a"), 1).condition(), meta(Some("a"), 1).condition()), (None, Some("\"a\"".into())));
        assert_ne!(meta(Some("a"), 1).stamp("k"), meta(Some("b"), 1).stamp("k"));
    }

    #[test]
    fn a_header_is_found_by_the_end_of_its_name_in_any_case() {
        assert_eq!(meta(None, 0).header("vdschunkmetadata"), Some(b"AAA=".to_vec()));
        assert_eq!(meta(None, 0).header("chunkmetadat"), None);
        assert_eq!(meta(None, 0).header("a much longer name than that of the header is"), None);
    }
}
