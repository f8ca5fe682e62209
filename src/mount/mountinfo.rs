//! The mounts of this system, from `/proc/self/mountinfo`, and their end. Reading the list touches no mounted file
//! system, so it works even where one of them hangs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use thiserror::Error;

/// The prefix of the name of each volfs mount.
pub(super) const NAME_PREFIX: &str = "volfs:";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    /// The number of the mount on which it is mounted.
    pub(crate) parent: u64,
    /// Major and minor device number: unique for each FUSE mount.
    pub(crate) device: (u32, u32),
    /// The folder of the file system that is the root of the mount.
    pub(crate) root: PathBuf,
    pub(crate) mountpoint: PathBuf,
    pub(crate) kind: String,
    /// The mount's source: a device, or a name that the file system chose.
    pub(crate) name: OsString,
    /// The options of the file system, separated by commas.
    pub(crate) options: String,
}

impl Mount {
    pub(crate) fn is_volfs(&self) -> bool {
        (self.kind == "fuse" || self.kind.starts_with("fuse."))
            && self.name.as_bytes().starts_with(NAME_PREFIX.as_bytes())
    }

    /// Returns the number of the user who mounted it, which the kernel knows of each FUSE mount. That user chose
    /// everything else about the mount, its name included.
    pub(crate) fn owner(&self) -> Option<u32> {
        self.options.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok())
    }

    /// Returns the source that a volfs mount shows, from the mount's name.
    pub(crate) fn source(&self) -> &Path {
        let name = self.name.as_bytes();
        Path::new(OsStr::from_bytes(name.strip_prefix(NAME_PREFIX.as_bytes()).unwrap_or(name)))
    }

    fn shows(&self, source: &Path) -> bool {
        // the name of a mount is text
        self.source() == Path::new(&*source.to_string_lossy())
    }
}

pub(crate) fn read_mounts() -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read("/proc/self/mountinfo")?))
}

pub(crate) fn read_mounts_of(pid: u32) -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read(format!("/proc/{pid}/mountinfo"))?))
}

/// Returns the visible mount at `mountpoint`: of several, the one on which no other is mounted.
pub(crate) fn topmost<'a>(mounts: &'a [Mount], mountpoint: &Path) -> Option<&'a Mount> {
    let here = || mounts.iter().filter(|m| m.mountpoint == mountpoint);
    here().rfind(|m| !here().any(|other| other.parent == m.id && other.id != m.id))
}

fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&b| b == b'\n').filter_map(parse_line).collect()
}

/// Parses `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`. Between the mount options
/// and the dash there may be any number of fields.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&b| b == b' ');
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let (major, minor) = std::str::from_utf8(fields.next()?).ok()?.split_once(':')?;
    let root = PathBuf::from(unescape(fields.next()?));
    let mountpoint = PathBuf::from(unescape(fields.next()?));
    let mut rest = fields.skip_while(|f| *f != b"-").skip(1);
    Some(Mount {
        id,
        parent,
        device: (major.parse().ok()?, minor.parse().ok()?),
        root,
        mountpoint,
        kind: String::from_utf8_lossy(rest.next()?).into_owned(),
        name: unescape(rest.next()?),
        options: String::from_utf8_lossy(rest.next().unwrap_or_default()).into_owned(),
    })
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Undoes the kernel's escapes: space, tab, newline and backslash are written as a backslash and three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut parts = field.split(|&byte| byte == b'\\');
    let mut bytes = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let (byte, after) = match part {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), after)
            }
            _ => (b'\\', part),
        };
        bytes.push(byte);
        bytes.extend_from_slice(after);
    }
    OsString::from_vec(bytes)
}

/// Returns the visible mount at `mountpoint`, if that is a volfs mount.
pub(crate) fn volfs_at(mountpoint: &Path) -> Option<Mount> {
    let mounts = read_mounts().ok()?;
    topmost(&mounts, mountpoint).filter(|mount| mount.is_volfs()).cloned()
}

/// Returns whether the visible mount at `mountpoint` is a volfs mount of this source.
pub(crate) fn is_mount_of(source: &Path, mountpoint: &Path) -> bool {
    volfs_at(mountpoint).is_some_and(|mount| mount.shows(source))
}

