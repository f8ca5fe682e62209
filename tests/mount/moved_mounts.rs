//! A mount point that is moved, that vanishes, and that another mount namespace holds.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::support::{
    Mount, fixture, fuse_or_skip, json, mounted_name, process_lives, signal, skip, source_with, test_data, text, volfs,
    wait_until,
};

fn pid_of(point: &Path) -> i32 {
    i32::try_from(json(point.join(".volfs/status.json"))["pid"].as_i64().unwrap()).unwrap()
}

/// Runs a script of the shell in a mount namespace of its own; `None` (after reporting why) if that is not allowed.
fn in_namespace(script: &str, argument: &Path) -> Option<Command> {
    let possible = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        skip("cannot make a mount namespace");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(argument);
    Some(command)
}

#[test]
fn a_mount_whose_mount_point_was_moved_is_unmounted_at_sigterm() {
    if !fuse_or_skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    fs::create_dir_all(before.join("mount")).unwrap();
    let output = volfs().arg("mount").arg(test_data("zgy")).arg(before.join("mount")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let pid = pid_of(&before.join("mount"));
    fs::rename(&before, &after).unwrap();
    let samples = fs::read(after.join("mount/v3_int8.zgy/data/lod0.raw")).unwrap();
    signal(pid, Signal::SIGTERM).unwrap();
    wait_until("the daemon has gone", || !process_lives(pid));
    let left = mounted_name(&after.join("mount"));
    if left.is_some() {
        let _ = volfs().arg("umount").arg(after.join("mount")).output();
    }
    assert_eq!(left, None, "the mount is taken away where it is now");
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
}

#[test]
fn a_mount_point_that_vanishes_ends_the_mount() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let mut open = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    // a folder on which something is mounted elsewhere can be removed, which takes the mount away
    let Some(mut vanish) = in_namespace("umount --lazy \"$0\" && rmdir \"$0\"", mount.point()) else { return };
    assert!(vanish.status().unwrap().success());
    assert!(!mount.is_mounted() && !mount.point().exists());
    let mut samples = Vec::new();
    open.read_to_end(&mut samples).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap(), "open files stay readable");
    drop(open);
    wait_until("the daemon has gone", || !process_lives(mount.pid()));
    assert!(mount.log().contains("unmounted"), "{}", mount.log());
}

#[test]
fn a_mount_lives_as_long_as_the_last_namespace_that_has_it() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let script = "touch \"$0.begun\"; read line; cat \"$0/v3_int8.zgy/data/lod0.raw\"; read line";
    let Some(mut other) = in_namespace(script, mount.point()) else { return };
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let begun = mount.point().with_extension("begun");
    wait_until("the namespace is there", || begun.exists());
    nix::mount::umount(mount.point()).unwrap();
    assert!(!mount.is_mounted());
    let mut input = other.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"\n").unwrap();
    let truth = fixture("v3_int8.zgy").samples(0).unwrap();
    let mut samples = vec![0; truth.len()];
    other.stdout.take().unwrap().read_exact(&mut samples).unwrap();
    assert!(samples == truth, "the other namespace still reads");
    assert!(process_lives(mount.pid()));
    drop(input);
    other.wait().unwrap();
    wait_until("the daemon has gone", || !process_lives(mount.pid()));
    fs::remove_file(begun).unwrap();
}
