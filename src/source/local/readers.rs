//! The users that may read the folders of a dataset, and the files in them.
//!
//! A user may read a folder with three rights: to search it, to search the folders between it and the dataset's own
//! folder, and to read the files in it that were opened until the dataset was open (the descriptions and headers). The
//! files that are opened later are unknown then. So one of them that fewer users may read is an error for all users.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::root::{Found, SourceRoot};
use crate::source::{Permissions, tells_what_is_there};
use crate::sync::Mutex;

/// Files that were read before the permissions are settled, of which changes are noticed.
const MAX_FILES: usize = 128;

/// The users that may read a folder and what is in it.
pub(super) struct Readers {
    /// Those of the dataset's own folder; `None` for itself.
    dataset: Option<Arc<Self>>,
    path: PathBuf,
    inode: (u64, u64),
    /// The right to search this folder and those on the way to it, as it was opened.
    way: Permissions,
    state: Mutex<State>,
    /// Whether the owner that is allowed is in the group that is allowed, once that was asked for.
    owner_is_member: OnceLock<bool>,
}

struct State {
    /// The rights to what is in the folder, and to the files that were read before this was settled.
    allowed: Permissions,
    /// Of the dataset's own folder: the rights to all that was read before this was settled, in whatever folder.
    all_read: Permissions,
    /// Of the dataset's own folder: whether it is settled.
    settled: bool,
    /// The files that were read before, with the rights to them.
    files: Vec<(Box<str>, Permissions)>,
}

impl Readers {
    /// Those of a folder of a dataset; `dataset` has those of the dataset's own folder, unless this is it. `None` if
    /// permissions are not asked for.
    pub(super) fn new(root: &SourceRoot, place: &Found, dataset: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        let way = Self::way(root, dataset.map(|dataset| &**dataset), place)?;
        if let Some(dataset) = dataset {
            dataset.note_read(way);
        }
        let state = State { allowed: way, all_read: way, settled: false, files: Vec::new() };
        Some(Arc::new(Self {
            dataset: dataset.cloned(),
            path: place.path.clone(),
            inode: place.inode(),
            way,
            state: Mutex::new(state),
            owner_is_member: OnceLock::new(),
        }))
    }

    /// Returns the rights to what is in a folder, as far as folders decide.
    fn way(root: &SourceRoot, dataset: Option<&Self>, place: &Found) -> Option<Permissions> {
        let own = root.own_permissions(place)?;
        Some(dataset.map_or(own, |dataset| own.beyond().restrict(dataset.way_to(root, place))))
    }

    /// Returns the right to go from this folder to a place, or from the top of the source where links lead elsewhere.
    fn way_to(&self, root: &SourceRoot, place: &Found) -> Permissions {
        let is_below = place.path.starts_with(&self.path);
        let from = if is_below { (&*self.path, Some(self.inode)) } else { (root.top_of(&place.path), None) };
        root.way(from, place)
    }

    /// Returns whether others may read by now what was read before that was settled.
    pub(super) fn have_changed(&self, root: &SourceRoot, files: &[Box<str>]) -> bool {
        let folder = match root.locate(&self.path) {
            // a failure of the system is no change
            Err(e) if !tells_what_is_there(e.kind()) => return false,
            found => found.ok().flatten(),
        };
        let way = folder.and_then(|place| Self::way(root, self.dataset.as_deref(), &place));
        if way != Some(self.way) {
            return true;
        }
        let at = |path: &Path| root.locate(path).ok().flatten();
        let now = |name: &str| at(&self.path.join(name)).and_then(|place| self.of_file(root, &place));
        let read = self.state.lock().files.clone();
        // one that is gone is noticed elsewhere
        read.iter().any(|(name, before)| now(name).is_some_and(|now| now != *before))
            || files.iter().any(|name| now(name).is_some_and(|now| !self.lets_in_no_more_than(now)))
    }

    pub(super) fn of_file(&self, root: &SourceRoot, place: &Found) -> Option<Permissions> {
        Some(root.own_permissions(place)?.restrict(self.way_to(root, place)))
    }

    pub(super) fn top(self: &Arc<Self>) -> &Arc<Self> {
        self.dataset.as_ref().unwrap_or(self)
    }

    fn note_read(&self, permissions: Permissions) {
        let mut state = self.state.lock();
        state.all_read = state.all_read.restrict(permissions);
    }

    /// Returns the rights to the folder and what is in it.
    pub(super) fn allowed(&self) -> Permissions {
        let allowed = self.state.lock().allowed;
        self.dataset.as_ref().map_or(allowed, |dataset| allowed.restrict(dataset.allowed()))
    }

    /// Settles the rights in the whole dataset, and returns the rights to all that was read so far.
    pub(super) fn settle(self: &Arc<Self>) -> Permissions {
        let mut state = self.top().state.lock();
        state.settled = true;
        state.all_read
    }

    /// Returns whether all users that may read the folder may read a file.
    fn lets_in_no_more_than(&self, file: Permissions) -> bool {
        let allowed = self.allowed().as_file();
        file.covers(allowed, || *self.owner_is_member.get_or_init(|| allowed.owner_is_member()))
    }

    /// Allows only users that may read a file, until the rights are settled. Then a file that fewer users may read than
    /// are allowed is an error.
    pub(super) fn admit(self: &Arc<Self>, name: &str, file: Permissions) -> io::Result<()> {
        if !self.top().state.lock().settled {
            let mut state = self.state.lock();
            state.allowed = state.allowed.restrict(file.as_folder());
            if state.files.len() < MAX_FILES {
                state.files.push((name.into(), file));
            }
            drop(state);
            self.top().note_read(file.as_folder());
            return Ok(());
        }
        if self.lets_in_no_more_than(file) {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "fewer users may read it than the description of its dataset; give all files of the dataset the same \
             owner, group and mode, or mount with -o umask=022",
        ))
    }
}
