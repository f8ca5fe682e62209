//! The signs by which a folder is a dataset of this format: its description, or mags with headers.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use lru::LruCache;

use super::disk::HEADER;
use super::mag::Mag;
use super::properties::{FILE, MAX_BYTES, Properties};
use crate::source::{EntryKind, FolderProbe, ObjectVersion};
use crate::sync::Mutex;

/// Descriptions whose verdict is remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// Entries of a folder among which mags are looked for.
const MAX_ENTRIES: usize = 4096;

/// Whether descriptions have a layer of this format, by the versions of the files.
static VERDICTS: LazyLock<Mutex<LruCache<ObjectVersion, bool>>> =
    LazyLock::new(|| Mutex::new(LruCache::new(REMEMBERED)));

/// Returns whether the description in a folder has a layer of this format; `None` if there is no description. One that
/// cannot be read counts: opening the dataset then gives the reason.
pub(super) fn has_described_layer(folder: &FolderProbe) -> Option<bool> {
    let description = folder.find(FILE).filter(|found| found.about().is_file())?;
    let stamp = description.about().version;
    if let Some(verdict) = VERDICTS.lock().get(&stamp) {
        return Some(*verdict);
    }
    let verdict = match description.read_head(MAX_BYTES).map(|text| Properties::parse(&text)) {
        Ok(Ok(described)) => described.layers.is_empty() || described.layers.iter().any(|layer| layer.may_be_wkw()),
        Ok(Err(_)) => true,
        Err(_) => return Some(true),
    };
    VERDICTS.lock().put(stamp, verdict);
    Some(verdict)
}

/// Returns whether a folder has a mag with a header.
pub(super) fn has_mag(folder: &FolderProbe) -> bool {
    let mut found = false;
    folder.visit(MAX_ENTRIES, |name, kind| {
        let is_mag = |name: &str| Mag::of_name(name).is_some() && folder.is_file(format!("{name}/{HEADER}"));
        found = kind != EntryKind::File && name.to_str().is_some_and(is_mag);
        !found
    });
    found
}
