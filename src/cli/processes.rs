//! The processes of this machine, as far as this user may see them: the daemons of mounts, and what keeps a mount busy.
//!
//! Everything is read from `/proc` and `/sys`, nothing from a mount itself.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::process;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::text::{escaped, escaped_path};
use crate::mount::{Mount, READAHEAD_NAME, read_mounts, read_mounts_of, topmost};

/// The most holders that are named.
const MAX_NAMED: usize = 10;

/// The longest path of a system call, in bytes.
const MAX_PATH: usize = 4096;

/// Arguments of system calls below this may be descriptors, and are no addresses.
const MAX_DESCRIPTOR: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Daemon {
    pub(super) pid: u32,
    /// Whether a signal or a debugger has stopped it.
    pub(super) is_stopped: bool,
}

impl Daemon {
    /// Finds the daemon of a mount without asking the mount; `None` if it is another user's, or not to be found.
    pub(super) fn find(mount: &Mount) -> Option<Self> {
        let own = process::id();
        all().find(|&pid| pid != own && may_serve(pid, mount) && serves(pid, mount)).map(Self::new)
    }

    /// Finds the daemon of a mount that answers. Where its connection to the kernel cannot be seen, that is the process
    /// `told` in the mount's status.json if it may be one: another user's mount may tell any number.
    pub(super) fn find_answering(mount: &Mount, told: Option<u32>) -> Option<Self> {
        Self::find(mount).or_else(|| told.filter(|&pid| may_serve(pid, mount)).map(Self::new))
    }

    fn new(pid: u32) -> Self {
        Self { pid, is_stopped: is_stopped(pid) }
    }

    pub(super) fn at(place: &Path) -> Option<Self> {
        Self::find(topmost(&read_mounts().ok()?, place)?)
    }

    /// Returns what to do about a mount at `place` that does not answer.
    pub(super) fn remedy(daemon: Option<Self>, place: &Path) -> String {
        match daemon {
            Some(Self { pid, is_stopped: true }) => {
                format!("its daemon (process {pid}) is stopped; to continue it type: kill -CONT {pid}")
            }
            Some(Self { pid, .. }) => format!("its daemon (process {pid}) runs; try again, or end it: kill {pid}"),
            None => format!("try again, or take it away: volfs umount --lazy {}", escaped_path(place)),
        }
    }
}

/// Returns whether a process runs this program as the user of the mount: a mount may tell the number of any other process,
/// and the number of a daemon in a container means another process here.
fn may_serve(pid: u32, mount: &Mount) -> bool {
    let program = name(pid);
    let status = status(pid);
    let user = status_field(&status, "Uid").and_then(|ids| ids.split_ascii_whitespace().next()?.parse::<u32>().ok());
    program == name(process::id()) && !program.is_empty() && user.is_some() && mount.owner() == user
}

/// Returns whether a process serves the kernel's requests for a mount: it has the connection open, whose number
/// newer kernels tell. With older kernels the mount point must be among its arguments.
fn serves(pid: u32, mount: &Mount) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let is_connection = |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to == Path::new("/dev/fuse"));
    let arguments = || fs::read(folder.join("cmdline")).unwrap_or_default();
    entries(&folder.join("fd")).filter(is_connection).any(|entry| {
        let about = fs::read_to_string(folder.join("fdinfo").join(entry.file_name())).unwrap_or_default();
        match status_field(&about, "fuse_connection").and_then(|number| number.parse::<u32>().ok()) {
            Some(number) => number == mount.device.1,
            None => arguments().split(|&byte| byte == 0).any(|word| names(word, mount)),
        }
    })
}

/// Returns whether a word of a command line names the mount point, relative to any folder.
fn names(word: &[u8], mount: &Mount) -> bool {
    !word.is_empty() && mount.mountpoint.ends_with(OsStr::from_bytes(word))
}

