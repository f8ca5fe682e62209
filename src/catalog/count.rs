//! Counts datasets for a limited time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::entry::NodeKind;
use super::node::{Node, ROOT};
use super::source_tree::Catalog;
use crate::format::{OpenWith, Registry};
use crate::source::{IndexCache, Origin};

/// Bytes of tables that are cached while datasets are opened.
const INDEX_BYTES: usize = 1 << 20;

/// The datasets found below a source within the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatasetCount {
    /// Datasets found, also those that do not open.
    pub datasets: usize,
    /// Whether the time was long enough to find all.
    pub complete: bool,
    /// The first dataset by name that opens: its path below the mount point.
    pub first: Option<PathBuf>,
}

/// Counts the datasets of `formats` below a source until the time is up.
pub(crate) fn count_datasets(formats: Registry, origin: &Origin, until: Instant) -> DatasetCount {
    let mut count = DatasetCount::default();
    let with = OpenWith::new(IndexCache::new(INDEX_BYTES));
    if let Ok(tree) = origin.tree(false, Arc::default())
        && let Ok(catalog) = Catalog::new(formats, tree, with, Arc::default())
        && let Some(root) = catalog.node(ROOT)
    {
        count.complete = walk(&catalog, &root, Path::new(""), until, &mut count);
    }
    count
}

/// Adds the datasets below a folder; `false` if the time was up before all were found, or they would take many requests.
fn walk(catalog: &Catalog, folder: &Arc<Node>, below: &Path, until: Instant, count: &mut DatasetCount) -> bool {
    if catalog.is_crowd(folder) {
        return false;
    }
    for node in catalog.list(folder).unwrap_or_default() {
        if Instant::now() >= until {
            return false;
        }
        let path = below.join(&*node.name);
        match node.kind {
            NodeKind::Folder => {
                if !walk(catalog, &node, &path, until, count) {
                    return false;
                }
            }
            NodeKind::Dataset => {
                count.datasets += 1;
                if count.first.is_none() && catalog.open(&node).is_ok() {
                    count.first = Some(path);
                }
            }
        }
    }
    true
}
