//! The entries of an open folder.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, FileType, RawDir, statat};

use crate::source::EntryKind;

/// Bytes of a folder that are read at a time.
const BUFFER: usize = 32 << 10;

impl From<FileType> for EntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            FileType::RegularFile => Self::File,
            _ => Self::Other,
        }
    }
}

/// Visits the entries of a folder, in no order, until `visit` returns `false`.
pub(super) fn visit_entries(folder: &OwnedFd, mut visit: impl FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // a file system that does not tell
            FileType::Unknown => statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
            kind => kind,
        };
        if !visit(OsStr::from_bytes(name.to_bytes()), kind.into()) {
            return Ok(());
        }
    }
    Ok(())
}
