//! From an inode number to what it stands for, and what can be asked of it.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use super::handles::{Belongs, FolderEntry};
use super::tree::{self, ERROR_TXT, Item, Tree};
use super::{Attributes, FsError, Ino, Volfs};
use crate::catalog::listing::{self, Listed};
use crate::catalog::{Kind, Node, NodeId, OpenDataset, OpenError, ROOT};
use crate::format::FormatError;
use crate::source::Wait;
use crate::view::{Content, LayerRef, ShownArray, json, json_text, registry};

/// The folder about the mount itself, and its files.
const ABOUT: &str = ".volfs";
const STATUS: &str = "status.json";
const LOG: &str = "log";
/// The name that an entry of SOURCE gets where it would hide the folder about the mount.
const ABOUT_OF_SOURCE: &str = ".volfs~2";

/// What an inode number stands for.
pub enum Spot {
    /// A folder of the source, or the top of the mount.
    Folder(Arc<Node>),
    /// `.volfs`
    About,
    /// `.volfs/status.json`
    Status,
    /// `.volfs/log`
    Log,
    /// The folder of a dataset, whose headers need not be read yet.
    Dataset(Arc<Node>),
    /// `error.txt` of a dataset that does not open.
    Error(Arc<Node>, Arc<OpenError>),
    /// A file or folder of an open dataset, below its own folder.
    Inside(Arc<Node>, Arc<OpenDataset>, Arc<Tree>, Item),
}

impl Spot {
    /// Whether the file is different at each look.
    pub fn is_volatile(&self) -> bool {
        matches!(self, Self::Status | Self::Log)
    }

    /// The dataset and layer of a file.
    pub fn belongs(&self) -> Option<Belongs> {
        match self {
            Self::Inside(_, open, _, Item::View { layer, .. }) => {
                Some(Belongs { open: Arc::clone(open), layer: *layer })
            }
            _ => None,
        }
    }

    /// The array that a file shows, and its format.
    pub fn array(&self) -> Option<(ShownArray, &'static str)> {
        let Self::Inside(_, open, _, Item::View { layer, view, node }) = self else { return None };
        let shown = registry()[*view].shown_array(LayerRef { open, layer: *layer }, *node)?;
        Some((shown, open.format))
    }

    fn node(&self) -> Option<&Arc<Node>> {
        match self {
            Self::Folder(node) | Self::Dataset(node) | Self::Error(node, _) | Self::Inside(node, ..) => Some(node),
            Self::About | Self::Status | Self::Log => None,
        }
    }
}

impl Volfs {
    /// What an inode number stands for.
    pub(super) fn spot(&self, ino: Ino, wait: Wait) -> Result<Spot, FsError> {
        let node = self.catalog.node(ino.node()).ok_or(FsError::Stale)?;
        match (node.id, node.kind, ino.index()) {
            (_, Kind::Folder, 0) => Ok(Spot::Folder(node)),
            (ROOT, _, 1) => Ok(Spot::About),
            (ROOT, _, 2) => Ok(Spot::Status),
            (ROOT, _, 3) => Ok(Spot::Log),
            (_, Kind::Dataset, 0) => Ok(Spot::Dataset(node)),
            (_, Kind::Dataset, index) => self.inside(node, index, wait),
            (_, Kind::Folder, _) => Err(FsError::Stale),
        }
    }

    fn inside(&self, node: Arc<Node>, index: u64, wait: Wait) -> Result<Spot, FsError> {
        match self.opened(&node, wait)? {
            Ok(open) => {
                let tree = self.tree(node.id, &open);
                match tree.item(index) {
                    Some(Item::Error) | None => Err(FsError::Stale),
                    Some(item) => Ok(Spot::Inside(node, open, tree, item)),
                }
            }
            Err(error) if index == tree::ERROR => Ok(Spot::Error(node, error)),
            Err(_) => Err(FsError::Stale),
        }
    }

    /// The dataset, opened now if time may be taken.
    fn opened(&self, node: &Arc<Node>, wait: Wait) -> Result<crate::catalog::Opened, FsError> {
        match (self.catalog.opened(node), wait) {
            (Some(opened), _) => Ok(opened),
            (None, Wait::No) => Err(FsError::WouldBlock),
            (None, Wait::Yes) => Ok(self.catalog.open(node)),
        }
    }

