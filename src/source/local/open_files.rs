//! Open local files, in the versions that they had when they were opened, and the caches that all datasets of a source
//! share: of these files, of names of missing files, and of digests of the versions that were opened before.
//!
//! A file that is evicted is opened again when it is read again, so that the number of open files is bounded although
//! the number of readers is not.

use std::fs::{self, File, Metadata};
use std::io::{self, IoSliceMut};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use lru::LruCache;
use rustix::fs::{AtFlags, SeekFrom, StatxFlags, fgetxattr, seek, statx};
use rustix::io::{Errno, ReadWriteFlags, fcntl_dupfd_cloexec, preadv2};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::windows::{CoarseInstant, FileWindows, MappedWindow};
use crate::counters::Counters;
use crate::source::{Blocking, ObjectVersion, RecentWrites, SourceError, hash_of};
use crate::sync::{Mutex, PerProcess};

/// Files that are kept open, and connections to one object store, if the limit on descriptors allows them.
const MAX_FILES: usize = 384;
#[cfg(feature = "store")]
const MAX_CONNECTIONS: usize = 512;
/// Open files, or connections, that there may be in any case.
const MIN_DESCRIPTORS: usize = 4;
/// The length of the table of descriptors that is enough for all of these: 8 bytes each.
const DESCRIPTORS: u64 = 1024;
/// Descriptors for everything else: the connections to the kernel, the log, pipes, and lookups in flight.
const RESERVED: u64 = 32;

const MAX_TAG_BYTES: usize = 4096;
/// Names in the negative cache.
const MAX_MISSING: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// The most recently used of these are searched for those of one folder.
const RECENT_MISSING: usize = 512;
const MISSING_TTL: Duration = Duration::from_secs(1);
const SMALL_STACK: usize = 64 << 10;
const MAX_DIGESTS: usize = 1 << 16;
/// The digest of a file that is not there; no other one is 0.
const MISSING: u64 = 0;

/// Whether the table of descriptors of this process has been extended.
static IS_EXTENDED: PerProcess<()> = PerProcess::new();

/// Raises the soft limit on open descriptors to the hard one. To be called before any folder or dataset is opened, and
/// before there are threads.
pub(crate) fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        log::debug!("the limit on open files stays as it is: {error}");
    }
    IS_EXTENDED.get_or_init(extend_descriptor_table);
}

/// Makes the kernel's table of the descriptors of this process as long as it will have to be. It grows by doubling,
/// never shrinks, and if the process has threads, each time waits until all processors have left the table (an RCU
/// grace period): reading 64 files for the first time took 8 to 24 ms longer.
fn extend_descriptor_table() {
    let most = getrlimit(Resource::Nofile).current.map_or(DESCRIPTORS, |limit| limit.min(DESCRIPTORS));
    let extend = move || {
        let last = i32::try_from(most).unwrap_or(i32::MAX) - 1;
        // any descriptor will do; without one, the table grows when it has to
        let _ = File::open("/dev/null").map(|null| fcntl_dupfd_cloexec(null, last));
    };
    // `.`, `..`, and a folder for each thread
    if fs::metadata("/proc/self/task").is_ok_and(|threads| threads.nlink() <= 3) {
        extend();
    } else {
        let thread = thread::Builder::new().name("volfs-files".into()).stack_size(SMALL_STACK);
        let _ = thread.spawn(extend);
    }
}

/// Returns how many connections to one object store there may be.
#[cfg(feature = "store")]
pub(crate) fn most_connections() -> usize {
    share(getrlimit(Resource::Nofile).current, 4, MAX_CONNECTIONS)
}

/// Returns the `part`-th part of a limit without what is reserved, and at most `most`; `None` is no limit.
fn share(limit: Option<u64>, part: u64, most: usize) -> usize {
    let free = limit.unwrap_or(u64::MAX).saturating_sub(RESERVED) / part;
    usize::try_from(free).unwrap_or(most).clamp(MIN_DESCRIPTORS, most)
}

/// An open file, for several reads in a row. They count only if [`OpenFile::check_unchanged`] succeeds afterwards.
pub(crate) struct OpenFile {
    pub(super) name: Box<str>,
    pub(super) version: ObjectVersion,
    /// The time of the last change of its content or attributes.
    ctime: (i64, i64),
    path: PathBuf,
    file: File,
    windows: FileWindows,
    changed: Arc<AtomicBool>,
    recent: Arc<RecentWrites>,
    /// Whether it was used since the last [`OpenFile::was_used`].
    used: AtomicBool,
    counters: Arc<Counters>,
}

/// Returns the time of the last change of content or attributes: seconds and nanoseconds.
pub(super) fn ctime(metadata: &Metadata) -> (i64, i64) {
    (metadata.ctime(), metadata.ctime_nsec())
}

