//! `volfs umount`: unmounts, and waits until the daemon of the mount has ended.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::unistd::getuid;

use super::error::{Cause, CliError};
use super::mounts::{NoStatus, all_mounts, ask, cannot_unmount, clear_dead, daemon_pid, find_volfs_mount};
use super::processes::{Daemon, end_stopped_read_ahead, holders, in_other_namespace, start_time};
use super::text::escaped_path;
use crate::mount::{Mount, UnmountError, read_mounts, unmount};

#[derive(Debug, Args)]
#[command(after_help = UMOUNT_EXAMPLE)]
pub(super) struct UmountArgs {
    /// Where the mount is
    pub(super) mountpoint: PathBuf,

    /// Take the mount away even if it is in use
    ///
    /// It is gone for all programs at once; those that have a file of it open may read on until they close it.
    #[arg(long)]
    pub(super) lazy: bool,
}

const UMOUNT_EXAMPLE: &str = "\
Example:
  volfs umount ~/vol";

/// How long the mount may take to report its daemon's process id.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// How long unmounting a busy mount is retried, since some programs use it only for a moment.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the mount may take to disappear, and its daemon to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a daemon takes to end, unless something holds it up. A lazy unmount waits no longer, since there may still be
/// readers.
const SOON: Duration = Duration::from_millis(500);

pub(super) fn run(args: &UmountArgs) -> Result<(), CliError> {
    let mount = find_volfs_mount(&args.mountpoint, |place| format!("to unmount it type: umount {place}"))?;
    let place = &mount.mountpoint;
    let answering = |told| {
        let pid = Daemon::find_answering(&mount, told)?.pid;
        Some((pid, start_time(pid)?))
    };
    let daemon = match ask(place, STATUS_TIMEOUT) {
        Ok(status) => answering(daemon_pid(&status)),
        Err(NoStatus::Denied) => answering(None),
        Err(NoStatus::Dead) => {
            clear_dead(place)?;
            None
        }
        // the request for the status is still in flight, and would keep the mount busy
        Err(NoStatus::Silent) if !args.lazy => return Err(unresponsive(&mount)),
        Err(NoStatus::Silent | NoStatus::Error(_)) => None,
    };
    end_stopped_read_ahead(&mount);
    let mut outcome = Ok(());
    // a lazy unmount is never busy, so that the first attempt is the last
    poll_until(BUSY_TIMEOUT, || {
        outcome = if is_listed(&mount) { unmount(place, args.lazy) } else { Ok(()) };
        outcome != Err(UnmountError::Busy)
    });
    match outcome {
        Ok(()) | Err(UnmountError::NotMounted) => {}
        Err(UnmountError::Busy) => return Err(busy(place, holders(&mount, &all_mounts()?))),
        Err(error) => return Err(cannot_unmount(place, &error)),
    }
    let (shown, seconds) = (escaped_path(place), EXIT_TIMEOUT.as_secs());
    if !poll_until(EXIT_TIMEOUT, || !is_listed(&mount)) {
        let what = format!("{shown} is still mounted after {seconds} s");
        return Err(CliError::new(what, "see /proc/self/mountinfo"));
    }
    let Some((pid, began)) = daemon else { return Ok(()) };
    let has_ended = || start_time(pid).as_ref() != Some(&began);
    if poll_until(SOON, has_ended) || args.lazy {
        return Ok(());
    }
    if let Some(other) = in_other_namespace(&mount) {
        let what = format!(
            "{shown} is unmounted here, but {other} and others of its mount namespace (a container, say) still see it: its \
             daemon (process {pid}) goes on until they unmount it or end"
        );
        return Err(CliError::new(what, ""));
    }
    if poll_until(EXIT_TIMEOUT, has_ended) {
        return Ok(());
    }
    let what = format!("{shown} is unmounted, but its daemon (process {pid}) has not ended within {seconds} s");
    Err(CliError::new(what, "it may wait for its source"))
}

fn unresponsive(mount: &Mount) -> CliError {
    let place = escaped_path(&mount.mountpoint);
    let stopped = Daemon::find(mount).filter(|daemon| daemon.is_stopped);
    let why =
        stopped.map(|daemon| format!(": {}", Daemon::remedy(Some(daemon), &mount.mountpoint))).unwrap_or_default();
    let what = format!("the mount at {place} does not answer{why}");
    let remedy = format!("to take it away anyway type: volfs umount --lazy {place}");
    CliError::new(what, remedy).with_cause(Cause::Unresponsive)
}

/// Returns the error for a mount that these mounts and processes use.
fn busy(place: &Path, holders: Vec<String>) -> CliError {
    let place = escaped_path(place);
    let by: &str = match holders.as_slice() {
        [] if getuid().is_root() => {
            ": its user may have ended just now (type the command again), or is not a process, such as an NFS export"
        }
        [] => " by a process that this user cannot see",
        holders => &format!(" by {}", holders.join(", ")),
    };
    let remedy = format!("end that, or type: volfs umount --lazy {place}");
    CliError::new(format!("{place} is in use{by}"), remedy).with_cause(Cause::Busy(holders))
}

/// Returns whether exactly this mount is still listed. Ids and device numbers are reused, but not both for the same
/// mount point.
fn is_listed(mount: &Mount) -> bool {
    read_mounts().is_ok_and(|all| all.iter().any(|m| m == mount))
}

/// Calls `done` again and again, with growing pauses, until it returns `true` or `limit` has passed. Returns its
/// last result.
fn poll_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_of_volfs_are_unmounted() {
        let run = |path: &Path| run(&UmountArgs { mountpoint: path.to_owned(), lazy: true }).unwrap_err();
        let error = run(Path::new("/proc")).to_string();
        assert!(error.contains("not of volfs; to unmount it type: umount /proc"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(run(folder.path()).cause, Cause::NotMounted));
        assert!(run(&folder.path().join("none")).to_string().starts_with("cannot find"));
    }

    #[test]
    fn waiting_ends() {
        assert!(!poll_until(Duration::from_millis(5), || false));
        let mut n = 0;
        assert!(poll_until(Duration::from_secs(10), || {
            n += 1;
            n == 3
        }));
    }
}
