//! The life of a mount: how it begins and ends, and what the command line says meanwhile.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use support::{
    Mount, fixture, fixtures, fuse_or_skip, mounted_name, one_line_of_failure, process_lives, signal, source_with,
    test_data, text, volfs, wait_for, wait_until,
};

#[test]
fn mounting_returns_when_the_mount_answers_and_prints_one_line() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let output = mount.output();
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    assert!(stdout.contains(mount.point().to_str().unwrap()), "{stdout}");
    assert_eq!(text(&output.stderr), "");
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
    assert_ne!(mount.pid(), i32::try_from(std::process::id()).unwrap());
}

#[test]
fn mounting_names_the_first_dataset() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let stdout = text(&mount.output().stdout);
    if stdout.contains("np.load") {
        // only where it is known soon enough
        assert!(stdout.contains(mount.data("v3_int8.zgy", "lod0.npy").to_str().unwrap()), "{stdout}");
    }
}

#[test]
fn the_mount_bears_the_name_of_its_source() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let name = format!("volfs:{}", source.path().display());
    assert_eq!(mounted_name(mount.point()), Some(name));
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(mount.point().to_str().unwrap())).unwrap();
    assert!(line.contains(" ro,"), "{line}");
}

#[test]
fn a_relative_source_stays_where_it_was() {
    let source = source_with(&["v3_int8.zgy"]);
    if !fuse_or_skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    let status = volfs().current_dir(source.path()).args(["mount", ".", point.to_str().unwrap()]).output().unwrap();
    assert!(status.status.success(), "{}", text(&status.stderr));
    let name = mounted_name(&point);
    let shown = point.join("v3_int8.zgy/data/lod0.raw").exists();
    assert!(volfs().arg("umount").arg(&point).status().unwrap().success());
    assert_eq!(name, Some(format!("volfs:{}", source.path().display())));
    assert!(shown);
}

#[test]
fn a_mount_in_front_ends_with_sigint_and_sigterm() {
    for ending in [Signal::SIGINT, Signal::SIGTERM] {
        let source = source_with(&["v3_int8.zgy"]);
        let Some(mut mount) = Mount::in_front(source.path(), &[]) else { return };
        let mut child = mount.take_front();
        assert_eq!(mount.pid(), i32::try_from(child.id()).unwrap(), "it stays in front");
        assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
        signal(mount.pid(), ending).unwrap();
        let status = wait_for(&mut child);
        assert_eq!(status.code(), Some(0), "{ending}");
        assert!(!mount.is_mounted(), "{ending}");
    }
}

#[test]
fn a_daemon_unmounts_at_sigterm() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    signal(mount.pid(), Signal::SIGTERM).unwrap();
    wait_until("the daemon has gone", || !process_lives(mount.pid()));
    assert!(!mount.is_mounted());
}

#[test]
fn umount_returns_when_the_mount_has_gone() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let output = mount.umount(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!mount.is_mounted());
    wait_until("the daemon has gone", || !process_lives(mount.pid()));
}

#[test]
fn umount_of_what_is_not_mounted_fails() {
    let folder = tempfile::tempdir().unwrap();
    let output = volfs().arg("umount").arg(folder.path()).output().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert!(line.contains(folder.path().to_str().unwrap()), "{line}");
}

#[test]
fn umount_leaves_the_mounts_of_others_alone() {
    let output = volfs().args(["umount", "/proc"]).output().unwrap();
    one_line_of_failure(&output, 1);
    assert!(Path::new("/proc/self/status").exists());
}

#[test]
fn a_mount_in_use_is_not_unmounted_and_the_user_is_named() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let file = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    let output = mount.umount(&[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains(&std::process::id().to_string()), "who holds it is not named: {stderr}");
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists(), "the mount still answers");
    drop(file);
    assert!(mount.umount(&[]).status.success());
}

