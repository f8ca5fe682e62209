//! What this process may use of the machine: memory, cores and open files; and whether this user may mount, and if not,
//! why.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{io, thread};

use nix::unistd::getuid;
use rustix::process::{Resource, getrlimit};

use super::error::CliError;
use super::processes::{status, status_field};
use super::text::Size;
use crate::mount::{HELPER, Mount, find_helper, read_mounts};

/// The largest default size of the cache.
const MAX_DEFAULT_CACHE: u64 = 4 << 30;

/// Limits on addresses do not make the default smaller than this; the mount is refused then.
const MIN_DEFAULT_CACHE: u64 = 16 << 20;

/// Memory that a mount may need besides its cache, whatever it shows.
const MEMORY_BESIDES_CACHE: u64 = 64 << 20;

/// The addresses that a mount reserves besides its cache, most of which it never uses: stacks of threads, heaps of the
/// allocator, buffers for requests of the kernel.
const ADDRESSES_BESIDES_CACHE: u64 = 464 << 20;

/// The part of these addresses that the limit on data counts: memory that may be written to and is not a file.
const DATA_BESIDES_CACHE: u64 = 256 << 20;

/// The smallest limit on open files with which a mount works: its connections to the kernel (one for each of at most 8
/// event loops), the sockets and pipes of its processes, the log, and some files of the source.
const OPEN_FILES: u64 = 40;

/// Assumed where the system does not report the memory.
const UNKNOWN_MEMORY: u64 = 1 << 30;

/// Returns the default bytes of the cache: a quarter of what this process may have.
pub(super) fn default_cache_size() -> u64 {
    default_size(allowed_memory(), limits_on_addresses().map(|(bytes, besides, _)| (bytes, besides)))
}

/// Returns a quarter of the least of `memory` and the limits on addresses, and less if a limit leaves less beside the rest
/// of a mount.
fn default_size(memory: u64, limits: impl IntoIterator<Item = (u64, u64)>) -> u64 {
    let left = |bytes: u64, besides| bytes.saturating_sub(besides).max(MIN_DEFAULT_CACHE);
    let of_limits = limits.into_iter().map(|(bytes, besides)| (bytes / 4).min(left(bytes, besides)));
    of_limits.fold((memory / 4).min(MAX_DEFAULT_CACHE), u64::min)
}

/// Returns the limits on addresses that this process has, in bytes: each with what a mount takes of it besides its cache,
/// and the command that sets it.
fn limits_on_addresses() -> impl Iterator<Item = (u64, u64, &'static str)> {
    let known =
        [(Resource::As, ADDRESSES_BESIDES_CACHE, "ulimit -v"), (Resource::Data, DATA_BESIDES_CACHE, "ulimit -d")];
    known.into_iter().filter_map(|(resource, besides, option)| Some((getrlimit(resource).current?, besides, option)))
}

/// Checks that this process may use as much memory as a mount with a cache of this many bytes needs: otherwise it would be
/// killed as soon as many programs read at once.
pub(super) fn check_memory(cache: u64) -> Result<(), CliError> {
    let allowed = allowed_memory();
    if cache.saturating_add(MEMORY_BESIDES_CACHE) > allowed {
        let (cache, besides, allowed) = (Size(cache), Size(MEMORY_BESIDES_CACHE), Size(allowed));
        let what = format!(
            "a cache of {cache} and {besides} besides do not fit into the {allowed} of memory that this process may use"
        );
        return Err(CliError::new(what, "choose a smaller --cache-size"));
    }
    let is_exceeded = |(bytes, besides, _): &(u64, u64, _)| cache.saturating_add(*besides) > *bytes;
    let Some((bytes, besides, option)) = limits_on_addresses().find(is_exceeded) else { return Ok(()) };
    let (cache, besides, bytes) = (Size(cache), Size(besides), Size(bytes));
    let what = format!(
        "a cache of {cache} and {besides} of addresses besides do not fit into the {bytes} that this process may use \
         ({option})"
    );
    Err(CliError::new(what, "choose a smaller --cache-size, or allow more"))
}

/// Checks that a mount or a server can work with as few open files as this process may have.
pub(super) fn check_open_files() -> Result<(), CliError> {
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < OPEN_FILES => {
            let what = format!("volfs needs {OPEN_FILES} open files, and this process may have only {limit}");
            Err(CliError::new(what, "allow more (ulimit -n)"))
        }
        _ => Ok(()),
    }
}

