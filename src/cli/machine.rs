//! Whether this machine lets this user mount.

use std::fs::{self, File};
use std::io;

use nix::unistd::getuid;

use super::error::CliError;
use crate::fs::unmount::{HELPER, find_helper};

const DEVICE: &str = "/dev/fuse";
const FUSE_CONF: &str = "/etc/fuse.conf";

/// Bit of CAP_SYS_ADMIN, without which only the helper can mount.
const SYS_ADMIN: u32 = 21;

/// Makes sure that a mount is possible at all.
///
/// # Errors
/// [`CliError::Machine`]: what stands in the way, and what to type.
pub fn check(allow_other: bool) -> Result<(), CliError> {
    check_device()?;
    if !may_mount() && find_helper().is_none() {
        return Err(CliError::Machine(format!(
            "{HELPER} was not found, which mounts for ordinary users; install it (apt install fuse3, dnf install fuse3) or mount as root"
        )));
    }
    let conf = || fs::read_to_string(FUSE_CONF).unwrap_or_default();
    if allow_other && !getuid().is_root() && !permits_allow_other(&conf()) {
        return Err(CliError::Machine(format!(
            "allow_other is not permitted to ordinary users here; put the line user_allow_other into {FUSE_CONF}, or mount without it"
        )));
    }
    Ok(())
}

fn check_device() -> Result<(), CliError> {
    let Err(error) = File::options().read(true).write(true).open(DEVICE) else { return Ok(()) };
    Err(CliError::Machine(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{DEVICE} is missing; load it with `sudo modprobe fuse`, in a container start with --device {DEVICE} --cap-add SYS_ADMIN"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "{DEVICE} may not be opened by this user; mount as root, or permit it with `sudo chmod 666 {DEVICE}`"
        ),
        _ => format!("{DEVICE} cannot be opened: {error}; is FUSE in the kernel? try `sudo modprobe fuse`"),
    }))
}

/// Whether this process may call mount(2) itself.
fn may_mount() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    capabilities(&status).map_or(getuid().is_root(), |bits| bits >> SYS_ADMIN & 1 == 1)
}

fn capabilities(status: &str) -> Option<u64> {
    let field = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(field.trim(), 16).ok()
}

fn permits_allow_other(conf: &str) -> bool {
    conf.lines().any(|line| line.trim() == "user_allow_other")
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
    }

    #[test]
    fn capabilities_are_hexadecimal() {
        assert_eq!(capabilities("Name:\tx\nCapEff:\t0000000000200000\n"), Some(1 << SYS_ADMIN));
        assert_eq!(capabilities("Name:\tx\n"), None);
    }
}
