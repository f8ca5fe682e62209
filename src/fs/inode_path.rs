//! Finds the path of an inode.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::ino::Ino;
use super::resolve::{Resolved, name_in_mount};
use super::tree::{Item, Tree};
use super::volfs::Volfs;
use crate::catalog::{Node, OpenDataset};
use crate::source::Blocking;

impl Volfs {
    /// Returns the path of a file of a dataset, relative to the root of the mount; `None` if the dataset is no longer
    /// open.
    pub(super) fn path(&self, ino: Ino) -> Option<PathBuf> {
        let Resolved::Inside(node, open, tree, item) = self.resolve(ino, Blocking::No).ok()? else { return None };
        let names = names_inside(&open, &tree, item)?;
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

/// Returns the names from a file up to its dataset's folder, without the latter.
fn names_inside(open: &OpenDataset, tree: &Tree, item: Item) -> Option<Vec<OsString>> {
    let (mut names, mut item) = (Vec::new(), item);
    while item != Item::Dataset {
        let parent = tree.parent(open, item);
        let mut name = None;
        tree.list(open, parent, &mut |listed, its_name, _| {
            if listed == item {
                name = Some(its_name);
            }
        });
        names.push(OsStr::new(&name?).to_owned());
        item = parent;
    }
    Some(names)
}
