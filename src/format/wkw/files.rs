//! Finds the layers, mags and data files of a dataset by the names of its folders and files, without opening data files.

use super::header::{BYTES, Header};
use super::properties::{DescribedLayer, DescribedMag, Extent, Mag};
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
    let header = || mags.iter().find_map(|listed| header(dataset, listed.path.as_deref()?));
    let of_ids = || header().is_some_and(|h| matches!(h.dtype, Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64));
    if name.contains("segmentation") || of_ids() { "segmentation" } else { "color" }
}

fn header(dataset: &dyn Folder, mag: &str) -> Option<Header> {
    let mut bytes = [0; BYTES];
    let read = dataset.read_at(&join(mag, HEADER), 0, &mut bytes, Blocking::Yes);
    read.is_ok_and(|there| there).then(|| Header::parse(&bytes).ok()).flatten()
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
            mags.push(DescribedMag { mag, path: Some(path) });
        }
    }
    Ok(mags)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns the box around all cubes of a mag in its voxels, by the names of the files alone; `None` if there are none.
pub(super) fn extent(mag: &dyn Folder, header: &Header) -> Result<Option<Extent>, SourceError> {
    let mut found: Option<([u64; 3], [u64; 3])> = None;
    for z in numbers(mag, "", "z", "")? {
        for y in numbers(mag, &format!("z{z}"), "y", "")? {
            mag.list(&format!("z{z}/y{y}"), &mut |name, kind| {
                if let (Some(x), true) = (number(name, "x", ".wkw"), kind != EntryKind::Folder) {
                    let at = [x, y, z];
                    let (low, high) = found.get_or_insert((at, at));
                    for a in 0..3 {
                        (low[a], high[a]) = (low[a].min(at[a]), high[a].max(at[a]));
                    }
                }
                true
            })?;
        }
    }
    let side = header.cube_len();
    Ok(found.map(|(low, high)| Extent { low: low.map(|n| n * side), high: high.map(|n| (n + 1) * side) }))
}

/// Returns the numbers in the names of the folders in `below`, for all names that are a number between `before` and
/// `after`.
pub(super) fn numbers(mag: &dyn Folder, below: &str, before: &str, after: &str) -> Result<Vec<u64>, SourceError> {
    let mut numbers = Vec::new();
    mag.list(below, &mut |name, kind| {
        if kind != EntryKind::File {
            numbers.extend(number(name, before, after));
        }
        true
    })?;
    Ok(numbers)
}

/// Parses the number in a name: decimal, without sign or leading zeros.
pub(super) fn number(name: &str, before: &str, after: &str) -> Option<u64> {
    let digits = name.strip_prefix(before)?.strip_suffix(after)?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    plain.then(|| digits.parse().ok()).flatten().filter(|n| *n < MAX_COORDINATE)
}

/// Visits the cubes of a mag by x, y, z, in order and without opening them, until `visit` returns `false`. Of the three
/// coordinates only those from `low` to `high` count, both included. Memory is bounded by one folder's names.
pub(super) fn visit_cubes(
    mag: &dyn Folder,
    low: [u64; 3],
    high: [u64; 3],
    visit: &mut dyn FnMut([u64; 3]) -> Result<bool, SourceError>,
) -> Result<(), SourceError> {
    let within = |axis: usize, n: &u64| (low[axis]..=high[axis]).contains(n);
    for z in sorted(numbers(mag, "", "z", "")?).into_iter().filter(|z| within(2, z)) {
        for y in sorted(numbers(mag, &format!("z{z}"), "y", "")?).into_iter().filter(|y| within(1, y)) {
            let mut files = Vec::new();
            mag.list(&format!("z{z}/y{y}"), &mut |name, _| {
                files.extend(number(name, "x", ".wkw"));
                true
            })?;
            for x in sorted(files).into_iter().filter(|x| within(0, x)) {
                if !visit([x, y, z])? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

/// Returns the names where a folder of cubes should be and is none: files, and links that lead to no folder. Only of
/// coordinates from `low` to `high`, as in [`visit_cubes`].
pub(super) fn no_folders(mag: &dyn Folder, low: [u64; 3], high: [u64; 3]) -> Result<Vec<String>, SourceError> {
    let (mut folders, mut found) = (Vec::new(), Vec::new());
    collect(mag, "", "z", (low[2], high[2]), &mut folders, &mut found)?;
    for z in folders {
        collect(mag, &format!("{z}/"), "y", (low[1], high[1]), &mut Vec::new(), &mut found)?;
    }
    Ok(found)
}

/// Adds the paths of numbered entries in one folder, which is empty or ends in `/`: those that are folders, and others.
fn collect(
    mag: &dyn Folder,
    below: &str,
    letter: &str,
    (low, high): (u64, u64),
    folders: &mut Vec<String>,
    found: &mut Vec<String>,
) -> Result<(), SourceError> {
    let mut links = Vec::new();
    mag.list(below, &mut |name, kind| {
        if number(name, letter, "").is_some_and(|n| (low..=high).contains(&n)) {
            let path = format!("{below}{name}");
            match kind {
                EntryKind::Folder => folders.push(path),
                EntryKind::File | EntryKind::Other => found.push(path),
                EntryKind::Link => links.push(path),
            }
        }
        true
    })?;
    for path in links {
        match mag.folder(&path) {
            Ok(_) => folders.push(path),
            Err(NoFolder::Source(error)) if error.is_failure_of_system() => return Err(error),
            Err(_) => found.push(path),
        }
    }
    Ok(())
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
