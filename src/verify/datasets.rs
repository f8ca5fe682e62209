//! Finds the datasets below paths. Unlike a mount, it reports what cannot be looked at.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::{Catalog, CatalogError, Node, NodeKind, OpenResult, ROOT};
use crate::format::{OpenWith, Registry};
use crate::source::IndexCache;

/// Bytes of tables that are cached.
const INDEX_BYTES: usize = 48 << 20;

/// The datasets below some paths.
pub struct Datasets {
    places: Vec<(Place, Catalog)>,
}

/// A folder or dataset to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its absolute path without links.
    pub path: PathBuf,
    /// How it is called in reports.
    pub name: PathBuf,
}

/// Something that was found below a path.
pub(super) enum Found<'a> {
    Dataset(&'a Catalog, Arc<Node>),
    /// It cannot be looked at, for this reason.
    Unreadable(String),
}

impl Datasets {
    /// Prepares to search some places for datasets of `formats`.
    ///
    /// # Errors
    /// [`CatalogError::Io`] if one of them is not there; with its path.
    pub fn new(formats: Registry, places: Vec<Place>, follow_links: bool) -> Result<Self, (PathBuf, CatalogError)> {
        let with = OpenWith::new(IndexCache::new(INDEX_BYTES));
        let places = places.into_iter().map(|place| {
            match Catalog::new(formats, &place.path, follow_links, with.clone(), Arc::default(), Arc::default()) {
                Ok(catalog) => Ok((place, catalog)),
                Err(error) => Err((place.path, error)),
            }
        });
        Ok(Self { places: places.collect::<Result<_, _>>()? })
    }

    /// Visits every dataset, and every folder or file that cannot be looked at, with its name for reports, until
    /// `visit` returns `false`.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(PathBuf, Found<'_>) -> bool) {
        for (place, catalog) in &self.places {
            let Some(root) = catalog.node(ROOT) else { continue };
            let goes_on = if root.path() == place.path {
                walk(catalog, &root, &place.name, visit)
            } else {
                // the place is one dataset, and the only entry of its folder
                catalog.list(&root).is_ok_and(|nodes| visit_all(catalog, nodes, |_| place.name.clone(), visit))
            };
            if !goes_on {
                return;
            }
        }
    }
}

/// Opens a dataset. It is closed once the result is dropped.
pub(super) fn open(catalog: &Catalog, node: &Arc<Node>) -> OpenResult {
    let opened = catalog.open(node);
    catalog.close(node);
    opened
}

/// Visits all that is below a folder in order; `false` once `visit` has returned `false`.
fn walk(catalog: &Catalog, folder: &Arc<Node>, name: &Path, visit: &mut dyn FnMut(PathBuf, Found<'_>) -> bool) -> bool {
    let path = folder.path();
    let unreadable = |e: &dyn std::fmt::Display| Found::Unreadable(format!("it cannot be listed: {e}"));
    let read =
        path.read_dir().and_then(|entries| entries.map(|e| e.map(|e| e.file_name())).collect::<io::Result<Vec<_>>>());
    let mut names = match read {
        Ok(names) => names,
        Err(e) => return visit(name.to_owned(), unreadable(&e)),
    };
    names.sort_unstable();
    for entry in names {
        let below = name.join(&entry);
        let goes_on = match catalog.find(folder, &entry) {
            Ok(Some(node)) => visit_all(catalog, vec![node], |_| below.clone(), visit),
            Ok(None) => true,
            Err(e) => visit(below, Found::Unreadable(e.to_string())),
        };
        if !goes_on {
            return false;
        }
    }
    true
}

fn visit_all(
    catalog: &Catalog,
    nodes: Vec<Arc<Node>>,
    name: impl Fn(&Node) -> PathBuf,
    visit: &mut dyn FnMut(PathBuf, Found<'_>) -> bool,
) -> bool {
    nodes.into_iter().all(|node| match node.kind {
        NodeKind::Folder => walk(catalog, &node, &name(&node), visit),
        NodeKind::Dataset => visit(name(&node), Found::Dataset(catalog, node)),
    })
}
