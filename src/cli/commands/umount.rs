//! `volfs umount`: unmounts, and waits until the daemon of the mount has ended.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::cli::args::UmountArgs;
use crate::cli::error::CliError;
use crate::cli::mounts::processes::Daemon;
use crate::cli::mounts::status::{self, Answer};
use crate::cli::mounts::{holders, mountpoint};
use crate::cli::timeout;
use crate::mount::mountinfo::{self, Mount};
use crate::mount::unmount::{UnmountError, unmount};

/// How long the mount may take to report its daemon's process id.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// How long unmounting a busy mount is retried, since some programs use it only for a moment.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the mount may take to disappear, and its daemon to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a daemon takes to end, unless something holds it up. A lazy unmount waits no longer, since there may still be
/// readers.
const SOON: Duration = Duration::from_millis(500);

/// Unmounts, and waits until the mount is gone.
pub(crate) fn run(args: &UmountArgs) -> Result<(), CliError> {
    let (place, mount) = mountpoint::find_volfs_mount(&args.mountpoint, CliError::NotOurs)?;
    let daemon = match status::ask(&place, STATUS_TIMEOUT) {
        Answer::Alive(told) => Daemon::of_answering(&mount, told).and_then(|daemon| Process::find(daemon.pid)),
        Answer::Dead => {
            mountpoint::clear_dead(&place)?;
            None
        }
        // the request for the status is still in flight, and would keep the mount busy
        Answer::Silent if !args.lazy => {
            let stopped = Daemon::of(&mount).filter(|daemon| daemon.is_stopped).map(|daemon| daemon.pid);
            return Err(CliError::Unresponsive(place, stopped));
        }
        Answer::Silent | Answer::Error(_) => None,
    };
    holders::end_stopped_read_ahead(&mount);
    unmount_or_explain(&place, &mount, args.lazy)?;
    if !timeout::poll_until(EXIT_TIMEOUT, || !is_listed(&mount)) {
        return Err(CliError::StillMounted(place, EXIT_TIMEOUT));
    }
    let Some(process) = daemon else { return Ok(()) };
    if timeout::poll_until(SOON, || process.ended()) || args.lazy {
        return Ok(());
    }
    if let Some(other) = holders::in_other_namespace(&mount) {
        return Err(CliError::SeenElsewhere(place, process.pid, other));
    }
    if timeout::poll_until(EXIT_TIMEOUT, || process.ended()) {
        return Ok(());
    }
    Err(CliError::DaemonStays(place, process.pid, EXIT_TIMEOUT))
}

fn unmount_or_explain(place: &Path, mount: &Mount, lazy: bool) -> Result<(), CliError> {
    let mut outcome = Ok(());
    // a lazy unmount is never busy, so that the first attempt is the last
    timeout::poll_until(BUSY_TIMEOUT, || {
        outcome = if is_listed(mount) { unmount(place, lazy) } else { Ok(()) };
        outcome != Err(UnmountError::Busy)
    });
    match outcome {
        Ok(()) | Err(UnmountError::NotMounted) => Ok(()),
        Err(UnmountError::Busy) => Err(CliError::Busy(place.to_owned(), holders::of(mount, &mountpoint::mounts()?))),
        Err(error) => Err(CliError::Unmount { mountpoint: place.to_owned(), error }),
    }
}

/// Returns whether exactly this mount is still listed. Ids and device numbers are reused, but not both for the same
/// mount point.
fn is_listed(mount: &Mount) -> bool {
    mountinfo::read().is_ok_and(|all| all.iter().any(|m| m == mount))
}

/// A process, identified by its start time too, since process ids are reused.
#[derive(Debug)]
struct Process {
    pid: u32,
    start_time: String,
}

impl Process {
    fn find(pid: u32) -> Option<Self> {
        Some(Self { pid, start_time: start_time(&stat(pid)?)? })
    }

    fn ended(&self) -> bool {
        stat(self.pid).and_then(|stat| start_time(&stat)).is_none_or(|start| start != self.start_time)
    }
}

fn stat(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// Returns a process's start time from the text of /proc/PID/stat; `None` for a zombie. The name, in brackets, may
/// contain any character.
fn start_time(stat: &str) -> Option<String> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ended = matches!(*fields.first()?, "Z" | "X");
    // the start time is field 22 of the line, and the state, the first of these fields, is field 3
    if ended { None } else { Some((*fields.get(19)?).to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_identified_by_its_start_time() {
        let rest = (4..=22).map(|i| i.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(start_time(&format!("12 (a ) b) S {rest} 23")), Some("22".to_owned()));
        assert_eq!(start_time(&format!("12 (a) Z {rest}")), None);
        assert_eq!(start_time("nonsense"), None);
        let own = Process::find(std::process::id()).unwrap();
        assert!(!own.ended());
        assert!(Process { pid: own.pid, start_time: "0".to_owned() }.ended());
    }

    #[test]
    fn only_mounts_of_volfs_are_unmounted() {
        let run = |path: &Path| run(&UmountArgs { mountpoint: path.to_owned(), lazy: true }).unwrap_err();
        assert!(matches!(run(Path::new("/proc")), CliError::NotOurs(..)));
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(run(folder.path()), CliError::NotMounted(_, None)));
        assert!(matches!(run(&folder.path().join("none")), CliError::NoFolder(..)));
    }
}