    /// Makes sure that what is below a spot is of the source as it is now, give or take a moment.
    pub(super) fn fresh(&self, spot: &Spot, wait: Wait) -> Result<(), FsError> {
        match spot.node() {
            Some(node) if wait == Wait::Yes => Ok(self.catalog.check(node)?),
            Some(node) if !self.catalog.checked_lately(node) => Err(FsError::WouldBlock),
            _ => Ok(()),
        }
    }

    /// The same, at this very moment: for whatever is opened now.
    pub(super) fn look_again(&self, spot: &Spot, wait: Wait) -> Result<(), FsError> {
        match (spot.node(), wait) {
            (Some(_), Wait::No) => Err(FsError::WouldBlock),
            (Some(node), Wait::Yes) => Ok(self.catalog.check_now(node)?),
            (None, _) => Ok(()),
        }
    }

    /// What a folder has under a name.
    pub(super) fn child(&self, folder: &Spot, name: &OsStr, wait: Wait) -> Result<Option<Spot>, FsError> {
        match folder {
            Spot::Folder(node) => self.child_of_source(node, name, wait),
            Spot::About if name == STATUS => Ok(Some(Spot::Status)),
            Spot::About if name == LOG => Ok(Some(Spot::Log)),
            Spot::About => Ok(None),
            Spot::Dataset(node) => match self.opened(node, wait)? {
                Ok(open) => {
                    let tree = self.tree(node.id, &open);
                    let item = name.to_str().and_then(|name| tree.find(&open, Item::Dataset, name));
                    Ok(item.map(|item| Spot::Inside(Arc::clone(node), open, tree, item)))
                }
                Err(error) => Ok((name == ERROR_TXT).then(|| Spot::Error(Arc::clone(node), error))),
            },
            Spot::Inside(node, open, tree, folder) if Tree::is_folder(open, *folder) => {
                let item = name.to_str().and_then(|name| tree.find(open, *folder, name));
                Ok(item.map(|item| Spot::Inside(Arc::clone(node), Arc::clone(open), Arc::clone(tree), item)))
            }
            _ => Err(FsError::NotAFolder),
        }
    }

    fn child_of_source(&self, folder: &Arc<Node>, name: &OsStr, wait: Wait) -> Result<Option<Spot>, FsError> {
        let mut name = name;
        if folder.id == ROOT && name == ABOUT {
            return Ok(Some(Spot::About));
        }
        if wait == Wait::No {
            return Err(FsError::WouldBlock);
        }
        if folder.id == ROOT && name == ABOUT_OF_SOURCE {
            name = OsStr::new(ABOUT);
        }
        Ok(self.catalog.find(folder, name)?.map(|node| match node.kind {
            Kind::Folder => Spot::Folder(node),
            Kind::Dataset => Spot::Dataset(node),
        }))
    }

    /// What a file consists of.
    pub(super) fn content(&self, spot: &Spot, wait: Wait) -> Result<Content, FsError> {
        match spot {
            Spot::Status => Ok(self.status().into()),
            Spot::Log => Ok(self.log.text().into()),
            Spot::Error(node, error) => Ok(format!("{}: {error}\n", node.name.to_string_lossy()).into()),
            Spot::Inside(_, _, _, Item::Description) if wait == Wait::No => Err(FsError::WouldBlock),
            Spot::Inside(_, open, _, Item::Description) => {
                Ok(json_text::format(&json::dataset(open).map_err(|error| logged(open, error))?).into())
            }
            Spot::Inside(_, open, _, Item::View { layer, view, node }) => {
                let (view, place) = (registry()[*view], LayerRef { open, layer: *layer });
                match wait {
                    _ if view.is_folder(place, *node) => Err(FsError::IsAFolder),
                    Wait::No if view.may_block() => Err(FsError::WouldBlock),
                    _ => view.content(place, *node).map_err(|error| logged(open, error)),
                }
            }
            _ => Err(FsError::IsAFolder),
        }
    }

