//! The weak sign of a dataset: folders of layers without a description.
//!
//! A folder with the data of one layer is a dataset. A folder of such folders is one dataset with these layers, but
//! only if nothing else in it is a dataset: no subfolder by a description or as a folder of layers itself, and no file
//! by its first bytes or its extension. Otherwise the folder is shown as a plain folder, and each dataset in it as one
//! of its own.

use std::ffi::OsString;
use std::path::Path;

use super::file_signs::{HEAD, format_of_extension, format_of_head};
use crate::format::{Format, Registry};
use crate::source::{EntryKind, FolderProbe, MOST_REMOTE};

/// A folder with more subfolders is not a dataset by the weak sign.
const MAX_LAYERS: usize = 256;
/// The same for folders of a server, since each look into one is a request.
const MAX_REMOTE_LAYERS: usize = 16;
/// A folder with more entries is not a dataset by the weak sign, either.
const MAX_ENTRIES: usize = 4096;

/// Returns the format of the dataset that a folder without a description is.
pub(crate) fn format_of(formats: Registry, folder: &FolderProbe) -> Option<&'static dyn Format> {
    // `Some(false)`: the folder has a description, and it is one of other data
    let undescribed = || formats.iter().filter(|format| format.described_folder(folder).is_none());
    if let Some(format) = undescribed().find(|format| format.is_layer_folder(folder)) {
        return Some(format);
    }
    let Contents { folders, files } = Contents::of(formats, folder)?;
    let any = |is: &dyn Fn(&FolderProbe) -> bool| folders.iter().any(|name| subfolder_is(folder, name, is));
    let format = undescribed().find(|format| any(&|sub| format.is_layer_folder(sub)))?;
    let is_alone =
        !any(&|sub| is_dataset_of_its_own(formats, format, sub)) && !has_dataset_file(formats, folder, &files);
    is_alone.then_some(format)
}

/// The entries of a folder that may be one dataset.
struct Contents {
    /// Names of the subfolders.
    folders: Vec<OsString>,
    /// Names of all other entries.
    files: Vec<OsString>,
}

impl Contents {
    /// Reads the entries of a folder; `None` if there are too many entries, or one that has the extension of a
    /// format.
    fn of(formats: Registry, folder: &FolderProbe) -> Option<Self> {
        let most = if folder.is_remote() { MAX_REMOTE_LAYERS } else { MAX_LAYERS };
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let mut has_extension = false;
        let most_entries = if folder.is_remote() { MOST_REMOTE } else { MAX_ENTRIES };
        folder.visit(most_entries, |name, kind| {
            has_extension = format_of_extension(formats, Path::new(name)).is_some();
            match kind {
                EntryKind::Folder => folders.push(name.to_owned()),
                _ => files.push(name.to_owned()),
            }
            !has_extension && folders.len() <= most
        });
        let is_too_much = folders.len() > most || folders.len() + files.len() >= most_entries;
        (!has_extension && !is_too_much).then_some(Self { folders, files })
    }
}

/// Returns whether a subfolder has a property; `false` for mount points, which are not part of the dataset and may
/// hang.
fn subfolder_is(folder: &FolderProbe, name: &OsString, is: &dyn Fn(&FolderProbe) -> bool) -> bool {
    let Some(sub) = folder.subfolder(name) else { return false };
    let verdict = is(&sub);
    folder.adopt_failure(&sub);
    verdict
}

/// Returns whether a subfolder is a dataset, and not a layer of the dataset of `format` around it.
fn is_dataset_of_its_own(formats: Registry, format: &dyn Format, folder: &FolderProbe) -> bool {
    let is_another = |other: &dyn Format| {
        other.described_folder(folder) == Some(true) || other.name() != format.name() && other.is_layer_folder(folder)
    };
    formats.iter().any(is_another) || has_layer_folder(formats, folder)
}

/// Returns whether one of a folder's subfolders, as far as they are looked at, has the data of a layer.
fn has_layer_folder(formats: Registry, folder: &FolderProbe) -> bool {
    let mut names = Vec::new();
    folder.visit(MAX_ENTRIES, |name, kind| {
        if kind == EntryKind::Folder {
            names.push(name.to_owned());
        }
        names.len() <= MAX_LAYERS
    });
    let is_layer = |sub: &FolderProbe| formats.iter().any(|format| format.is_layer_folder(sub));
    names.iter().any(|name| subfolder_is(folder, name, &is_layer))
}

/// Returns whether a format knows the first bytes of any of these files of a folder.
fn has_dataset_file(formats: Registry, folder: &FolderProbe, files: &[OsString]) -> bool {
    let is_dataset = |name: &OsString| {
        let head = folder.head_beside(name, HEAD);
        head.is_some_and(|head| format_of_head(formats, &head).is_some())
    };
    files.iter().any(is_dataset)
}
