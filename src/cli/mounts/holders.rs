//! The mounts and processes that keep a mount busy. Everything is read from `/proc` and `/sys`, nothing from the mount
//! itself.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::process;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::processes;
use crate::cli::text::escape;
use crate::mount::mountinfo::{self, Mount};
use crate::mount::readahead_process;

/// The most holders that are named.
const MAX_NAMED: usize = 10;

/// The longest path of a system call, in bytes.
const MAX_PATH: usize = 4096;

/// Arguments of system calls below this may be descriptors, and are no addresses.
const MAX_DESCRIPTOR: u64 = 1 << 16;

/// Describes what keeps `mount` busy, as far as this user may see it: the mounts on top of it, loop devices of its files,
/// and the processes that have one of its files open or mapped, or one of its folders as working directory, or wait for
/// it in a system call.
pub(crate) fn of(mount: &Mount, mounts: &[Mount]) -> Vec<String> {
    let below = mounts.iter().filter(|m| m.parent == mount.id && m.id != mount.id);
    let mut found: Vec<String> = below.map(|m| format!("the mount at {}", escape::path(&m.mountpoint))).collect();
    found.extend(loop_devices(mount));
    let mut holders: Vec<(u32, Use)> = processes::all()
        .filter(|&pid| pid != process::id())
        .filter_map(|pid| Some((pid, use_of(pid, mount)?)))
        .collect();
    holders.sort_unstable_by_key(|(pid, _)| *pid);
    let (ahead, others): (Vec<_>, Vec<_>) = holders.into_iter().partition(|(pid, _)| reads_ahead(*pid));
    // a read-ahead process has files open for a moment only: name it only if nothing else is found
    let holders = if others.is_empty() && found.is_empty() { ahead } else { others };
    found.extend(holders.iter().map(|(pid, how)| match how {
        Use::Holds => describe(*pid),
        Use::Waits => format!("{}, which waits for an answer of it", describe(*pid)),
    }));
    if found.len() > MAX_NAMED {
        let more = found.split_off(MAX_NAMED).len();
        found.push(format!("{more} more"));
    }
    found
}

/// Describes a process in another mount namespace, such as a container's, where the mount is still to be seen.
pub(crate) fn in_other_namespace(mount: &Mount) -> Option<String> {
    let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = namespace(process::id());
    let mut seen = vec![own];
    let sees = |pid: &u32| {
        let its = namespace(*pid);
        if its.is_none() || seen.contains(&its) {
            return false;
        }
        seen.push(its);
        mountinfo::read_of(*pid).is_ok_and(|all| all.iter().any(|m| m.is_volfs() && m.device == mount.device))
    };
    processes::all().find(sees).map(describe)
}

/// Describes the loop devices whose file lies in the mount: the kernel holds it, and no process.
fn loop_devices(mount: &Mount) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let of_mount = |device: &fs::DirEntry| {
        let file = fs::read(device.path().join("loop/backing_file")).unwrap_or_default();
        Path::new(OsStr::from_bytes(&file)).starts_with(&mount.mountpoint)
    };
    let describe = |device: fs::DirEntry| {
        let name = device.file_name();
        let name = name.to_string_lossy();
        format!("the loop device {name} (to end it type: losetup -d /dev/{name})")
    };
    devices.filter(of_mount).map(describe).collect()
}