    pub(super) fn attributes(&self, spot: &Spot, wait: Wait) -> Result<Attributes, FsError> {
        let of = |ino: Ino, folder: bool, size: u64| {
            let (modified, changed) = self.times(ino.node());
            Attributes { ino, size, folder, modified, changed, volatile: spot.is_volatile() }
        };
        match spot {
            Spot::Folder(node) | Spot::Dataset(node) => Ok(of(Ino::new(node.id, 0), true, 0)),
            Spot::About => Ok(of(Ino::new(ROOT, 1), true, 0)),
            Spot::Status => Ok(of(Ino::new(ROOT, 2), false, self.content(spot, wait)?.len())),
            Spot::Log => Ok(of(Ino::new(ROOT, 3), false, self.content(spot, wait)?.len())),
            Spot::Error(node, _) => Ok(of(Ino::new(node.id, tree::ERROR), false, self.content(spot, wait)?.len())),
            Spot::Inside(node, open, tree, item) => {
                let ino = Ino::new(node.id, tree.index(*item));
                match Tree::is_folder(open, *item) {
                    true => Ok(of(ino, true, 0)),
                    false => Ok(of(ino, false, self.content(spot, wait)?.len())),
                }
            }
        }
    }

    /// The entries of a folder, with itself and its parent first.
    pub(super) fn entries(&self, ino: Ino, spot: &Spot, wait: Wait) -> Result<Vec<FolderEntry>, FsError> {
        let mut entries = Vec::new();
        let mut add = |ino: Ino, name: OsString, folder: bool| entries.push(FolderEntry { ino, name, folder });
        let parent = match spot {
            Spot::Folder(node) | Spot::Dataset(node) => node.parent.as_ref().map_or(Ino::ROOT, |p| Ino::new(p.id, 0)),
            Spot::Inside(node, open, tree, item) => Ino::new(node.id, tree.index(Tree::parent(open, *item))),
            _ => Ino::ROOT,
        };
        add(ino, ".".into(), true);
        add(parent, "..".into(), true);
        match spot {
            Spot::Folder(node) => {
                if wait == Wait::No {
                    return Err(FsError::WouldBlock);
                }
                if node.id == ROOT {
                    add(Ino::new(ROOT, 1), ABOUT.into(), true);
                }
                for child in listing::list(&self.catalog, node, self.pool())? {
                    let name = name_of_source(node.id, child.name()).to_owned();
                    let ino = match child {
                        Listed::Found(child) => Ino::new(child.id, 0),
                        // its number is known when it answers; any other will do for a list of names
                        Listed::Unseen(_) => Ino(u64::MAX),
                    };
                    add(ino, name, true);
                }
            }
            Spot::About => {
                add(Ino::new(ROOT, 2), STATUS.into(), false);
                add(Ino::new(ROOT, 3), LOG.into(), false);
            }
            Spot::Dataset(node) => match self.opened(node, wait)? {
                Ok(open) => {
                    let tree = self.tree(node.id, &open);
                    tree.list(&open, Item::Dataset, &mut |item, name, folder| {
                        add(Ino::new(node.id, tree.index(item)), name.into(), folder);
                    });
                }
                Err(_) => add(Ino::new(node.id, tree::ERROR), ERROR_TXT.into(), false),
            },
            Spot::Inside(node, open, tree, folder) if Tree::is_folder(open, *folder) => {
                tree.list(open, *folder, &mut |item, name, folder| {
                    add(Ino::new(node.id, tree.index(item)), name.into(), folder);
                });
            }
            _ => return Err(FsError::NotAFolder),
        }
        Ok(entries)
    }
}

/// Whether a name of the folder `parent` is that of the folder about the mount.
pub(super) fn is_about(parent: Ino, name: &OsStr) -> bool {
    parent == Ino::ROOT && name == ABOUT
}

/// The name under which a folder or dataset of the source stands in the folder `parent` of the mount.
pub(super) fn name_of_source(parent: NodeId, name: &OsStr) -> &OsStr {
    if parent == ROOT && name == ABOUT { OsStr::new(ABOUT_OF_SOURCE) } else { name }
}

/// An error of a dataset's content, with a line in the log.
fn logged(open: &OpenDataset, error: FormatError) -> FsError {
    log::warn!("{}: {error}", open.path);
    error.into()
}
