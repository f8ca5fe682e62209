//! Limits of the system: too few processes, too little memory, a full disk for the log.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use crate::support::{
    Mount, SOON, comes_true, fixture, fuse_or_skip, is_eio, mounted_name, one_line_of_failure, skip, source_with,
    test_data, text, volfs, wait_until,
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

    /// Runs `volfs` with these arguments in the group.
    fn run(&self, arguments: &[&std::ffi::OsStr]) -> Output {
        let script = "echo $$ > \"$0/cgroup.procs\"; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&self.0).arg(env!("CARGO_BIN_EXE_volfs")).args(arguments);
        command.output().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // a group can be removed when its last process has gone altogether
        comes_true(SOON, || fs::remove_dir(&self.0).is_ok());
    }
}

/// An empty folder to mount on; unmounted when dropped.
struct Point(tempfile::TempDir);

impl Point {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        if mounted_name(self.path()).is_some() {
            let _ = volfs().args(["umount", "--lazy"]).arg(self.path()).output();
        }
    }
}

#[test]
fn a_mount_with_too_few_processes_works_or_says_so_in_one_line() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let (mut mounts, mut refusals) = (0, 0);
    for limit in 2..26 {
        let Some(group) = Group::with("pids", &[("pids.max", "pids.max", limit)]) else { return };
        let point = Point::new();
        let output = group.run(&["mount".as_ref(), source.path().as_ref(), point.path().as_ref()]);
        if output.status.success() {
            mounts += 1;
            thread::scope(|scope| {
                for reader in 0..8 {
                    let name = ["v3_int8.zgy", "v3_int16.zgy"][reader % 2];
                    let file = point.path().join(name).join("data/lod0.raw");
                    scope.spawn(move || assert!(fs::read(file).unwrap() == fixture(name).samples(0).unwrap()));
                }
            });
            let unmounted = volfs().arg("umount").arg(point.path()).output().unwrap();
            assert!(unmounted.status.success(), "{}", text(&unmounted.stderr));
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
    if !fuse_or_skip() {
        return;
    }
    let (source, point) = (source_with(&["v3_int8.zgy"]), Point::new());
    let run = |limit: u32| {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_volfs"), "mount"]);
        command.arg(source.path()).arg(point.path()).output().unwrap()
    };
    for limit in [12, 20, 28, 39] {
        let line = one_line_of_failure(&run(limit), 1);
        assert!(line.contains("ulimit -n"), "{line}");
        assert_eq!(mounted_name(point.path()), None);
    }
    let output = run(40);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let samples = fs::read(point.path().join("v3_int8.zgy/data/lod0.raw")).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
    assert!(volfs().arg("umount").arg(point.path()).status().unwrap().success());
}

#[test]
fn a_control_group_with_little_memory_is_enough_for_its_cache() {
    if !fuse_or_skip() {
        return;
    }
    let limits = [("memory.limit_in_bytes", "memory.max", 128 << 20)];
    let Some(group) = Group::with("memory", &limits) else { return };
    let point = Point::new();
    let source = test_data("demo");
    let mount = |cache: &str| {
        group.run(&["mount".as_ref(), "--cache-size".as_ref(), cache.as_ref(), source.as_ref(), point.path().as_ref()])
    };
    let line = one_line_of_failure(&mount("100MiB"), 1);
    assert!(line.contains("--cache-size"), "{line}");
    let output = mount("16MiB");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let folder = point.path().join("north.zgy/data");
    let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| files.iter().filter(|file| file.is_file()).for_each(|file| drop(fs::read(file).unwrap())));
        }
    });
    let unmounted = volfs().arg("umount").arg(point.path()).output().unwrap();
    assert!(unmounted.status.success(), "{}", text(&unmounted.stderr));
}

#[test]
fn a_mount_whose_address_space_is_too_small_is_refused() {
    if !fuse_or_skip() {
        return;
    }
    let point = Point::new();
    let run = |kib: u64, cache: &str| {
        let script = format!("ulimit -v {kib}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_volfs"), "mount", "--cache-size", cache]);
        command.arg(test_data("demo")).arg(point.path()).output().unwrap()
    };
    for kib in [200_000, 400_000] {
        let line = one_line_of_failure(&run(kib, "256MiB"), 1);
        assert!(line.contains("ulimit -v"), "{line}");
        assert_eq!(mounted_name(point.path()), None);
    }
    let output = run(2_000_000, "16MiB");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let samples = fs::read(point.path().join("north.zgy/data/lod0.raw")).unwrap();
    assert!(!samples.is_empty());
    assert!(volfs().arg("umount").arg(point.path()).status().unwrap().success());
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
        let point = Point::new();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_volfs"), "mount"]);
        let output = command.arg(test_data("demo")).arg(point.path()).output().unwrap();
        assert!(output.status.success(), "{limit}: {}", text(&output.stderr));
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
        assert!(volfs().arg("umount").arg(point.path()).status().unwrap().success());
    }
}

#[test]
fn a_log_that_cannot_be_written_does_no_harm() {
    if !fuse_or_skip() || !Path::new("/dev/full").exists() {
        return;
    }
    let point = Point::new();
    let mut command = volfs();
    let output = command.args(["mount", "--log-file", "/dev/full"]).arg(test_data("zgy")).arg(point.path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| fs::read(point.path().join(name).join("data/lod0.raw"));
    // each of these is a line of the log
    for _ in 0..3 {
        assert!(is_eio(&read("bad_cut_in_brick.zgy").unwrap_err()));
        assert!(read("v3_int8.zgy").unwrap() == fixture("v3_int8.zgy").samples(0).unwrap());
    }
    let recent = fs::read_to_string(point.path().join(".volfs/log")).unwrap();
    assert!(recent.contains("bad_cut_in_brick.zgy"), "{recent}");
    assert!(volfs().arg("umount").arg(point.path()).status().unwrap().success());
}

#[test]
fn a_log_that_may_not_grow_does_no_harm() {
    if !fuse_or_skip() {
        return;
    }
    let (point, folder) = (Point::new(), tempfile::tempdir().unwrap());
    let script = "ulimit -f 0; exec \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_volfs"), "mount", "--log-file"])
        .arg(folder.path().join("log"));
    let output = command.arg(test_data("zgy")).arg(point.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| fs::read(point.path().join(name).join("data/lod0.raw"));
    assert!(is_eio(&read("bad_cut_in_brick.zgy").unwrap_err()), "which is a line of the log");
    assert!(read("v3_int8.zgy").unwrap() == fixture("v3_int8.zgy").samples(0).unwrap());
    assert!(volfs().arg("umount").arg(point.path()).status().unwrap().success());
}
