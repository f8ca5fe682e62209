//! A local file or folder as a tree.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::Folders;
use super::open_file::OpenFile;
use super::place::{LocalPlace, about};
use super::source_root::SourceRoot;
use crate::counters::Counters;
use crate::source::{About, Place, Tree};

/// What lies below a path of this machine.
pub(crate) struct LocalTree {
    /// The path as it was given: what counts as SOURCE if links in it are changed.
    source: PathBuf,
    root: Arc<SourceRoot>,
    folders: Arc<Folders>,
}

impl LocalTree {
    /// Creates the tree of the folder or file `source`, an absolute path, and of what lies below it; links that lead
    /// elsewhere are followed if `follow_links`. Reads are counted in `counters`.
    pub(crate) fn below(source: &Path, follow_links: bool, counters: Arc<Counters>) -> Arc<Self> {
        Self::with_root(source, SourceRoot::below(source, follow_links), counters)
    }

    /// Like [`LocalTree::below`], with the rules of `root` for what may be opened.
    pub(crate) fn with_root(source: &Path, root: Arc<SourceRoot>, counters: Arc<Counters>) -> Arc<Self> {
        let folders = Folders::new(Arc::clone(&root), counters);
        Arc::new(Self { source: source.to_owned(), root, folders })
    }
}

impl Tree for LocalTree {
    fn source(&self) -> &Path {
        &self.source
    }

    fn look(&self, path: &Path) -> io::Result<Option<Box<dyn Place>>> {
        Ok(self.root.locate(path)?.map(|place| LocalPlace::boxed(&self.folders, place)))
    }

    fn about_base(&self, path: &Path) -> io::Result<About> {
        let found = self.root.base(path)?;
        Ok(About { permissions: self.root.permissions(&found), ..about(&found.metadata, true) })
    }

    fn is_gone(&self) -> bool {
        let is_absent = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory);
        fs::metadata(&self.source).is_err_and(|error| is_absent(error.kind()))
    }

    fn take_gone(&self) -> Vec<Arc<OpenFile>> {
        self.root.take_gone()
    }

    fn close_unused(&self) {
        self.root.close_unused();
    }

    fn has_open_files(&self) -> bool {
        self.root.has_open_files()
    }

    fn on_first_open(&self, call: Box<dyn Fn() + Send + Sync>) {
        self.root.on_first_open(call);
    }
}