#[test]
fn a_lazy_umount_waits_for_nobody() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let mut file = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    let output = mount.umount(&["--lazy"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!mount.is_mounted());
    let mut samples = Vec::new();
    file.read_to_end(&mut samples).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap(), "open files stay readable");
    drop(file);
    wait_until("the daemon has gone", || !process_lives(mount.pid()));
}

#[test]
fn a_mount_whose_daemon_died_is_cleared_by_umount() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    signal(mount.pid(), Signal::SIGKILL).unwrap();
    let is_dead = || fs::read_dir(mount.point()).is_err_and(|e| e.raw_os_error() == Some(Errno::ENOTCONN as i32));
    wait_until("the mount is dead", is_dead);
    let output = mount.umount(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!mount.is_mounted());

    let again = volfs().arg("mount").arg(test_data("zgy")).arg(mount.point()).output().unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
    assert!(mount.umount(&[]).status.success());
}

#[test]
fn the_daemon_holds_nothing_that_it_inherited() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    for descriptor in 0..3 {
        let target = fs::read_link(format!("/proc/{}/fd/{descriptor}", mount.pid())).unwrap();
        assert_eq!(target, Path::new("/dev/null"), "descriptor {descriptor}");
    }
    let folder = fs::read_link(format!("/proc/{}/cwd", mount.pid())).unwrap();
    assert_eq!(folder, Path::new("/"), "the daemon keeps no folder busy");
}

#[test]
fn an_inherited_descriptor_is_closed() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy"]);
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    // A shell holds the write end of a pipe as descriptor 7, and volfs inherits it.
    let script = format!(
        "exec 7>{held}; '{volfs}' mount '{source}' '{point}'",
        held = folder.path().join("held").display(),
        volfs = env!("CARGO_BIN_EXE_volfs"),
        source = source.path().display(),
        point = point.display()
    );
    let output = std::process::Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let pid = support::json(point.join(".volfs/status.json"))["pid"].as_i64().unwrap();
    let held = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .any(|target| target == folder.path().join("held"));
    assert!(volfs().arg("umount").arg(&point).status().unwrap().success());
    assert!(!held, "the daemon holds a file that it has nothing to do with");
}

/// Tries to mount where that makes no sense.
fn refused(source: &Path, point: &Path) -> String {
    let output = volfs().arg("mount").arg(source).arg(point).output().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert_eq!(mounted_name(point), None);
    line
}

#[test]
fn a_mount_point_has_to_be_a_folder() {
    let source = source_with(&["v3_int8.zgy"]);
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let line = refused(source.path(), &missing);
    assert!(line.contains(missing.to_str().unwrap()), "{line}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let line = refused(source.path(), &file);
    assert!(line.contains(file.to_str().unwrap()), "{line}");
}

#[test]
fn a_mount_point_inside_the_source_is_refused() {
    let source = source_with(&["v3_int8.zgy"]);
    let inside = source.path().join("deep/inside");
    fs::create_dir_all(&inside).unwrap();
    refused(source.path(), &inside);
    refused(source.path(), source.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    refused(source.path(), &link);
}

#[test]
fn a_source_has_to_exist() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let line = refused(&missing, folder.path());
    assert!(line.contains(missing.to_str().unwrap()), "{line}");
}

#[test]
fn a_source_file_has_to_be_a_volume() {
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "not a volume").unwrap();
    let line = refused(&file, &point);
    assert!(line.contains(file.to_str().unwrap()), "{line}");
}

#[test]
fn a_mount_point_may_hold_files() {
    let source = source_with(&["v3_int8.zgy"]);
    if !fuse_or_skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hidden"), "").unwrap();
    let output = volfs().arg("mount").arg(source.path()).arg(folder.path()).output().unwrap();
    if output.status.success() {
        assert!(folder.path().join("v3_int8.zgy").exists());
        assert!(volfs().arg("umount").arg(folder.path()).status().unwrap().success());
    } else {
        one_line_of_failure(&output, 1);
    }
    assert!(folder.path().join("hidden").exists());
}

