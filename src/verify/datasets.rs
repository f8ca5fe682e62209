//! Finds and opens the datasets below paths. Unlike a mount, it reports what cannot be looked at. Tells damage from a call
//! that the system failed, which is retried: a file server may not answer for a moment, and descriptors or memory may be
//! short.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::catalog::{Catalog, CatalogError, Node, NodeKind, OpenDataset, OpenError, ROOT};
use crate::format::{Finding, FormatError, OpenWith, Registry, Severity};
use crate::source::{IndexCache, Origin, SourceError, tells_what_is_there};

/// Bytes of tables that are cached.
const INDEX_BYTES: usize = 48 << 20;

/// The time before each retry.
const PAUSES: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(500)];
/// After this many calls in a row that no retry helped, none is retried: a broken disk would take for ever.
const MAX_VAIN: u32 = 32;

pub(crate) struct Datasets {
    places: Vec<(Place, Catalog)>,
    retries: Retries,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its absolute path without links.
    pub path: PathBuf,
    /// Its name in reports.
    pub name: PathBuf,
}

/// A dataset that is open, or why it cannot be opened or looked at.
pub(super) type Opened = Result<Arc<OpenDataset>, Box<Finding>>;

/// A dataset below a path, or why something there cannot be looked at.
pub(super) type Found<'a> = Result<(&'a Catalog, Arc<Node>), Box<Finding>>;

/// Gets each dataset, and each folder or file that cannot be looked at, with its name for reports. Returns `false` to end
/// the walk.
type Visitor<'a> = dyn FnMut(PathBuf, Found<'_>) -> bool + 'a;

