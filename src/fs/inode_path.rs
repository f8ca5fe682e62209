//! Where a file stands in the mount.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::resolve::{Spot, name_of_source};
use super::tree::{Item, Tree};
use super::{Ino, Volfs};
use crate::catalog::OpenDataset;
use crate::source::Wait;

impl Volfs {
    /// The path of a file of a dataset, below the top of the mount; none if the dataset is not open any more.
    pub(super) fn path(&self, ino: Ino) -> Option<PathBuf> {
        let Spot::Inside(node, open, tree, item) = self.spot(ino, Wait::No).ok()? else { return None };
        let mut names = names_inside(&open, &tree, item)?;
        let mut next = Some(&node);
        while let Some((node, parent)) = next.and_then(|node| Some((node, node.parent.as_ref()?))) {
            names.push(name_of_source(parent.id, &node.name).to_owned());
            next = Some(parent);
        }
        Some(names.iter().rev().collect())
    }
}

/// The names from a file up to the dataset's folder, without that.
fn names_inside(open: &OpenDataset, tree: &Tree, item: Item) -> Option<Vec<OsString>> {
    let (mut names, mut item) = (Vec::new(), item);
    while item != Item::Dataset {
        let parent = Tree::parent(open, item);
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
