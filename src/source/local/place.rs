//! A local file or folder that was just found.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};

use super::folder::Folders;
use super::source_root::{Found, SourceRoot};
use crate::source::{
    About, EntryKind, FileSource, FileStamp, Folder, NoFolder, Place, PlaceKind, RecentWrites, SourceError, system_time,
};

/// A file or folder, opened without access to its content.
pub(super) struct LocalPlace {
    folders: Arc<Folders>,
    found: Found,
    about: About,
}

/// Returns what a file or folder with this metadata is.
pub(super) fn about(metadata: &Metadata, by_links: bool) -> About {
    let kind = match metadata {
        folder if folder.is_dir() => PlaceKind::Folder,
        file if file.is_file() => PlaceKind::File,
        _ => PlaceKind::Other,
    };
    let changed = system_time(metadata.ctime(), metadata.ctime_nsec());
    About { kind, stamp: FileStamp::of(metadata), changed, by_links, permissions: None }
}

impl LocalPlace {
    /// Makes a place of what was just found below the root of `folders`.
    pub(crate) fn boxed(folders: &Arc<Folders>, found: Found) -> Box<dyn Place> {
        let permissions = folders.root.permissions(&found);
        let about = About { permissions, ..about(&found.metadata, found.by_links) };
        Box::new(Self { folders: Arc::clone(folders), found, about })
    }

    fn root(&self) -> &SourceRoot {
        &self.folders.root
    }

    fn boxed_beside(&self, found: Option<Found>) -> Option<Box<dyn Place>> {
        found.map(|found| Self::boxed(&self.folders, found))
    }
}

impl Place for LocalPlace {
    fn about(&self) -> &About {
        &self.about
    }

    fn find(&self, name: &Path) -> io::Result<Option<Box<dyn Place>>> {
        Ok(self.boxed_beside(self.root().locate_in(&self.found, name)?))
    }

    fn find_beside(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        Ok(self.boxed_beside(self.root().locate_beside(&self.found, name.as_ref())?))
    }

    fn subfolder(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let entry = statx(self.found.handle(), name, flags, StatxFlags::TYPE)?;
        if entry.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return Ok(None);
        }
        let found = self.root().locate_in(&self.found, name.as_ref())?;
        let is_here = |found: &Found| found.metadata.is_dir() && found.path == self.found.path.join(name);
        Ok(self.boxed_beside(found.filter(is_here)))
    }

    fn visit(&self, visit: &mut dyn FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()> {
        self.root().visit(&self.found, visit)
    }

    fn read_head(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.root().open(&self.found)?.take(most).read_to_end(&mut head)?;
        Ok(head)
    }

    fn open_file(&self, path: &Path, recent: &Arc<RecentWrites>) -> Result<Arc<dyn FileSource>, SourceError> {
        let failed = |e| SourceError::io(format!("cannot open {}", path.display()), &e);
        let file = self.root().open(&self.found).map_err(failed)?;
        Ok(Arc::new(self.folders.file(path, file, recent)?))
    }

    fn open_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder> {
        let this = *self;
        Ok(this.folders.at(this.found, recent)?)
    }
}
