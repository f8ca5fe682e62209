//! Which folder is a dataset. This is asked of every folder of a source, and often.

use crate::sync::Mutex;
use std::fs::{File, FileType};
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lru::LruCache;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use super::disk::HEADER;
use super::mag::Mag;
use super::properties::{FILE, LONGEST, Properties};
use crate::format::registry;
use crate::source::FileStamp;

/// Verdicts that are remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// What lies deeper may change without a trace in the folder itself.
const LASTS: Duration = Duration::from_secs(1);
/// A folder with more folders in it is no dataset without a description.
const MOST_LAYERS: usize = 256;
/// A folder with more entries than that is no dataset without a description, either.
const MOST_ENTRIES: usize = 4096;

/// Verdicts on descriptions and on folders, by what they were, and when they were made.
static KNOWN: LazyLock<Mutex<LruCache<FileStamp, (bool, Instant)>>> =
    LazyLock::new(|| Mutex::new(LruCache::new(REMEMBERED)));

/// Whether a folder is a dataset: it has a description with a layer of this format, or it has mags, or folders with mags and
/// nothing that is a dataset by another sign.
pub(super) fn is_dataset(folder: &Path) -> bool {
    match has_description(folder) {
        Some(verdict) => verdict,
        None => {
            let Ok(metadata) = folder.metadata() else { return false };
            remembered(FileStamp::of(&metadata), Some(LASTS), || is_without_description(folder))
        }
    }
}

/// Whether the description has a layer of this format; `None` if there is none. One that cannot be read counts: why it cannot
/// is what the dataset then says.
fn has_description(folder: &Path) -> Option<bool> {
    let path = folder.join(FILE);
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(remembered(FileStamp::of(&metadata), None, || {
        let mut text = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(LONGEST).read_to_end(&mut text));
        match read.map(|_| Properties::parse(&text)) {
            Ok(Ok(described)) => described.layers.is_empty() || described.layers.iter().any(|layer| layer.may_be_wkw()),
            _ => true,
        }
    }))
}

fn remembered(stamp: FileStamp, lasts: Option<Duration>, find_out: impl FnOnce() -> bool) -> bool {
    let known = || KNOWN.lock();
    if let Some((verdict, at)) = known().get(&stamp)
        && lasts.is_none_or(|lasts| at.elapsed() < lasts)
    {
        return *verdict;
    }
    let verdict = find_out();
    known().put(stamp, (verdict, Instant::now()));
    verdict
}

fn is_without_description(folder: &Path) -> bool {
    if has_mag(folder) {
        return true;
    }
    let mut folders = Vec::new();
    let (mut other, mut entries) = (false, 0);
    each_entry(folder, MOST_ENTRIES, |name, kind| {
        entries += 1;
        if kind.is_dir() && folders.len() <= MOST_LAYERS {
            folders.push(folder.join(name));
        }
        let lower = name.to_ascii_lowercase();
        other |= lower.ends_with(".zgy") || lower.ends_with(".vds");
        !other
    });
    if other || folders.len() > MOST_LAYERS || entries >= MOST_ENTRIES {
        return false;
    }
    // what is mounted here is not part of a dataset, and may be the one that does not answer
    folders.retain(|path| !is_mount(path));
    folders.iter().any(|layer| has_mag(layer)) && !folders.iter().any(|sub| is_another(sub))
}

/// Whether a folder has a mag with a header.
fn has_mag(folder: &Path) -> bool {
    let mut found = false;
    each_entry(folder, MOST_ENTRIES, |name, kind| {
        found = !kind.is_file() && Mag::of_name(name).is_some() && folder.join(name).join(HEADER).is_file();
        !found
    });
    found
}

/// Whether a folder is a dataset of its own, and not a layer of the one around it.
fn is_another(folder: &Path) -> bool {
    let other = |format: &&dyn crate::format::Format| format.name() != "wkw" && format.is_folder(folder);
    if has_description(folder) == Some(true) || registry().iter().any(other) {
        return true;
    }
    let mut found = false;
    let mut folders = 0;
    each_entry(folder, MOST_ENTRIES, |name, kind| {
        let path = folder.join(name);
        if kind.is_dir() && !is_mount(&path) {
            folders += 1;
            found = has_mag(&path);
        }
        !found && folders <= MOST_LAYERS
    });
    found
}

/// Names the entries of a folder, up to `most`, until `visit` says `false`. What cannot be read has none.
fn each_entry(folder: &Path, most: usize, mut visit: impl FnMut(&str, FileType) -> bool) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten().take(most) {
        let Ok(kind) = entry.file_type() else { continue };
        if entry.file_name().to_str().is_some_and(|name| !visit(name, kind)) {
            return;
        }
    }
}

/// Whether something is mounted at a folder, as the kernel knows without asking whoever serves it.
fn is_mount(path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let Ok(found) = statx(CWD, path, flags, StatxFlags::TYPE) else { return true };
    found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
}
