//! Reading of folders: opendir and readdir.

use std::ffi::OsString;

use super::error::FsError;
use super::handles::{FolderEntry, Handle};
use super::ino::Ino;
use super::open::{OpenReply, Pages};
use super::resolve::{DOT_VOLFS, LOG, Resolved, STATUS, name_in_mount};
use super::tree::{self, ERROR_TXT, Item};
use super::volfs::Volfs;
use crate::catalog::ROOT;
use crate::catalog::listing::{self, Listed};
use crate::source::Wait;

impl Volfs {
    /// Opens a folder. The handle lists the entries as of this moment.
    ///
    /// # Errors
    /// [`FsError::Stale`] if it belongs to a source that has changed, [`FsError::NotAFolder`] if it is a file.
    pub fn opendir(&self, ino: Ino, wait: Wait) -> Result<OpenReply, FsError> {
        let folder = self.resolve(ino, wait)?;
        self.check_now(&folder, wait)?;
        let entries = self.entries(ino, &folder, wait)?;
        Ok(OpenReply { handle: self.handles.add(Handle::Folder(entries)), pages: Pages::Bypass })
    }

    /// Passes the entries of an open folder to `add`, from number `from` on, each with the number of the next one,
    /// until `add` returns `false`.
    ///
    /// # Errors
    /// [`FsError::BadHandle`] if it is not a handle of an open folder.
    pub fn readdir(
        &self,
        handle: u64,
        from: u64,
        mut add: impl FnMut(&FolderEntry, u64) -> bool,
    ) -> Result<(), FsError> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::Folder(entries)) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                for (n, entry) in entries.iter().enumerate().skip(from) {
                    if !add(entry, n as u64 + 1) {
                        break;
                    }
                }
                Ok(())
            }
            _ => Err(FsError::BadHandle),
        }
    }

    /// Returns the entries of a folder; the first two are the folder itself and its parent.
    fn entries(&self, ino: Ino, folder: &Resolved, wait: Wait) -> Result<Vec<FolderEntry>, FsError> {
        let mut entries = Vec::new();
        let mut add = |ino: Ino, name: OsString, folder: bool| entries.push(FolderEntry { ino, name, folder });
        add(ino, ".".into(), true);
        add(parent(folder), "..".into(), true);
        match folder {
            Resolved::Folder(node) => {
                if wait == Wait::No {
                    return Err(FsError::WouldBlock);
                }
                if node.id == ROOT {
                    add(Ino::DOT_VOLFS, DOT_VOLFS.into(), true);
                }
                for child in listing::list(&self.catalog, node, self.pool())? {
                    let name = name_in_mount(node.id, child.name()).to_owned();
                    let ino = match child {
                        Listed::Found(child) => Ino::new(child.id, 0),
                        // its number is known only once the source answers; a list of names may have any other number
                        Listed::Unseen(_) => Ino(u64::MAX),
                    };
                    add(ino, name, true);
                }
            }
            Resolved::DotVolfs => {
                add(Ino::STATUS, STATUS.into(), false);
                add(Ino::LOG, LOG.into(), false);
            }
            Resolved::Dataset(node) => match self.open_dataset(node, wait)? {
                Ok(open) => {
                    let tree = self.tree(node.id, &open);
                    tree.list(&open, Item::Dataset, &mut |item, name, folder| {
                        add(Ino::new(node.id, tree.index(item)), name.into(), folder);
                    });
                }
                Err(_) => add(Ino::new(node.id, tree::ERROR), ERROR_TXT.into(), false),
            },
            Resolved::Inside(node, open, tree, folder) if tree.is_folder(open, *folder) => {
                tree.list(open, *folder, &mut |item, name, folder| {
                    add(Ino::new(node.id, tree.index(item)), name.into(), folder);
                });
            }
            _ => return Err(FsError::NotAFolder),
        }
        Ok(entries)
    }
}

/// Returns the inode number of the folder that contains `folder`.
fn parent(folder: &Resolved) -> Ino {
    match folder {
        Resolved::Folder(node) | Resolved::Dataset(node) => {
            node.parent.as_ref().map_or(Ino::ROOT, |parent| Ino::new(parent.id, 0))
        }
        Resolved::Inside(node, open, tree, item) => Ino::new(node.id, tree.index(tree.parent(open, *item))),
        _ => Ino::ROOT,
    }
}
