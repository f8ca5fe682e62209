//! Starting a mount, and the output of `volfs mount`.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::{
    Mount, fuse_or_skip, mounted_name, one_line_of_failure, signal, source_with, test_data, text, volfs, wait_for,
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
        // the dataset is named only if it is found in time
        assert!(stdout.contains(mount.data("v3_int8.zgy", "lod0.npy").to_str().unwrap()), "{stdout}");
    }
}

#[test]
fn the_mount_has_the_name_of_its_source() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let name = format!("volfs:{}", source.path().display());
    assert_eq!(mounted_name(mount.point()), Some(name));
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(mount.point().to_str().unwrap())).unwrap();
    assert!(line.contains(" ro,"), "{line}");
}

#[test]
fn a_relative_source_becomes_absolute() {
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
fn a_foreground_mount_ends_with_sigint_and_sigterm() {
    for ending in [Signal::SIGINT, Signal::SIGTERM] {
        let source = source_with(&["v3_int8.zgy"]);
        let Some(mut mount) = Mount::in_foreground(source.path(), &[]) else { return };
        let mut child = mount.take_foreground();
        assert_eq!(mount.pid(), i32::try_from(child.id()).unwrap(), "it stays in the foreground");
        assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
        signal(mount.pid(), ending).unwrap();
        let status = wait_for(&mut child);
        assert_eq!(status.code(), Some(0), "{ending}");
        assert!(!mount.is_mounted(), "{ending}");
    }
}

#[test]
fn mounting_twice_at_one_mount_point_is_an_error() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let output = volfs().arg("mount").arg(source.path()).arg(mount.point()).output().unwrap();
    one_line_of_failure(&output, 1);
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists(), "the first mount still answers");
}

#[test]
fn a_mount_right_after_an_unmount_stays() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for _ in 0..10 {
        // umount(8) does not wait for the daemon, which may still be ending when the next mount begins
        let gone = match nix::unistd::geteuid().is_root() {
            true => Command::new("umount").arg(mount.point()).status(),
            false => Command::new("fusermount3").arg("-u").arg(mount.point()).status(),
        };
        assert!(gone.unwrap().success());
        let again = volfs().arg("mount").arg(test_data("zgy")).arg(mount.point()).output().unwrap();
        assert!(again.status.success(), "{}", text(&again.stderr));
        assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
    }
    assert!(mount.umount(&[]).status.success());
}
