//! Path resolution: finds the file or folder of an inode number, and the child of a folder by name.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use super::Volfs;
use super::error::{FsError, content_error};
use super::handles::DatasetLayer;
use super::ino::Ino;
use crate::catalog::{Node, NodeId, NodeKind, OpenDataset, OpenError, OpenResult, ROOT};
use crate::source::Blocking;
use crate::view::{ERROR_TXT, Item, ShownArray, Tree};

/// The folder with the state of the mount, and its files.
pub(crate) const DOT_VOLFS: &str = ".volfs";
pub(crate) const STATUS: &str = "status.json";
pub(crate) const LOG: &str = "log";
/// The name in the mount of an entry of SOURCE whose own name is `.volfs`, and which would be hidden.
pub(crate) const DOT_VOLFS_OF_SOURCE: &str = ".volfs~2";

/// The file or folder that an inode number stands for.
pub(crate) enum Resolved {
    /// A folder of the source, or the root of the mount.
    Folder(Arc<Node>),
    /// `.volfs`
    DotVolfs,
    /// `.volfs/status.json`
    Status,
    /// `.volfs/status.json` for users other than the owner of the mount: without names.
    PublicStatus,
    /// `.volfs/log`
    Log,
    /// The folder of a dataset, whose headers need not be read yet.
    Dataset(Arc<Node>),
    /// `error.txt` of a dataset that does not open.
    Error(Arc<Node>, Arc<OpenError>),
    /// A file or folder of an open dataset, below the dataset's own folder.
    Inside(Arc<Node>, Arc<OpenDataset>, Arc<Tree>, Item),
}

impl Resolved {
    /// Whether the content may change at any time.
    pub(crate) fn is_volatile(&self) -> bool {
        matches!(self, Self::Status | Self::PublicStatus | Self::Log)
    }

    /// Returns the dataset and layer of a file.
    pub(crate) fn layer(&self) -> Option<DatasetLayer> {
        match self {
            Self::Inside(_, open, tree, item) => {
                tree.layer(*item).map(|layer| DatasetLayer { open: Arc::clone(open), layer })
            }
            _ => None,
        }
    }

    /// Returns the array that a file shows, and the name of its format.
    pub(crate) fn array(&self) -> Option<(ShownArray, &'static str)> {
        let Self::Inside(_, open, tree, item) = self else { return None };
        let shown = tree.shown_array(open, *item)?;
        Some((shown, open.format))
    }

    /// Returns the folder or dataset of the source that it belongs to.
    pub(crate) fn node(&self) -> Option<&Arc<Node>> {
        match self {
            Self::Folder(node) | Self::Dataset(node) | Self::Error(node, _) | Self::Inside(node, ..) => Some(node),
            Self::DotVolfs | Self::Status | Self::PublicStatus | Self::Log => None,
        }
    }
}

impl Volfs {
    /// Resolves an inode number.
    pub(super) fn resolve(&self, ino: Ino, blocking: Blocking) -> Result<Resolved, FsError> {
        match ino {
            Ino::DOT_VOLFS => return Ok(Resolved::DotVolfs),
            Ino::STATUS => return Ok(Resolved::Status),
            Ino::PUBLIC_STATUS => return Ok(Resolved::PublicStatus),
            Ino::LOG => return Ok(Resolved::Log),
            _ => {}
        }
        let node = self.catalog.node(ino.node()).ok_or(FsError::Stale)?;
        match (node.kind, ino.index()) {
            (NodeKind::Folder, 0) => Ok(Resolved::Folder(node)),
            (NodeKind::Dataset, 0) => Ok(Resolved::Dataset(node)),
            (NodeKind::Dataset, index) => self.resolve_inside(node, index, blocking),
            (NodeKind::Folder, _) => Err(FsError::Stale),
        }
    }

    fn resolve_inside(&self, node: Arc<Node>, index: u64, blocking: Blocking) -> Result<Resolved, FsError> {
        match self.open_dataset(&node, blocking)? {
            Ok(open) => {
                let tree = self.tree(node.id, &open);
                let item = tree.item(index).filter(|item| *item != Item::ERROR).ok_or(FsError::Stale)?;
                Ok(Resolved::Inside(node, open, tree, item))
            }
            Err(error) if index == Item::ERROR_NUMBER => Ok(Resolved::Error(node, error)),
            Err(_) => Err(FsError::Stale),
        }
    }

    /// Opens a dataset, if it is not open.
    pub(super) fn open_dataset(&self, node: &Arc<Node>, blocking: Blocking) -> Result<OpenResult, FsError> {
        let opened = match (self.catalog.opened(node), blocking) {
            (Some(opened), _) => opened,
            (None, Blocking::No) => return Err(FsError::WouldBlock),
            (None, Blocking::Yes) => self.catalog.open(node),
        };
        match opened {
            // it says nothing of the dataset
            Err(error) if error.is_out_of_memory() => Err(FsError::NoMemory),
            opened => Ok(opened),
        }
    }

