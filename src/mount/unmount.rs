//! Unmounts file systems: with the system call if that is permitted, otherwise with `fusermount3`.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use thiserror::Error;

/// The setuid program that mounts and unmounts for ordinary users.
pub(crate) const HELPER: &str = "fusermount3";

/// Why unmounting fails.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum UnmountError {
    /// A process uses it.
    #[error("it is busy")]
    Busy,
    /// There is no mount.
    #[error("nothing is mounted there")]
    NotMounted,
    /// The helper finds no mount that this user may unmount.
    #[error("another user has mounted it; unmount as that user or as root")]
    NotOurs,
    /// The user is not root, and the helper is not installed.
    #[error("{HELPER} was not found; install fuse3, or unmount as root")]
    NoHelper,
    /// Any other reason, as the system or the helper states it.
    #[error("{0}")]
    Refused(String),
}

/// Unmounts the file system at `mountpoint`. With `lazy` the mount disappears from there at once, and ends with its
/// last user. Fails with [`UnmountError::Busy`] only without `lazy`.
pub(crate) fn unmount(mountpoint: &Path, lazy: bool) -> Result<(), UnmountError> {
    let mut flags = MntFlags::UMOUNT_NOFOLLOW;
    flags.set(MntFlags::MNT_DETACH, lazy);
    match umount2(mountpoint, flags) {
        Ok(()) => Ok(()),
        Err(Errno::EPERM) => unmount_with_helper(mountpoint, lazy),
        Err(Errno::EBUSY) => Err(UnmountError::Busy),
        Err(Errno::EINVAL | Errno::ENOENT) => Err(UnmountError::NotMounted),
        Err(errno) => Err(UnmountError::Refused(errno.desc().to_owned())),
    }
}

/// Finds the helper in `PATH`, or in the usual folders, since the `PATH` of a daemon may lack them.
pub(crate) fn find_helper() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/bin", "/usr/local/bin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(usual).map(|folder| folder.join(HELPER)).find(|program| program.is_file())
}

fn unmount_with_helper(mountpoint: &Path, lazy: bool) -> Result<(), UnmountError> {
    let helper = find_helper().ok_or(UnmountError::NoHelper)?;
    let mut command = Command::new(helper);
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(mountpoint).env("LC_ALL", "C");
    let output = command.output().map_err(|e: io::Error| UnmountError::Refused(format!("{HELPER}: {e}")))?;
    if output.status.success() { Ok(()) } else { Err(parse_messages(&String::from_utf8_lossy(&output.stderr))) }
}

/// Parses the helper's messages, since its exit status shows only that it failed.
fn parse_messages(messages: &str) -> UnmountError {
    let line = messages.lines().next().unwrap_or("it gives no reason").trim_end();
    if line.contains("busy") {
        return UnmountError::Busy;
    }
    if line.ends_with("not found in /etc/mtab") {
        return UnmountError::NotOurs;
    }
    // the message begins with the helper's path
    let reason = line.split_once(&format!("{HELPER}: ")).map_or(line, |(_, reason)| reason);
    UnmountError::Refused(format!("{HELPER}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helpers_messages_are_parsed() {
        assert_eq!(
            parse_messages("fusermount3: failed to unmount /mnt: Device or resource busy\n"),
            UnmountError::Busy
        );
        assert_eq!(
            parse_messages("/usr/bin/fusermount3: entry for /mnt not found in /etc/mtab\n"),
            UnmountError::NotOurs
        );
        let other = UnmountError::Refused("fusermount3: bad mount point /mnt".into());
        assert_eq!(parse_messages("/usr/bin/fusermount3: bad mount point /mnt"), other);
        assert_eq!(parse_messages(""), UnmountError::Refused("fusermount3: it gives no reason".into()));
    }

    #[test]
    fn a_plain_folder_is_no_mount() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = unmount(folder.path(), false);
        // for users other than root: the helper's own message, or that it is not installed
        assert!(outcome.is_err_and(|e| e != UnmountError::Busy));
    }
}
