//! How many datasets there are, as far as a short time allows to find out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::{Catalog, Kind, Node, ROOT};
use crate::format::OpenWith;
use crate::source::IndexCache;

/// What a quick look found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Datasets found, also those that do not open.
    pub datasets: usize,
    /// Whether these are all.
    pub complete: bool,
    /// The first dataset by name that opens: its path below the mount point.
    pub first: Option<PathBuf>,
}

/// Looks for datasets below `source` until the time is up.
#[must_use]
pub fn survey(source: &Path, follow_links: bool, until: Instant) -> Survey {
    let mut found = Survey::default();
    if let Ok(catalog) = Catalog::new(source, follow_links, OpenWith::new(IndexCache::new(1 << 20)), Arc::default())
        && let Some(root) = catalog.node(ROOT)
    {
        found.complete = walk(&catalog, &root, Path::new(""), until, &mut found);
    }
    found
}

/// Whether there was time for all of it.
fn walk(catalog: &Catalog, folder: &Arc<Node>, below: &Path, until: Instant, found: &mut Survey) -> bool {
    for node in catalog.list(folder).unwrap_or_default() {
        if Instant::now() >= until {
            return false;
        }
        let path = below.join(&node.name);
        match node.kind {
            Kind::Folder => {
                if !walk(catalog, &node, &path, until, found) {
                    return false;
                }
            }
            Kind::Dataset => {
                found.datasets += 1;
                if found.first.is_none() && catalog.open(&node).is_ok() {
                    found.first = Some(path);
                }
            }
        }
    }
    true
}