impl OpenFile {
    /// Wraps a file that was just opened, with its metadata from then. `changed` is set once a change is noticed, and
    /// `recent` gets a record if the file was written to a moment ago. May wait for its disk.
    pub(super) fn new(
        (name, path): (&str, PathBuf),
        (file, metadata): (File, Metadata),
        (changed, recent): (&Arc<AtomicBool>, &Arc<RecentWrites>),
        counters: &Arc<Counters>,
    ) -> Arc<Self> {
        recent.record(&metadata);
        Arc::new(Self {
            name: name.into(),
            version: ObjectVersion::from_metadata(&metadata),
            ctime: ctime(&metadata),
            path,
            windows: FileWindows::new(&file, metadata.size()),
            file,
            changed: Arc::clone(changed),
            recent: Arc::clone(recent),
            used: AtomicBool::new(true),
            counters: Arc::clone(counters),
        })
    }

    pub(super) fn size_now(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.size())
    }

    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<(), SourceError> {
        let (length, size) = (out.len() as u64, self.version.size);
        // the check for changes, which follows, would wait for a server
        if blocking == Blocking::No && !self.is_local() {
            return Err(SourceError::WouldBlock);
        }
        if offset.checked_add(length).is_none_or(|end| end > size) {
            // the size may have been wrong for a moment, and then the file is not too short
            self.check_unchanged()?;
            return Err(SourceError::TooShort { offset, length, size });
        }
        let read = match blocking {
            Blocking::Yes => self.file.read_exact_at(out, offset).map(|()| true),
            Blocking::No => read_from_page_cache(&self.file, offset, out),
        };
        if matches!(&read, Err(e) if e.kind() == io::ErrorKind::UnexpectedEof) {
            self.check_unchanged()?;
        }
        match read.map_err(|e| self.failed("read", &e))? {
            true => self.counters.source_bytes.add(length),
            false => return Err(SourceError::WouldBlock),
        }
        Ok(())
    }

    /// Returns where the next byte from `offset` on lies that is not in a hole of the file; `offset` itself if the file
    /// system knows no holes. May block.
    pub(super) fn next_stored(&self, offset: u64) -> u64 {
        // all reads say where they begin, so that the position of the descriptor means nothing
        match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(at) => at.max(offset),
            Err(Errno::NXIO) => self.version.size.max(offset),
            Err(_) => offset,
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.windows.is_local
    }

    /// Reads an extended attribute of the `user` namespace; `None` if the file has none of this name.
    pub(super) fn tag(&self, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let mut value = [0; MAX_TAG_BYTES];
        match fgetxattr(&self.file, format!("user.{name}"), &mut value) {
            Ok(length) => Ok(value.get(..length).map(<[u8]>::to_vec)),
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
            Err(e) => Err(self.failed("read an attribute of", &e.into())),
        }
    }

    /// Returns the number of the window that a range of the file lies in, and the offset of the range in it; `None` if
    /// the range can only be read.
    pub(crate) fn window_of(&self, offset: u64, length: usize) -> Option<(u64, usize)> {
        self.windows.locate(offset, length)
    }

    /// Returns a mapped window by its number; `None` if it is not requested often or for many `bytes`, or can only be
    /// read.
    pub(crate) fn window(&self, number: u64, bytes: usize, now: CoarseInstant) -> Option<Arc<MappedWindow>> {
        self.windows.window(&self.file, number, bytes, now)
    }

    /// Checks that `copied` bytes from a window were those of the file, and counts them.
    pub(crate) fn check_copied(&self, window: &MappedWindow, copied: usize) -> Result<(), SourceError> {
        self.counters.source_bytes.add(copied as u64);
        if !window.is_broken() {
            return Ok(());
        }
        self.check_unchanged()?;
        Err(self.failed("read", &io::Error::other("the system could not give what it holds of the file")))
    }

    /// Checks that the file is still of the version that was opened, and so is all that was read from it.
    pub(crate) fn check_unchanged(&self) -> Result<(), SourceError> {
        let now = self.file.metadata().map_err(|e| self.failed("look at", &e))?;
        // a file without a name was replaced or removed
        if ObjectVersion::from_metadata(&now) != self.version || now.nlink() == 0 {
            self.changed.store(true, Ordering::Relaxed);
            return Err(SourceError::Changed);
        }
        // other attributes have changed, or new content was given the old time
        if ctime(&now) != self.ctime {
            self.recent.record_change();
        }
        Ok(())
    }

    /// Records that the file is in use, so that it is not evicted next.
    pub(super) fn mark_used(&self) {
        // most calls write nothing, which other processors would have to notice
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Returns whether the file has lost its last name. Neither asks a server nor waits for a disk.
    fn is_gone(&self) -> bool {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        statx(&self.file, "", flags, StatxFlags::NLINK).is_ok_and(|now| now.stx_nlink == 0)
    }

    fn failed(&self, doing: &str, error: &io::Error) -> SourceError {
        SourceError::io(format!("cannot {doing} {}", self.path.display()), error)
    }
}

