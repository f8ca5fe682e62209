//! How much memory and how many cores this process may use.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::process::{Resource, getrlimit};

use crate::cli::text::size::Size;
use crate::mount::mountinfo::{self, Mount};

/// The largest default size of the cache.
const MAX_DEFAULT_CACHE: u64 = 4 << 30;

/// The default is no smaller than this because of what must be there besides: then the mount is refused.
const MIN_DEFAULT_CACHE: u64 = 16 << 20;

/// What a mount may need besides its cache, whatever it shows.
const MEMORY_BESIDES_CACHE: u64 = 64 << 20;

/// The addresses that a mount reserves besides its cache, most of which it never uses: stacks of threads, heaps of the
/// allocator, buffers for requests of the kernel.
const ADDRESSES_BESIDES_CACHE: u64 = 464 << 20;

/// The part of these addresses that the limit on data counts: what may be written to and is not a file.
const DATA_BESIDES_CACHE: u64 = 256 << 20;

/// The least limit on open files with which a mount works: its connections to the kernel (one for each of at most 8
/// event loops), the sockets and pipes of its processes, the log, and some files of the source.
const OPEN_FILES: u64 = 40;

/// Assumed where the system does not report the memory.
const UNKNOWN_MEMORY: u64 = 1 << 30;

/// Returns the default bytes of the cache: a quarter of what this process may have.
pub(crate) fn default_cache_size() -> u64 {
    let limits = limits_on_addresses();
    default_size(allowed_memory(), limits.iter().map(|limit| (limit.bytes, limit.besides)))
}

/// Returns a quarter of the least of `memory` and the limits on addresses, and less if a limit leaves less after what
/// must be there besides the cache.
fn default_size(memory: u64, limits: impl IntoIterator<Item = (u64, u64)>) -> u64 {
    let left = |bytes: u64, besides| bytes.saturating_sub(besides).max(MIN_DEFAULT_CACHE);
    let of_limits = limits.into_iter().map(|(bytes, besides)| (bytes / 4).min(left(bytes, besides)));
    of_limits.fold((memory / 4).min(MAX_DEFAULT_CACHE), u64::min)
}

/// A limit on the addresses of this process.
struct AddressLimit {
    bytes: u64,
    /// What a mount takes of it besides its cache.
    besides: u64,
    /// What sets it.
    option: &'static str,
}

/// Returns the limits on addresses that this process has.
fn limits_on_addresses() -> Vec<AddressLimit> {
    let known =
        [(Resource::As, ADDRESSES_BESIDES_CACHE, "ulimit -v"), (Resource::Data, DATA_BESIDES_CACHE, "ulimit -d")];
    let of = |(resource, besides, option)| Some(AddressLimit { bytes: getrlimit(resource).current?, besides, option });
    known.into_iter().filter_map(of).collect()
}

/// Returns why this process may not use as much memory as a mount with a cache of this many bytes needs, if so: it would
/// be killed as soon as many read at once.
pub(crate) fn too_little_memory(cache: u64) -> Option<String> {
    let wanted = cache.saturating_add(MEMORY_BESIDES_CACHE);
    let allowed = allowed_memory();
    if wanted > allowed {
        return Some(format!(
            "a cache of {} and {} besides do not fit into the {} of memory that this process may use; \
             choose a smaller --cache-size",
            Size::of(cache),
            Size::of(MEMORY_BESIDES_CACHE),
            Size::of(allowed),
        ));
    }
    let limits = limits_on_addresses();
    let exceeded = limits.iter().find(|limit| cache.saturating_add(limit.besides) > limit.bytes)?;
    Some(format!(
        "a cache of {} and {} of addresses besides do not fit into the {} that this process may use ({}); \
         choose a smaller --cache-size, or allow more",
        Size::of(cache),
        Size::of(exceeded.besides),
        Size::of(exceeded.bytes),
        exceeded.option,
    ))
}

/// Returns why a mount or a server cannot work with as few open files as this process may have, if so.
pub(crate) fn too_few_open_files() -> Option<String> {
    let limit = getrlimit(Resource::Nofile).maximum?;
    (limit < OPEN_FILES).then(|| {
        format!("volfs needs {OPEN_FILES} open files, and this process may have only {limit}; allow more (ulimit -n)")
    })
}

/// Returns the default number of threads that decode.
pub(crate) fn default_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the bytes of the machine's memory, if the system reports them.
pub(crate) fn memory_of_machine() -> Option<u64> {
    total_of_meminfo(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Returns the bytes that this process may use: the least of the machine's memory and the limits of its control groups.
pub(crate) fn allowed_memory() -> u64 {
    let machine = memory_of_machine().unwrap_or(UNKNOWN_MEMORY);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = mountinfo::read().unwrap_or_default();
    let limit = group_limit(&groups, &mounts, |file| fs::read_to_string(file).ok());
    limit.map_or(machine, |limit| limit.min(machine))
}

fn total_of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the least limit of the control groups in `groups` (the text of /proc/self/cgroup) and of all their parents.
/// A limit of "max", or one that cannot be read, is none; version 1 has a huge number instead of "max".
fn group_limit(groups: &str, mounts: &[Mount], read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .flat_map(|(controllers, group)| {
            let (kind, file) =
                if controllers.is_empty() { ("cgroup2", "memory.max") } else { ("cgroup", "memory.limit_in_bytes") };
            let wanted = controllers.is_empty() || controllers.split(',').any(|c| c == "memory");
            let serves = move |m: &&Mount| {
                m.kind == kind && (kind == "cgroup2" || m.options.split(',').any(|option| option == "memory"))
            };
            let mounts = mounts.iter().filter(move |m| wanted && serves(m));
            mounts.flat_map(move |mount| folders_upwards(mount, Path::new(group))).map(move |folder| folder.join(file))
        })
        .filter_map(|file| read(&file)?.trim().parse().ok())
        .min()
}

/// Returns the folders of a group and its parents below `mount`. In a container the mount may show another part of the
/// tree than the group's name refers to: some of these folders then do not exist.
fn folders_upwards(mount: &Mount, group: &Path) -> Vec<PathBuf> {
    let below = group.strip_prefix(&mount.root).or_else(|_| group.strip_prefix("/")).unwrap_or(group);
    below.ancestors().map(|part| mount.mountpoint.join(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, root: &str, mountpoint: &str, options: &str) -> Mount {
        Mount {
            id: 1,
            parent: 0,
            device: (0, 1),
            root: root.into(),
            mountpoint: mountpoint.into(),
            kind: kind.into(),
            name: "cgroup".into(),
            options: options.into(),
        }
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
}
