//! The trait of what SOURCE is: a tree of folders and files, here or elsewhere.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::{
    EntryKind, FileSource, FileStamp, Folder, NoFolder, OpenFile, Permissions, RecentWrites, SourceError, StoreStatus,
};

/// What is at a path of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// A folder.
    Folder,
    /// A file whose content can be read.
    File,
    /// Anything else: a pipe, a socket, a device.
    Other,
}

/// What one look at a path has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    /// What it is.
    pub kind: PlaceKind,
    /// Its version. The `inode` in it is the same on every path to it.
    pub stamp: FileStamp,
    /// The time of the last change of content or attributes (ctime).
    pub changed: SystemTime,
    /// Whether there was a link on the way to it, or nobody knows.
    pub by_links: bool,
    /// Who may read it, as far as that is [asked for](super::Origin::permissions) and its source knows users.
    pub permissions: Option<Permissions>,
}

impl About {
    /// Returns whether it is a folder.
    pub(crate) fn is_folder(&self) -> bool {
        self.kind == PlaceKind::Folder
    }

    /// Returns whether it is a file.
    pub(crate) fn is_file(&self) -> bool {
        self.kind == PlaceKind::File
    }
}

/// Folders and files below one path, which is SOURCE.
pub(crate) trait Tree: Send + Sync {
    /// Returns SOURCE itself: the absolute path of a folder or of one dataset.
    fn source(&self) -> &Path;

    /// Returns what a path leads to; `None` if that is outside of the tree, and nobody may learn what there is.
    fn look(&self, path: &Path) -> io::Result<Option<Box<dyn Place>>>;

    /// Looks at SOURCE, or at the folder that it lies in, following every link: these were chosen by the user.
    fn about_base(&self, path: &Path) -> io::Result<About>;

    /// Returns whether SOURCE itself is known to be gone. May wait.
    fn is_gone(&self) -> bool;

    /// Returns the counters of the object store; `None` if it is none.
    fn store_status(&self) -> Option<StoreStatus> {
        None
    }

    /// Takes the open files that were deleted or replaced out of the cache: their space on the disk becomes free when
    /// what is returned is dropped. To be called every now and then; neither asks a server nor waits for a disk.
    fn take_gone(&self) -> Vec<Arc<OpenFile>> {
        Vec::new()
    }

    /// Closes the files that were not used since the last call. To be called every now and then.
    fn close_unused(&self) {}

    /// Returns whether a file is open, and may have to be taken with [`Tree::take_gone`].
    fn has_open_files(&self) -> bool {
        false
    }

    /// Has `call` called whenever a file is opened and no other is open. Only the first call has an effect.
    fn on_first_open(&self, call: Box<dyn Fn() + Send + Sync>) {
        drop(call);
    }
}

/// A file or folder of a tree, as a look has found it. What is opened is what was looked at, whatever its path leads to
/// by then.
pub(crate) trait Place {
    /// Returns what was found.
    fn about(&self) -> &About;

    /// Returns whether a look into this file or folder is a request to a server, so that there should not be many.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns whether this file is one of so many in its folder that not all can be looked into.
    fn is_in_crowd(&self) -> bool {
        false
    }

    /// Returns whether this folder is known to have so many names that a listing takes many requests.
    fn is_crowd(&self) -> bool {
        false
    }

    /// Returns what lies at `name`, a path in this folder without `..`; `None` as in [`Tree::look`].
    fn find(&self, name: &Path) -> io::Result<Option<Box<dyn Place>>>;

    /// Like [`Place::find`], but `None` for whatever is on another file system, which may hang.
    fn find_beside(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>>;

    /// Returns a subfolder; `None` if it is not one, or a link to one, or something else is mounted there: that is not
    /// part of this folder, and may hang.
    fn subfolder(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>>;

    /// Visits the entries of this folder, in no order, until `visit` returns `false`.
    fn visit(&self, visit: &mut dyn FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()>;

    /// Reads the first bytes of this file: `most`, or all if it has fewer.
    fn read_head(&self, most: u64) -> io::Result<Vec<u8>>;

    /// Opens this file as a source. Should it have to be opened again later, then at `path`, the path that has led to it.
    /// `recent` gets a record if it was written to a moment ago.
    fn open_file(&self, path: &Path, recent: &Arc<RecentWrites>) -> Result<Arc<dyn FileSource>, SourceError>;

    /// Opens this folder as a source. `recent` gets a record if it, or a file that is opened in it, was written to a
    /// moment ago.
    fn open_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder>;
}
