//! The connection between the kernel and the daemon of one mount, as a process beside the daemon sees it.

use std::fs::{File, write};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};

use super::mountinfo;
use super::unmount::{UnmountError, unmount};

/// Where the kernel shows the connections of FUSE, if that file system is mounted.
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// A mount that cannot end, and whose device number cannot be reused, while this value exists.
#[derive(Debug)]
pub struct PinnedMount {
    root: File,
    device: (u32, u32),
}

impl PinnedMount {
    /// Pins the mount at `mountpoint` if it has this device number. Asks nothing of its daemon.
    #[must_use]
    pub fn at(mountpoint: &Path, device: (u32, u32)) -> Option<Self> {
        let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits().cast_signed();
        let root = File::options().read(true).custom_flags(flags).open(mountpoint).ok()?;
        let seen = statx(&root, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::empty()).ok()?;
        let is_same = (seen.stx_dev_major, seen.stx_dev_minor) == device;
        is_same.then_some(Self { root, device })
    }

    /// Ends the connection to the daemon: all requests fail from now on, also those that the daemon has not answered
    /// yet. Whoever has mounted may do that where `/sys/fs/fuse/connections` is mounted, and root everywhere. Where
    /// neither helps, the mount is taken away, so that at least nobody begins to wait for it.
    ///
    /// # Errors
    /// Why none of that was possible.
    pub fn abort(self) -> io::Result<()> {
        // the device number of FUSE mounts has no major part, so the minor number is its decimal form
        let file = Path::new(CONNECTIONS).join(self.device.1.to_string()).join("abort");
        if self.device.0 == 0 && write(file, "1").is_ok() {
            return Ok(());
        }
        // the mount is busy, since it is pinned, and so it is not unmounted: only its connection is ended
        let pinned = format!("/proc/self/fd/{}", self.root.as_raw_fd());
        match umount2(pinned.as_str(), MntFlags::MNT_FORCE) {
            Ok(()) | Err(Errno::EBUSY) => return Ok(()),
            Err(_) => {}
        }
        // looked up now: somebody may have unmounted it meanwhile, and mounted another one there
        let place = mountinfo::place_of(self.device).ok_or(UnmountError::NotMounted);
        place.and_then(|place| unmount(&place, true)).map_err(io::Error::other)
    }
}
