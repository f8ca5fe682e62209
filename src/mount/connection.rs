//! The connection between the kernel and the daemon of one mount, and how a process beside the daemon ends it.

use std::fs::{File, read_to_string};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};

use super::mountinfo;
use super::unmount::{UnmountError, unmount};

/// Where the kernel shows the connections of FUSE, if that file system (fusectl) is mounted.
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// The connection of this process.
#[derive(Debug)]
pub(crate) struct Connection {
    device: (u32, u32),
    lever: Option<Lever>,
}

/// A descriptor by which a process beside the daemon ends a connection.
#[derive(Debug)]
pub(crate) enum Lever {
    /// The file of fusectl that ends the connection. The kernel gives it to whoever has mounted.
    Abort(File),
    /// The FUSE device: whoever has it can answer requests in place of the daemon.
    Device(OwnedFd),
}

impl Connection {
    /// Returns the connection whose device is open as `fuse`, and which was just mounted at `mountpoint`. `None` if the
    /// system does not tell which mount that is.
    pub(crate) fn of(fuse: BorrowedFd<'_>, source: &Path, mountpoint: &Path) -> Option<Self> {
        let info = read_to_string(format!("/proc/self/fdinfo/{}", fuse.as_raw_fd())).unwrap_or_default();
        // Older kernels do not tell. Nothing was mounted there a moment ago, so a mount of this source is ours, unless
        // somebody else has mounted the same source there at the same moment.
        let by_place = || mountinfo::volfs_at(mountpoint).filter(|_| mountinfo::is_mount_of(source, mountpoint));
        let device = number_of(&info).map(|number| (0, number)).or_else(by_place)?;
        // the device number of FUSE mounts has no major part, so the minor number is its decimal form
        let abort = Path::new(CONNECTIONS).join(device.1.to_string()).join("abort");
        let abort = File::options().write(true).open(abort).ok().filter(|_| device.0 == 0);
        let lever = abort.map(Lever::Abort).or_else(|| fuse.try_clone_to_owned().ok().map(Lever::Device));
        Some(Self { device, lever })
    }

    /// A connection that a test makes up.
    #[cfg(test)]
    pub(crate) fn with(device: (u32, u32), lever: Option<Lever>) -> Self {
        Self { device, lever }
    }

    /// Returns the device number (major and minor) of the mount.
    pub(crate) fn device(&self) -> (u32, u32) {
        self.device
    }

    /// Returns the descriptor for another process; `None` if the system has no more descriptors.
    pub(crate) fn lever(&self) -> Option<&Lever> {
        self.lever.as_ref()
    }
}

/// Returns the number of the connection from what `/proc` tells about a descriptor of the FUSE device.
fn number_of(info: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix("fuse_connection:"))?.trim().parse().ok()
}

/// Ends a connection through its file of fusectl: all requests fail from now on, also those in flight.
pub(crate) fn abort(mut file: &File) -> io::Result<()> {
    file.write_all(b"1")
}

/// A mount that cannot end, and whose device number cannot be reused, while this value exists.
#[derive(Debug)]
pub(crate) struct PinnedMount {
    root: File,
    device: (u32, u32),
}

impl PinnedMount {
    /// Pins the mount at `mountpoint` if it has this device number. Asks nothing of its daemon.
    pub(crate) fn at(mountpoint: &Path, device: (u32, u32)) -> Option<Self> {
        let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits().cast_signed();
        let root = File::options().read(true).custom_flags(flags).open(mountpoint).ok()?;
        let seen = statx(&root, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::empty()).ok()?;
        let is_same = (seen.stx_dev_major, seen.stx_dev_minor) == device;
        is_same.then_some(Self { root, device })
    }

    /// Ends the connection to the daemon: all requests fail from now on, also those in flight. Only root may do that.
    pub(crate) fn abort(&self) -> Result<(), Errno> {
        // the mount is busy, since it is pinned, and so it is not unmounted: only its connection is ended
        let pinned = format!("/proc/self/fd/{}", self.root.as_raw_fd());
        match umount2(pinned.as_str(), MntFlags::MNT_FORCE) {
            Ok(()) | Err(Errno::EBUSY) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Takes the mount away, so that at least nobody begins to wait for it.
    pub(crate) fn take_away(&self) -> Result<(), UnmountError> {
        // looked up now: somebody may have unmounted it meanwhile, and mounted another one there
        unmount(&mountinfo::place_of(self.device).ok_or(UnmountError::NotMounted)?, true)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_kernel_tells_the_number_of_a_connection() {
        let info = "pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t90\nfuse_connection:\t40\n";
        assert_eq!(number_of(info), Some(40));
        assert_eq!(number_of("pos:\t0\n"), None);
    }

    #[test]
    fn a_descriptor_that_is_no_connection_has_no_device() {
        let folder = tempfile::tempdir().unwrap();
        let null = File::open("/dev/null").unwrap();
        assert!(Connection::of(null.as_fd(), Path::new("/data"), folder.path()).is_none());
    }
}
