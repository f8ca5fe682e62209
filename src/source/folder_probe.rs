//! A look into a folder, to find out what it is.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;

use super::error::tells_what_is_there;
use super::{EntryKind, Place, SourceRoot};

/// A folder in which a format looks for its signs. Links are followed if they stay in the source. What cannot be looked
/// at counts as absent, except that a failure of the system is [remembered](FolderProbe::failure): then the answers
/// mean nothing.
pub struct FolderProbe {
    root: Arc<SourceRoot>,
    place: Place,
    failure: RefCell<Option<io::Error>>,
}

impl FolderProbe {
    /// Looks into a folder that was just found.
    #[must_use]
    pub fn new(root: &Arc<SourceRoot>, place: Place) -> Self {
        Self { root: Arc::clone(root), place, failure: RefCell::default() }
    }

    /// Looks into the folder at `path`, which is a source of its own.
    ///
    /// # Errors
    /// Those of the system, also if nothing is there.
    pub fn open(path: &Path) -> io::Result<Self> {
        let root = SourceRoot::below(path, false);
        let place = root.locate(path)?.ok_or(Errno::NOENT)?;
        Ok(Self::new(&root, place))
    }

    /// Returns the folder itself.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the folder itself, after the last look.
    #[must_use]
    pub fn into_place(self) -> Place {
        self.place
    }

    /// Returns the reason why the answers so far mean nothing, if there is one.
    #[must_use]
    pub fn failure(&self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Returns whether there is a [`FolderProbe::failure`].
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Returns what lies at `name`, a path in the folder.
    pub fn find(&self, name: impl AsRef<Path>) -> Option<Place> {
        self.known(self.root.locate_in(&self.place, name.as_ref())).flatten()
    }

    /// Returns whether `name`, a path in the folder, is a regular file.
    pub fn is_file(&self, name: impl AsRef<Path>) -> bool {
        self.find(name).is_some_and(|place| place.metadata.is_file())
    }

    /// Returns whether `name`, a path in the folder, is a folder.
    pub fn is_folder(&self, name: impl AsRef<Path>) -> bool {
        self.find(name).is_some_and(|place| place.metadata.is_dir())
    }

    /// Returns the metadata of `name`, a path in the folder.
    pub fn metadata(&self, name: impl AsRef<Path>) -> Option<Metadata> {
        self.find(name).map(|place| place.metadata)
    }

    /// Opens the content of a file that was found in the folder.
    ///
    /// # Errors
    /// Those of the system; an error if it is no regular file.
    pub fn read(&self, place: &Place) -> io::Result<File> {
        self.root.open(place)
    }

    /// Opens a file of the folder, unless that is on another file system, which may hang.
    pub fn read_beside(&self, name: &OsStr) -> Option<File> {
        let place = self.known(self.root.locate_beside(&self.place, name.as_ref())).flatten()?;
        if place.metadata.is_file() { self.known(self.root.open(&place)) } else { None }
    }

    /// Looks into a subfolder; `None` if it is not one, or a link to one, or something else is mounted there: that is
    /// not part of the folder, and may hang.
    pub fn subfolder(&self, name: &OsStr) -> Option<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let found = statx(self.place.handle(), name, flags, StatxFlags::TYPE);
        let found = self.known(found.map_err(io::Error::from))?;
        if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return None;
        }
        let place = self.find(name)?;
        (place.metadata.is_dir() && place.path == self.place.path.join(name)).then(|| Self::new(&self.root, place))
    }

    /// Takes over what a look into a subfolder could not find out.
    pub fn adopt_failure(&self, subfolder: &Self) {
        if let Some(error) = subfolder.failure() {
            self.failure.replace(Some(error));
        }
    }

    /// Visits at most `most` entries, in no order, until `visit` returns `false`.
    pub fn visit(&self, most: usize, mut visit: impl FnMut(&OsStr, EntryKind) -> bool) {
        let mut left = most;
        let visited = self.root.visit(&self.place, |name, kind| {
            left -= 1;
            visit(name, kind) && left > 0
        });
        let _ = self.known(visited);
    }

    /// Returns a result, and remembers an error for which the folder is not to blame.
    pub fn known<T>(&self, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if !tells_what_is_there(error.kind()) {
                    self.failure.replace(Some(error));
                }
                None
            }
        }
    }
}
