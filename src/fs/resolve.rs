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

/// The files of `.volfs`.
pub(crate) const STATE_FILES: [(Ino, &str); 2] = [(Ino::STATUS, STATUS), (Ino::LOG, LOG)];

/// The file or folder that an inode number stands for.
pub(crate) enum Resolved {
    /// A folder of the source, the root of the mount, or the folder of a dataset, whose headers need not be read yet.
    Node(Arc<Node>),
    /// `.volfs` or a file in it.
    State(Ino),
    /// `error.txt` of a dataset that does not open.
    Error(Arc<Node>, Arc<OpenError>),
    /// A file or folder of an open dataset, below the dataset's own folder.
    Inside(Arc<Node>, Arc<OpenDataset>, Arc<Tree>, Item),
}

impl Resolved {
    /// Whether the content may change at any time.
    pub(crate) fn is_volatile(&self) -> bool {
        matches!(self, Self::State(ino) if *ino != Ino::DOT_VOLFS)
    }

    /// Returns the inode number of the folder that it is in.
    pub(super) fn parent(&self) -> Ino {
        match self {
            Self::Node(node) => node.parent.as_ref().map_or(Ino::ROOT, |parent| Ino::new(parent.id, 0)),
            Self::Inside(node, _, tree, item) => Ino::new(node.id, tree.number(tree.parent(*item))),
            Self::Error(node, _) => Ino::new(node.id, 0),
            Self::State(Ino::DOT_VOLFS) => Ino::ROOT,
            Self::State(_) => Ino::DOT_VOLFS,
        }
    }

    /// Returns the dataset and layer of a file.
    pub(crate) fn layer(&self) -> Option<DatasetLayer> {
        let Self::Inside(_, open, tree, item) = self else { return None };
        tree.layer(*item).map(|layer| DatasetLayer { open: Arc::clone(open), layer })
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
            Self::Node(node) | Self::Error(node, _) | Self::Inside(node, ..) => Some(node),
            Self::State(_) => None,
        }
    }

    /// Returns the inode number.
    pub(crate) fn ino(&self) -> Ino {
        match self {
            Self::Node(node) => Ino::new(node.id, 0),
            Self::State(ino) => *ino,
            Self::Error(node, _) => Ino::new(node.id, Item::ERROR_NUMBER),
            Self::Inside(node, _, tree, item) => Ino::new(node.id, tree.number(*item)),
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        match self {
            Self::Node(_) => true,
            Self::State(ino) => *ino == Ino::DOT_VOLFS,
            Self::Error(..) => false,
            Self::Inside(_, _, tree, item) => tree.is_folder(*item),
        }
    }
}

impl Volfs {
    /// Resolves an inode number.
    pub(super) fn resolve(&self, ino: Ino, blocking: Blocking) -> Result<Resolved, FsError> {
        if matches!(ino, Ino::DOT_VOLFS | Ino::STATUS | Ino::PUBLIC_STATUS | Ino::LOG) {
            return Ok(Resolved::State(ino));
        }
        let (node, index) = (self.catalog.node(ino.node()).ok_or(FsError::Stale)?, ino.index());
        if index == 0 {
            return Ok(Resolved::Node(node));
        }
        if node.kind == NodeKind::Folder {
            return Err(FsError::Stale);
        }
        match self.open_dataset(&node, blocking)? {
            Ok(open) => {
                let tree = self.tree(node.id, &open);
                let item = tree.item(&open, index).filter(|item| *item != Item::ERROR).ok_or(FsError::Stale)?;
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
            Some(node) if node.parent.is_some() && !node.checked_lately() => self.check_now(resolved, blocking),
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
        let (node, open, tree, folder) = match folder {
            Resolved::State(Ino::DOT_VOLFS) => {
                let found = STATE_FILES.iter().find(|(_, file)| name == *file);
                return Ok(found.map(|(ino, _)| Resolved::State(*ino)));
            }
            Resolved::Node(node) if node.kind == NodeKind::Folder => return self.child_of_folder(node, name, blocking),
            Resolved::Node(node) => match self.open_dataset(node, blocking)? {
                Ok(open) => (node, Arc::clone(&open), self.tree(node.id, &open), Item::DATASET),
                Err(error) => return Ok((name == ERROR_TXT).then(|| Resolved::Error(Arc::clone(node), error))),
            },
            Resolved::Inside(node, open, tree, folder) if tree.is_folder(*folder) => {
                (node, Arc::clone(open), Arc::clone(tree), *folder)
            }
            _ => return Err(FsError::NotAFolder),
        };
        let Some(name) = name.to_str() else { return Ok(None) };
        let failed = |error| content_error(self.catalog_and_pool(), &open, &error);
        let item = tree.find(&open, folder, name, blocking).map_err(failed)?;
        Ok(item.map(|item| Resolved::Inside(Arc::clone(node), open, tree, item)))
    }

    fn child_of_folder(
        &self,
        folder: &Arc<Node>,
        mut name: &OsStr,
        blocking: Blocking,
    ) -> Result<Option<Resolved>, FsError> {
        if folder.id == ROOT && name == DOT_VOLFS {
            return Ok(Some(Resolved::State(Ino::DOT_VOLFS)));
        }
        if blocking == Blocking::No {
            return Err(FsError::WouldBlock);
        }
        if folder.id == ROOT && name == DOT_VOLFS_OF_SOURCE {
            name = OsStr::new(DOT_VOLFS);
        }
        Ok(self.catalog.find(folder, name)?.map(Resolved::Node))
    }

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

/// Returns the name in the mount of a folder or dataset of the source, whose parent is the folder `parent`.
pub(crate) fn name_in_mount(parent: NodeId, name: &OsStr) -> &OsStr {
    if parent == ROOT && name == DOT_VOLFS { OsStr::new(DOT_VOLFS_OF_SOURCE) } else { name }
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