/// Reads from the kernel's page cache only; `false` if it does not have all bytes, or the file system cannot read so.
fn read_from_page_cache(file: &File, offset: u64, out: &mut [u8]) -> io::Result<bool> {
    let wanted = out.len();
    match preadv2(file, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(read == wanted),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// A file of a dataset: the number of the dataset's file or folder, and the hash of the name in it.
pub(super) type Key = (u64, u64);

pub(crate) struct OpenFiles {
    files: Mutex<LruCache<Key, Arc<OpenFile>>>,
    missing: Mutex<LruCache<Key, (Box<str>, Instant)>>,
    /// Of the versions of files that were opened before.
    digests: Mutex<LruCache<Key, u64>>,
    /// Called when a file is opened and no other is open.
    on_first: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl OpenFiles {
    pub(super) fn new() -> Self {
        IS_EXTENDED.get_or_init(extend_descriptor_table);
        let most = NonZeroUsize::new(share(getrlimit(Resource::Nofile).current, 2, MAX_FILES));
        let files = Mutex::new(LruCache::new(most.unwrap_or(NonZeroUsize::MIN)));
        let missing = Mutex::new(LruCache::new(MAX_MISSING));
        Self { files, missing, digests: Mutex::new(LruCache::unbounded()), on_first: OnceLock::new() }
    }

    pub(super) fn get(&self, key: Key, name: &str) -> Option<Arc<OpenFile>> {
        let file = self.files.lock().get(&key).filter(|file| &*file.name == name).cloned();
        file.inspect(|file| file.mark_used())
    }

    pub(super) fn insert(&self, key: Key, file: &Arc<OpenFile>) {
        let mut files = self.files.lock();
        // files that are read without being looked up here get a second chance
        for _ in 0..if files.len() < files.cap().get() { 0 } else { files.len() } {
            match files.peek_lru() {
                Some((oldest, file)) if file.was_used() => {
                    let oldest = *oldest;
                    files.promote(&oldest);
                }
                _ => break,
            }
        }
        let is_first = files.is_empty();
        let evicted = files.push(key, Arc::clone(file)).map(|(_, file)| file);
        drop(files);
        close_aside(evicted);
        if let (true, Some(on_first)) = (is_first, self.on_first.get()) {
            on_first();
        }
    }

    /// Closes `most` of the least recently used files for which `closes` holds. Returns whether there was one.
    fn close_some(&self, most: impl Fn(usize) -> usize, closes: impl Fn(&Key, &Arc<OpenFile>) -> bool) -> bool {
        let mut files = self.files.lock();
        let found: Vec<Key> = files.iter().rev().filter(|(key, file)| closes(key, file)).map(|(key, _)| *key).collect();
        let closed: Vec<_> = found.iter().take(most(found.len())).filter_map(|key| files.pop(key)).collect();
        drop(files);
        close_aside(closed);
        !found.is_empty()
    }

    /// Closes the files that are not being read, and were not used since the last call; they are opened again when they
    /// are read. To be called every now and then, so that an unused source is not looked at for ever.
    pub(crate) fn close_unused(&self) {
        self.close_some(|n| n, |_, file| Arc::strong_count(file) == 1 && !file.was_used());
    }

    /// Closes the files that were not used lately: a half of those that are not being read. Returns `false`
    /// if there are none.
    pub(super) fn close_idle(&self) -> bool {
        self.close_some(|n| n.div_ceil(2), |_, file| Arc::strong_count(file) == 1)
    }

    pub(super) fn close(&self, number: u64) {
        self.close_some(|n| n, |key, _| key.0 == number);
    }

    /// Returns whether a file is open, and may have to be taken with [`OpenFiles::take_gone`].
    pub(crate) fn are_any(&self) -> bool {
        !self.files.lock().is_empty()
    }

    /// Has `call` called whenever a file is opened and no other is open. Only the first call has an effect.
    pub(crate) fn on_first(&self, call: Box<dyn Fn() + Send + Sync>) {
        let _ = self.on_first.set(call);
    }

    /// Removes and returns the files that have lost their last name. Readers of them get an error from now on; their
    /// space on the disk becomes free when what is returned is dropped. To be called every now and then; neither asks a
    /// server nor waits for a disk.
    pub(crate) fn take_gone(&self) -> Vec<Arc<OpenFile>> {
        let files: Vec<_> = self.files.lock().iter().map(|(key, file)| (*key, Arc::clone(file))).collect();
        let (gone, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, file)| file.is_gone());
        // some may have been evicted meanwhile
        close_aside(others.into_iter().map(|(_, file)| file));
        for (key, file) in &gone {
            file.changed.store(true, Ordering::Relaxed);
            let mut files = self.files.lock();
            if files.peek(key).is_some_and(|now| Arc::ptr_eq(now, file)) {
                files.pop(key);
            }
        }
        gone.into_iter().map(|(_, file)| file).collect()
    }

    pub(super) fn is_missing(&self, key: Key, name: &str) -> bool {
        let mut names = self.missing.lock();
        names.get(&key).is_some_and(|(missing, at)| &**missing == name && at.elapsed() < MISSING_TTL)
    }

    pub(super) fn insert_missing(&self, key: Key, name: &str) {
        self.missing.lock().put(key, (name.into(), Instant::now()));
    }

    /// Remembers the version of a file, `None` if it is missing. Returns `false` if another version was known.
    pub(super) fn is_as_before(&self, key: Key, version: Option<&ObjectVersion>) -> bool {
        let digest = version.map_or(MISSING, |version| hash_of(version) | 1);
        let mut digests = self.digests.lock();
        let is_same = *digests.get_or_insert(key, || digest) == digest;
        if digests.len() > MAX_DIGESTS {
            digests.pop_lru();
        }
        is_same
    }

    /// Returns up to `most` open files of a folder with their versions, and up to `most` missing ones with `None`: the
    /// most recently used. Missing ones are found only among the recent ones of all folders.
    pub(super) fn recent(&self, folder: u64, most: usize) -> Vec<(Box<str>, Option<ObjectVersion>)> {
        let files = self.files.lock();
        let of_folder = files.iter().filter(|(key, _)| key.0 == folder).take(most);
        let mut recent: Vec<_> = of_folder.map(|(_, file)| (file.name.clone(), Some(file.version))).collect();
        drop(files);
        let missing = self.missing.lock();
        let of_folder = missing.iter().take(RECENT_MISSING).filter(|(key, _)| key.0 == folder);
        recent.extend(of_folder.take(most).map(|(_, (name, _))| (name.clone(), None)));
        recent
    }
}

/// Closes files that are in no cache any more, after the lock of the cache is released, since that takes time. A file
/// that is still read is closed by its last reader. A file that is not local is closed by a separate thread: its server
/// is told, which may never answer, and the caller may be a reader of another dataset.
fn close_aside(files: impl IntoIterator<Item = Arc<OpenFile>>) {
    let remote: Vec<_> = files.into_iter().filter_map(Arc::into_inner).filter(|file| !file.is_local()).collect();
    if !remote.is_empty() {
        // without a thread they are closed here
        let close = thread::Builder::new().name("volfs-close".into()).stack_size(SMALL_STACK);
        let _ = close.spawn(move || drop(remote));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_take_less_than_half_of_the_limit_and_connections_less_than_a_quarter() {
        let limits = [Some(0), Some(64), Some(128), Some(1024), Some(u64::MAX), None];
        assert_eq!(limits.map(|limit| share(limit, 2, 384)), [4, 16, 48, 384, 384, 384]);
        assert_eq!(limits.map(|limit| share(limit, 4, 512)), [4, 8, 24, 248, 512, 512]);
    }

    #[test]
    fn a_file_that_is_read_without_a_lookup_is_not_evicted() {
        let (folder, files) = (tempfile::tempdir().unwrap(), OpenFiles::new());
        let counters = Arc::new(Counters::default());
        let open = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            let file = File::open(&path).unwrap();
            let metadata = file.metadata().unwrap();
            OpenFile::new((name, path), (file, metadata), (&Arc::default(), &RecentWrites::ignored()), &counters)
        };
        files.files.lock().resize(NonZeroUsize::new(2).unwrap());
        let [read, idle, new] = ["read", "idle", "new"].map(open);
        files.insert((0, 0), &read);
        files.insert((0, 1), &idle);
        assert!(idle.was_used());
        files.insert((0, 2), &new);
        assert_eq!([(0, 0), (0, 1), (0, 2)].map(|key| files.files.lock().contains(&key)), [true, false, true]);
    }

    #[test]
    fn digests_in_use_are_not_forgotten() {
        let files = OpenFiles::new();
        let version = |size| ObjectVersion { size, mtime: (0, 0), inode: (0, 0), etag: None };
        assert!(files.is_as_before((0, 7), Some(&version(7))));
        for round in 1..3 {
            for n in 0..MAX_DIGESTS as u64 {
                assert!(files.is_as_before((round, n), Some(&version(n))));
                if n % 10_000 == 0 {
                    assert!(!files.is_as_before((0, 7), Some(&version(99))) && !files.is_as_before((0, 7), None));
                }
            }
        }
        assert_eq!(files.digests.lock().len(), MAX_DIGESTS);
        assert!(files.is_as_before((1, 8), Some(&version(99))), "forgotten");
    }
}
