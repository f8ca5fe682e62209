//! The version of an object that cached bytes are of.

use std::sync::Arc;

/// The greatest number of bytes that an identity may have. Together with the fixed part of a header it is less than
/// 4 KiB. Objects with longer names are not cached.
pub(super) const LONGEST: usize = 4000;

/// Bytes of the lengths in front of the four names.
const LENGTHS: usize = 16;

/// Identifies one version of one object of a store: all its bytes are those of the first time, for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectVersion {
    /// The lengths of the four names (u32, little-endian), then the names.
    identity: Arc<[u8]>,
    digest: u64,
}

/// The names that an [`ObjectVersion`] is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectNames {
    /// Which store, and which bucket of it: a URL without secrets.
    pub store: String,
    /// The key that all objects of a dataset begin with, or that of its only object.
    pub dataset: String,
    /// The name of the object in its dataset; empty for a dataset of one object.
    pub object: String,
    /// What changes when the object does, such as its etag.
    pub version: String,
}

impl ObjectVersion {
    /// Makes the version from the names of [`ObjectNames`]. None of them may hold a secret: they are written to disk.
    pub(crate) fn new(store: &str, dataset: &str, object: &str, version: &str) -> Self {
        let names = [store, dataset, object, version];
        let mut identity = Vec::with_capacity(LENGTHS + names.iter().map(|name| name.len()).sum::<usize>());
        for name in names {
            // a name too long for its length is too long to be cached
            identity.extend(u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
        names.iter().for_each(|name| identity.extend(name.as_bytes()));
        let digest = digest(&identity);
        Self { identity: identity.into(), digest }
    }

    /// Returns a hash of 64 bits, which never changes: for versions that are made of something long.
    pub(crate) fn hash(bytes: &[u8]) -> u64 {
        digest(bytes)
    }

    pub(super) fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// A hash, which is part of the names of files and so never changes. Files hold the whole identity: two objects
    /// of one hash are not confused, but only one of them is cached.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }
}

impl ObjectNames {
    /// Reads an identity, and returns the names and how many bytes it has.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (lengths, mut rest) = bytes.split_at_checked(LENGTHS)?;
        let mut end = LENGTHS;
        let mut names = lengths.chunks_exact(4).map(|length| {
            let length = usize::try_from(u32::from_le_bytes(length.try_into().ok()?)).ok()?;
            let (name, after) = rest.split_at_checked(length)?;
            (rest, end) = (after, end.checked_add(length)?);
            String::from_utf8(name.to_vec()).ok()
        });
        let mut next = || names.next().flatten();
        let names = Self { store: next()?, dataset: next()?, object: next()?, version: next()? };
        Some((names, end))
    }
}

/// FNV-1a with 64 bits, and the last step of MurmurHash3, so that all bits depend on all.
fn digest(bytes: &[u8]) -> u64 {
    let fnv = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_confused() {
        let version = ObjectVersion::new("s3://b", "survey", "a", "1");
        let others = [["s3://b", "survey", "a", "2"], ["s3://b", "surveya", "", "1"], ["s3://bs", "urvey", "a", "1"]];
        for [store, dataset, object, etag] in others {
            let other = ObjectVersion::new(store, dataset, object, etag);
            assert_ne!((other.digest(), other.identity()), (version.digest(), version.identity()));
        }
        let (names, length) = ObjectNames::read(version.identity()).unwrap();
        assert_eq!([names.store, names.dataset, names.object, names.version], ["s3://b", "survey", "a", "1"]);
        assert_eq!(length, version.identity().len());
        for shorter in 0..length {
            assert_eq!(ObjectNames::read(&version.identity()[..shorter]), None);
        }
    }

    #[test]
    fn the_digest_is_the_same_in_every_version_of_the_program() {
        assert_eq!(digest(b""), 0xefd0_1f60_ba99_2926);
        assert_eq!(ObjectVersion::new("s3://bucket", "survey", "lod0/1", "etag").digest(), 0xf258_15a3_d71c_b7ef);
    }
}