/// Ends the read-ahead processes that hold `mount` and are stopped, by a signal or a debugger: they would hold it for as
/// long as that lasts. A mount can do without them.
pub(crate) fn end_stopped_read_ahead(mount: &Mount) {
    for pid in processes::all().filter(|&pid| reads_ahead(pid)) {
        // the descriptor stands for this process even if its number is reused
        let Some(process) = Pid::from_raw(pid.cast_signed()) else { continue };
        let Ok(process) = pidfd_open(process, PidfdFlags::empty()) else { continue };
        if reads_ahead(pid) && processes::is_stopped(pid) && use_of(pid, mount).is_some() {
            // of another user, or gone: then the mount is reported as busy
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

fn describe(pid: u32) -> String {
    format!("{} (process {pid})", escape::text(&processes::name(pid)))
}

/// Returns whether this is the read-ahead process of a mount.
fn reads_ahead(pid: u32) -> bool {
    processes::name(pid).as_bytes() == readahead_process::NAME.to_bytes()
}

/// How a process keeps a mount busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It has a file open or mapped, or a folder as working directory.
    Holds,
    /// One of its threads waits in a system call for a path in the mount.
    Waits,
}

fn use_of(pid: u32, mount: &Mount) -> Option<Use> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let threads: Vec<PathBuf> = threads.map(|thread| thread.path()).collect();
    // threads share their files, but a main thread that has ended has none, while the others may be unable to end
    let has_files = |thread: &&PathBuf| fs::read_dir(thread.join("fd")).is_ok_and(|mut files| files.next().is_some());
    if threads.iter().find(has_files).or(threads.first()).is_some_and(|thread| holds(thread, mount)) {
        return Some(Use::Holds);
    }
    threads.iter().any(|thread| waits(thread, mount)).then_some(Use::Waits)
}

/// Returns whether a thread, by its folder in /proc, holds something of the mount.
fn holds(thread: &Path, mount: &Mount) -> bool {
    let inside = |link: &Path| fs::read_link(link).is_ok_and(|target| target.starts_with(&mount.mountpoint));
    let descriptors = fs::read_dir(thread.join("fd")).into_iter().flatten().flatten();
    ["cwd", "root", "exe"].iter().any(|name| inside(&thread.join(name)))
        || descriptors.into_iter().any(|entry| inside(&entry.path()))
        || fs::read_to_string(thread.join("maps")).is_ok_and(|maps| maps_device(&maps, mount.device))
}

/// Returns whether a thread waits in a system call, such as stat(2) or openat(2), one of whose first two arguments is a
/// path in the mount: a look-up that hangs holds the mount, and has no descriptor yet.
fn waits(thread: &Path, mount: &Mount) -> bool {
    // `262 0xffffff9c 0x7ffc2e22c9fe ...`, or `running`
    let call = fs::read_to_string(thread.join("syscall")).unwrap_or_default();
    let argument = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let arguments: Vec<u64> = call.split(' ').skip(1).take(2).filter_map(argument).collect();
    let folder_at = |descriptor: u64| fs::read_link(thread.join("fd").join(descriptor.to_string()));
    let cwd = fs::read_link(thread.join("cwd"));
    arguments.iter().enumerate().any(|(at, &address)| {
        let Some(path) = text_at(thread, address) else { return false };
        let from = match arguments.first() {
            Some(&descriptor) if at == 1 && descriptor < MAX_DESCRIPTOR => folder_at(descriptor).ok(),
            _ => cwd.as_ref().ok().cloned(),
        };
        from.is_some_and(|from| without_dots(&from.join(path)).starts_with(&mount.mountpoint))
    })
}

/// Reads a path from the memory of a thread.
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
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
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
    fn mapped_files_are_found_by_device() {
        let maps = "7f00-7f10 r--s 00000000 00:2f 12                 /mnt/vol/x\n7f20-7f30 rw-p 00000000 00:00 0 \n";
        assert!(maps_device(maps, (0, 0x2f)));
        assert!(!maps_device(maps, (0, 0x30)));
    }

    fn mount_at(place: &Path) -> Mount {
        Mount {
            id: 1,
            parent: 0,
            device: (4095, 4095),
            root: "/".into(),
            mountpoint: place.canonicalize().unwrap(),
            kind: "fuse".into(),
            name: "volfs:x".into(),
            options: String::new(),
        }
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
        let found = of(&mount_at(folder.path()), &[]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [format!("sleep (process {})", child.id())]);
        let own = || use_of(process::id(), &mount_at(folder.path()));
        assert_eq!(own(), None);
        let file = File::create(folder.path().join("x")).unwrap();
        assert_eq!(own(), Some(Use::Holds));
        drop(file);
        assert!(of(&mount_at(folder.path()), &[]).is_empty());
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
        while use_of(child.id(), &mount) != Some(Use::Waits) && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let found = of(&mount, &[]);
        mount.mountpoint = "/none".into();
        let elsewhere = use_of(child.id(), &mount);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [format!("cat (process {}), which waits for an answer of it", child.id())]);
        assert_eq!(elsewhere, None);
    }
}
