//! Limits of the system and the memory of the daemon: few processes, descriptors, addresses and bytes, a full disk for the
//! log.

use std::fs::{self, File};
use std::io::{self, Read, copy, sink};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, scope, sleep};
use std::time::Duration;

use nix::errno::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::wkw_expected;
use crate::support::{
    HttpServer, Mount, Objects, Point, SOON, comes_true, copy_all, crc, fixture, fixtures, fuse_or_skip, is_eio,
    memory, mounted_name, names, one_line_of_failure, process_lives, read_at, skip, source_with, test_data, text,
    wait_until,
};

/// A control group of its own; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// Makes a group with a limit of a controller; `None` (after reporting why) if this machine does not allow that.
    fn with(controller: &str, limits: &[(&str, &str, u64)]) -> Option<Self> {
        let name = format!("volfs-test-{}-{controller}", std::process::id());
        let version_1 = Path::new("/sys/fs/cgroup").join(controller);
        let is_1 = version_1.is_dir();
        let group = Self(if is_1 { version_1 } else { "/sys/fs/cgroup".into() }.join(name));
        if let Err(error) = fs::create_dir(&group.0) {
            skip(&format!("cannot make a control group: {error}"));
            return None;
        }
        for (file_1, file_2, limit) in limits {
            let file = group.0.join(if is_1 { file_1 } else { file_2 });
            if let Err(error) = fs::write(&file, limit.to_string()) {
                skip(&format!("{}: {error}", file.display()));
                return None;
            }
        }
        Some(group)
    }

    /// A line of the shell that makes its process a member.
    fn line(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // a group can be removed when its last process has gone altogether
        comes_true(SOON, || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_mount_with_too_few_processes_works_or_says_so_in_one_line() {
    let Some(point) = Point::new() else { return };
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let (mut mounts, mut refusals) = (0, 0);
    for limit in 2..26 {
        let Some(group) = Group::with("pids", &[("pids.max", "pids.max", limit)]) else { return };
        let output = point.mount(&group.line(), &[source.path().as_ref()]);
        if output.status.success() {
            mounts += 1;
            thread::scope(|scope| {
                for reader in 0..8 {
                    let (name, point) = (["v3_int8.zgy", "v3_int16.zgy"][reader % 2], &point);
                    scope.spawn(move || assert!(point.samples(name).unwrap() == fixture(name).samples(0).unwrap()));
                }
            });
            point.unmount();
        } else {
            refusals += 1;
            let line = one_line_of_failure(&output, 1);
            assert!(!line.contains("panicked"), "{line}");
            wait_until("nothing is left mounted", || mounted_name(point.path()).is_none());
        }
    }
    assert!(mounts > 0 && refusals > 0, "{mounts} mounts, {refusals} refusals");
}

#[test]
fn a_mount_with_too_few_open_files_is_refused_and_one_with_enough_works() {
    let Some(point) = Point::new() else { return };
    let source = source_with(&["v3_int8.zgy"]);
    let source = source.path().as_ref();
    for limit in [12, 20, 28, 39] {
        let line = point.refuses(&format!("ulimit -n {limit}"), &[source]);
        assert!(line.contains("ulimit -n"), "{line}");
    }
    point.mounts("ulimit -n 40", &[source]);
    assert!(point.samples("v3_int8.zgy").unwrap() == fixture("v3_int8.zgy").samples(0).unwrap());
    point.unmount();
}

#[test]
fn a_control_group_with_little_memory_is_enough_for_its_cache() {
    let Some(point) = Point::new() else { return };
    let limits = [("memory.limit_in_bytes", "memory.max", 128 << 20)];
    let Some(group) = Group::with("memory", &limits) else { return };
    let source = test_data("demo");
    let line = point.refuses(&group.line(), &["--cache-size=100MiB".as_ref(), source.as_ref()]);
    assert!(line.contains("--cache-size"), "{line}");
    point.mounts(&group.line(), &["--cache-size=16MiB".as_ref(), source.as_ref()]);
    let folder = point.path().join("north.zgy/data");
    let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| files.iter().filter(|file| file.is_file()).for_each(|file| drop(fs::read(file).unwrap())));
        }
    });
    point.unmount();
}

#[test]
fn a_mount_whose_address_space_is_too_small_is_refused() {
    let Some(point) = Point::new() else { return };
    let source = test_data("demo");
    for kib in [200_000, 400_000] {
        let arguments = ["--cache-size=256MiB".as_ref(), source.as_ref()];
        let line = point.refuses(&format!("ulimit -v {kib}"), &arguments);
        assert!(line.contains("ulimit -v"), "{line}");
    }
    point.mounts("ulimit -v 2000000", &["--cache-size=16MiB".as_ref(), source.as_ref()]);
    assert!(!point.samples("north.zgy").unwrap().is_empty());
    point.unmount();
}

