//! A bounded look at the entries of a local folder.

use std::ffi::OsStr;
use std::fs::FileType;
use std::path::Path;

/// Visits at most `most` entries of a folder, in no order, until `visit` returns `false`. Links are not followed. A
/// folder or an entry that cannot be read is skipped.
pub fn visit_entries(folder: &Path, most: usize, mut visit: impl FnMut(&OsStr, FileType) -> bool) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten().take(most) {
        let Ok(kind) = entry.file_type() else { continue };
        if !visit(&entry.file_name(), kind) {
            return;
        }
    }
}
