//! A file system that shows a folder as it is, except for the faults that a test asks for: at random by seed, or of the
//! request with a given number.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyXattr, Request, SessionACL,
};
use tempfile::TempDir;

use super::own_fs::{self, OwnMount};
use super::{Noise, fuse_or_skip};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// EIO.
    Io,
    /// ESTALE.
    Stale,
    /// EINTR.
    Interrupted,
    /// EAGAIN.
    Again,
    /// EMFILE.
    TooManyFiles,
    /// ENOENT for a file that is there.
    Gone,
    /// A read gives fewer bytes than there are.
    Short,
    /// A read gives no bytes, as if the file ended.
    Empty,
    /// The size of a file is a byte less, or many more.
    WrongSize,
    /// The answer comes late.
    Late,
    /// The answer comes when [`Faults::release`] is called.
    Hang,
}

impl Fault {
    /// Faults of single requests: nothing is wrong with the source before or after them.
    pub const TRANSIENT: [Self; 7] =
        [Self::Io, Self::Stale, Self::Interrupted, Self::Again, Self::TooManyFiles, Self::Short, Self::Late];

    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Io,
        Self::Stale,
        Self::Interrupted,
        Self::Again,
        Self::TooManyFiles,
        Self::Gone,
        Self::Short,
        Self::Empty,
        Self::WrongSize,
        Self::Late,
        Self::Hang,
    ];

    /// Returns the error number that a request gets.
    pub fn errno(self) -> Option<Errno> {
        match self {
            Self::Io => Some(Errno::EIO),
            Self::Stale => Some(Errno::ESTALE),
            Self::Interrupted => Some(Errno::EINTR),
            Self::Again => Some(Errno::EAGAIN),
            Self::TooManyFiles => Some(Errno::EMFILE),
            Self::Gone => Some(Errno::ENOENT),
            Self::Short | Self::Empty | Self::WrongSize | Self::Late | Self::Hang => None,
        }
    }
}

/// The request that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Lookup,
    Attributes,
    Open,
    Read,
    List,
    Tag,
}

/// Which requests fail.
#[derive(Clone, Debug, Default)]
enum Plan {
    #[default]
    None,
    /// Each with this probability, in millionths.
    Random { rate: u64, kinds: Vec<Fault> },
    /// The request with this number, counted from the plan's beginning.
    Number { number: u64, kind: Fault },
    /// All below a path that contains this text.
    Below { text: String, kind: Fault },
}

/// A request that waits.
type Waiting = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    plan: Plan,
    noise: Option<Noise>,
    requests: u64,
    injected: BTreeMap<(Fault, Place), u64>,
    waiting: Vec<Waiting>,
}

/// The faults of one faulty file system.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

impl Faults {
    /// From now on each request fails with this probability, in millionths, by one of `kinds`.
    pub fn at_random(&self, seed: u64, rate: u64, kinds: &[Fault]) {
        self.begin(Plan::Random { rate, kinds: kinds.to_vec() });
        self.state().noise = Some(Noise::seeded(seed));
    }

    /// From now on only the request with this number fails, counted from 0.
    pub fn of_request(&self, number: u64, kind: Fault) {
        self.begin(Plan::Number { number, kind });
    }

    /// From now on all requests fail that are for paths which contain `text`.
    pub fn below(&self, text: &str, kind: Fault) {
        self.begin(Plan::Below { text: text.to_owned(), kind });
    }

    /// No further request fails, and those that hang are answered.
    pub fn end(&self) {
        self.begin(Plan::None);
        self.release();
    }

    /// Answers the requests that hang.
    pub fn release(&self) {
        let waiting = std::mem::take(&mut self.state().waiting);
        waiting.into_iter().for_each(|answer| answer());
    }

    fn begin(&self, plan: Plan) {
        let mut state = self.state();
        (state.plan, state.requests) = (plan, 0);
    }

    /// Returns the requests since the plan began.
    pub fn requests(&self) -> u64 {
        self.state().requests
    }

    /// Returns the faults so far, all plans together.
    pub fn count(&self) -> u64 {
        self.state().injected.values().sum()
    }

    /// Returns the number of requests that hang.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Returns one line for each kind of fault: how often, and where.
    pub fn report(&self) -> String {
        let state = self.state();
        let mut out = String::new();
        for kind in Fault::ALL {
            let of_kind: Vec<_> = state.injected.iter().filter(|((fault, _), _)| *fault == kind).collect();
            let all: u64 = of_kind.iter().map(|(_, count)| **count).sum();
            let places: Vec<_> = of_kind.iter().map(|((_, place), count)| format!("{place:?} {count}")).collect();
            let _ = writeln!(out, "{:<14}{all:>8}   {}", format!("{kind:?}"), places.join(", "));
        }
        out
    }

