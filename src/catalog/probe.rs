//! What a path of the source is: a folder, a dataset, or nothing that is shown.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::node::{Kind, Node};
use rustix::io::Errno;

use crate::format::{Format, registry};
use crate::source::{FileStamp, SymlinkPolicy, time};

/// Bytes of a file that may be read to find out what it is.
const HEAD: usize = 16;

/// What was found at a path.
pub struct Found {
    pub kind: Kind,
    pub stamp: FileStamp,
    /// When anything about it last changed.
    pub changed: SystemTime,
}

impl Found {
    fn new(kind: Kind, metadata: &Metadata) -> Self {
        Self { kind, stamp: FileStamp::of(metadata), changed: time(metadata.ctime(), metadata.ctime_nsec()) }
    }
}

/// Looks at paths below one folder.
pub struct Prober {
    base: PathBuf,
    links: Arc<SymlinkPolicy>,
}

impl Prober {
    pub fn new(base: PathBuf, links: Arc<SymlinkPolicy>) -> Self {
        Self { base, links }
    }

    /// The folder that everything is below of.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The base itself.
    pub fn look_at_base(&self) -> io::Result<Found> {
        Ok(Found::new(Kind::Folder, &self.base.metadata()?))
    }

    /// What `path`, an entry of `folder`, is; `None` if it is not shown.
    ///
    /// # Errors
    /// Those of the system; that nothing is there is an answer.
    pub fn look(&self, folder: &Node, path: &Path) -> io::Result<Option<Found>> {
        let Some(link) = there(path.symlink_metadata())? else { return Ok(None) };
        let metadata = if link.is_symlink() {
            let Some(target) = self.follow(folder, path)? else { return Ok(None) };
            target
        } else {
            link
        };
        let kind = if metadata.is_dir() {
            if let Some(found) = dataset_folder(path, &metadata) {
                return Ok(Some(found));
            }
            Kind::Folder
        } else if metadata.is_file() && (is_promised(path) || recognise(&head(path)?).is_some()) {
            Kind::Dataset
        } else {
            return Ok(None);
        };
        Ok(Some(Found::new(kind, &metadata)))
    }

    /// Where a link leads, unless that is outside of the source or back to a folder that the path came through.
    fn follow(&self, folder: &Node, path: &Path) -> io::Result<Option<Metadata>> {
        let Some(metadata) = there(path.metadata())? else { return Ok(None) };
        if metadata.is_dir() && leads_back(folder, &metadata) {
            return Ok(None);
        }
        let Some(real) = there(self.links.real(path))? else { return Ok(None) };
        Ok(real.map(|_| metadata))
    }
}

/// Whether a folder is one that `folder` lies in.
fn leads_back(folder: &Node, target: &Metadata) -> bool {
    let mut at = Some(folder);
    while let Some(node) = at {
        if node.stamp().inode == (target.dev(), target.ino()) {
            return true;
        }
        at = node.parent.as_deref();
    }
    false
}

/// That something is not there, cannot be reached by links, or is hidden from us, is an answer.
fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) => match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Ok(None),
            _ => Err(e),
        },
    }
}

/// The first bytes of a file; none if it cannot be read: then it is nothing that could be shown.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    let Some(file) = there(File::open(path)).or_else(|e| match e.kind() {
        io::ErrorKind::PermissionDenied => Ok(None),
        _ => Err(e),
    })?
    else {
        return Ok(Vec::new());
    };
    let mut head = Vec::with_capacity(HEAD);
    file.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn extension(path: &Path) -> Option<String> {
    path.extension()?.to_str().map(str::to_ascii_lowercase)
}

/// Whether a file's extension promises a dataset: such a file is shown even if it is none, with the reason.
pub fn is_promised(path: &Path) -> bool {
    by_extension(path).is_some()
}

fn by_extension(path: &Path) -> Option<&'static dyn Format> {
    let extension = extension(path)?;
    registry().iter().copied().find(|format| format.extension() == Some(&*extension))
}

fn recognise(head: &[u8]) -> Option<&'static dyn Format> {
    registry().iter().copied().find(|format| format.is_file(head))
}

fn format_of_folder(folder: &Path) -> Option<&'static dyn Format> {
    registry().iter().copied().find(|format| format.is_folder(folder))
}

/// Whether a folder is a dataset of any format.
pub fn is_dataset_folder(folder: &Path) -> bool {
    format_of_folder(folder).is_some()
}

/// A folder that is a dataset. Its version is that of the file that describes it.
fn dataset_folder(folder: &Path, metadata: &Metadata) -> Option<Found> {
    let file = format_of_folder(folder)?.folder_file();
    let described = file.and_then(|file| folder.join(file).metadata().ok());
    Some(Found::new(Kind::Dataset, described.as_ref().unwrap_or(metadata)))
}

/// The version of the dataset at a path.
///
/// # Errors
/// Those of the system.
pub fn stamp_of(path: &Path) -> io::Result<FileStamp> {
    let metadata = path.metadata()?;
    let folder = if metadata.is_dir() { dataset_folder(path, &metadata) } else { None };
    Ok(folder.map_or_else(|| FileStamp::of(&metadata), |found| found.stamp))
}

/// The format of a dataset: by its content, or else by what its name promises.
///
/// # Errors
/// Those of the system.
pub fn format_of(path: &Path) -> io::Result<Option<&'static dyn Format>> {
    if path.metadata()?.is_dir() {
        return Ok(format_of_folder(path));
    }
    let mut head = Vec::with_capacity(HEAD);
    File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(recognise(&head).or_else(|| by_extension(path)))
}