impl Datasets {
    /// Prepares to search some places for datasets of `formats`. They are read as `read` says, apart from its path. An error
    /// has the path that cannot be found.
    pub(crate) fn new(formats: Registry, places: Vec<Place>, read: &Origin) -> Result<Self, (PathBuf, CatalogError)> {
        let with = OpenWith::new(IndexCache::new(INDEX_BYTES));
        let retries = Retries::default();
        let places = places.into_iter().map(|place| {
            let origin = Origin { path: place.path.clone(), ..read.clone() };
            let opened = retries.call(|| {
                let tree = origin.tree(formats.folder_files(), true, Arc::default());
                let tree = tree.map_err(|error| CatalogError::io(&place.path, &error))?;
                Catalog::new(formats, tree, with.clone(), Arc::default())
            });
            match opened {
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
    pub(super) fn open(&self, found: Found<'_>) -> Opened {
        let (catalog, node) = found?;
        let opened = self.retries.call(|| {
            let opened = catalog.open(&node);
            catalog.close(&node);
            opened
        });
        opened.map_err(|error| Box::new(error.finding()))
    }
}

/// A walk through the folders of one place. Its functions return `false` once the visitor has.
struct Walk<'a, 'v> {
    catalog: &'a Catalog,
    retries: &'a Retries,
    visit: &'a mut Visitor<'v>,
}

impl Walk<'_, '_> {
    /// Visits everything below a folder, in order.
    fn below(&mut self, folder: &Arc<Node>, name: &Path) -> bool {
        let mut names = match self.retries.call(|| self.catalog.names(folder)) {
            Ok(names) => names,
            Err(error) => return self.unreadable(name.to_owned(), &error, "it cannot be listed: "),
        };
        names.sort_unstable();
        names.into_iter().all(|entry| {
            let below = name.join(&entry);
            match self.retries.call(|| self.catalog.find(folder, &entry)) {
                Ok(Some(node)) => self.node(node, below),
                Ok(None) => true,
                Err(error) => self.unreadable(below, &error, ""),
            }
        })
    }

    /// Visits the only dataset of a folder.
    fn only(&mut self, folder: &Arc<Node>, name: &Path) -> bool {
        match self.retries.call(|| self.catalog.list(folder, &mut |_, _| {})) {
            Ok(nodes) if nodes.is_empty() => {
                let why = Finding::damage("it is no longer there, or no longer a volume");
                (self.visit)(name.to_owned(), Err(Box::new(why)))
            }
            Ok(nodes) => nodes.into_iter().all(|node| self.node(node, name.to_owned())),
            Err(error) => self.unreadable(name.to_owned(), &error, ""),
        }
    }

    fn node(&mut self, node: Arc<Node>, name: PathBuf) -> bool {
        match node.kind {
            NodeKind::Folder => self.below(&node, &name),
            NodeKind::Dataset => (self.visit)(name, Ok((self.catalog, node))),
        }
    }

    fn unreadable(&mut self, name: PathBuf, error: &CatalogError, what: &str) -> bool {
        let found = error.finding();
        (self.visit)(name, Err(Box::new(Finding { reason: format!("{what}{error}"), ..found })))
    }
}

/// Retries calls that failed, as long as that helps now and then.
#[derive(Debug)]
pub(super) struct Retries {
    left: AtomicU32,
}

impl Default for Retries {
    fn default() -> Self {
        Self { left: AtomicU32::new(MAX_VAIN) }
    }
}

impl Retries {
    /// Returns the result of `work`; retries an error that may pass.
    pub(super) fn call<T, E: VerifyError>(&self, work: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        self.run(|| false, |result| result.as_ref().is_err_and(VerifyError::may_pass), work)
    }

    /// Returns the result of `work`; retries it while `has_failed`, until `is_stopped`.
    pub(super) fn run<T>(
        &self,
        is_stopped: impl Fn() -> bool,
        has_failed: impl Fn(&T) -> bool,
        mut work: impl FnMut() -> T,
    ) -> T {
        let mut result = work();
        if !has_failed(&result) {
            return result;
        }
        for pause in PAUSES {
            if self.left.load(Ordering::Relaxed) == 0 || is_stopped() {
                return result;
            }
            thread::sleep(pause);
            result = work();
            if !has_failed(&result) {
                self.left.store(MAX_VAIN, Ordering::Relaxed);
                return result;
            }
        }
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        result
    }
}

/// An error that is damage, or a failure to read: the disk or the network fails, a limit is reached, the file may not be
/// read, or volfs has a bug.
pub(super) trait VerifyError: Display {
    /// Returns the kind of the operating system's error, if it is one.
    fn kind(&self) -> Option<io::ErrorKind>;

    fn is_internal(&self) -> bool {
        false
    }

    fn severity(&self) -> Severity {
        let of_system = |kind| kind == io::ErrorKind::PermissionDenied || !tells_what_is_there(kind);
        let is_of_system = self.is_internal() || self.kind().is_some_and(of_system);
        if is_of_system { Severity::Unread } else { Severity::Damage }
    }

    fn finding(&self) -> Finding {
        Finding { severity: self.severity(), ..Finding::damage(self.to_string()) }
    }

    /// Returns whether the same call may succeed a moment later.
    fn may_pass(&self) -> bool {
        self.kind().is_some_and(|kind| !tells_what_is_there(kind))
    }
}

impl VerifyError for FormatError {
    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Source(SourceError::Io { kind, .. }) => Some(*kind),
            _ => None,
        }
    }

    fn is_internal(&self) -> bool {
        matches!(self, Self::Internal(_))
    }
}

impl VerifyError for Arc<OpenError> {
    fn kind(&self) -> Option<io::ErrorKind> {
        match &**self {
            OpenError::Io { kind, .. } => Some(*kind),
            OpenError::Format(error) => error.kind(),
            OpenError::Unknown(_) => None,
        }
    }

    fn is_internal(&self) -> bool {
        matches!(&**self, OpenError::Format(error) if error.is_internal())
    }
}

impl VerifyError for CatalogError {
    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { kind, .. } => Some(*kind),
            Self::Stale(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails this many times. Returns whether it succeeded in the end, and the number of calls.
    fn run(retries: &Retries, failures: u32) -> (bool, u32) {
        let mut calls = 0;
        let work = || {
            calls += 1;
            calls > failures
        };
        (retries.run(|| false, |right| !right, work), calls)
    }

    #[test]
    fn a_failure_is_tried_again_as_long_as_that_helps_now_and_then() {
        let retries = Retries::default();
        assert_eq!([run(&retries, 0), run(&retries, 2)], [(true, 1), (true, 3)]);
        assert_eq!(run(&retries, u32::MAX), (false, 4));
        retries.left.store(1, Ordering::Relaxed);
        assert_eq!([run(&retries, u32::MAX), run(&retries, u32::MAX)], [(false, 4), (false, 1)]);
        retries.left.store(1, Ordering::Relaxed);
        assert_eq!(run(&retries, 1), (true, 2));
        assert_eq!(retries.left.load(Ordering::Relaxed), MAX_VAIN);
        assert!(!retries.run(|| true, |right: &bool| !right, || false), "interrupted");
    }

    #[test]
    fn what_the_system_failed_at_is_not_damage_of_the_file() {
        use io::ErrorKind::{IsADirectory, NotFound, OutOfMemory, PermissionDenied, UnexpectedEof};
        let error = |kind| SourceError::Io { doing: "cannot read it".into(), message: String::new(), kind };
        for (kind, severity, may_pass) in [
            (io::Error::from_raw_os_error(5).kind(), Severity::Unread, true),
            (io::Error::from_raw_os_error(24).kind(), Severity::Unread, true),
            (OutOfMemory, Severity::Unread, true),
            (UnexpectedEof, Severity::Unread, true),
            (PermissionDenied, Severity::Unread, false),
            (NotFound, Severity::Damage, false),
            (IsADirectory, Severity::Damage, false),
        ] {
            let (of_format, message) = (FormatError::Source(error(kind)), String::new());
            assert_eq!((of_format.severity(), of_format.may_pass()), (severity, may_pass), "{kind}");
            assert_eq!(Arc::new(OpenError::Format(of_format)).severity(), severity, "{kind}");
            assert_eq!(Arc::new(OpenError::Io { message: message.clone(), kind }).severity(), severity, "{kind}");
            assert_eq!(CatalogError::Io { path: String::new(), message, kind }.severity(), severity, "{kind}");
        }
        for error in [FormatError::Damaged("x".into()), SourceError::Changed.into()] {
            assert_eq!((error.severity(), error.may_pass()), (Severity::Damage, false), "{error}");
        }
        let bug = FormatError::Internal("it panicked".into());
        assert_eq!((bug.severity(), bug.may_pass()), (Severity::Unread, false));
    }
}
