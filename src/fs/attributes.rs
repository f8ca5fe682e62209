//! Attributes of files and folders: lookup, getattr and extended attributes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{getegid, geteuid};

use super::Volfs;
use super::error::FsError;
use super::handles::Handle;
use super::ino::Ino;
use super::resolve::{DOT_VOLFS, Resolved, STATUS};
use crate::catalog::{Node, OpenDataset};
use crate::pool::Bulkhead;
use crate::source::{Blocking, Permissions};
use crate::view::ShownArray;

/// How long the kernel may cache names and attributes. Together with the time for which the catalog trusts its last
/// check of the source this is less than a second.
pub(crate) const TTL: Duration = Duration::from_millis(750);

/// The attributes of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// Inode number.
    pub ino: Ino,
    /// Size in bytes.
    pub size: u64,
    /// Whether it is a folder.
    pub folder: bool,
    /// When the source was last written to.
    pub modified: SystemTime,
    /// When anything about the source last changed.
    pub changed: SystemTime,
    /// Owner, group and mode.
    pub permissions: Permissions,
    /// Whether the content may change at any time, so that the attributes must not be cached.
    pub volatile: bool,
}

impl Attributes {
    /// Returns the time for which the kernel may remember them, and the name that they were found by.
    pub(crate) fn ttl(&self) -> Duration {
        if self.volatile { Duration::ZERO } else { TTL }
    }
}

