//! Attributes of files and folders: lookup, getattr and extended attributes.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::error::FsError;
use super::handles::Handle;
use super::ino::Ino;
use super::resolve::{Resolved, is_dot_volfs};
use super::tree;
use super::volfs::Volfs;
use super::xattr;
use crate::source::{Blocking, Permissions};

/// The attributes of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes {
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
    /// Owner, group and mode.
    pub permissions: Permissions,
    /// Whether the content may change at any time, so that the attributes must not be cached.
    pub volatile: bool,
}

impl Volfs {
    /// Finds `name` in a folder.
    pub(crate) fn lookup(&self, parent: Ino, name: &OsStr, blocking: Blocking) -> Result<Attributes, FsError> {
        let folder = self.resolve(parent, blocking)?;
        // `.volfs` exists even if the source does not answer
        if !is_dot_volfs(parent, name) {
            self.check(&folder, blocking)?;
        }
        let child = self.child(&folder, name, blocking)?.ok_or(FsError::NotFound)?;
        self.attributes(&child, blocking)
    }

    /// Returns the attributes of a file or folder, or of an open file.
    pub(crate) fn getattr(
        self: &Arc<Self>,
        ino: Ino,
        handle: Option<u64>,
        blocking: Blocking,
    ) -> Result<Attributes, FsError> {
        let resolved = self.resolve(ino, blocking)?;
        let is_current = self.ask_permissions(&resolved, blocking)?;
        let mut attributes = self.attributes(&resolved, blocking)?;
        if !is_current {
            attributes.permissions.mode = 0;
        }
        // an open file keeps the size that its content had when it was opened
        if let Some(Handle::File(file) | Handle::Readahead(file)) = handle.and_then(|h| self.handles.get(h)).as_deref()
        {
            attributes.size = file.content.len();
        }
        Ok(attributes)
    }

    /// Sees to it that the permissions of what the kernel has known for a while are those of now, where they are the
    /// source's. Returns whether it is still there: nobody may open what is no more, though those who have it open may
    /// look at it.
    fn ask_permissions(self: &Arc<Self>, resolved: &Resolved, blocking: Blocking) -> Result<bool, FsError> {
        let Some(node) = resolved.node().filter(|node| node.permissions().is_some()) else { return Ok(true) };
        if node.parent.is_none() {
            return if self.look_at_root(node, blocking) { Ok(true) } else { Err(FsError::WouldBlock) };
        }
        match self.check(resolved, blocking) {
            Ok(()) => Ok(true),
            Err(FsError::Stale | FsError::NotFound | FsError::Denied) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the attributes of a folder or dataset of the source that a listing found, and how old they are. `None`
    /// for everything else. Does not look at the source.
    pub(crate) fn listed_attributes(&self, ino: Ino) -> Option<(Attributes, Duration)> {
        if ino.index() != 0 {
            return None;
        }
        let node = self.catalog.node(ino.node())?;
        let ((modified, changed), age) = node.last_look();
        let permissions = self.permissions_of_node(&node);
        Some((Attributes { ino, size: 0, folder: true, modified, changed, permissions, volatile: false }, age))
    }

    /// Returns the value of an extended attribute. Fails with [`FsError::NoAttribute`] if the file has none of that
    /// name, and with [`FsError::AttributeNotSupported`] if no file has attributes of that kind, such as access lists
    /// and security labels.
    pub(crate) fn getxattr(&self, ino: Ino, name: &OsStr, blocking: Blocking) -> Result<Vec<u8>, FsError> {
        // Programs ask for security labels and access lists all the time; those are refused without resolving the file,
        // and so that they do not ask for each file anew.
        if !xattr::is_user_attribute(name) {
            return Err(FsError::AttributeNotSupported);
        }
        let name = xattr::parse(name).ok_or(FsError::NoAttribute)?;
        let (shown, format) = self.resolve(ino, blocking)?.array().ok_or(FsError::NoAttribute)?;
        Ok(xattr::value(&shown, format, name))
    }

    /// Returns the names of a file's extended attributes, each followed by a zero byte.
    pub(crate) fn listxattr(&self, ino: Ino, blocking: Blocking) -> Result<Vec<u8>, FsError> {
        Ok(self.resolve(ino, blocking)?.array().map(|_| xattr::names()).unwrap_or_default())
    }

    fn attributes(&self, resolved: &Resolved, blocking: Blocking) -> Result<Attributes, FsError> {
        let of = |ino: Ino, folder: bool, size: u64| {
            let (modified, changed) = self.times(ino.node());
            let permissions = self.permissions(resolved);
            Attributes { ino, size, folder, modified, changed, permissions, volatile: resolved.is_volatile() }
        };
        let size = || self.content(resolved, blocking).map(|content| content.len());
        match resolved {
            Resolved::Folder(node) | Resolved::Dataset(node) => Ok(of(Ino::new(node.id, 0), true, 0)),
            Resolved::DotVolfs => Ok(of(Ino::DOT_VOLFS, true, 0)),
            Resolved::Status => Ok(of(Ino::STATUS, false, size()?)),
            Resolved::PublicStatus => Ok(of(Ino::PUBLIC_STATUS, false, size()?)),
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