    /// Decides whether a request fails.
    pub fn decide(&self, place: Place, path: &str) -> Option<Fault> {
        let mut state = self.state();
        let number = state.requests;
        state.requests += 1;
        let State { plan, noise, injected, .. } = &mut *state;
        let kind = match plan {
            Plan::None => None,
            Plan::Number { number: wanted, kind } => (*wanted == number).then_some(*kind),
            Plan::Below { text, kind } => path.contains(&**text).then_some(*kind),
            Plan::Random { rate, kinds } => {
                let noise = noise.as_mut()?;
                let fails = noise.number() % 1_000_000 < *rate;
                fails.then(|| kinds[noise.below(kinds.len())])
            }
        };
        let fault = kind.filter(|kind| is_possible(*kind, place, path))?;
        *injected.entry((fault, place)).or_default() += 1;
        Some(fault)
    }

    /// Has a request wait for [`Faults::release`], unless the faults have ended meanwhile.
    pub fn wait(&self, answer: Waiting) {
        let mut state = self.state();
        if matches!(state.plan, Plan::None) {
            drop(state);
            answer();
        } else {
            state.waiting.push(answer);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

/// Returns whether a fault can happen at a place. A data file of a folder that is said not to exist stands for samples
/// that were never written, so only datasets that are files vanish.
fn is_possible(fault: Fault, place: Place, path: &str) -> bool {
    match fault {
        Fault::Gone => place == Place::Lookup && (path.ends_with(".zgy") || path.ends_with(".vds")),
        Fault::Short | Fault::Empty => place == Place::Read,
        Fault::WrongSize => matches!(place, Place::Lookup | Place::Attributes),
        // a name that does not answer is another test's subject: whoever asks the kernel for it waits in the kernel
        Fault::Hang => matches!(place, Place::Read | Place::Open),
        Fault::Io | Fault::Stale | Fault::Interrupted | Fault::Again | Fault::TooManyFiles | Fault::Late => true,
    }
}

/// How late a late answer is.
const LATE: Duration = Duration::from_millis(30);

/// The mounted file system.
pub struct FaultyFolder {
    /// Where it is mounted.
    pub path: PathBuf,
    /// Its faults; none at first.
    pub faults: Faults,
    _mount: OwnMount,
    _folder: TempDir,
}

impl FaultyFolder {
    /// Mounts a file system that shows `folder`; `None` (after reporting why) if this machine cannot mount.
    pub fn of(folder: &Path) -> Option<Self> {
        if !fuse_or_skip() {
            return None;
        }
        let (temporary, faults) = (tempfile::tempdir().unwrap(), Faults::default());
        let path = temporary.path().join("faulty");
        let inodes = Mutex::new(Inodes { paths: vec![folder.to_owned()], numbers: HashMap::new() });
        let shared = Arc::new(Shared { faults: faults.clone(), inodes });
        let mount = OwnMount::new(Passthrough(shared), &path, 4, SessionACL::Owner);
        Some(Self { path, faults, _mount: mount, _folder: temporary })
    }
}

impl Drop for FaultyFolder {
    fn drop(&mut self) {
        // a daemon that waits for an answer would keep the mount
        self.faults.end();
    }
}

/// The paths by inode number, from 1 on.
struct Inodes {
    paths: Vec<PathBuf>,
    numbers: HashMap<PathBuf, u64>,
}

struct Shared {
    faults: Faults,
    inodes: Mutex<Inodes>,
}

struct Passthrough(Arc<Shared>);

impl Shared {
    fn path(&self, number: INodeNo) -> PathBuf {
        self.inodes.lock().unwrap().paths[number.0 as usize - 1].clone()
    }

    fn number(&self, path: PathBuf) -> INodeNo {
        let mut inodes = self.inodes.lock().unwrap();
        let Inodes { paths, numbers } = &mut *inodes;
        let number = numbers.entry(path.clone()).or_insert_with(|| {
            paths.push(path);
            paths.len() as u64
        });
        INodeNo(*number)
    }
}

impl Passthrough {
    /// Answers a request, perhaps with a fault, perhaps later. `answer` gets an error, or the fault that spoils it.
    fn request(&self, place: Place, path: PathBuf, answer: impl FnOnce(&Shared, &Path, Outcome) + Send + 'static) {
        let fault = self.0.faults.decide(place, &path.to_string_lossy());
        let shared = Arc::clone(&self.0);
        match fault {
            Some(Fault::Hang) => {
                self.0.faults.wait(Box::new(move || answer(&shared, &path, Ok(None))));
            }
            Some(Fault::Late) => {
                thread::spawn(move || {
                    thread::sleep(LATE);
                    answer(&shared, &path, Ok(None));
                });
            }
            Some(fault) => answer(&shared, &path, fault.errno().map_or(Ok(Some(fault)), Err)),
            None => answer(&shared, &path, Ok(None)),
        }
    }
}

/// An error, or the fault that spoils an answer.
type Outcome = Result<Option<Fault>, Errno>;

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_i32(error.raw_os_error().unwrap_or(5))
}

fn attributes(number: INodeNo, found: &Metadata, spoiled: Option<Fault>) -> FileAttr {
    let (seconds, nanoseconds) = (found.mtime().unsigned_abs(), found.mtime_nsec().unsigned_abs() as u32);
    let (size, is_file) = (found.size(), found.is_file());
    // by turns too small and too large
    let wrong = if nanoseconds & 1 == 0 { size.saturating_sub(1) } else { size + 100_000 };
    let size = if spoiled == Some(Fault::WrongSize) && is_file { wrong } else { size };
    // also the time of change: files that were written long ago
    let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    FileAttr { blocks: found.blocks(), ..own_fs::attributes(number, !is_file, size, time) }
}

impl Filesystem for Passthrough {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let path = self.0.path(parent).join(name);
        self.request(Place::Lookup, path, |shared, path, outcome| {
            let found = outcome.and_then(|spoiled| Ok((path.metadata().map_err(|e| errno(&e))?, spoiled)));
            match found {
                Ok((found, spoiled)) => {
                    let number = shared.number(path.to_owned());
                    reply.entry(&Duration::ZERO, &attributes(number, &found, spoiled), Generation(0));
                }
                Err(e) => reply.error(e),
            }
        });
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.request(Place::Attributes, self.0.path(number), move |_, path, outcome| {
            let found = outcome.and_then(|spoiled| Ok((path.metadata().map_err(|e| errno(&e))?, spoiled)));
            match found {
                Ok((found, spoiled)) => reply.attr(&Duration::ZERO, &attributes(number, &found, spoiled)),
                Err(e) => reply.error(e),
            }
        });
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // past the page cache: the kernel would take a short read for the end of the file and fill the page with zeros
        self.request(Place::Open, self.0.path(number), |_, _, outcome| match outcome {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Err(e) => reply.error(e),
        });
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.request(Place::Read, self.0.path(number), move |_, path, outcome| {
            let read = outcome.and_then(|spoiled| {
                let mut bytes = vec![0; size as usize];
                let file = File::open(path).map_err(|e| errno(&e))?;
                let read = file.read_at(&mut bytes, offset).map_err(|e| errno(&e))?;
                bytes.truncate(match spoiled {
                    Some(Fault::Short) => read.div_ceil(2),
                    Some(Fault::Empty) => 0,
                    _ => read,
                });
                Ok(bytes)
            });
            match read {
                Ok(bytes) => reply.data(&bytes),
                Err(e) => reply.error(e),
            }
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.request(Place::Open, self.0.path(number), |_, _, outcome| match outcome {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(e) => reply.error(e),
        });
    }

    fn readdir(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.request(Place::List, self.0.path(number), move |shared, path, outcome| {
            if let Err(e) = outcome {
                return reply.error(e);
            }
            let mut entries: Vec<_> = path.read_dir().unwrap().map(Result::unwrap).collect();
            entries.sort_by_key(fs::DirEntry::file_name);
            for (n, entry) in entries.iter().enumerate().skip(offset as usize) {
                let is_folder = entry.metadata().unwrap().is_dir();
                let kind = if is_folder { FileType::Directory } else { FileType::RegularFile };
                if reply.add(shared.number(entry.path()), n as u64 + 1, kind, entry.file_name()) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.request(Place::Tag, self.0.path(number), move |_, path, outcome| {
            let mut value = vec![0; 4096];
            let read = outcome.and_then(|_| {
                rustix::fs::getxattr(path, &*name, &mut value[..]).map_err(|e| Errno::from_i32(e.raw_os_error()))
            });
            match read {
                Ok(length) if size == 0 => reply.size(length as u32),
                Ok(length) if length > size as usize => reply.error(Errno::ERANGE),
                Ok(length) => reply.data(&value[..length]),
                Err(e) => reply.error(e),
            }
        });
    }
}
