//! Reads stored bytes.
//!
//! A [`Tree`] is what SOURCE is: folders and objects, below one path. A [`Source`] is a set of named objects whose
//! ranges can be read: one file, a folder of files. A missing object is an answer, not an error. A change while a
//! source is read is an error: bytes of two versions are never mixed. [`local`] has the trees, folders and files of
//! this machine, `store` those of object stores.

#[cfg(feature = "mount")]
pub(crate) mod disk_cache;
#[cfg(not(feature = "mount"))]
#[path = "no_disk_cache.rs"]
mod disk_cache;
mod error;
mod index;
#[cfg(target_os = "linux")]
mod local;
#[cfg(not(target_os = "linux"))]
mod no_maps;
mod origin;
mod permissions;
#[cfg(any(test, not(target_os = "linux")))]
mod portable;
mod recent_writes;
#[cfg(feature = "store")]
mod store;
mod url;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::memory::try_zeroed;
use disk_cache::DiskCacheStatistics;

pub(crate) use error::{Blocking, NoFolder, ObjectVersion, SourceError, is_loop, not_found, tells_what_is_there};
pub(crate) use index::{Index, IndexCache};
#[cfg(target_os = "linux")]
pub(crate) use local::{CoarseInstant, LocalTree, MappedWindow, OpenFile, OpenFiles, is_local, raise_descriptor_limit};
#[cfg(not(target_os = "linux"))]
pub(crate) use no_maps::{CoarseInstant, MappedWindow, OpenFile, OpenFiles, is_local};
pub(crate) use origin::Origin;
pub(crate) use permissions::Permissions;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::PortableTree as LocalTree;
pub(crate) use recent_writes::{RecentWrites, RefreshQueue};
pub(crate) use url::{StoreOption, StoreUrl, is_url, shown};

use error::{FirstFailure, system_time};
#[cfg(all(feature = "store", target_os = "linux"))]
use local::most_connections;
#[cfg(feature = "store")]
use url::StoreKind;

/// The name of the only object of a source that is a single file.
pub(crate) const WHOLE: &str = "";

/// The most entries of a folder of a server that are visited: what it tells in one answer.
pub(crate) const MOST_REMOTE: usize = 1000;

/// Returns how many connections to one object store there may be: some systems allow a process 256 open files.
#[cfg(all(feature = "store", not(target_os = "linux")))]
fn most_connections() -> usize {
    64
}

/// Returns a number that it has not returned before.
pub(crate) fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns a hash that is the same for equal values in this process.
pub(crate) fn hash_of(value: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// No object is longer.
pub(crate) const LONGEST: u64 = u64::MAX / 2;

/// Returns what stands for the last `length` bytes of an object in [`Source::will_need`].
pub(crate) fn last_bytes(length: u64) -> Range<u64> {
    u64::MAX - length.min(LONGEST)..u64::MAX
}

/// Named objects whose ranges can be read by many threads at a time.
pub(crate) trait Source: Send + Sync {
    /// Returns the bytes that an object has; `None` if it does not exist.
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError>;

    /// Fills `out` with the bytes of `object` from `offset` on; `false` if the object does not exist.
    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError>;

    /// Returns the number of bytes that an object has, and the last `length` of them, fewer if it is shorter; `None` if it
    /// does not exist. May block.
    fn read_end(&self, object: &str, length: u64) -> Result<Option<(u64, Vec<u8>)>, SourceError> {
        end_by_size(self, object, length)
    }

    /// Reads the metadata that is stored with an object under `name` (an extended attribute of a file); `None` if the
    /// object has no such metadata, or does not exist. May block.
    fn tag(&self, _object: &str, _name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        Ok(None)
    }

    /// Returns where the next byte from `offset` on lies that is stored, as far as the system tells without reading:
    /// those before it are zeros. It is `offset` itself where the system does not tell, and the end of the object or
    /// beyond if all that is left is zeros. May block.
    fn next_stored(&self, _object: &str, offset: u64) -> Result<u64, SourceError> {
        Ok(offset)
    }

    /// Returns whether it takes long to ask for bytes, so that [`Source::will_need`] should be called before they are
    /// read.
    fn fetches_ahead(&self) -> bool {
        false
    }

    /// Begins to fetch ranges of objects that are about to be read. Objects may end before their ranges do, or not
    /// exist; [`last_bytes`] are for [`Source::read_end`]. Never blocks. Returns whether there was room for all of
    /// them: if not, it is to be called again when some were read. There is always room for those that a thread is
    /// about to wait for (`awaited`).
    fn will_need(&self, _ranges: &[(&str, Range<u64>)], _awaited: bool) -> bool {
        true
    }

    /// Opens the file of an object for several reads in a row; `None` if the object is not a local file or does not
    /// exist.
    fn open_object(&self, _object: &str, _blocking: Blocking) -> Result<Option<Arc<OpenFile>>, SourceError> {
        Ok(None)
    }

    /// Returns the rights to all of it, where its files and folders are not those of the dataset; `None` if permissions
    /// are not [asked for](Origin::permissions), or were found out with the dataset.
    fn permissions(&self) -> Option<Permissions> {
        None
    }

    /// Checks that all that was read so far is of one version. To be called after reading, before anything that was
    /// read is delivered or kept.
    fn check_unchanged(&self) -> Result<(), SourceError>;

    fn check_unchanged_or(&self, _blocking: Blocking) -> Result<(), SourceError> {
        self.check_unchanged()
    }
}

/// Reads the end of an object by asking for its size first.
fn end_by_size<S: Source + ?Sized>(
    source: &S,
    object: &str,
    length: u64,
) -> Result<Option<(u64, Vec<u8>)>, SourceError> {
    let Some(size) = source.len(object)? else { return Ok(None) };
    let mut bytes = try_zeroed(length.min(size) as usize)?;
    let is_there = source.read_at(object, size - bytes.len() as u64, &mut bytes, Blocking::Yes)?;
    Ok(is_there.then_some((size, bytes)))
}

/// A source that is one file or one object, in the version that it had when it was opened.
pub(crate) trait FileSource: Source {
    fn version(&self) -> ObjectVersion;

    /// Returns whether a change was noticed at any time, even if the file is now as it was.
    fn has_changed(&self) -> bool;
}

/// A source whose objects are files below a folder: names with `/` between them.
pub(crate) trait Folder: Source {
    /// Opens the folder at `path`, which is absolute or relative to this folder and may have `..` in it.
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder>;

    /// Visits the entries of the folder `below` this one, in no order, until `visit` returns `false`. A folder that
    /// does not exist has no entries; names that are not UTF-8 are skipped. Returns whether names are told at all: web
    /// servers tell none, and stores that allow only reading.
    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<bool, SourceError>;

    /// Returns the device and inode number, which are the same on every path to this folder.
    fn identity(&self) -> (u64, u64);

    /// Returns whether anything here is known to have changed. Checks the folder itself and the files that were used
    /// last.
    fn is_changed(&self) -> bool;

    /// Settles the rights, where permissions are [asked for](Origin::permissions): from now on a file that fewer users
    /// may read than its folder cannot be read. Returns the rights to all that was read so far, here and in folders
    /// that were opened from here. To be called when the dataset is open.
    fn settle_permissions(&self) -> Option<Permissions> {
        None
    }

    /// Returns the first failure of the system, or the first change that was noticed, since the folder was opened, here
    /// or in a folder that was opened from here. What was concluded from the answers may be wrong then.
    fn failure(&self) -> Option<SourceError> {
        None
    }
}

/// What is at a path of a tree, or the type of a folder's entry as the folder itself has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Folder,
    /// Of an entry alone: a look at a path follows links.
    Link,
    File,
    /// A pipe, a socket, a device.
    Other,
}