#[test]
fn the_default_cache_fits_into_the_limits_of_the_shell_and_the_mount_works() {
    let Some(free) = Mount::of(test_data("demo")) else { return };
    let files: Vec<PathBuf> = ["north.zgy/data", "cells/color"]
        .iter()
        .flat_map(|folder| fs::read_dir(free.path(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.is_file())
        .map(|file| file.strip_prefix(free.point()).unwrap().to_owned())
        .collect();
    let wanted: Vec<_> = files.iter().map(|file| fs::read(free.path(file)).unwrap()).collect();
    for limit in ["-v 2000000", "-v 600000", "-d 2000000", "-d 400000"] {
        let Some(point) = Point::new() else { return };
        point.mounts(&format!("ulimit {limit}"), &[test_data("demo").as_ref()]);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for (file, wanted) in files.iter().zip(&wanted) {
                        let bytes =
                            fs::read(point.path().join(file)).unwrap_or_else(|error| panic!("{limit}: {error}"));
                        assert!(bytes == *wanted, "{limit}: {}", file.display());
                    }
                });
            }
        });
        point.unmount();
    }
}

#[test]
fn a_log_that_cannot_be_written_or_may_not_grow_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    for (line, log) in [("true", "/dev/full".into()), ("ulimit -f 0", folder.path().join("log"))] {
        let Some(point) = Point::new() else { return };
        point.mounts(line, &["--log-file".as_ref(), log.as_ref(), test_data("zgy").as_ref()]);
        // each of these is a line of the log
        for _ in 0..3 {
            assert!(is_eio(&point.samples("bad_cut_in_brick.zgy").unwrap_err()));
            assert!(point.samples("v3_int8.zgy").unwrap() == fixture("v3_int8.zgy").samples(0).unwrap());
        }
        let recent = fs::read_to_string(point.path().join(".volfs/log")).unwrap();
        assert!(recent.contains("bad_cut_in_brick.zgy"), "{recent}");
        point.unmount();
    }
}

const DATASETS: usize = 60;

#[test]
fn many_datasets_are_read_with_few_descriptors() {
    let source = tempfile::tempdir().unwrap();
    for n in 0..DATASETS {
        copy_all(&test_data("wkw/bare"), &source.path().join(format!("w{n}")));
        copy_all(&test_data("zgy/v3_int8.zgy"), &source.path().join(format!("z{n}.zgy")));
    }
    let arrays: Vec<_> = wkw_expected("arrays").into_iter().filter(|array| array["dataset"] == "bare").collect();
    let samples = fixture("v3_int8.zgy").samples(0).unwrap();
    for limit in [64, 128] {
        let Some(mount) = Mount::with_open_files(source.path(), &[], limit) else { return };
        let readers: Vec<File> =
            (0..DATASETS).map(|n| File::open(mount.data(&format!("z{n}.zgy"), "lod0.raw")).unwrap()).collect();
        let first = readers.iter().map(|file| read_at(file, 0, 100));
        assert!(first.map(Result::unwrap).all(|found| found == samples[..100]), "limit {limit}");
        thread::scope(|scope| {
            for part in 0..4 {
                let (mount, arrays) = (&mount, &arrays);
                scope.spawn(move || {
                    for n in (part..DATASETS).step_by(4) {
                        for array in arrays {
                            let layer = mount.path(format!("w{n}")).join(array["layer"].as_str().unwrap());
                            let raw = fs::read(layer.join(format!("lod{}.raw", array["lod"])));
                            let raw = raw.unwrap_or_else(|error| panic!("limit {limit}, w{n}: {error}"));
                            assert_eq!(crc(&raw), array["crc32"], "limit {limit}, w{n}");
                        }
                    }
                });
            }
        });
        assert_eq!(names(mount.point()).len(), 2 * DATASETS + 1, "limit {limit}");
        for file in &readers {
            assert!(read_at(file, 0, samples.len()).unwrap() == samples, "limit {limit}");
        }
        let open = fs::read_dir(format!("/proc/{}/fd", mount.pid())).unwrap().count();
        assert!(open < limit as usize, "{open} of {limit}");
    }
}