#[test]
fn mounting_twice_at_one_place_says_so() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let output = volfs().arg("mount").arg(source.path()).arg(mount.point()).output().unwrap();
    one_line_of_failure(&output, 1);
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists(), "the first mount still answers");
}

#[test]
fn options_of_fstab_are_accepted_and_others_are_refused() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy"]);
    let folder = tempfile::tempdir().unwrap();
    let mount = |options: &str| volfs().arg(source.path()).arg(folder.path()).args(["-o", options]).output().unwrap();
    let accepted =
        mount("rw,nodev,nosuid,noexec,noauto,user,nofail,_netdev,x-systemd.automount,cache_size=64MiB,threads=2");
    assert!(accepted.status.success(), "{}", text(&accepted.stderr));
    assert!(folder.path().join("v3_int8.zgy/data/lod0.raw").exists());
    assert!(volfs().arg("umount").arg(folder.path()).status().unwrap().success());
    for options in ["rw,unheard_of", "cache_size=many", "threads=0"] {
        let refused = mount(options);
        assert!(!refused.status.success(), "{options}");
        assert_eq!(mounted_name(folder.path()), None, "{options}");
    }
}

#[test]
fn wrong_usage_is_status_2() {
    for arguments in
        [&["mount"][..], &["mount", "--unheard-of", "a", "b"], &["mount", "a", "b", "c"], &["umount"], &["info"], &[]]
    {
        let output = volfs().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
    let bad_size = volfs().args(["mount", "--cache-size", "many", "a", "b"]).output().unwrap();
    assert_eq!(bad_size.status.code(), Some(2));
}

#[test]
fn help_has_an_example_for_each_command() {
    for command in ["mount", "umount", "info"] {
        let output = volfs().args([command, "--help"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains(&format!("volfs {command} ")), "{command}");
        assert!(text(&output.stdout).to_lowercase().contains("example"), "{command}");
    }
}

/// A figure of /proc/PID/status, in bytes.
fn memory(pid: i32, figure: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn memory_stays_below_the_ceiling() {
    let source = tempfile::tempdir().unwrap();
    for copy in 0..20 {
        fs::copy(test_data("demo/north.zgy"), source.path().join(format!("{copy}.zgy"))).unwrap();
    }
    for fixture in fixtures() {
        fs::copy(test_data("zgy").join(&fixture.name), source.path().join(&fixture.name)).unwrap();
    }
    let arguments = ["--cache-size", "8MiB", "--threads", "2"];
    let Some(mount) = Mount::with(source.path(), &arguments) else { return };
    let mut highest = 0;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(|| read_everything(mount.point()))).collect();
        while readers.iter().any(|reader| !reader.is_finished()) {
            highest = highest.max(memory(mount.pid(), "RssAnon"));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    });
    let in_flight = 2 * 2 * (1 << 20); // a stored and a decoded brick of 1 MiB for each decoding thread
    assert!(highest <= (8 << 20) + (64 << 20) + in_flight, "{} MiB", highest >> 20);
    assert!(mount.status()["counters"]["cache_bytes"].as_u64().unwrap() <= 8 << 20);
}

/// Reads every file below a folder.
fn read_everything(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_everything(&path);
        } else {
            let mut file = File::open(&path).unwrap();
            std::io::copy(&mut file, &mut std::io::sink())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

#[test]
fn a_mount_that_follows_at_once_on_another_stays() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for _ in 0..10 {
        // as umount(8) does it: the daemon of the mount that goes may still be about to end
        let gone = match nix::unistd::geteuid().is_root() {
            true => std::process::Command::new("umount").arg(mount.point()).status(),
            false => std::process::Command::new("fusermount3").arg("-u").arg(mount.point()).status(),
        };
        assert!(gone.unwrap().success());
        let again = volfs().arg("mount").arg(test_data("zgy")).arg(mount.point()).output().unwrap();
        assert!(again.status.success(), "{}", text(&again.stderr));
        assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
    }
    assert!(mount.umount(&[]).status.success());
}
