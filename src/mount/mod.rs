//! The process and the kernel: mounting with the FUSE library, the daemon and its signals, unmounting, and the
//! processes beside the daemon. The file system itself is in [`fs`](crate::fs), which knows nothing of these.
//!
//! This file has the session of a mount: its options, its connection to the kernel, and its end. Only it and the FUSE
//! adapter use the FUSE library.

mod command;
mod crash_report;
mod daemon;
mod fork;
mod fuse;
mod mountinfo;
mod readahead;
mod side_process;
mod signals;
mod watchdog;

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::{io, mem};

use fuser::{Config, Generation, INodeNo, MountOption, Session, SessionACL};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount as mount2};
use rustix::process::{getgid, getuid};
use thiserror::Error;

pub(crate) use self::command::{CommandError, HeldSignals, run_command};
pub(crate) use self::daemon::{DaemonError, Ready, Role, Started, detach};
pub(crate) use self::mountinfo::{
    HELPER, Mount, UnmountError, find_helper, is_mount_of, place_of, read_mounts, read_mounts_of, topmost, unmount,
    volfs_at,
};
pub(crate) use self::readahead::{READAHEAD_NAME, ReadaheadProcess};
pub(crate) use self::side_process::{Link, SideProcess};
pub(crate) use self::signals::{Signals, Stop};
pub(crate) use self::watchdog::{Connection, Watchdog};

use self::fork::{passed_device, passed_number};
use self::fuse::Adapter;
use self::mountinfo::NAME_PREFIX;
use self::readahead::MountReadahead;
use crate::catalog::CatalogError;
use crate::fs::{Options, Volfs};
use crate::logging::RecentLines;
use crate::sync::Mutex;

/// The longest read that the kernel asks for. It splits longer ones with O_DIRECT, and several threads answer the parts
/// in parallel: a mount that does no work gives two thirds of that speed with requests of 1 MiB. If all reads bypass
/// the page cache the kernel requests the parts one after the other, so they should be long, and this limit is not set.
const LONGEST_READ: u32 = 128 << 10;

/// Worker threads that the mount keeps, so that it goes on when the system has no more threads.
const KEPT_WORKERS: usize = 2;

/// The threads that a mount needs besides its event loops: the workers, the session, the one for refreshes, and one for
/// a moment; and three processes and a thread that the starting command may need just then.
const OTHER_THREADS: usize = KEPT_WORKERS + 3 + 4;

/// The type of every mount of volfs: FUSE, and its subtype.
const KIND: &str = "fuse.volfs";

/// The device through which the kernel and a daemon talk.
const DEVICE: &str = "/dev/fuse";

/// The type and permissions of the root of a mount, until the daemon is asked for them.
const ROOT_MODE: u32 = 0o40555;

/// Returns whether a connection to the kernel is named in the place of a mount point, for a mount that the caller makes
/// and takes away.
pub(crate) fn is_passed(mountpoint: &Path) -> bool {
    passed_number(mountpoint).is_some()
}

