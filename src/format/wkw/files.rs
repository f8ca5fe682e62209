//! Finds the layers, mags and data files of a dataset by the names of its folders and files. Opens no data file; reads
//! headers of mags only to guess the category of a layer.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::header::Header;
use super::properties::{DescribedLayer, DescribedMag, Extent, Mag};
use crate::format::bytes::decimal;
use crate::source::{Blocking, EntryKind, Folder, NoFolder, SourceError};
use crate::volume::Dtype;

/// The file that each mag's folder has.
pub(super) const HEADER: &str = "header.wkw";
/// The most mags of one layer, and folders of a dataset, that are looked at.
const MAX_ENTRIES: usize = 1024;
/// Bound of the coordinates of a cube. The reference implementation has 32 bits for each.
const MAX_COORDINATE: u64 = 1 << 40;

/// Returns the layers of a dataset: one for each subfolder with mags, or the layer `data` if the mags are in the
/// dataset's own folder.
pub(super) fn layers(dataset: &dyn Folder) -> Result<Vec<DescribedLayer>, SourceError> {
    let here = mags(dataset, "")?;
    if !here.is_empty() {
        return Ok(vec![described(dataset, "data", here)]);
    }
    let mut names = Vec::new();
    dataset.list("", &mut |name, kind| {
        if kind != EntryKind::File {
            names.push(name.to_owned());
        }
        names.len() < MAX_ENTRIES
    })?;
    names.sort_unstable();
    let mut layers = Vec::new();
    for name in names {
        let mags = mags(dataset, &name)?;
        if !mags.is_empty() {
            layers.push(described(dataset, &name, mags));
        }
    }
    Ok(layers)
}

fn described(dataset: &dyn Folder, name: &str, mut mags: Vec<DescribedMag>) -> DescribedLayer {
    mags.sort_by_key(|listed| listed.mag.order());
    // two names of one mag: the usual one is the shorter
    mags.dedup_by_key(|listed| listed.mag);
    let category = category(dataset, name, &mags);
    DescribedLayer { name: name.into(), category: Some(category.into()), mags, ..DescribedLayer::default() }
}

/// Guesses the category of a layer by its name and the type of its voxels.
fn category(dataset: &dyn Folder, name: &str, mags: &[DescribedMag]) -> &'static str {
    if name.contains("color") {
        return "color";
    }
    let header_of = |mag: &str| Header::read(dataset, &join(mag, HEADER), Blocking::Yes).ok().flatten();
    let header = || mags.iter().find_map(|listed| header_of(listed.path.as_deref()?));
    let of_ids = || header().is_some_and(|h| matches!(h.dtype, Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64));
    if name.contains("segmentation") || of_ids() { "segmentation" } else { "color" }
}