    /// Checks that the source of a file or folder has not changed, unless that was checked a moment ago.
    pub(super) fn check(&self, resolved: &Resolved, blocking: Blocking) -> Result<(), FsError> {
        match resolved.node() {
            Some(node) if node.parent.is_some() && !node.checked_lately() => match blocking {
                Blocking::Yes => Ok(self.catalog.check_now(node)?),
                Blocking::No => Err(FsError::WouldBlock),
            },
            _ => Ok(()),
        }
    }

    /// Like [`Volfs::check`], but always looks at the source: for files and folders that are opened now.
    pub(super) fn check_now(&self, resolved: &Resolved, blocking: Blocking) -> Result<(), FsError> {
        match (resolved.node(), blocking) {
            (Some(_), Blocking::No) => Err(FsError::WouldBlock),
            (Some(node), Blocking::Yes) => Ok(self.catalog.check_now(node)?),
            (None, _) => Ok(()),
        }
    }

    /// Finds `name` in a folder.
    pub(super) fn child(
        &self,
        folder: &Resolved,
        name: &OsStr,
        blocking: Blocking,
    ) -> Result<Option<Resolved>, FsError> {
        match folder {
            Resolved::Folder(node) => self.child_of_folder(node, name, blocking),
            Resolved::DotVolfs if name == STATUS => Ok(Some(Resolved::Status)),
            Resolved::DotVolfs if name == LOG => Ok(Some(Resolved::Log)),
            Resolved::DotVolfs => Ok(None),
            Resolved::Dataset(node) => match self.open_dataset(node, blocking)? {
                Ok(open) => {
                    let tree = self.tree(node.id, &open);
                    let item = self.find(&tree, &open, Item::DATASET, name, blocking)?;
                    Ok(item.map(|item| Resolved::Inside(Arc::clone(node), open, tree, item)))
                }
                Err(error) => Ok((name == ERROR_TXT).then(|| Resolved::Error(Arc::clone(node), error))),
            },
            Resolved::Inside(node, open, tree, folder) if tree.is_folder(*folder) => {
                let item = self.find(tree, open, *folder, name, blocking)?;
                Ok(item.map(|item| Resolved::Inside(Arc::clone(node), Arc::clone(open), Arc::clone(tree), item)))
            }
            _ => Err(FsError::NotAFolder),
        }
    }

    /// Finds `name` in a folder of a dataset.
    fn find(
        &self,
        tree: &Tree,
        open: &OpenDataset,
        folder: Item,
        name: &OsStr,
        blocking: Blocking,
    ) -> Result<Option<Item>, FsError> {
        let Some(name) = name.to_str() else { return Ok(None) };
        tree.find(open, folder, name, blocking).map_err(|error| content_error(self.catalog_and_pool(), open, &error))
    }

    fn child_of_folder(
        &self,
        folder: &Arc<Node>,
        name: &OsStr,
        blocking: Blocking,
    ) -> Result<Option<Resolved>, FsError> {
        let mut name = name;
        if folder.id == ROOT && name == DOT_VOLFS {
            return Ok(Some(Resolved::DotVolfs));
        }
        if blocking == Blocking::No {
            return Err(FsError::WouldBlock);
        }
        if folder.id == ROOT && name == DOT_VOLFS_OF_SOURCE {
            name = OsStr::new(DOT_VOLFS);
        }
        Ok(self.catalog.find(folder, name)?.map(|node| match node.kind {
            NodeKind::Folder => Resolved::Folder(node),
            NodeKind::Dataset => Resolved::Dataset(node),
        }))
    }
}

/// Whether `name` in the folder `parent` is `.volfs`, the folder with the state of the mount.
pub(crate) fn is_dot_volfs(parent: Ino, name: &OsStr) -> bool {
    parent == Ino::ROOT && name == DOT_VOLFS
}

/// Returns the name in the mount of a folder or dataset of the source, whose parent is the folder `parent`.
pub(crate) fn name_in_mount(parent: NodeId, name: &OsStr) -> &OsStr {
    if parent == ROOT && name == DOT_VOLFS { OsStr::new(DOT_VOLFS_OF_SOURCE) } else { name }
}

impl Volfs {
    /// Returns the path of a file of a dataset, relative to the root of the mount; `None` if the dataset is no longer
    /// open.
    pub(super) fn path(&self, ino: Ino) -> Option<PathBuf> {
        let Resolved::Inside(node, _, tree, mut item) = self.resolve(ino, Blocking::No).ok()? else { return None };
        let mut names = Vec::new();
        while item != Item::DATASET {
            names.push(tree.name(item));
            item = tree.parent(item);
        }
        Some(path_of(&node).join(names.iter().rev().collect::<PathBuf>()))
    }
}

/// Returns the path of a folder or dataset of the source, relative to the root of the mount.
pub(crate) fn path_of(node: &Node) -> PathBuf {
    let (mut names, mut next) = (Vec::new(), node);
    while let Some(parent) = &next.parent {
        names.push(name_in_mount(parent.id, &next.name));
        next = parent;
    }
    names.iter().rev().collect()
}