/// What one look at a path has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) kind: EntryKind,
    pub(crate) version: ObjectVersion,
    /// The time of the last change of content or attributes (ctime).
    pub(crate) changed: SystemTime,
    /// Whether there was a link on the way to it, or that is unknown.
    pub(crate) by_links: bool,
    /// The rights to read it, where permissions are [asked for](Origin::permissions) and its source knows users.
    pub(crate) permissions: Option<Permissions>,
}

impl About {
    pub(crate) fn is_folder(&self) -> bool {
        self.kind == EntryKind::Folder
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == EntryKind::File
    }
}

/// What an object store was asked for so far, and what is in flight now, as status.json shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreStatus {
    /// Requests that were sent, each retry included.
    pub(crate) requests: u64,
    /// Bytes that have arrived as content of objects.
    pub(crate) bytes: u64,
    /// Requests that failed in a way that may pass, and so were sent again.
    pub(crate) retries: u64,
    /// Requests that wait for an answer.
    pub(crate) in_flight: usize,
    /// Bytes in memory that were requested ahead, or are awaited.
    pub(crate) staged_bytes: usize,
    /// The time until an answer begins: half of them are faster; `None` before the first.
    pub(crate) latency_p50: Option<Duration>,
    /// Of a hundred answers one takes longer.
    pub(crate) latency_p99: Option<Duration>,
    pub(crate) disk: Option<DiskCacheStatistics>,
}

/// Folders and files below one path, which is SOURCE.
pub(crate) trait Tree: Send + Sync {
    /// Returns SOURCE itself: the absolute path of a folder or of one dataset.
    fn source(&self) -> &Path;

    /// Returns what a path leads to; `None` if that is outside of the tree: whether anything is there stays unsaid. It
    /// is an error if nothing is there.
    fn look(&self, path: &Path) -> io::Result<Option<Box<dyn Place>>>;

    /// Looks at SOURCE, or at the folder that it lies in, following every link: these were chosen by the user.
    fn about_base(&self, path: &Path) -> io::Result<About>;

    /// Returns whether SOURCE itself is known to be gone: never in a store, where all that is below a key may be
    /// removed and still be no mistake, and a bucket that is gone says so itself. May block.
    fn is_gone(&self) -> bool {
        false
    }

    /// Returns the counters of the object store; `None` for another tree.
    fn store_status(&self) -> Option<StoreStatus> {
        None
    }