#[test]
fn connections_to_a_store_leave_descriptors_for_others() {
    if !fuse_or_skip() {
        return;
    }
    let objects = Objects::default();
    for n in 0..DATASETS {
        objects.put_all(&format!("z{n}.zgy"), &test_data("zgy/v3_int8.zgy"));
    }
    // so slow that all who read wait at the same time
    let server = HttpServer::start(move |request| {
        thread::sleep(Duration::from_millis(100));
        objects.answer(request)
    });
    let environment = [
        ("AWS_ENDPOINT_URL", format!("http://{}", server.address())),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_SKIP_SIGNATURE", "true".to_owned()),
    ];
    let Some(mount) = Mount::with_open_files("s3://volfs", &environment, 64) else { return };
    let samples = fixture("v3_int8.zgy").samples(0).unwrap();
    thread::scope(|scope| {
        for n in 0..DATASETS {
            let file = mount.data(&format!("z{n}.zgy"), "lod0.raw");
            let samples = &samples;
            scope.spawn(move || assert!(fs::read(file).unwrap() == *samples, "z{n}"));
        }
    });
    // a connection that finds no descriptor fails, and its request is sent again
    let store = &mount.status()["store"];
    assert_eq!(store["retries"], 0, "{store}");
}

const READERS: usize = 4;
const CACHE: u64 = 8 << 20;

/// Opens twenty surveys and all small datasets at once. Four readers read every file of the small datasets but their
/// slices, of which there are thousands, and share the files of the surveys, which do not fit the cache, until the
/// daemon has decoded many times its limit.
#[test]
fn memory_stays_below_the_ceiling() {
    let source = tempfile::tempdir().unwrap();
    let surveys: Vec<String> = (0..20).map(|copy| format!("{copy}.zgy")).collect();
    for survey in &surveys {
        fs::copy(test_data("demo/north.zgy"), source.path().join(survey)).unwrap();
    }
    let small: Vec<String> = fixtures().into_iter().map(|fixture| fixture.name).collect();
    for name in &small {
        copy_all(&test_data("zgy").join(name), &source.path().join(name));
    }
    let arguments = ["--cache-size", "8MiB", "--threads", "2"];
    let Some(mount) = Mount::with(source.path(), &arguments) else { return };
    let in_flight = 2 * 2 * (1 << 20); // a stored and a decoded brick of 1 MiB for each decoding thread
    let ceiling = CACHE + (64 << 20) + in_flight;
    let large = Mutex::new(surveys.iter().flat_map(|survey| files_below(&mount.path(survey))));
    let mut highest = 0;
    scope(|scope| {
        let read = || {
            surveys.iter().for_each(|survey| read_whole(&mount.path(survey).join("dataset.json")));
            let is_slice = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "png");
            let of_small = small.iter().flat_map(|name| files_below(&mount.path(name)));
            of_small.filter(|file| !is_slice(file) || file.ends_with("preview.png")).for_each(|file| read_whole(&file));
            while mount.counter("bytes_decoded") < 10 * ceiling {
                let Some(file) = large.lock().unwrap().next() else { break };
                read_whole(&file);
            }
        };
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
        while readers.iter().any(|reader| !reader.is_finished()) {
            highest = highest.max(memory(mount.pid(), "RssAnon"));
            sleep(Duration::from_millis(2));
        }
    });
    assert!(mount.counter("bytes_decoded") >= 10 * ceiling);
    assert!(highest <= ceiling, "{} MiB", highest >> 20);
    assert!(mount.counter("cache_bytes") <= CACHE);
}

#[test]
fn what_is_closed_takes_no_memory() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let (folder, file) = (mount.path("v3_int8.zgy/data"), mount.data("v3_int8.zgy", "lod0.raw"));
    let open = |times: u32| {
        for _ in 0..times {
            drop((fs::read_dir(&folder).unwrap(), File::open(&file).unwrap()));
        }
        memory(mount.pid(), "RssAnon")
    };
    // a handle takes 60 bytes and more
    let (before, after) = (open(1000), open(25_000));
    assert!(after < before + (1 << 20), "{before} and {after} bytes");
}

/// Returns the paths of all files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

fn read_whole(file: &Path) {
    let read = File::open(file).and_then(|mut open| copy(&mut open, &mut sink()));
    read.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// Files of several formats, with and without decoding, one of them computed.
const FILES: [&str; 8] = [
    "north.zgy/data/lod1.raw",
    "north.zgy/data/lod1.by-crossline.npy",
    "north.zgy/data/lod0.json",
    "north.zgy/dataset.json",
    "cells/color/lod0.npy",
    "cells/dataset.json",
    "cells/color/lod0.nhdr",
    "north.zgy/data/lod2.npy",
];

/// Limits the addresses of a process; `None` lifts the limit.
fn limit_addresses(pid: i32, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Pid::from_raw(pid), Resource::As, limit).unwrap();
}