/// Returns the mags with a header in the folder `layer` of a dataset. Of two names of one mag the shorter one comes
/// first.
pub(super) fn mags(dataset: &dyn Folder, layer: &str) -> Result<Vec<DescribedMag>, SourceError> {
    let mut names = Vec::new();
    dataset.list(layer, &mut |name, kind| {
        if let (Some(mag), true) = (Mag::from_name(name), kind != EntryKind::File) {
            names.push((mag, name.to_owned()));
        }
        names.len() < MAX_ENTRIES
    })?;
    names.sort_unstable_by_key(|(_, name)| (name.len(), name.clone()));
    let mut mags = Vec::new();
    for (mag, name) in names {
        let path = join(layer, &name);
        // a header that cannot be read counts: opening the mag gives the reason
        if !matches!(dataset.len(&join(&path, HEADER)), Ok(None)) {
            mags.push(DescribedMag { mag, path: Some(path), axis_order: Value::Null });
        }
    }
    Ok(mags)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns the box around all cubes of a mag in its voxels, by the names of the files alone; `None` if it has no cubes.
pub(super) fn extent(mag: &dyn Folder, header: &Header) -> Result<Option<Extent>, SourceError> {
    let mut found: Option<([u64; 3], [u64; 3])> = None;
    visit_cubes(mag, [0; 3], [u64::MAX; 3], &mut |at, kind| {
        if kind != EntryKind::Folder {
            let (low, high) = found.get_or_insert((at, at));
            for a in 0..3 {
                (low[a], high[a]) = (low[a].min(at[a]), high[a].max(at[a]));
            }
        }
        Ok(true)
    })?;
    let side = header.cube_len();
    Ok(found.map(|(low, high)| Extent { low: low.map(|n| n * side), high: high.map(|n| (n + 1) * side) }))
}

/// Returns the entries of the folder `below` whose names are a number between `before` and `after`, in the order of
/// their numbers, with their kinds.
fn numbered(
    mag: &dyn Folder,
    below: &str,
    [before, after]: [&str; 2],
    bounds: RangeInclusive<u64>,
) -> Result<Vec<(u64, EntryKind)>, SourceError> {
    let mut entries = Vec::new();
    mag.list(below, &mut |name, kind| {
        let found = number(name, before, after).filter(|number| bounds.contains(number));
        entries.extend(found.map(|number| (number, kind)));
        true
    })?;
    entries.sort_unstable_by_key(|(number, _)| *number);
    Ok(entries)
}

/// Parses the number in a name.
fn number(name: &str, before: &str, after: &str) -> Option<u64> {
    decimal(name.strip_prefix(before)?.strip_suffix(after)?).filter(|number| *number < MAX_COORDINATE)
}

/// Visits the cubes of a mag by x, y, z, in order and without opening them, until `visit` returns `false`. Of the three
/// coordinates only values from `low` to `high` count, both included. Memory is bounded by one folder's names.
pub(super) fn visit_cubes(
    mag: &dyn Folder,
    low: [u64; 3],
    high: [u64; 3],
    visit: &mut dyn FnMut([u64; 3], EntryKind) -> Result<bool, SourceError>,
) -> Result<(), SourceError> {
    let is_folder = |entry: &(u64, EntryKind)| entry.1 != EntryKind::File;
    for (z, _) in numbered(mag, "", ["z", ""], low[2]..=high[2])?.into_iter().filter(is_folder) {
        let below = format!("z{z}");
        for (y, _) in numbered(mag, &below, ["y", ""], low[1]..=high[1])?.into_iter().filter(is_folder) {
            for (x, kind) in numbered(mag, &format!("{below}/y{y}"), ["x", ".wkw"], low[0]..=high[0])? {
                if !visit([x, y, z], kind)? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Returns the names of folders of cubes that belong to files, or to links that lead to no folder. Only coordinates
/// from `low` to `high` count, as in [`visit_cubes`].
pub(super) fn no_folders(mag: &dyn Folder, low: [u64; 3], high: [u64; 3]) -> Result<Vec<String>, SourceError> {
    let mut found = Vec::new();
    // returns the paths of numbered entries in one folder that are folders
    let mut folders = |below: &str, letter: &str, a: usize| {
        let mut folders = Vec::new();
        for (number, kind) in numbered(mag, below, [letter, ""], low[a]..=high[a])? {
            let path = format!("{below}{letter}{number}");
            let is_folder = match kind {
                EntryKind::Folder => true,
                EntryKind::File | EntryKind::Other => false,
                EntryKind::Link => match mag.folder(&path) {
                    Err(NoFolder::Source(error)) if error.is_failure_of_system() => return Err(error),
                    folder => folder.is_ok(),
                },
            };
            if is_folder { &mut folders } else { &mut found }.push(path);
        }
        Ok(folders)
    };
    for z in folders("", "z", 2)? {
        folders(&format!("{z}/"), "y", 1)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strict_names_are_cubes() {
        assert_eq!(number("x0.wkw", "x", ".wkw"), Some(0));
        assert_eq!(number("x120.wkw", "x", ".wkw"), Some(120));
        for name in
            ["x01.wkw", "x.wkw", "x0.wkw_tmp", "x0.wkw.tmp", "X0.wkw", "x+1.wkw", "x-1.wkw", "x 1.wkw", "notes.txt"]
        {
            assert_eq!(number(name, "x", ".wkw"), None, "{name}");
        }
        assert_eq!(number("z00", "z", ""), None);
        assert_eq!(number("z9999999999999999999999", "z", ""), None);
        assert_eq!(number(&format!("z{}", u64::MAX), "z", ""), None);
    }
}
