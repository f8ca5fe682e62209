//! What folders say of a dataset that nothing else describes: its layers, their mags and their extent (section 6.8).

use super::header::{BYTES, Header};
use super::mag::{Extent, Mag};
use super::properties::{Described, Listed};
use crate::source::{EntryKind, Folder, SourceError, Wait};
use crate::volume::Dtype;

/// The file that makes a folder a mag.
pub(super) const HEADER: &str = "header.wkw";
/// Mags of one layer, and layers of a dataset, that are looked for at most.
const MOST: usize = 1024;
/// Beyond this no cube lies: the reference has 32 bits for a coordinate.
const FARTHEST: u64 = 1 << 40;

/// The layers in a folder: those in folders of their own, or else the one whose mags stand right here.
pub(super) fn layers(dataset: &dyn Folder) -> Result<Vec<Described>, SourceError> {
    let here = mags(dataset, "")?;
    if !here.is_empty() {
        return Ok(vec![described(dataset, "data", here)]);
    }
    let mut names = Vec::new();
    dataset.list("", &mut |name, kind| {
        if kind != EntryKind::File {
            names.push(name.to_owned());
        }
        names.len() < MOST
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

fn described(dataset: &dyn Folder, name: &str, mut mags: Vec<Listed>) -> Described {
    mags.sort_by_key(|listed| listed.mag.order());
    // two names of one mag: the usual one is the shorter
    mags.dedup_by_key(|listed| listed.mag);
    let category = category(dataset, name, &mags);
    Described { name: name.into(), category: Some(category.into()), mags, ..Described::default() }
}

/// A hint, no more.
fn category(dataset: &dyn Folder, name: &str, mags: &[Listed]) -> &'static str {
    if name.contains("color") {
        return "color";
    }
    let header = || mags.iter().find_map(|listed| header(dataset, listed.path.as_deref()?));
    let of_ids = || header().is_some_and(|h| matches!(h.dtype, Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64));
    if name.contains("segmentation") || of_ids() { "segmentation" } else { "color" }
}

fn header(dataset: &dyn Folder, mag: &str) -> Option<Header> {
    let mut bytes = [0; BYTES];
    let read = dataset.read_at(&join(mag, HEADER), 0, &mut bytes, Wait::Yes);
    read.is_ok_and(|there| there).then(|| Header::parse(&bytes).ok()).flatten()
}

/// The mags in the folder `layer` of a dataset, wherever there is a header. The shorter name of a mag comes first.
pub(super) fn mags(dataset: &dyn Folder, layer: &str) -> Result<Vec<Listed>, SourceError> {
    let mut names = Vec::new();
    dataset.list(layer, &mut |name, kind| {
        if let (Some(mag), true) = (Mag::of_name(name), kind != EntryKind::File) {
            names.push((mag, name.to_owned()));
        }
        names.len() < MOST
    })?;
    names.sort_unstable_by_key(|(_, name)| (name.len(), name.clone()));
    let mut mags = Vec::new();
    for (mag, name) in names {
        let path = join(layer, &name);
        // a header that cannot be read is one, too
        if !matches!(dataset.len(&join(&path, HEADER)), Ok(None)) {
            mags.push(Listed { mag, path: Some(path) });
        }
    }
    Ok(mags)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The box around all cubes of a mag, in its voxels; `None` if there are none. Only names are looked at.
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

/// The numbers of all folders in `below` whose names are a number between `before` and `after`.
fn numbers(mag: &dyn Folder, below: &str, before: &str, after: &str) -> Result<Vec<u64>, SourceError> {
    let mut numbers = Vec::new();
    mag.list(below, &mut |name, kind| {
        if kind != EntryKind::File {
            numbers.extend(number(name, before, after));
        }
        true
    })?;
    Ok(numbers)
}

/// A number as names have it: decimal, no sign, no leading zeros.
fn number(name: &str, before: &str, after: &str) -> Option<u64> {
    let digits = name.strip_prefix(before)?.strip_suffix(after)?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    plain.then(|| digits.parse().ok()).flatten().filter(|n| *n < FARTHEST)
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
