//! Who may read what: the owner, group and mode that files and folders are shown with, which the kernel enforces.
//!
//! They belong to who has mounted, and everybody may read, unless other users may enter a mount of local files: then
//! they are those of the file or folder that is shown, at every path to it. `-o uid=, gid=, umask=` say otherwise.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{getegid, geteuid};

use super::ino::Ino;
use super::resolve::{Resolved, STATUS};
use super::tree::Item;
use super::volfs::Volfs;
use crate::catalog::{Node, OpenDataset};
use crate::pool::Bulkhead;
use crate::source::{Blocking, Permissions};

/// Everybody may read.
const FILE: u32 = 0o444;
const FOLDER: u32 = 0o555;
/// How long a request waits until the source has told who may enter the root. One that hangs must not keep anybody from
/// `.volfs`.
const ROOT_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of the bulkhead of looks at the root.
const LOOKS_AT_ROOT: u64 = (1 << 32) + 1;

impl Volfs {
    /// Returns the permissions that a file or folder is shown with.
    pub(super) fn permissions(&self, resolved: &Resolved) -> Permissions {
        let source = resolved.node().and_then(|node| node.permissions());
        let (shown, most) = match (resolved, source) {
            (Resolved::DotVolfs, _) => (None, FOLDER),
            // names of files of a folder are for those who may list it
            (Resolved::Status | Resolved::Log, _) if self.options.allow_other => {
                return self.chosen(None, 0o400, false);
            }
            (Resolved::Status | Resolved::PublicStatus | Resolved::Log, _) => (None, FILE),
            (Resolved::Folder(_) | Resolved::Dataset(_), source) => (source, FOLDER),
            (Resolved::Error(node, _), _) => (node.description_permissions().map(Permissions::as_file), FILE),
            (Resolved::Inside(node, _, _, Item::Description), _) => {
                (node.description_permissions().map(Permissions::as_file), FILE)
            }
            (Resolved::Inside(_, open, tree, item), source) => {
                let layer = match item {
                    Item::Layer(layer) | Item::View { layer, .. } => Some(*layer),
                    _ => None,
                };
                let source = source.map(|source| layer.map_or(source, |layer| of_layer(source, open, layer)));
                match tree.is_folder(open, *item) {
                    true => (source, FOLDER),
                    false => (source.map(Permissions::as_file), FILE),
                }
            }
        };
        self.chosen(shown, most, true)
    }

    /// Returns those of a folder or dataset of the source that a listing has found.
    pub(super) fn permissions_of_node(&self, node: &Node) -> Permissions {
        self.chosen(node.permissions(), FOLDER, true)
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
    pub(crate) fn ino_for_user(&self, parent: Ino, name: &std::ffi::OsStr, uid: u32) -> Option<Ino> {
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