/// The names of a file's extended attributes, and the value of each for the array that the file shows and the name of
/// the dataset's format.
const ATTRIBUTES: [(&str, ValueOf); 4] = [
    // samples along each axis, slowest first: `512,512,1024`
    ("user.volfs.shape", |shown, _| shown.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
    // NumPy's name of the sample type
    ("user.volfs.dtype", |shown, _| shown.dtype.name().to_owned()),
    ("user.volfs.order", |_, _| "C".to_owned()),
    ("user.volfs.format", |_, format| format.to_owned()),
];
type ValueOf = fn(&ShownArray, &str) -> String;

/// Everybody may read.
const FILE: u32 = 0o444;
const FOLDER: u32 = 0o555;
/// In bytes, as local file systems have it.
pub(crate) const LONGEST_NAME: u32 = 255;
/// How long a request waits until the source has told who may enter the root. One that hangs must not keep anybody from
/// `.volfs`.
const ROOT_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of the bulkhead of looks at the root.
const LOOKS_AT_ROOT: u64 = (1 << 32) + 1;

impl Volfs {
    /// Finds `name` in a folder. The kernel asks for `.` of a file or folder of which it has the number alone, and then
    /// for `..`: for a server of NFS.
    pub(crate) fn lookup(&self, parent: Ino, name: &OsStr, blocking: Blocking) -> Result<Attributes, FsError> {
        let folder = self.resolve(parent, blocking)?;
        // `.volfs` exists even if the source does not answer
        if parent != Ino::ROOT || name != DOT_VOLFS {
            self.check(&folder, blocking)?;
        }
        let found = match name.as_bytes() {
            b"." => folder,
            b".." => self.resolve(folder.parent(), blocking)?,
            _ => match self.child(&folder, name, blocking)? {
                Some(child) => child,
                // objects of a store may have longer ones
                None if name.len() > LONGEST_NAME as usize => return Err(FsError::NameTooLong),
                None => return Err(FsError::NotFound),
            },
        };
        self.attributes(&found, blocking)
    }

    /// Returns the attributes of a file or folder, or of an open file.
    pub(crate) fn getattr(
        self: &Arc<Self>,
        ino: Ino,
        handle: Option<u64>,
        blocking: Blocking,
    ) -> Result<Attributes, FsError> {
        let resolved = self.resolve(ino, blocking)?;
        let is_current = self.ask_permissions(&resolved, blocking)?;
        let mut attributes = self.attributes(&resolved, blocking)?;
        if !is_current {
            attributes.permissions.mode = 0;
        }
        // an open file keeps the size that its content had when it was opened
        if let Some(Handle::File(file) | Handle::Readahead(file)) = handle.and_then(|h| self.handles.get(h)).as_deref()
        {
            attributes.size = file.content.len();
        }
        Ok(attributes)
    }

    /// Sees to it that the permissions of what the kernel has known for a while are those of now, where they are the
    /// source's. Returns whether it is still there: nobody may open what is no more, though those who have it open may
    /// look at it.
    fn ask_permissions(self: &Arc<Self>, resolved: &Resolved, blocking: Blocking) -> Result<bool, FsError> {
        let Some(node) = resolved.node().filter(|node| node.permissions().is_some()) else { return Ok(true) };
        if node.parent.is_none() {
            return if self.look_at_root(node, blocking) { Ok(true) } else { Err(FsError::WouldBlock) };
        }
        match self.check(resolved, blocking) {
            Ok(()) => Ok(true),
            Err(FsError::Stale | FsError::NotFound | FsError::Denied) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the attributes of a folder or dataset of the source that a listing found, and how old they are. `None`
    /// for everything else. Does not look at the source.
    pub(crate) fn listed_attributes(&self, ino: Ino) -> Option<(Attributes, Duration)> {
        let node = self.catalog.node(ino.node()).filter(|_| ino.index() == 0)?;
        let ((modified, changed), age) = node.last_look();
        let permissions = self.chosen(node.permissions(), FOLDER, true);
        Some((Attributes { ino, size: 0, folder: true, modified, changed, permissions, volatile: false }, age))
    }

    /// Returns the value of an extended attribute. Fails with [`FsError::NoAttribute`] if the file has none of that
    /// name, and with [`FsError::AttributeNotSupported`] if no file has attributes of that kind, such as access lists
    /// and security labels.
    pub(crate) fn getxattr(&self, ino: Ino, name: &OsStr, blocking: Blocking) -> Result<Vec<u8>, FsError> {
        // Programs ask for security labels and access lists all the time; those are refused without resolving the file,
        // and so that they do not ask for each file anew.
        if !name.as_bytes().starts_with(b"user.") {
            return Err(FsError::AttributeNotSupported);
        }
        let (_, value) = ATTRIBUTES.iter().find(|(known, _)| name == *known).ok_or(FsError::NoAttribute)?;
        let (shown, format) = self.resolve(ino, blocking)?.array().ok_or(FsError::NoAttribute)?;
        Ok(value(&shown, format).into_bytes())
    }

    /// Returns the names of a file's extended attributes, each followed by a zero byte.
    pub(crate) fn listxattr(&self, ino: Ino, blocking: Blocking) -> Result<Vec<u8>, FsError> {
        let shows_array = self.resolve(ino, blocking)?.array().is_some();
        let names = ATTRIBUTES.iter().filter(|_| shows_array);
        Ok(names.flat_map(|(name, _)| name.bytes().chain([0])).collect())
    }

    fn attributes(&self, resolved: &Resolved, blocking: Blocking) -> Result<Attributes, FsError> {
        let (ino, folder) = (resolved.ino(), resolved.is_folder());
        let known = match resolved {
            _ if folder => Some(0),
            Resolved::Inside(_, open, ..) => self.computed_contents.size(ino, open),
            _ => None,
        };
        let size = match known {
            Some(size) => size,
            None => self.content(resolved, blocking)?.len(),
        };
        let (modified, changed) = self.times(ino.node());
        let permissions = self.permissions(resolved);
        Ok(Attributes { ino, size, folder, modified, changed, permissions, volatile: resolved.is_volatile() })
    }

    /// Returns the permissions that a file or folder is shown with.
    pub(super) fn permissions(&self, resolved: &Resolved) -> Permissions {
        let shown = match resolved {
            // names of files of a folder are for those who may list it
            Resolved::State(Ino::STATUS | Ino::LOG) if self.options.allow_other => {
                return self.chosen(None, 0o400, false);
            }
            Resolved::State(_) => None,
            Resolved::Node(node) => node.permissions(),
            Resolved::Error(node, _) => node.description_permissions(),
            Resolved::Inside(node, open, tree, item) => match tree.layer(*item) {
                Some(layer) => node.permissions().map(|source| of_layer(source, open, layer)),
                // what is said of the whole dataset
                None => node.description_permissions(),
            },
        };
        match resolved.is_folder() {
            true => self.chosen(shown, FOLDER, true),
            false => self.chosen(shown.map(Permissions::as_file), FILE, true),
        }
    }

    /// Returns those of what nothing is known of, with all rights that it may have.
    pub(crate) fn default_permissions(&self, folder: bool) -> Permissions {
        self.chosen(None, if folder { FOLDER } else { FILE }, true)
    }

    /// Returns the permissions of the source with what the user has chosen in their place. `most` is without a source.
    fn chosen(&self, source: Option<Permissions>, most: u32, has_umask: bool) -> Permissions {
        let mounter = || Permissions { uid: geteuid().as_raw(), gid: getegid().as_raw(), mode: most };
        let shown = source.unwrap_or_else(mounter);
        let chosen = &self.options.ownership;
        let mode = match chosen.umask {
            Some(umask) if has_umask => most & !umask,
            _ => shown.mode,
        };
        Permissions { uid: chosen.uid.unwrap_or(shown.uid), gid: chosen.gid.unwrap_or(shown.gid), mode }
    }

    /// Returns the inode number of a name that is another file for a user than for the owner of the mount:
    /// `status.json`, which is without names of datasets for others where these may enter.
    pub(crate) fn ino_for_user(&self, parent: Ino, name: &OsStr, uid: u32) -> Option<Ino> {
        let is_other = || uid != 0 && uid != self.chosen(None, FILE, false).uid;
        (self.options.allow_other && parent == Ino::DOT_VOLFS && name == STATUS && is_other())
            .then_some(Ino::PUBLIC_STATUS)
    }

    /// Looks at the root of the source again, if who may enter it is the source's to say and the last look is not of a
    /// moment ago. Returns whether it need not be, or was, looked at; `blocking` for a second at most.
    pub(super) fn look_at_root(self: &Arc<Self>, root: &Node, blocking: Blocking) -> bool {
        if root.permissions().is_none() || root.checked_lately() {
            return true;
        }
        if blocking == Blocking::No {
            return false;
        }
        let mut since = self.refreshes.root_look.since.lock();
        if since.is_none() {
            *since = Some(Instant::now());
            let fs = Arc::clone(self);
            // a pool without threads runs the job here, and the job takes the lock
            drop(since);
            self.pool().submit(Bulkhead::new(LOOKS_AT_ROOT), move || {
                fs.catalog.look_at_root();
                *fs.refreshes.root_look.since.lock() = None;
                fs.refreshes.root_look.done.notify_all();
            });
            since = self.refreshes.root_look.since.lock();
        }
        while let Some(left) =
            since.and_then(|since| ROOT_TIMEOUT.checked_sub(since.elapsed())).filter(|left| !left.is_zero())
        {
            self.refreshes.root_look.done.wait_for(&mut since, left);
        }
        true
    }
}

/// Returns who may read a layer of a dataset that `source` may read.
fn of_layer(source: Permissions, open: &OpenDataset, layer: usize) -> Permissions {
    let levels = open.dataset.layers().get(layer).map(|layer| &layer.levels[..]).unwrap_or_default();
    levels.iter().filter_map(|level| level.source().permissions()).fold(source, Permissions::restrict)
}
