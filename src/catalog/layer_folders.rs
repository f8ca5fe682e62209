//! The weak sign of a dataset: folders of layers without a description.
//!
//! A folder with the data of one layer is a dataset. A folder of such folders is one dataset with these layers, but
//! only if nothing else in it is a dataset: no subfolder by a description or as a folder of layers itself, and no file
//! by its first bytes or its extension. Otherwise the folder is shown as a plain folder, and each dataset in it as one
//! of its own.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags, open, openat, openat2, statx};
use rustix::io::Errno;

use super::file_signs::{format_of_extension, format_of_head, read_head};
use crate::format::{Format, Registry};
use crate::source::visit_entries;

/// A folder with more subfolders is not a dataset by the weak sign.
const MAX_LAYERS: usize = 256;
/// A folder with more entries is not a dataset by the weak sign, either.
const MAX_ENTRIES: usize = 4096;

/// Returns the format of the dataset that a folder without a description is.
pub fn format_of(formats: Registry, folder: &Path) -> Option<&'static dyn Format> {
    // `Some(false)`: the folder has a description, and it is one of other data
    let undescribed = || formats.iter().filter(|format| format.described_folder(folder).is_none());
    if let Some(format) = undescribed().find(|format| format.is_layer_folder(folder)) {
        return Some(format);
    }
    let Contents { folders, files } = Contents::of(formats, folder)?;
    let format = undescribed().find(|format| folders.iter().any(|sub| format.is_layer_folder(sub)))?;
    let is_alone = !folders.iter().any(|sub| is_dataset_of_its_own(formats, format, sub))
        && !has_dataset_file(formats, folder, &files);
    is_alone.then_some(format)
}

/// The entries of a folder that may be one dataset.
struct Contents {
    /// Paths of the subfolders. Mount points are left out: they are not part of the dataset, and may hang.
    folders: Vec<PathBuf>,
    /// Names of all other entries.
    files: Vec<OsString>,
}

impl Contents {
    /// Reads the entries of a folder; `None` if there are too many entries, or one that has the extension of a
    /// format.
    fn of(formats: Registry, folder: &Path) -> Option<Self> {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let mut has_extension = false;
        visit_entries(folder, MAX_ENTRIES, |name, kind| {
            has_extension = format_of_extension(formats, Path::new(name)).is_some();
            match kind.is_dir() {
                true => folders.push(folder.join(name)),
                false => files.push(name.to_owned()),
            }
            !has_extension && folders.len() <= MAX_LAYERS
        });
        if has_extension || folders.len() > MAX_LAYERS || folders.len() + files.len() >= MAX_ENTRIES {
            return None;
        }
        folders.retain(|path| !is_mount(path));
        Some(Self { folders, files })
    }
}

/// Returns whether a subfolder is a dataset, and not a layer of the dataset of `format` around it.
fn is_dataset_of_its_own(formats: Registry, format: &dyn Format, folder: &Path) -> bool {
    let is_another = |other: &dyn Format| {
        other.described_folder(folder) == Some(true) || other.name() != format.name() && other.is_layer_folder(folder)
    };
    formats.iter().any(is_another) || has_layer_folder(formats, folder)
}

/// Returns whether one of a folder's subfolders, as far as they are looked at, has the data of a layer.
fn has_layer_folder(formats: Registry, folder: &Path) -> bool {
    let (mut found, mut folders) = (false, 0);
    visit_entries(folder, MAX_ENTRIES, |name, kind| {
        let path = folder.join(name);
        if kind.is_dir() && !is_mount(&path) {
            folders += 1;
            found = formats.iter().any(|format| format.is_layer_folder(&path));
        }
        !found && folders <= MAX_LAYERS
    });
    found
}

/// Returns whether a format knows the first bytes of any of these files of a folder.
fn has_dataset_file(formats: Registry, folder: &Path, files: &[OsString]) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = open(folder, flags, Mode::empty()) else { return false };
    let is_dataset = |name: &OsString| {
        // NO_XDEV: a link to another file system, or a file that is a mount point itself, may hang
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
        let file = match openat2(&folder, name, flags, Mode::empty(), resolve) {
            // kernels or sandboxes without this call
            Err(Errno::NOSYS | Errno::PERM) => openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty()),
            file => file,
        };
        let Ok(file) = file.map(File::from) else { return false };
        file.metadata().is_ok_and(|metadata| metadata.is_file())
            && read_head(file).is_ok_and(|head| format_of_head(formats, &head).is_some())
    };
    files.iter().any(is_dataset)
}

/// Returns whether something is mounted at a path. Asks the kernel only, not the file system, which may hang.
fn is_mount(path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let Ok(found) = statx(CWD, path, flags, StatxFlags::TYPE) else { return true };
    found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
}
