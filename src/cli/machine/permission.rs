//! Whether this user may mount on this machine, and what to do if not.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use nix::unistd::getuid;

use crate::cli::error::CliError;
use crate::mount::unmount::{HELPER, find_helper};

/// The device through which the kernel talks to a mount's daemon.
pub(crate) const DEVICE: &str = "/dev/fuse";
/// The configuration of the mount helper.
pub(crate) const FUSE_CONF: &str = "/etc/fuse.conf";

/// The bit of CAP_SYS_ADMIN in a capability set. A process without it needs the helper to mount.
const SYS_ADMIN: u32 = 21;

/// Something that prevents mounting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// What is wrong.
    pub what: String,
    /// What the user can do about it.
    pub remedy: String,
}

impl Obstacle {
    /// Makes an obstacle.
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

/// Checks that this user may mount.
pub(crate) fn check(allow_other: bool) -> Result<(), CliError> {
    let obstacle = match open_device(Path::new(DEVICE)) {
        Err(error) => Some(closed_device(DEVICE, &error)),
        Ok(()) if !Privileges::of_process().admin && find_helper().is_none() => Some(no_helper()),
        Ok(()) if allow_other && !getuid().is_root() && !permits_allow_other(&conf(Path::new(FUSE_CONF))) => {
            Some(allow_other_is_forbidden())
        }
        Ok(()) => None,
    };
    obstacle.map_or(Ok(()), |obstacle| Err(CliError::Machine(obstacle.to_string())))
}

/// Opens the device as a mount does, and closes it again.
pub(crate) fn open_device(device: &Path) -> io::Result<()> {
    File::options().read(true).write(true).open(device).map(|_| ())
}

/// Explains an error of [`open_device`].
pub(crate) fn closed_device(device: &str, error: &io::Error) -> Obstacle {
    match error.kind() {
        io::ErrorKind::NotFound => Obstacle::new(
            format!("{device} is missing"),
            format!(
                "load it with `sudo modprobe fuse`, in a container start with --device {device} --cap-add SYS_ADMIN"
            ),
        ),
        io::ErrorKind::PermissionDenied => Obstacle::new(
            format!("{device} may not be opened by this user"),
            format!("mount as root, or permit it with `sudo chmod 666 {device}`"),
        ),
        _ => Obstacle::new(
            format!("{device} cannot be opened: {error}"),
            "is FUSE in the kernel? try `sudo modprobe fuse`",
        ),
    }
}

/// Returns the obstacle of a missing helper, without which ordinary users cannot mount.
pub(crate) fn no_helper() -> Obstacle {
    Obstacle::new(
        format!("{HELPER} was not found, which mounts for ordinary users"),
        "install it (apt install fuse3, dnf install fuse3) or mount as root",
    )
}

/// Returns the obstacle of a helper whose configuration forbids `allow_other`.
pub(crate) fn allow_other_is_forbidden() -> Obstacle {
    Obstacle::new(
        "allow_other is not permitted to ordinary users here",
        format!("put the line user_allow_other into {FUSE_CONF}, or mount without it"),
    )
}

/// Returns the text of fuse.conf, or an empty text if it cannot be read: that permits nothing.
pub(crate) fn conf(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// Returns whether the text of fuse.conf permits `allow_other` to ordinary users.
pub(crate) fn permits_allow_other(conf: &str) -> bool {
    conf.lines().any(|line| line.trim() == "user_allow_other")
}

/// The rights to mount of a process, and of the helper that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Privileges {
    /// Whether the process has CAP_SYS_ADMIN, so that it may call mount(2) itself.
    pub admin: bool,
    /// Whether a setuid root program that it starts gets CAP_SYS_ADMIN.
    pub helper: bool,
}

impl Privileges {
    /// Returns the privileges of this process.
    pub(crate) fn of_process() -> Self {
        Self::read(&fs::read_to_string("/proc/self/status").unwrap_or_default(), getuid().is_root())
    }

    /// Reads them from the text of /proc/self/status. Where the text lacks them, root has them.
    pub(crate) fn read(status: &str, root: bool) -> Self {
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let admin = |name| u64::from_str_radix(field(name)?, 16).ok().map(|bits| bits >> SYS_ADMIN & 1 == 1);
        let gains = field("NoNewPrivs").is_none_or(|flag| flag == "0");
        Self { admin: admin("CapEff").unwrap_or(root), helper: gains && admin("CapBnd").unwrap_or(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuse_conf_is_read_as_the_helper_reads_it() {
        assert!(permits_allow_other("# text\nuser_allow_other\n"));
        assert!(permits_allow_other("mount_max = 10\n  user_allow_other  "));
        assert!(!permits_allow_other("#user_allow_other\n"));
        assert!(!permits_allow_other(""));
        assert_eq!(conf(Path::new("/nowhere/fuse.conf")), "");
    }

    #[test]
    fn capabilities_are_hexadecimal() {
        let privileges = |status: &str, root| {
            let found = Privileges::read(status, root);
            (found.admin, found.helper)
        };
        assert_eq!(privileges("Name:\tx\nCapEff:\t0000000000200000\nCapBnd:\t0000000000200000\n", false), (true, true));
        assert_eq!(
            privileges("CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t0\n", true),
            (false, true)
        );
        assert_eq!(
            privileges("CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t1\n", false),
            (false, false)
        );
        assert_eq!(privileges("CapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\n", false), (false, false));
        assert_eq!(privileges("Name:\tx\n", true), (true, true));
    }

    #[test]
    fn an_obstacle_of_the_device_names_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let missing = open_device(&folder.path().join("fuse")).unwrap_err();
        assert!(closed_device(DEVICE, &missing).to_string().starts_with("/dev/fuse is missing; load it with"));
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(closed_device(DEVICE, &denied).remedy.contains("chmod 666 /dev/fuse"));
        assert!(closed_device(DEVICE, &io::Error::other("odd")).what.contains("odd"));
    }
}