    /// Returns the files that are kept open; `None` if there never are any.
    fn open_files(&self) -> Option<&OpenFiles> {
        None
    }
}

/// A file or folder of a tree, as a look has found it. What is opened is what was looked at, whatever its path leads to
/// by then.
pub(crate) trait Place {
    fn about(&self) -> &About;

    /// Returns whether a look into this file or folder is a request to a server, so that there should not be many.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns whether this file is one of so many in its folder that not all can be looked into.
    fn is_in_crowd(&self) -> bool {
        false
    }

    /// Returns whether this folder is known to have so many names that a listing takes many requests.
    fn is_crowd(&self) -> bool {
        false
    }

    /// Returns what lies at `name`, a path in this folder without `..`; `None` as in [`Tree::look`].
    fn find(&self, name: &Path) -> io::Result<Option<Box<dyn Place>>>;

    /// Like [`Place::find`], but `None` for what is on another file system, which may hang.
    fn find_beside(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>> {
        self.find(name.as_ref())
    }

    /// Returns a subfolder; `None` if it is not one, or a link to one, or something else is mounted there: that is not
    /// part of this folder, and may hang.
    fn subfolder(&self, name: &OsStr) -> io::Result<Option<Box<dyn Place>>>;

    fn visit(&self, visit: &mut dyn FnMut(&OsStr, EntryKind) -> bool) -> io::Result<()>;

    /// Reads the first bytes of this file: `most`, or all if it has fewer.
    fn read_head(&self, most: u64) -> io::Result<Vec<u8>>;

    /// Opens this file as a source. Should it have to be opened again later, then at `path`, the path that has led to
    /// it. `recent` gets a record if it was written to a moment ago.
    fn open_file(&self, path: &Path, recent: &Arc<RecentWrites>) -> Result<Arc<dyn FileSource>, SourceError>;

    /// Opens this folder as a source. `recent` gets a record if it, or a file that is opened in it, was written to a
    /// moment ago.
    fn open_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder>;

    /// Like [`Place::open_folder`], for a folder that has files of others, too: those that come and go are no change.
    fn open_shared_folder(self: Box<Self>, recent: &Arc<RecentWrites>) -> Result<Arc<dyn Folder>, NoFolder>;
}

/// A folder in which a format looks for its signs. Links are followed if they stay in the source. What cannot be looked
/// at counts as absent, except that a failure of the system is [remembered](FolderProbe::failure): then the answers
/// mean nothing.
pub(crate) struct FolderProbe {
    pub(crate) place: Box<dyn Place>,
    failure: RefCell<Option<io::Error>>,
}

impl FolderProbe {
    pub(crate) fn new(place: Box<dyn Place>) -> Self {
        Self { place, failure: RefCell::default() }
    }

    /// Takes the reason why the answers so far mean nothing, if there is one.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.take()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    pub(crate) fn find(&self, name: impl AsRef<Path>) -> Option<Box<dyn Place>> {
        self.known(self.place.find(name.as_ref())).flatten()
    }

    pub(crate) fn is_file(&self, name: impl AsRef<Path>) -> bool {
        self.find(name).is_some_and(|place| place.about().is_file())
    }

    pub(crate) fn is_folder(&self, name: impl AsRef<Path>) -> bool {
        self.find(name).is_some_and(|place| place.about().is_folder())
    }

    /// Reads the first bytes of a file of the folder, at most `most`; `None` if it is no file, or on another file
    /// system, which may hang.
    pub(crate) fn head_beside(&self, name: &OsStr, most: u64) -> Option<Vec<u8>> {
        let place = self.known(self.place.find_beside(name)).flatten()?;
        if place.about().is_file() { self.known(place.read_head(most)) } else { None }
    }

    /// Returns whether a [subfolder](Place::subfolder) has a property; `false` for mount points, which are not part of
    /// the dataset and may hang. A failure of the system in it is one of this folder.
    pub(crate) fn subfolder_is(&self, name: &OsStr, is: &dyn Fn(&Self) -> bool) -> bool {
        let Some(subfolder) = self.known(self.place.subfolder(name)).flatten().map(Self::new) else { return false };
        let verdict = is(&subfolder);
        if let Some(error) = subfolder.failure() {
            self.failure.replace(Some(error));
        }
        verdict
    }

    /// Visits at most `most` entries, in no order, until `visit` returns `false`; of a folder of a server at most
    /// [`MOST_REMOTE`].
    pub(crate) fn visit(&self, most: usize, mut visit: impl FnMut(&OsStr, EntryKind) -> bool) {
        let mut left = if self.place.is_remote() { most.min(MOST_REMOTE) } else { most };
        let visited = self.place.visit(&mut |name, kind| {
            left -= 1;
            visit(name, kind) && left > 0
        });
        let _ = self.known(visited);
    }

    /// Returns a result, and remembers an error for which the folder is not to blame.
    fn known<T>(&self, result: io::Result<T>) -> Option<T> {
        let failed = |error: io::Error| {
            if !tells_what_is_there(error.kind()) {
                self.failure.replace(Some(error));
            }
        };
        result.map_err(failed).ok()
    }
}
