//! A look into a folder, to find out what it is.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::error::tells_what_is_there;
use super::{About, EntryKind, Folder, NoFolder, Place, RecentWrites};

/// The most entries of a folder of a server that are visited: what it tells in one answer.
pub(crate) const MOST_REMOTE: usize = 1000;

/// A folder in which a format looks for its signs. Links are followed if they stay in the source. What cannot be looked
/// at counts as absent, except that a failure of the system is [remembered](FolderProbe::failure): then the answers
/// mean nothing.
pub(crate) struct FolderProbe {
    place: Box<dyn Place>,
    failure: RefCell<Option<io::Error>>,
}

impl FolderProbe {
    /// Looks into a folder that was just found.
    pub(crate) fn new(place: Box<dyn Place>) -> Self {
        Self { place, failure: RefCell::default() }
    }

    /// Looks into the local folder at `path`, which is a source of its own.
    #[cfg(test)]
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        use super::{LocalTree, Tree};

        Ok(Self::new(LocalTree::below(path, false, Arc::default()).look(path)?.ok_or(io::ErrorKind::NotFound)?))
    }

    /// Returns what the folder itself is.
    pub(crate) fn about(&self) -> &About {
        self.place.about()
    }

    /// Returns whether a look into a subfolder is a request to a server.
    pub(crate) fn is_remote(&self) -> bool {
        self.place.is_remote()
    }

    /// Opens the folder itself as a source, as [`Place::open_folder`] does.
    pub(crate) fn into_folder(self, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        self.place.open_folder(recent)
    }

    /// Returns the reason why the answers so far mean nothing, if there is one.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Returns whether there is a [`FolderProbe::failure`].
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Returns what lies at `name`, a path in the folder.
    pub(crate) fn find(&self, name: impl AsRef<Path>) -> Option<Box<dyn Place>> {
        self.known(self.place.find(name.as_ref())).flatten()
    }

    /// Returns whether `name`, a path in the folder, is a regular file.
    pub(crate) fn is_file(&self, name: impl AsRef<Path>) -> bool {
        self.find(name).is_some_and(|place| place.about().is_file())
    }

    /// Returns whether `name`, a path in the folder, is a folder.
    pub(crate) fn is_folder(&self, name: impl AsRef<Path>) -> bool {
        self.find(name).is_some_and(|place| place.about().is_folder())
    }

    /// Reads the first bytes of a file of the folder, at most `most`; `None` if it is no file, or on another file
    /// system, which may hang.
    pub(crate) fn head_beside(&self, name: &OsStr, most: u64) -> Option<Vec<u8>> {
        let place = self.known(self.place.find_beside(name)).flatten()?;
        if place.about().is_file() { self.known(place.read_head(most)) } else { None }
    }

    /// Looks into a subfolder; `None` if it is not one, or a link to one, or something else is mounted there: that is
    /// not part of the folder, and may hang.
    pub(crate) fn subfolder(&self, name: &OsStr) -> Option<Self> {
        self.known(self.place.subfolder(name)).flatten().map(Self::new)
    }

    /// Takes over what a look into a subfolder could not find out.
    pub(crate) fn adopt_failure(&self, subfolder: &Self) {
        if let Some(error) = subfolder.failure() {
            self.failure.replace(Some(error));
        }
    }

    /// Visits at most `most` entries, in no order, until `visit` returns `false`; of a folder of a server at most
    /// [`MOST_REMOTE`].
    pub(crate) fn visit(&self, most: usize, mut visit: impl FnMut(&OsStr, EntryKind) -> bool) {
        let mut left = if self.is_remote() { most.min(MOST_REMOTE) } else { most };
        let visited = self.place.visit(&mut |name, kind| {
            left -= 1;
            visit(name, kind) && left > 0
        });
        let _ = self.known(visited);
    }

    /// Returns a result, and remembers an error for which the folder is not to blame.
    fn known<T>(&self, result: io::Result<T>) -> Option<T> {
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
