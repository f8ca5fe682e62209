//! All folders and datasets that were ever found, by number and by name.

use std::ffi::OsStr;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::entry::Entry;
use super::node::{MAX_NODES, Node, NodeId};
use crate::log_limit::warn_seldom;

/// The nodes, by number and by name. A name is stored once, in its node, and is found through a table of numbers: a
/// folder may have a hundred thousand of them.
pub(crate) struct Nodes {
    all: Vec<Arc<Node>>,
    children: HashTable<NodeId>,
    hasher: DefaultHashBuilder,
}

impl Nodes {
    /// Returns the nodes of a catalog that has only its root.
    pub(crate) fn new(root: Node) -> Self {
        Self { all: vec![Arc::new(root)], children: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }

    /// Returns the node of this number, also if it is not the one that its name has now.
    pub(crate) fn get(&self, id: NodeId) -> Option<Arc<Node>> {
        self.all.get(id as usize).cloned()
    }

    /// Returns the node that has this name in a folder.
    pub(crate) fn child(&self, folder: NodeId, name: &OsStr) -> Option<Arc<Node>> {
        let found = self.children.find(self.hasher.hash_one((folder, name)), |id| self.is_child(*id, folder, name));
        self.get(*found?)
    }

    /// Adds a node and gives it the name, which another one has had if `replaces`. Returns `None` if there are no more
    /// numbers.
    pub(crate) fn add(&mut self, folder: &Arc<Node>, name: &OsStr, entry: Entry, replaces: bool) -> Option<Arc<Node>> {
        if self.all.len() >= MAX_NODES {
            warn_seldom("too many files were found or changed since the mount was made; mount anew to see new ones");
            return None;
        }
        let id = NodeId::try_from(self.all.len()).ok()?;
        let node = Arc::new(Node::new(id, Arc::clone(folder), name, entry, replaces));
        self.all.push(Arc::clone(&node));
        let Self { all, children, hasher } = self;
        let hash_of = |id: &NodeId| {
            let node = all.get(*id as usize);
            hasher.hash_one(node.map(|node| (parent_of(node), &*node.name)).unwrap_or_default())
        };
        children.insert_unique(hasher.hash_one((folder.id, name)), id, hash_of);
        Some(node)
    }

    /// Takes the name from the node that has it.
    pub(crate) fn remove_child(&mut self, folder: NodeId, name: &OsStr) {
        let hash = self.hasher.hash_one((folder, name));
        let all = &self.all;
        let is_child = |id: &NodeId| is_child(all, *id, folder, name);
        if let Ok(found) = self.children.find_entry(hash, is_child) {
            found.remove();
        }
    }

    fn is_child(&self, id: NodeId, folder: NodeId, name: &OsStr) -> bool {
        is_child(&self.all, id, folder, name)
    }
}

fn is_child(all: &[Arc<Node>], id: NodeId, folder: NodeId, name: &OsStr) -> bool {
    all.get(id as usize).is_some_and(|node| *node.name == *name && parent_of(node) == folder)
}

fn parent_of(node: &Node) -> NodeId {
    node.parent.as_ref().map_or(NodeId::MAX, |parent| parent.id)
}
