//! The processes of this machine, as far as this user may see them, from /proc.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process;

use crate::mount::mountinfo::{self, Mount};

/// The daemon of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Daemon {
    /// Its process id.
    pub pid: u32,
    /// Whether a signal or a debugger has stopped it.
    pub is_stopped: bool,
}

impl Daemon {
    /// Finds the daemon of a mount without asking the mount; `None` if it is another user's, or not to be found.
    pub(crate) fn of(mount: &Mount) -> Option<Self> {
        let own = process::id();
        all().find(|&pid| pid != own && may_serve(pid, mount) && serves(pid, mount)).map(Self::new)
    }

    /// Finds the daemon of a mount that answers. Where its connection to the kernel cannot be seen, that is the process
    /// `told` in the mount's status.json, if it can be that: another user's mount may tell any number.
    pub(crate) fn of_answering(mount: &Mount, told: Option<u32>) -> Option<Self> {
        Self::of(mount).or_else(|| told.filter(|&pid| may_serve(pid, mount)).map(Self::new))
    }

    fn new(pid: u32) -> Self {
        Self { pid, is_stopped: is_stopped(pid) }
    }

    /// Finds the daemon of the mount that is visible at `place`.
    pub(crate) fn at(place: &Path) -> Option<Self> {
        Self::of(mountinfo::topmost(&mountinfo::read().ok()?, place)?)
    }

    /// Returns what to do about a mount that does not answer, for the end of a message.
    pub(crate) fn remedy(daemon: Option<Self>, place: &str) -> String {
        match daemon {
            Some(Self { pid, is_stopped: true }) => {
                format!("its daemon (process {pid}) is stopped: to let it go on type: kill -CONT {pid}")
            }
            Some(Self { pid, .. }) => {
                format!("its daemon (process {pid}) runs; try again, or end it: kill {pid}")
            }
            None => format!("try again, or take it away: volfs umount --lazy {place}"),
        }
    }
}

/// Returns whether a process runs this program as the user who mounted: others are none of that user's business, and the
/// id of a daemon in a container means another process here.
fn may_serve(pid: u32, mount: &Mount) -> bool {
    let program = name(pid);
    program == name(process::id()) && !program.is_empty() && mount.owner().is_some_and(|user| owner(pid) == Some(user))
}

/// Returns the number of the user whose a process is.
fn owner(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next()?.parse().ok())
}

/// Returns whether a process serves the kernel's requests for a mount: it has the connection open, whose number
/// newer kernels tell; with others the mount point is among its arguments.
fn serves(pid: u32, mount: &Mount) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let connections = fs::read_dir(folder.join("fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == Path::new("/dev/fuse")));
    let numbers: Vec<Option<u32>> = connections
        .map(|entry| {
            let about = fs::read_to_string(folder.join("fdinfo").join(entry.file_name())).unwrap_or_default();
            about.lines().find_map(|line| line.strip_prefix("fuse_connection:")?.trim().parse().ok())
        })
        .collect();
    let arguments = || fs::read(folder.join("cmdline")).unwrap_or_default();
    numbers.iter().any(|number| match number {
        Some(number) => *number == mount.device.1,
        None => arguments().split(|&byte| byte == 0).any(|word| names(word, mount)),
    })
}

/// Returns whether a word of a command line names the mount point, relative to any folder.
fn names(word: &[u8], mount: &Mount) -> bool {
    !word.is_empty() && mount.mountpoint.ends_with(OsStr::from_bytes(word))
}

/// Returns the numbers of all processes that this user can see.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Returns the name of a process in lists of processes; empty if there is none.
pub(crate) fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Returns whether a signal or a debugger has stopped a process.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // the state is the first field behind the name, which is in brackets
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_serves_nothing_is_no_daemon() {
        let mount = Mount {
            id: 1,
            parent: 0,
            device: (4095, 4095),
            root: "/".into(),
            mountpoint: "/mnt/a b".into(),
            kind: "fuse".into(),
            name: "volfs:x".into(),
            options: String::new(),
        };
        assert_eq!(Daemon::of(&mount), None);
        // this process, as the mounts of three users tell it
        let own = nix::unistd::getuid().as_raw();
        let told = |options: String, pid| Daemon::of_answering(&Mount { options, ..mount.clone() }, Some(pid));
        assert_eq!(told(format!("ro,user_id={own}"), process::id()).map(|daemon| daemon.pid), Some(process::id()));
        assert_eq!(told(format!("ro,user_id={}", own + 1), process::id()), None);
        assert_eq!(told(String::new(), process::id()), None);
        assert_eq!(told("ro,user_id=0".to_owned(), 1), None, "another program");
        let named = ["/mnt/a b", "a b", "mnt/a b/"].map(|word| names(word.as_bytes(), &mount));
        let others = ["", "b", "/a b", "/mnt"].map(|word| names(word.as_bytes(), &mount));
        assert_eq!((named, others), ([true; 3], [false; 4]));
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
}
