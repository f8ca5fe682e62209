//! The mounts and processes that keep a mount busy. Everything is read from `/proc`, nothing from the mount itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::cli::text::escape;
use crate::mount::mountinfo::Mount;
use crate::mount::readahead_process;

/// The most holders that are named.
const MAX_NAMED: usize = 10;

/// Describes the mounts on top of `mount`, and the processes that have one of its files open or mapped, or one of its
/// folders as working directory, as far as this user may see them.
#[must_use]
pub fn of(mount: &Mount, mounts: &[Mount]) -> Vec<String> {
    let below = mounts.iter().filter(|m| m.parent == mount.id && m.id != mount.id);
    let mut found: Vec<String> = below.map(|m| format!("the mount at {}", escape::path(&m.mountpoint))).collect();
    let mut processes: Vec<u32> = processes().filter(|&pid| pid != process::id() && holds(pid, mount)).collect();
    processes.sort_unstable();
    let (ahead, others): (Vec<u32>, Vec<u32>) = processes.iter().partition(|pid| reads_ahead(**pid));
    // a read-ahead process has files open for a moment only: name it only if nothing else is found
    let processes = if others.is_empty() && found.is_empty() { ahead } else { others };
    found.extend(processes.iter().map(|&pid| describe(pid)));
    if found.len() > MAX_NAMED {
        let more = found.split_off(MAX_NAMED).len();
        found.push(format!("{more} more"));
    }
    found
}

/// Ends the read-ahead processes that hold `mount` and are stopped, by a signal or a debugger: they would hold it for as
/// long as that lasts. A mount can do without them.
pub fn end_stopped_read_ahead(mount: &Mount) {
    for pid in processes().filter(|&pid| reads_ahead(pid)) {
        // the descriptor stands for this process even if its number is reused
        let Some(process) = Pid::from_raw(pid.cast_signed()) else { continue };
        let Ok(process) = pidfd_open(process, PidfdFlags::empty()) else { continue };
        if reads_ahead(pid) && is_stopped(pid) && holds(pid, mount) {
            // of another user, or gone: then the mount is reported as busy
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // the state is the first field behind the name, which is in brackets
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
}

/// Returns the numbers of all processes that this user can see.
fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn describe(pid: u32) -> String {
    format!("{} (process {pid})", escape::text(name(pid).trim_end()))
}

/// Returns whether this is the read-ahead process of a mount.
fn reads_ahead(pid: u32) -> bool {
    name(pid).trim_end().as_bytes() == readahead_process::NAME.to_bytes()
}

fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

fn holds(pid: u32, mount: &Mount) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let inside = |link: &Path| fs::read_link(link).is_ok_and(|target| target.starts_with(&mount.mountpoint));
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    ["cwd", "root", "exe"].iter().any(|name| inside(&process.join(name)))
        || descriptors.into_iter().any(|entry| inside(&entry.path()))
        || fs::read_to_string(process.join("maps")).is_ok_and(|maps| maps_device(&maps, mount.device))
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

    #[test]
    fn a_process_in_a_folder_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let mount = |place: &Path| Mount {
            id: 1,
            parent: 0,
            device: (4095, 4095),
            root: "/".into(),
            mountpoint: place.canonicalize().unwrap(),
            kind: "fuse".into(),
            name: "volfs:x".into(),
            options: String::new(),
        };
        let mut child = process::Command::new("sleep").arg("20").current_dir(folder.path()).spawn().unwrap();
        let found = of(&mount(folder.path()), &[]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [format!("sleep (process {})", child.id())]);
        assert!(!holds(process::id(), &mount(folder.path())));
        let file = fs::File::create(folder.path().join("x")).unwrap();
        assert!(holds(process::id(), &mount(folder.path())));
        drop(file);
    }
}