/// Returns where the volfs mount of this device is visible now: its mount point may have been moved since it was
/// mounted.
pub(crate) fn place_of(device: (u32, u32)) -> Option<PathBuf> {
    let mounts = read_mounts().ok()?;
    let is_visible = |m: &&Mount| m.is_volfs() && m.device == device && topmost(&mounts, &m.mountpoint) == Some(m);
    mounts.iter().find(is_visible).map(|m| m.mountpoint.clone())
}

/// The setuid program that mounts and unmounts for ordinary users.
pub(crate) const HELPER: &str = "fusermount3";

/// Why unmounting fails.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum UnmountError {
    #[error("it is busy")]
    Busy,
    #[error("nothing is mounted there")]
    NotMounted,
    /// The helper finds no mount that this user may unmount.
    #[error("another user mounted it; unmount as that user or as root")]
    NotOurs,
    #[error("{HELPER} was not found; install fuse3, or unmount as root")]
    NoHelper,
    /// Any other reason, as the system or the helper states it.
    #[error("{0}")]
    Refused(String),
}

/// Unmounts the file system at `mountpoint`. With `lazy` the mount disappears from there at once, and ends with its
/// last user.
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
impl Mount {
    /// A volfs mount of `x` that nobody serves.
    pub(crate) fn for_tests(mountpoint: impl Into<PathBuf>) -> Self {
        Self {
            id: 1,
            parent: 0,
            device: (4095, 4095),
            root: "/".into(),
            mountpoint: mountpoint.into(),
            kind: "fuse".into(),
            name: "volfs:x".into(),
            options: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
        23 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
        40 23 0:51 / /mnt/with\\040space rw,nosuid shared:3 master:1 - fuse volfs:/data/a\\134b ro,user_id=0\n\
        41 40 0:52 / /mnt/with\\040space rw - fuse.volfs volfs:/data ro\n\
        42 23 0:53 / /mnt/other rw - fuse sshfs#x: rw\n\
        nonsense\n";

    #[test]
    fn lines_are_parsed() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 4);
        let mount = &mounts[1];
        assert_eq!((mount.id, mount.parent, mount.device), (40, 23, (0, 51)));
        assert_eq!(mount.mountpoint, Path::new("/mnt/with space"));
        assert_eq!(mount.kind, "fuse");
        assert_eq!(mount.source(), Path::new("/data/a\\b"));
        assert_eq!(mount.options, "ro,user_id=0");
        assert_eq!(mounts.iter().map(Mount::owner).collect::<Vec<_>>(), [None, Some(0), None, None]);
        assert_eq!(mounts.iter().map(Mount::is_volfs).collect::<Vec<_>>(), [false, true, true, false]);
    }

    #[test]
    fn a_mount_is_of_the_source_in_its_name() {
        let mount = Mount { name: "volfs:/data/\u{fffd}".into(), ..Mount::for_tests("/mnt") };
        let sources: [&[u8]; 3] = [b"/data/\xff", b"/data", b"/data/\xff/a"];
        assert_eq!(sources.map(|source| mount.shows(Path::new(OsStr::from_bytes(source)))), [true, false, false]);
        assert!(!is_mount_of(Path::new("proc"), Path::new("/proc")), "a mount of another kind");
    }

    #[test]
    fn the_topmost_mount_is_visible() {
        let mut mounts = parse(TEXT);
        let mountpoint = Path::new("/mnt/with space");
        assert_eq!(topmost(&mounts, mountpoint).map(|m| m.id), Some(41));
        mounts.reverse();
        assert_eq!(topmost(&mounts, mountpoint).map(|m| m.id), Some(41));
        assert_eq!(topmost(&mounts, Path::new("/mnt")), None);
        // the root is mounted on itself
        let root = parse(b"1 1 0:2 / / rw - rootfs rootfs rw\n");
        assert_eq!(topmost(&root, Path::new("/")).map(|m| m.id), Some(1));
    }

    #[test]
    fn octal_escapes_are_undone() {
        assert_eq!(unescape(b"a\\040b\\011c\\012d\\134e"), OsStr::new("a b\tc\nd\\e"));
        assert_eq!(unescape(b"\\377"), OsStr::from_bytes(&[0xff]));
        assert_eq!(unescape(b"\\9\\04"), OsStr::new("\\9\\04"));
    }

    #[test]
    fn the_mounts_of_this_process_can_be_read() {
        assert!(topmost(&read_mounts().unwrap(), Path::new("/proc")).is_some());
    }

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