/// Why a mount cannot be made or ends badly.
#[derive(Debug, Error)]
pub(crate) enum MountError {
    #[error(transparent)]
    Source(#[from] CatalogError),
    #[error("cannot mount at {}: {}", mountpoint.display(), error.to_string().trim_end())]
    Refused { mountpoint: PathBuf, error: io::Error },
    #[error("cannot start {0} threads: {1}; allow more processes (ulimit -u) or more memory (ulimit -v)")]
    Threads(usize, io::Error),
    #[error("the connection to the kernel ended: {0}")]
    Broken(io::Error),
}

/// A mount whose requests are being answered.
pub(crate) struct Mounted {
    session: JoinHandle<io::Result<()>>,
    /// The connection to the kernel; `None` if the system does not tell which one it is, or there are no descriptors
    /// left.
    pub(crate) connection: Option<Connection>,
}

/// Mounts a file system. When this returns, threads of this process answer its requests. `stop` tells when the process
/// is about to end.
pub(crate) fn mount(
    options: &Options,
    mountpoint: &Path,
    process: Option<ReadaheadProcess>,
    stop: &Stop,
    log: Arc<RecentLines>,
) -> Result<Mounted, MountError> {
    check_threads(config(options).n_threads.unwrap_or(1) + OTHER_THREADS)?;
    let fs = Arc::new(Volfs::new(options.clone(), log)?);
    let adapter = Adapter {
        fs: Arc::clone(&fs),
        readahead_pid: process.as_ref().map(ReadaheadProcess::pid),
        // 32 bits are handed on
        generation: Generation(RandomState::new().hash_one(std::process::id()) & u64::from(u32::MAX)),
    };
    let refused = |error| MountError::Refused { mountpoint: mountpoint.to_owned(), error };
    // before there is a mount that a failure would leave behind
    let placeholder = thread::Builder::new().spawn(|| Ok(())).map_err(refused)?;
    fs.start_refreshes().map_err(refused)?;
    let (session, is_by_other) = connect(adapter, options, mountpoint).map_err(refused)?;
    let connection = Connection::new(session.as_fd(), &options.source, mountpoint);
    // When fuser's handle on the mount is dropped it unmounts any mount at that path, even one that was mounted there
    // after ours was unmounted. So the handle is never dropped, and the end of the process or `unmount` ends the mount.
    let session = Box::leak(Box::new(session.spawn().map_err(|error| {
        // the FUSE library unmounts what its helper has mounted
        if !is_by_other {
            let _ = unmount(mountpoint, true);
        }
        refused(error)
    })?));
    let (notifier, stop) = (session.notifier(), stop.clone());
    fs.set_drop_pages(Box::new(move |file| {
        // The kernel waits for reads in flight before it drops their pages. A thread that waits there keeps the
        // connection open although its process has ended, and then nobody answers the reads: so none may begin to wait
        // now. An error means that the kernel knows no such file any more.
        if !stop.is_requested() {
            let _ = notifier.inval_inode(INodeNo(file.0), 0, 0);
        }
    }));
    let ended = mem::replace(&mut session.guard, placeholder);
    fs.pool().keep_workers(KEPT_WORKERS);
    if let (Some(process), Some(device)) = (process, connection.as_ref().map(|connection| connection.device)) {
        let place = is_passed(mountpoint).then(|| place_of(device));
        if let Some(mountpoint) = place.unwrap_or_else(|| Some(mountpoint.to_owned())) {
            fs.set_readahead(Box::new(MountReadahead { process, device, mountpoint }));
        }
    }
    Ok(Mounted { session: ended, connection })
}

impl Mounted {
    /// Waits until the file system is unmounted.
    pub(crate) fn wait(self) -> Result<(), MountError> {
        match self.session.join() {
            // The kernel tells that the connection is gone by ENODEV, which the FUSE library knows, and by ECONNABORTED
            // to the thread that was just being handed a request.
            Ok(Err(error)) if error.raw_os_error() == Some(Errno::ECONNABORTED as i32) => Ok(()),
            Ok(ended) => ended.map_err(MountError::Broken),
            Err(_) => Err(MountError::Broken(io::Error::other("internal error"))),
        }
    }
}

/// Checks that the system has this many more threads. The FUSE library starts its threads after it has mounted, and one
/// that it cannot start would leave the mount half alive.
fn check_threads(number: usize) -> Result<(), MountError> {
    let all_started = Mutex::new(());
    let started = thread::scope(|scope| {
        let _hold = all_started.lock();
        let start = |_| thread::Builder::new().spawn_scoped(scope, || drop(all_started.lock())).map(drop);
        (0..number).try_for_each(start)
    });
    started.map_err(|error| MountError::Threads(number, error))
}

/// Mounts: with mount(2) if this process may, otherwise with fusermount3, which the FUSE library calls; or takes a
/// connection that is mounted already. Returns also whether another program has mounted it.
fn connect(adapter: Adapter, options: &Options, mountpoint: &Path) -> io::Result<(Session<Adapter>, bool)> {
    let mut config = config(options);
    if let Some(device) = passed_device(mountpoint) {
        return Ok((Session::from_fd(adapter, device?, config.acl, config)?, true));
    }
    let name = format!("{NAME_PREFIX}{}", options.source.to_string_lossy());
    match mount_directly(&name, mountpoint, options)? {
        Some(device) => {
            let session = Session::from_fd(adapter, device, config.acl, config).inspect_err(|_| {
                // without a session it would stay behind as a dead mount
                let _ = unmount(mountpoint, true);
            })?;
            Ok((session, false))
        }
        None => {
            // fusermount3 treats a comma as the end of the option
            let name = name.replace('\\', "\\\\").replace(',', "\\,");
            // the library adds `allow_other`
            config.mount_options = vec![
                MountOption::FSName(name),
                MountOption::Subtype("volfs".into()),
                MountOption::RO,
                MountOption::NoAtime,
                MountOption::NoDev,
                MountOption::NoSuid,
                MountOption::DefaultPermissions,
            ];
            config.mount_options.extend(longest_read(options).map(MountOption::CUSTOM));
            Ok((Session::new(adapter, mountpoint, &config)?, true))
        }
    }
}

fn longest_read(options: &Options) -> Option<String> {
    (!options.direct_io).then(|| format!("max_read={LONGEST_READ}"))
}

fn config(options: &Options) -> Config {
    let mut config = Config::default();
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8)));
    config.clone_fd = true;
    config
}

/// Mounts with mount(2): read-only, and without devices, set-user-ID programs and access times. Returns the connection
/// to the kernel, or `None` if this process may not mount, but a helper might.
///
/// The FUSE library would do it too, but gives such a mount the type `fuse` and not `fuse.volfs`, by which other
/// programs (updatedb, `df -x`, backups) know what it is.
fn mount_directly(name: &str, mountpoint: &Path, options: &Options) -> io::Result<Option<OwnedFd>> {
    let opened = File::options().read(true).write(true).open(DEVICE);
    let device = opened.map_err(|error| io::Error::new(error.kind(), format!("{DEVICE}: {error}")))?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NODEV | MsFlags::MS_NOSUID | MsFlags::MS_NOATIME;
    let (fd, user, group) = (device.as_raw_fd(), getuid().as_raw(), getgid().as_raw());
    // what only the FUSE driver of the kernel knows
    let known = format!("fd={fd},rootmode={ROOT_MODE:o},user_id={user},group_id={group},default_permissions");
    let for_all = options.allow_other.then(|| "allow_other".to_owned());
    let data: Vec<String> = [Some(known), for_all, longest_read(options)].into_iter().flatten().collect();
    match mount2(Some(name), mountpoint, Some(KIND), flags, Some(data.join(",").as_str())) {
        Ok(()) => Ok(Some(device.into())),
        Err(Errno::EPERM) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
