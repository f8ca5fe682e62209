//! Finds the datasets below paths. Unlike a mount, it reports what cannot be looked at.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::fault::{Failure, Fault};
use super::job::Opened;
use super::retries::Retries;
use crate::catalog::{Catalog, CatalogError, Node, NodeKind, ROOT};
use crate::format::{OpenWith, Registry};
use crate::source::{IndexCache, Origin};

/// Bytes of tables that are cached.
const INDEX_BYTES: usize = 48 << 20;

/// The datasets below some paths.
pub(crate) struct Datasets {
    places: Vec<(Place, Catalog)>,
    retries: Retries,
}

/// A folder or dataset to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its absolute path without links.
    pub path: PathBuf,
    /// How it is called in reports.
    pub name: PathBuf,
}

/// Something that was found below a path.
pub(super) enum Found<'a> {
    Dataset(&'a Catalog, Arc<Node>),
    /// It cannot be looked at.
    Unreadable(Fault, String),
}

impl Found<'_> {
    fn unreadable<E: Failure + Display>(error: &E) -> Self {
        Self::Unreadable(error.fault(), error.to_string())
    }
}

/// Gets each dataset, and each folder or file that cannot be looked at, with its name for reports. Returns `false` when
/// no more are wanted.
type Visitor<'a> = dyn FnMut(PathBuf, Found<'_>) -> bool + 'a;

impl Datasets {
    /// Prepares to search some places for datasets of `formats`. They are read as `read` says, whose path does not count.
    pub(crate) fn new(formats: Registry, places: Vec<Place>, read: &Origin) -> Result<Self, (PathBuf, CatalogError)> {
        let with = OpenWith::new(IndexCache::new(INDEX_BYTES));
        let retries = Retries::default();
        let places = places.into_iter().map(|place| {
            let origin = Origin { path: place.path.clone(), ..read.clone() };
            let open = || {
                let tree = origin.tree(true, Arc::default());
                let tree = tree.map_err(|error| CatalogError::io(&place.path, &error))?;
                Catalog::new(formats, tree, with.clone(), Arc::default())
            };
            match retries.run(|| false, |opened| opened.as_ref().is_err_and(Failure::may_pass), open) {
                Ok(catalog) => Ok((place, catalog)),
                Err(error) => Err((place.path, error)),
            }
        });
        Ok(Self { places: places.collect::<Result<_, _>>()?, retries })
    }

    /// Visits every dataset, and every folder or file that cannot be looked at, until `visit` returns `false`.
    pub(super) fn visit(&self, visit: &mut Visitor<'_>) {
        for (place, catalog) in &self.places {
            let Some(root) = catalog.node(ROOT) else { continue };
            let mut walk = Walk { catalog, retries: &self.retries, visit };
            let goes_on = if root.path() == place.path {
                walk.below(&root, &place.name)
            } else {
                // the place is one dataset, and the only entry of its folder
                walk.only(&root, &place.name)
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Opens a dataset. It is closed once the result is dropped.
    pub(super) fn open(&self, catalog: &Catalog, node: &Arc<Node>) -> Opened {
        let open = || {
            let opened = catalog.open(node);
            catalog.close(node);
            opened
        };
        let opened = self.retries.run(|| false, |opened| opened.as_ref().is_err_and(|e| e.may_pass()), open);
        opened.map_err(|error| (error.fault(), error.to_string()))
    }
}

/// A walk through the folders of one place. Its functions return `false` once the visitor has.
struct Walk<'a, 'v> {
    catalog: &'a Catalog,
    retries: &'a Retries,
    visit: &'a mut Visitor<'v>,
}

impl Walk<'_, '_> {
    fn retry<T, E: Failure>(&self, work: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        self.retries.run(|| false, |result| result.as_ref().is_err_and(Failure::may_pass), work)
    }

    /// Visits all that is below a folder, in order.
    fn below(&mut self, folder: &Arc<Node>, name: &Path) -> bool {
        let names = match self.retry(|| self.catalog.names(folder)) {
            Ok(names) => names,
            Err(e) => return (self.visit)(name.to_owned(), Found::unreadable(&e)),
        };
        names.into_iter().all(|entry| {
            let below = name.join(&entry);
            match self.retry(|| self.catalog.find(folder, &entry)) {
                Ok(Some(node)) => self.node(node, below),
                Ok(None) => true,
                Err(e) => (self.visit)(below, Found::unreadable(&e)),
            }
        })
    }

    /// Visits the only dataset of a folder.
    fn only(&mut self, folder: &Arc<Node>, name: &Path) -> bool {
        match self.retry(|| self.catalog.list(folder)) {
            Ok(nodes) if nodes.is_empty() => {
                let why = "it is not there any more, or no volume any more".to_owned();
                (self.visit)(name.to_owned(), Found::Unreadable(Fault::File, why))
            }
            Ok(nodes) => nodes.into_iter().all(|node| self.node(node, name.to_owned())),
            Err(e) => (self.visit)(name.to_owned(), Found::unreadable(&e)),
        }
    }

    fn node(&mut self, node: Arc<Node>, name: PathBuf) -> bool {
        match node.kind {
            NodeKind::Folder => self.below(&node, &name),
            NodeKind::Dataset => (self.visit)(name, Found::Dataset(self.catalog, node)),
        }
    }
}
