//! The entries of a folder, as listings and pages show them.

use std::ffi::OsString;

use super::paths::segment;

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The folder of a dataset.
    Dataset,
    /// Another folder.
    Folder,
    /// A file.
    File,
}

impl Kind {
    /// Returns the word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Dataset => "dataset",
            Self::Folder => "folder",
            Self::File => "file",
        }
    }
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The name as it is in a mount.
    pub name: OsString,
    /// What it is.
    pub kind: Kind,
}

impl Listed {
    /// Returns the link from the folder to the entry.
    pub(crate) fn href(&self) -> String {
        segment(&self.name) + if self.kind == Kind::File { "" } else { "/" }
    }
}
