//! Attributes of files and folders: lookup, getattr and extended attributes.

use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use super::error::FsError;
use super::handles::Handle;
use super::ino::Ino;
use super::resolve::{Resolved, is_dot_volfs};
use super::tree;
use super::volfs::Volfs;
use super::xattr;
use crate::source::Wait;

/// The attributes of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Inode number.
    pub ino: Ino,
    /// Size in bytes.
    pub size: u64,
    /// Whether it is a folder.
    pub folder: bool,
    /// When the source was last written to.
    pub modified: SystemTime,
    /// When anything about the source last changed.
    pub changed: SystemTime,
    /// Whether the content may change at any time, so that the attributes must not be cached.
    pub volatile: bool,
}

impl Volfs {
    /// Finds `name` in a folder.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if the folder has no such name, [`FsError::Stale`] if it belongs to a source that has
    /// changed.
    pub fn lookup(&self, parent: Ino, name: &OsStr, wait: Wait) -> Result<Attributes, FsError> {
        let folder = self.resolve(parent, wait)?;
        // `.volfs` exists even if the source does not answer
        if !is_dot_volfs(parent, name) {
            self.check(&folder, wait)?;
        }
        let child = self.child(&folder, name, wait)?.ok_or(FsError::NotFound)?;
        self.attributes(&child, wait)
    }

    /// Returns the attributes of a file or folder, or of an open file.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the inode number is no longer known, since its source has changed.
    pub fn getattr(&self, ino: Ino, handle: Option<u64>, wait: Wait) -> Result<Attributes, FsError> {
        let mut attributes = self.attributes(&self.resolve(ino, wait)?, wait)?;
        // an open file keeps the size that its content had when it was opened
        if let Some(Handle::File(file) | Handle::Readahead(file)) = handle.and_then(|h| self.handles.get(h)).as_deref()
        {
            attributes.size = file.content.len();
        }
        Ok(attributes)
    }

    /// Returns the attributes of a folder or dataset of the source that a listing found, and how old they are. `None`
    /// for everything else. Does not look at the source.
    pub fn listed_attributes(&self, ino: Ino) -> Option<(Attributes, Duration)> {
        if ino.index() != 0 {
            return None;
        }
        let ((modified, changed), age) = self.catalog.node(ino.node())?.last_look();
        Some((Attributes { ino, size: 0, folder: true, modified, changed, volatile: false }, age))
    }

    /// Returns the value of an extended attribute.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`] if the file has none of that name, [`FsError::AttributeNotSupported`] if no file has
    /// attributes of that kind, such as access lists and security labels.
    pub fn getxattr(&self, ino: Ino, name: &OsStr, wait: Wait) -> Result<Vec<u8>, FsError> {
        // Programs ask for security labels and access lists all the time; those are refused without resolving the file,
        // and so that they do not ask for each file anew.
        if !xattr::is_user_attribute(name) {
            return Err(FsError::AttributeNotSupported);
        }
        let name = xattr::parse(name).ok_or(FsError::NoAttribute)?;
        let (shown, format) = self.resolve(ino, wait)?.array().ok_or(FsError::NoAttribute)?;
        Ok(xattr::value(&shown, format, name))
    }

    /// Returns the names of a file's extended attributes, each followed by a zero byte.
    ///
    /// # Errors
    /// Those of resolving the file.
    pub fn listxattr(&self, ino: Ino, wait: Wait) -> Result<Vec<u8>, FsError> {
        Ok(self.resolve(ino, wait)?.array().map(|_| xattr::names()).unwrap_or_default())
    }

    fn attributes(&self, resolved: &Resolved, wait: Wait) -> Result<Attributes, FsError> {
        let of = |ino: Ino, folder: bool, size: u64| {
            let (modified, changed) = self.times(ino.node());
            Attributes { ino, size, folder, modified, changed, volatile: resolved.is_volatile() }
        };
        let size = || self.content(resolved, wait).map(|content| content.len());
        match resolved {
            Resolved::Folder(node) | Resolved::Dataset(node) => Ok(of(Ino::new(node.id, 0), true, 0)),
            Resolved::DotVolfs => Ok(of(Ino::DOT_VOLFS, true, 0)),
            Resolved::Status => Ok(of(Ino::STATUS, false, size()?)),
            Resolved::Log => Ok(of(Ino::LOG, false, size()?)),
            Resolved::Error(node, _) => Ok(of(Ino::new(node.id, tree::ERROR), false, size()?)),
            Resolved::Inside(node, open, tree, item) => {
                let ino = Ino::new(node.id, tree.index(*item));
                if tree.is_folder(open, *item) {
                    return Ok(of(ino, true, 0));
                }
                if let Some(size) = self.computed_contents.size(ino, open) {
                    return Ok(of(ino, false, size));
                }
                Ok(of(ino, false, size()?))
            }
        }
    }
}
