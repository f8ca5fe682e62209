//! Mounts with mount(2), where this process may. The FUSE library would do it too, but gives such a mount the type `fuse`
//! and not `fuse.volfs`, by which other programs (updatedb, `df -x`, backups) know what it is.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount as mount2};
use rustix::process::{getgid, getuid};

/// The type of every mount of volfs: FUSE, and its subtype.
const KIND: &str = "fuse.volfs";

/// The device through which the kernel and a daemon talk.
const DEVICE: &str = "/dev/fuse";

/// The type and permissions of the root of a mount, until the daemon is asked for them.
const ROOT_MODE: u32 = 0o40555;

/// Mounts at `mountpoint`, with `name` as the mount's name and further `options` for the FUSE driver: read-only, and
/// without devices, set-user-ID programs and access times. Returns the connection to the kernel, or `None` if this
/// process may not mount, but a helper might.
pub(crate) fn mount(name: &str, mountpoint: &Path, options: &[String]) -> io::Result<Option<OwnedFd>> {
    let opened = File::options().read(true).write(true).open(DEVICE);
    let device = opened.map_err(|error| io::Error::new(error.kind(), format!("{DEVICE}: {error}")))?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NODEV | MsFlags::MS_NOSUID | MsFlags::MS_NOATIME;
    let (fd, user, group) = (device.as_raw_fd(), getuid().as_raw(), getgid().as_raw());
    let mut data = format!("fd={fd},rootmode={ROOT_MODE:o},user_id={user},group_id={group}");
    for option in options {
        data.push(',');
        data.push_str(option);
    }
    match mount2(Some(name), mountpoint, Some(KIND), flags, Some(data.as_str())) {
        Ok(()) => Ok(Some(device.into())),
        Err(Errno::EPERM) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
