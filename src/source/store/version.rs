//! What tells the versions of an object apart, in 16 bytes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::meta::Meta;
use crate::source::disk_cache::ObjectVersion;

/// An object without an etag counts as one version only if it was last changed so long before it was looked at: another
/// change might get the same time, and clocks differ.
const SETTLED: Duration = Duration::from_secs(60);

/// What tells the versions of an object apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// A hash of its etag.
    Etag(u64),
    /// A hash of its size and the time of its last change.
    Time(u64),
}

impl Version {
    /// Returns the version that a store tells of; `None` if the object may change and still look the same.
    pub(crate) fn of(meta: &Meta, now: SystemTime) -> Option<Self> {
        if let Some(etag) = &meta.etag {
            return Some(Self::of_etag(etag));
        }
        let modified = UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(meta.modified).ok()?))?;
        let is_settled = now.duration_since(modified).is_ok_and(|age| age >= SETTLED);
        is_settled.then(|| Self::of_time(meta))
    }

    fn of_etag(etag: &str) -> Self {
        Self::Etag(ObjectVersion::hash(etag.as_bytes()))
    }

    fn of_time(meta: &Meta) -> Self {
        let mut bytes = meta.size.to_le_bytes().to_vec();
        bytes.extend(meta.modified.to_le_bytes());
        Self::Time(ObjectVersion::hash(&bytes))
    }

    /// Returns whether an answer is of this version.
    pub(crate) fn is_of(self, answer: &Meta) -> bool {
        match self {
            Self::Etag(_) => answer.etag.as_deref().is_some_and(|etag| Self::of_etag(etag) == self),
            Self::Time(_) => Self::of_time(answer) == self,
        }
    }

    /// Returns what the version is called in the disk cache.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Etag(hash) => format!("etag {hash:016x}"),
            Self::Time(hash) => format!("time {hash:016x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_an_etag_has_a_version_when_it_is_old() {
        let meta = |modified, etag: Option<&str>| Meta { size: 5, modified, etag: etag.map(Into::into), headers: None };
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        assert!(Version::of(&meta(999, Some("a")), now).is_some());
        let old = Version::of(&meta(900, None), now).unwrap();
        assert_eq!((Version::of(&meta(950, None), now), Version::of(&meta(2000, None), now)), (None, None));
        assert!(old.is_of(&meta(900, Some("b"))) && !old.is_of(&meta(901, None)));
        let etag = Version::of(&meta(1, Some("a")), now).unwrap();
        assert!(etag.is_of(&meta(2, Some("a"))) && !etag.is_of(&meta(1, Some("b"))) && !etag.is_of(&meta(1, None)));
        assert_ne!(etag.name(), old.name());
    }
}