/// Returns the numbers of all processes that this user can see.
fn all() -> impl Iterator<Item = u32> {
    entries(Path::new("/proc")).filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the entries of a folder; none of one that cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Returns the name of a process in lists of processes; empty if it does not exist.
fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Returns the text of /proc/PID/status (PID may be `self`); empty if the process does not exist.
pub(super) fn status(pid: impl fmt::Display) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

/// Returns the value of a line such as `Uid:\t0` in a text from /proc.
pub(super) fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn is_stopped(pid: u32) -> bool {
    status_field(&status(pid), "State").is_some_and(|state| state.starts_with(['T', 't']))
}

/// Returns when a process began, which identifies it, since process ids are reused; `None` if it has ended.
pub(super) fn start_time(pid: u32) -> Option<String> {
    start_time_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns a process's start time from the text of /proc/PID/stat; `None` for a zombie. The name, in brackets, may
/// contain any character.
fn start_time_in(stat: &str) -> Option<String> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let has_ended = matches!(*fields.first()?, "Z" | "X");
    // the start time is field 22 of the line, and the state, the first of these fields, is field 3
    if has_ended { None } else { Some((*fields.get(19)?).to_owned()) }
}

/// Describes what keeps `mount` busy, as far as this user may see it: the mounts on top of it, loop devices of its files,
/// and the processes that have one of its files open or mapped, or one of its folders as working directory, or wait for
/// it in a system call.
pub(super) fn holders(mount: &Mount, mounts: &[Mount]) -> Vec<String> {
    let below = mounts.iter().filter(|m| m.parent == mount.id && m.id != mount.id);
    let mut found: Vec<String> = below.map(|m| format!("the mount at {}", escaped_path(&m.mountpoint))).collect();
    found.extend(loop_devices(mount));
    let mut pids: Vec<u32> = all().filter(|&pid| pid != process::id()).collect();
    pids.sort_unstable();
    let holders = pids.into_iter().filter_map(|pid| Some((pid, use_of(pid, mount)?)));
    let (ahead, others): (Vec<_>, Vec<_>) = holders.partition(|(pid, _)| reads_ahead(*pid));
    // a read-ahead process has files open for a moment only: name it only if nothing else is found
    let holders = if others.is_empty() && found.is_empty() { ahead } else { others };
    found.extend(holders.iter().map(|(pid, how)| describe(*pid) + how));
    if found.len() > MAX_NAMED {
        let more = found.split_off(MAX_NAMED).len();
        found.push(format!("{more} more"));
    }
    found
}

/// Describes a process in another mount namespace, such as a container's, that still sees the mount.
pub(super) fn in_other_namespace(mount: &Mount) -> Option<String> {
    let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let mut seen: HashSet<_> = namespace(process::id()).into_iter().collect();
    let mut others = all().filter(|pid| namespace(*pid).is_some_and(|namespace| seen.insert(namespace)));
    let is_it = |m: &Mount| m.is_volfs() && m.device == mount.device;
    others.find(|pid| read_mounts_of(*pid).is_ok_and(|all| all.iter().any(is_it))).map(describe)
}

/// Describes the loop devices whose file lies in the mount: the kernel holds it, not a process.
fn loop_devices(mount: &Mount) -> Vec<String> {
    let of_mount = |device: &fs::DirEntry| {
        let file = fs::read(device.path().join("loop/backing_file")).unwrap_or_default();
        Path::new(OsStr::from_bytes(&file)).starts_with(&mount.mountpoint)
    };
    let describe = |device: fs::DirEntry| {
        let name = device.file_name().to_string_lossy().into_owned();
        format!("the loop device {name} (to end it type: losetup -d /dev/{name})")
    };
    entries(Path::new("/sys/block")).filter(of_mount).map(describe).collect()
}

/// Ends the read-ahead processes that hold `mount` and are stopped, by a signal or a debugger: they would hold it for as
/// long as that lasts. A mount can do without them.
pub(super) fn end_stopped_read_ahead(mount: &Mount) {
    for pid in all().filter(|&pid| reads_ahead(pid)) {
        // the descriptor is that of this process even if its number is reused
        let Some(process) = Pid::from_raw(pid.cast_signed()) else { continue };
        let Ok(process) = pidfd_open(process, PidfdFlags::empty()) else { continue };
        if reads_ahead(pid) && is_stopped(pid) && use_of(pid, mount).is_some() {
            // of another user, or gone: then the mount is reported as busy
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

fn describe(pid: u32) -> String {
    format!("{} (process {pid})", escaped(&name(pid)))
}

fn reads_ahead(pid: u32) -> bool {
    name(pid).as_bytes() == READAHEAD_NAME.to_bytes()
}

/// What is said of a process that has a file of the mount open or mapped, or a folder as working directory.
const HOLDS: &str = "";
/// What is said of a process with a thread that waits in a system call for a path in the mount.
const WAITS: &str = ", which waits for an answer from it";

/// Returns how a process keeps a mount busy, if it does.
fn use_of(pid: u32, mount: &Mount) -> Option<&'static str> {
    let threads: Vec<PathBuf> = entries(Path::new(&format!("/proc/{pid}/task"))).map(|thread| thread.path()).collect();
    // threads share their files, but a main thread that has ended has none, while the others may be unable to end
    let has_files = |thread: &&PathBuf| fs::read_dir(thread.join("fd")).is_ok_and(|mut files| files.next().is_some());
    if threads.iter().find(has_files).or(threads.first()).is_some_and(|thread| holds(thread, mount)) {
        return Some(HOLDS);
    }
    threads.iter().any(|thread| waits(thread, mount)).then_some(WAITS)
}

/// Returns whether a thread, by its folder in /proc, holds something of the mount.
fn holds(thread: &Path, mount: &Mount) -> bool {
    let inside = |link: &Path| fs::read_link(link).is_ok_and(|target| target.starts_with(&mount.mountpoint));
    ["cwd", "root", "exe"].iter().any(|name| inside(&thread.join(name)))
        || entries(&thread.join("fd")).any(|entry| inside(&entry.path()))
        || fs::read_to_string(thread.join("maps")).is_ok_and(|maps| maps_device(&maps, mount.device))
}

/// Returns whether a thread waits in a system call, such as stat(2) or openat(2), one of whose first two arguments is a
/// path in the mount: a look-up that hangs holds the mount, and has no descriptor yet.
fn waits(thread: &Path, mount: &Mount) -> bool {
    // `262 0xffffff9c 0x7ffc2e22c9fe ...`, or `running`
    let call = fs::read_to_string(thread.join("syscall")).unwrap_or_default();
    let argument = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let arguments = call.split(' ').skip(1).take(2).filter_map(argument);
    // a process that waits for a path below an open folder of the mount holds that folder
    let from = fs::read_link(thread.join("cwd")).unwrap_or_default();
    let mut paths = arguments.filter_map(|address| text_at(thread, address));
    paths.any(|path| without_dots(&from.join(path)).starts_with(&mount.mountpoint))
}

fn text_at(thread: &Path, address: u64) -> Option<PathBuf> {
    if address < MAX_DESCRIPTOR {
        return None;
    }
    let mut text = vec![0; MAX_PATH];
    // up to the end of the mapping
    let length = File::open(thread.join("mem")).ok()?.read_at(&mut text, address).ok()?;
    text.truncate(length);
    text.truncate(text.iter().position(|&byte| byte == 0)?);
    (!text.is_empty()).then(|| PathBuf::from(OsString::from_vec(text)))
}

/// Returns a path without `.` and `..`, as if no folder were a link.
fn without_dots(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |plain, part| match part {
        Component::ParentDir => plain.parent().map(Path::to_owned).unwrap_or(plain),
        Component::CurDir => plain,
        part => plain.join(part),
    })
}

/// Returns whether the text of /proc/PID/maps has a mapping of this device. Its lines are like
/// `7f00-7f10 r--s 00000000 00:2f 12   /mnt/vol/x`, with hexadecimal device numbers.
fn maps_device(maps: &str, device: (u32, u32)) -> bool {
    let wanted = format!("{:02x}:{:02x}", device.0, device.1);
    maps.lines().any(|line| line.split_ascii_whitespace().nth(3) == Some(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_serves_nothing_is_no_daemon() {
        let mount = Mount::for_tests("/mnt/a b");
        assert_eq!(Daemon::find(&mount), None);
        // this process, as the mounts of three users tell it
        let own = nix::unistd::getuid().as_raw();
        let told = |options: String, pid| Daemon::find_answering(&Mount { options, ..mount.clone() }, Some(pid));
        assert_eq!(told(format!("ro,user_id={own}"), process::id()).map(|daemon| daemon.pid), Some(process::id()));
        assert_eq!(told(format!("ro,user_id={}", own + 1), process::id()), None);
        assert_eq!(told(String::new(), process::id()), None);
        assert_eq!(told("ro,user_id=0".to_owned(), 1), None, "another program");
        let named = ["/mnt/a b", "a b", "mnt/a b/"].map(|word| names(word.as_bytes(), &mount));
        let others = ["", "b", "/a b", "/mnt"].map(|word| names(word.as_bytes(), &mount));
        assert_eq!((named, others), ([true; 3], [false; 4]));
    }

    #[test]
    fn a_process_is_identified_by_its_start_time() {
        let rest = (4..=22).map(|i| i.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(start_time_in(&format!("12 (a ) b) S {rest} 23")), Some("22".to_owned()));
        assert_eq!(start_time_in(&format!("12 (a) Z {rest}")), None);
        assert_eq!(start_time_in("nonsense"), None);
        let own = start_time(process::id());
        assert!(own.is_some() && own == start_time(process::id()) && own.as_deref() != Some("0"));
    }

    #[test]
    fn a_stopped_process_is_told_from_others() {
        let mut child = process::Command::new("sleep").arg("20").spawn().unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
        let running = (name(child.id()).is_empty(), is_stopped(child.id()));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !is_stopped(child.id()) && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let stopped = is_stopped(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((running, stopped), ((false, false), true));
        assert!(!is_stopped(child.id()));
    }

    #[test]
    fn mapped_files_are_found_by_device() {
        let maps = "7f00-7f10 r--s 00000000 00:2f 12                 /mnt/vol/x\n7f20-7f30 rw-p 00000000 00:00 0 \n";
        assert!(maps_device(maps, (0, 0x2f)));
        assert!(!maps_device(maps, (0, 0x30)));
    }

    fn mount_at(place: &Path) -> Mount {
        Mount::for_tests(place.canonicalize().unwrap())
    }

    #[test]
    fn paths_lose_their_dots() {
        assert_eq!(without_dots(Path::new("/a/./b/../c/")), Path::new("/a/c"));
        assert_eq!(without_dots(Path::new("/../a")), Path::new("/a"));
    }

    #[test]
    fn a_process_in_a_folder_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = process::Command::new("sleep").arg("20").current_dir(folder.path()).spawn().unwrap();
        let found = holders(&mount_at(folder.path()), &[]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [format!("sleep (process {})", child.id())]);
        let own = || use_of(process::id(), &mount_at(folder.path()));
        assert_eq!(own(), None);
        let file = File::create(folder.path().join("x")).unwrap();
        assert_eq!(own(), Some(HOLDS));
        drop(file);
        assert!(holders(&mount_at(folder.path()), &[]).is_empty());
    }

    #[test]
    fn a_thread_that_waits_for_a_path_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut mount = mount_at(folder.path());
        // waits in openat until there is a writer
        let mut child = process::Command::new("cat").arg(&pipe).current_dir("/").spawn().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while use_of(child.id(), &mount) != Some(WAITS) && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let found = holders(&mount, &[]);
        mount.mountpoint = "/none".into();
        let elsewhere = use_of(child.id(), &mount);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [format!("cat (process {}), which waits for an answer from it", child.id())]);
        assert_eq!(elsewhere, None);
    }
}
