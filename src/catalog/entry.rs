//! What was found at one path of SOURCE.

use std::time::SystemTime;

use crate::source::{About, FileStamp, Permissions};

/// What a path of SOURCE is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// A folder that is shown with the folders and datasets in it.
    Folder,
    /// A dataset, or a file with the extension of a format.
    Dataset,
}

/// A folder or dataset as it was at one look.
pub(crate) struct Entry {
    pub kind: NodeKind,
    pub stamp: FileStamp,
    /// The time of the last change of content or attributes (ctime).
    pub changed: SystemTime,
    /// Who may list and search the folder that shows it, if that is asked for.
    pub permissions: Option<Permissions>,
    /// The device and inode number of the file or folder itself.
    pub place: (u64, u64),
    /// Whether it is a dataset with files of its own, for which there are further permissions.
    pub has_files: bool,
}

impl Entry {
    pub(crate) fn new(kind: NodeKind, about: &About) -> Self {
        let permissions = match about.is_folder() {
            true => about.permissions,
            false => about.permissions.map(Permissions::as_folder),
        };
        let (stamp, changed) = (about.stamp, about.changed);
        Self { kind, stamp, changed, permissions, place: stamp.inode, has_files: about.is_folder() }
    }

    /// The dataset that a folder is, in the version of the file that describes it, if there is one.
    pub(crate) fn of_folder(folder: &About, description: Option<&About>) -> Self {
        let of = Self::new(NodeKind::Dataset, folder);
        let Some(description) = description else { return of };
        let described = Self::new(NodeKind::Dataset, description);
        // who may not read the description may not know what the files are
        let both = of.permissions.zip(described.permissions);
        let permissions = both.map(|(folder, description)| folder.restrict(description));
        Self { permissions, place: of.place, has_files: true, ..described }
    }
}
