//! Visits the data files of a mag by their names, without opening them.

use super::disk::{number, numbers};
use crate::source::{EntryKind, Folder, NoFolder, SourceError};

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
