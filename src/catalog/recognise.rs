//! Decides what a path of SOURCE is: a folder, a dataset of some format, or nothing that is shown.
//!
//! A file is a dataset if a format knows its first bytes, or if it has the extension of a format. A folder is a dataset
//! if it has the description of one (the strong sign of a format), or by the folders in it (the weak sign: see
//! [`layer_folders`]). The catalog asks this of every folder and often, so that at most 16 bytes of a file are read,
//! and a verdict that takes more than a few system calls is cached for a second.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lru::LruCache;
use rustix::io::Errno;

use super::entry::{Entry, NodeKind};
use super::file_signs::{HEAD, format_of_extension, format_of_head};
use super::layer_folders;
use crate::format::{Format, Registry};
use crate::source::{FileStamp, FolderProbe, LocalTree, Place, Tree};
use crate::sync::Mutex;

/// Folders whose verdict by the weak sign is cached.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// How long a cached verdict is used: a change deeper in a folder does not change the folder's own stamp.
const VERDICT_TTL: Duration = Duration::from_secs(1);

/// The verdict on a folder by the weak sign, and when it was found.
type Verdict = (Option<&'static dyn Format>, Instant);

/// Tells datasets of a list of formats from other files and folders.
pub(crate) struct Recogniser {
    formats: Registry,
    verdicts: Mutex<LruCache<FileStamp, Verdict>>,
}

impl Recogniser {
    /// Creates a recogniser of these formats.
    pub(crate) fn new(formats: Registry) -> Self {
        Self { formats, verdicts: Mutex::new(LruCache::new(REMEMBERED)) }
    }

    /// Returns the formats that it knows.
    pub(crate) fn formats(&self) -> Registry {
        self.formats
    }

    /// Returns the format of the local dataset at a path, which is a source of its own: by its content, or else by the
    /// extension of a file. `None` if the path is not a dataset.
    pub(crate) fn format_of(&self, path: &Path) -> io::Result<Option<&'static dyn Format>> {
        self.format_at(&*LocalTree::below(path, false, Arc::default()), path)
    }

    /// Returns the format of the dataset at a path of a tree, as [`Recogniser::format_of`] does.
    pub(crate) fn format_at(&self, tree: &dyn Tree, path: &Path) -> io::Result<Option<&'static dyn Format>> {
        let place = tree.look(path)?.ok_or(Errno::NOENT)?;
        if place.about().is_folder() {
            return self.format_of_folder(&FolderProbe::new(place));
        }
        self.format_of_file(path, &*place)
    }

    /// Returns the format of a file that was found at `path` by its content, or else by the extension of its name.
    pub(super) fn format_of_file(&self, path: &Path, file: &dyn Place) -> io::Result<Option<&'static dyn Format>> {
        let head = file.read_head(HEAD)?;
        Ok(format_of_head(self.formats, &head).or_else(|| format_of_extension(self.formats, path)))
    }

    /// Returns whether a file has the extension of a format. Such a file is shown even if it is not a dataset: its
    /// error.txt gives the reason.
    pub(crate) fn has_dataset_extension(&self, name: &Path) -> bool {
        format_of_extension(self.formats, name).is_some()
    }

    /// Returns the version of the dataset at a path: of a folder that of the file which describes it, if there is one.
    pub(super) fn stamp_of(&self, path: &Path, tree: &dyn Tree) -> io::Result<FileStamp> {
        let place = tree.look(path)?.ok_or(Errno::NOENT)?;
        if !place.about().is_folder() {
            return Ok(place.about().stamp);
        }
        let folder = FolderProbe::new(place);
        let dataset = self.dataset_folder(&folder)?;
        Ok(dataset.map_or(folder.about().stamp, |entry| entry.stamp))
    }

    /// Returns what was `found` at `path`; `None` if it is not shown. Links that stay in the tree were followed, but one to
    /// a folder whose device and inode number `is_above` knows leads nowhere: the path came through it. An absent path
    /// is not an error.
    pub(super) fn look(
        &self,
        path: &Path,
        found: io::Result<Option<Box<dyn Place>>>,
        is_above: impl Fn((u64, u64)) -> bool,
    ) -> io::Result<Option<Entry>> {
        let Some(place) = none_if_absent(found)?.flatten() else { return Ok(None) };
        let about = *place.about();
        if about.is_folder() {
            if about.by_links && is_above(about.stamp.inode) {
                return Ok(None);
            }
            let dataset = self.dataset_folder(&FolderProbe::new(place))?;
            return Ok(Some(dataset.unwrap_or_else(|| Entry::new(NodeKind::Folder, &about))));
        }
        let is_dataset = about.is_file()
            && (self.has_dataset_extension(path) || !place.is_in_crowd() && self.is_known_by_head(&*place)?);
        Ok(is_dataset.then(|| Entry::new(NodeKind::Dataset, &about)))
    }

    fn dataset_folder(&self, folder: &FolderProbe) -> io::Result<Option<Entry>> {
        let Some(format) = self.format_of_folder(folder)? else { return Ok(None) };
        let description = format.folder_file().and_then(|file| folder.find(file));
        match folder.failure() {
            Some(error) => Err(error),
            None => {
                let description = description.as_ref().map(|description| description.about());
                Ok(Some(Entry::of_folder(folder.about(), description)))
            }
        }
    }

    /// Returns the format of the dataset that a folder is; `None` if it is not a dataset.
    pub(super) fn format_of_folder(&self, folder: &FolderProbe) -> io::Result<Option<&'static dyn Format>> {
        let described = self.formats.iter().find(|format| format.described_folder(folder) == Some(true));
        let format = described.or_else(|| self.format_of_layers(folder));
        folder.failure().map_or(Ok(format), Err)
    }

    fn format_of_layers(&self, folder: &FolderProbe) -> Option<&'static dyn Format> {
        let stamp = folder.about().stamp;
        if let Some((format, at)) = self.verdicts.lock().get(&stamp)
            && at.elapsed() < VERDICT_TTL
        {
            return *format;
        }
        let format = layer_folders::format_of(self.formats, folder);
        if !folder.has_failed() {
            self.verdicts.lock().put(stamp, (format, Instant::now()));
        }
        format
    }

    /// Returns whether a format knows the first bytes of a file; `false` if it is gone or may not be read.
    fn is_known_by_head(&self, place: &dyn Place) -> io::Result<bool> {
        let head = match none_if_absent(place.read_head(HEAD)) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
            head => head?,
        };
        Ok(head.is_some_and(|head| format_of_head(self.formats, &head).is_some()))
    }
}

/// Returns `None` for the errors that mean that nothing is there or that links lead in a circle.
fn none_if_absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) => match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Ok(None),
            _ => Err(e),
        },
    }
}

#[cfg(test)]
#[path = "recognise_tests.rs"]
mod tests;