/// Reads a file without the kernel's page cache.
fn read(path: &PathBuf) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Has eight readers read all files, and list all folders, a few times. Each gets the right bytes or an error that
/// tells of memory or of a read that failed. Returns the numbers of right and failed reads.
fn load(mount: &Mount, wanted: &[Vec<u8>]) -> (usize, usize) {
    let (right, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count = |file: &str, outcome: io::Result<bool>| match outcome {
        Ok(is_right) => {
            assert!(is_right, "{file}: other bytes");
            right.fetch_add(1, Ordering::Relaxed);
        }
        Err(error) => {
            let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
            assert!(matches!(errno, Errno::EIO | Errno::ENOMEM), "{file}: {error}");
            failed.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for reader in 0..8 {
            let count = &count;
            scope.spawn(move || {
                for n in 0..FILES.len() {
                    let n = (n + reader) % FILES.len();
                    let bytes = read(&mount.path(FILES[n]));
                    if let Ok(bytes) = &bytes
                        && *bytes != wanted[n]
                        && bytes.len() < 100_000
                    {
                        eprintln!("{}\n{}", text(bytes), text(&wanted[n]));
                    }
                    count(FILES[n], bytes.map(|bytes| bytes == wanted[n]));
                    let folder = mount.path(FILES[n]).parent().unwrap().to_owned();
                    count("a folder", fs::read_dir(folder).map(|entries| entries.count() > 1));
                }
            });
        }
    });
    (right.into_inner(), failed.into_inner())
}

#[test]
fn without_addresses_requests_fail_and_the_daemon_goes_on() {
    let arguments = ["--cache-size", "64MiB"];
    let Some(first) = Mount::with(test_data("demo"), &arguments) else { return };
    let wanted = FILES.map(|file| read(&first.path(file)).unwrap());
    drop(first);
    let mut failures = 0;
    for free in [0, 8 << 20] {
        let Some(mount) = Mount::with(test_data("demo"), &arguments) else { return };
        limit_addresses(mount.pid(), Some(memory(mount.pid(), "VmSize") + free));
        let (_, failed) = load(&mount, &wanted);
        failures += failed;
        assert!(process_lives(mount.pid()), "the daemon has ended with {free} bytes left:\n{}", mount.log());
        if failed > 0 {
            wait_until("the log tells", || mount.log().to_lowercase().contains("no memory"));
        }
        limit_addresses(mount.pid(), None);
        // names and failures are remembered for a second
        assert!(comes_true(SOON, || load(&mount, &wanted).1 == 0), "all is right again:\n{}", mount.log());
        assert!(mount.umount(&[]).status.success());
    }
    assert!(failures > 0, "there was memory all the time");
}

/// Has eight readers read all files, and takes all addresses away as soon as one file was read: threads of the daemon
/// are just being started then.
fn load_while_addresses_end(mount: &Mount) {
    thread::scope(|scope| {
        for reader in 0..8 {
            scope.spawn(move || {
                for n in 0..FILES.len() {
                    let _ = read(&mount.path(FILES[(n + reader) % FILES.len()]));
                    // not even the reserve helps: its addresses are beyond the limit, too
                    if reader == 0 && n == 0 && process_lives(mount.pid()) {
                        limit_addresses(mount.pid(), Some(1 << 20));
                    }
                }
            });
        }
    });
}

#[test]
fn a_daemon_that_gets_no_memory_at_all_ends_with_a_line_in_the_log() {
    let Some(mount) = Mount::with(test_data("demo"), &["--cache-size", "64MiB"]) else { return };
    let wanted = FILES.map(|file| read(&mount.path(file)).unwrap());
    load_while_addresses_end(&mount);
    for _ in 0..20 {
        if !process_lives(mount.pid()) {
            break;
        }
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| FILES.iter().for_each(|file| drop(read(&mount.path(file)))));
            }
        });
    }
    if process_lives(mount.pid()) {
        limit_addresses(mount.pid(), None);
        assert!(comes_true(SOON, || load(&mount, &wanted).1 == 0), "all is right again:\n{}", mount.log());
        return;
    }
    wait_until("the end is logged", || mount.log().contains("ended without unmounting: no memory was left"));
    // an empty folder would look like a source without datasets
    let listed = fs::read_dir(mount.point()).unwrap_err();
    assert_eq!(listed.raw_os_error(), Some(Errno::ENOTCONN as i32));
    mount.mount_again(test_data("demo"));
    mount.unmount();
}