pub(super) fn default_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the bytes of the machine's memory, if the system reports them.
pub(super) fn memory_of_machine() -> Option<u64> {
    total_of_meminfo(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Returns the bytes that this process may use: the least of the machine's memory and the limits of its control groups.
pub(super) fn allowed_memory() -> u64 {
    let machine = memory_of_machine().unwrap_or(UNKNOWN_MEMORY);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = read_mounts().unwrap_or_default();
    let limit = group_limit(&groups, &mounts, |file| fs::read_to_string(file).ok());
    limit.map_or(machine, |limit| limit.min(machine))
}

fn total_of_meminfo(text: &str) -> Option<u64> {
    status_field(text, "MemTotal")?.strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the least limit of the control groups in `groups` (the text of /proc/self/cgroup) and of all their parents.
/// "max", or a limit that cannot be read, limits nothing; version 1 has a huge number in place of "max".
fn group_limit(groups: &str, mounts: &[Mount], read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let has_memory = |list: &str| list.split(',').any(|word| word == "memory");
    let mut files = Vec::new();
    for line in groups.lines() {
        // `0::/a/b`, or with version 1 `4:memory:/a/b`
        let fields: Vec<&str> = line.splitn(3, ':').collect();
        let (kind, file, group) = match *fields {
            [_, "", group] => ("cgroup2", "memory.max", group),
            [_, controllers, group] if has_memory(controllers) => ("cgroup", "memory.limit_in_bytes", group),
            _ => continue,
        };
        let serves = |mount: &&Mount| mount.kind == kind && (kind == "cgroup2" || has_memory(&mount.options));
        let folders = mounts.iter().filter(serves).flat_map(|mount| folders_upwards(mount, Path::new(group)));
        files.extend(folders.map(|folder| folder.join(file)));
    }
    files.iter().filter_map(|file| read(file)?.trim().parse().ok()).min()
}

/// Returns the folders of a group and its parents below `mount`. In a container the mount may show another part of the
/// tree than the group's name refers to: some of these folders then do not exist.
fn folders_upwards(mount: &Mount, group: &Path) -> Vec<PathBuf> {
    let below = group.strip_prefix(&mount.root).or_else(|_| group.strip_prefix("/")).unwrap_or(group);
    below.ancestors().map(|part| mount.mountpoint.join(part)).collect()
}

/// The device through which the kernel talks to a mount's daemon.
pub(super) const DEVICE: &str = "/dev/fuse";
pub(super) const FUSE_CONF: &str = "/etc/fuse.conf";

/// The bit of CAP_SYS_ADMIN in a capability set. A process without it needs the helper to mount.
const SYS_ADMIN: u32 = 21;

pub(super) fn check_permission(allow_other: bool) -> Result<(), CliError> {
    let conf = || fs::read_to_string(FUSE_CONF).unwrap_or_default();
    match open_device(Path::new(DEVICE)) {
        Err(error) => Err(closed_device(&error)),
        Ok(()) if !Privileges::of_process().admin && find_helper().is_none() => Err(no_helper()),
        Ok(()) if allow_other && !getuid().is_root() && !permits_allow_other(&conf()) => {
            Err(allow_other_is_forbidden())
        }
        Ok(()) => Ok(()),
    }
}

/// Opens the device as a mount does, and closes it again.
pub(super) fn open_device(device: &Path) -> io::Result<()> {
    File::options().read(true).write(true).open(device).map(|_| ())
}

pub(super) fn closed_device(error: &io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::NotFound => CliError::new(
            format!("{DEVICE} is missing"),
            format!(
                "load it with `sudo modprobe fuse`, in a container start with --device {DEVICE} --cap-add SYS_ADMIN"
            ),
        ),
        io::ErrorKind::PermissionDenied => CliError::new(
            format!("{DEVICE} may not be opened by this user"),
            format!("mount as root, or permit it with `sudo chmod 666 {DEVICE}`"),
        ),
        _ => CliError::new(
            format!("{DEVICE} cannot be opened: {error}"),
            "is FUSE in the kernel? try `sudo modprobe fuse`",
        ),
    }
}

pub(super) fn no_helper() -> CliError {
    CliError::new(
        format!("{HELPER} was not found: it mounts for ordinary users"),
        "install it (apt install fuse3, dnf install fuse3) or mount as root",
    )
}

pub(super) fn allow_other_is_forbidden() -> CliError {
    CliError::new(
        "ordinary users may not use allow_other here",
        format!("put the line user_allow_other into {FUSE_CONF}, or mount without it"),
    )
}

/// Returns whether the text of fuse.conf permits `allow_other` to ordinary users.
pub(super) fn permits_allow_other(conf: &str) -> bool {
    conf.lines().any(|line| line.trim() == "user_allow_other")
}

/// The rights to mount of a process, and of the helper that it starts.
pub(super) struct Privileges {
    /// Whether the process has CAP_SYS_ADMIN, so that it may call mount(2) itself.
    pub(super) admin: bool,
    /// Whether a setuid root program that it starts gets CAP_SYS_ADMIN.
    pub(super) helper: bool,
}

impl Privileges {
    pub(super) fn of_process() -> Self {
        Self::read(&status("self"), getuid().is_root())
    }

    /// Reads them from the text of /proc/PID/status. Where the text lacks them, root has them.
    fn read(status: &str, root: bool) -> Self {
        let field = |name| status_field(status, name);
        let admin = |name| u64::from_str_radix(field(name)?, 16).ok().map(|bits| bits >> SYS_ADMIN & 1 == 1);
        let gains = field("NoNewPrivs").is_none_or(|flag| flag == "0");
        Self { admin: admin("CapEff").unwrap_or(root), helper: gains && admin("CapBnd").unwrap_or(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, root: &str, mountpoint: &str, options: &str) -> Mount {
        let (root, kind, options) = (root.into(), kind.into(), options.into());
        Mount { root, kind, name: "cgroup".into(), options, ..Mount::for_tests(mountpoint) }
    }

    fn limit(groups: &str, mounts: &[Mount], files: &[(&str, &str)]) -> Option<u64> {
        group_limit(groups, mounts, |file| {
            files.iter().find(|(name, _)| Path::new(name) == file).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn version_2_takes_the_least_limit_of_all_parents() {
        let mounts = [mount("cgroup2", "/", "/sys/fs/cgroup", "rw")];
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "1000\n"),
            ("/sys/fs/cgroup/memory.max", "2000\n"),
        ];
        assert_eq!(limit("0::/a/b\n", &mounts, &files), Some(1000));
        assert_eq!(limit("0::/\n", &mounts, &files[..1]), None);
    }

    #[test]
    fn version_1_takes_the_limits_of_the_memory_controller() {
        let mounts = [
            mount("cgroup", "/", "/sys/fs/cgroup/cpu", "rw,cpu"),
            mount("cgroup", "/docker/x", "/sys/fs/cgroup/memory", "rw,memory"),
        ];
        let groups = "5:cpu:/docker/x/y\n4:memory:/docker/x/y\n0::/\n";
        let files = [
            ("/sys/fs/cgroup/cpu/docker/x/y/memory.limit_in_bytes", "1"),
            ("/sys/fs/cgroup/memory/y/memory.limit_in_bytes", "9223372036854771712"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000"),
        ];
        assert_eq!(limit(groups, &mounts, &files), Some(5000));
    }

    #[test]
    fn a_group_outside_the_mount_leaves_the_limits_above() {
        let mounts = [mount("cgroup2", "/", "/sys/fs/cgroup", "rw")];
        assert_eq!(limit("0::/../elsewhere\n", &mounts, &[("/sys/fs/cgroup/memory.max", "7")]), Some(7));
        assert_eq!(limit("nonsense\n", &mounts, &[]), None);
    }

    #[test]
    fn meminfo_is_in_kib() {
        assert_eq!(total_of_meminfo("MemFree: 1 kB\nMemTotal:       24 kB\n"), Some(24 * 1024));
        assert_eq!(total_of_meminfo("nothing"), None);
    }

    #[test]
    fn the_default_cache_is_a_quarter_of_the_least_limit_and_leaves_room_for_the_rest() {
        let (mib, addresses) = (|n: u64| n << 20, |n: u64| (n << 20, 464 << 20));
        assert_eq!(default_size(mib(8192), []), mib(2048));
        assert_eq!(default_size(mib(1 << 20), []), MAX_DEFAULT_CACHE);
        assert_eq!(default_size(mib(8192), [addresses(2000)]), mib(500));
        assert_eq!(default_size(mib(8192), [addresses(2000), (mib(400), mib(64))]), mib(100));
        assert_eq!(default_size(mib(1024), [addresses(20_000)]), mib(256));
        assert_eq!(default_size(mib(8192), [addresses(500)]), mib(36), "less than a quarter is left");
        assert_eq!(default_size(mib(8192), [addresses(100)]), mib(16), "it is refused");
        assert_eq!(default_size(mib(40), [addresses(2000)]), mib(10));
    }

    #[test]
    fn this_machine_has_memory_and_cores() {
        assert!(default_cache_size() > 0 && default_cache_size() <= MAX_DEFAULT_CACHE);
        assert!(default_threads() > 0);
    }

    #[test]
    fn fuse_conf_is_read_as_the_helper_reads_it() {
        assert!(permits_allow_other("# text\nuser_allow_other\n"));
        assert!(permits_allow_other("mount_max = 10\n  user_allow_other  "));
        assert!(!permits_allow_other("#user_allow_other\n"));
        assert!(!permits_allow_other(""));
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
    fn an_error_of_the_device_names_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let missing = open_device(&folder.path().join("fuse")).unwrap_err();
        let error = closed_device(&missing);
        assert!(error.what == "/dev/fuse is missing" && error.remedy.starts_with("load it with"), "{error:?}");
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert!(closed_device(&denied).remedy.contains("chmod 666 /dev/fuse"));
        assert!(closed_device(&io::Error::other("odd")).what.contains("odd"));
    }
}
