//! Ending a mount.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::Signal;

use super::hanging::Hanging;
use crate::support::{
    Mount, SOON, comes_true, fixture, one_line_of_failure, process_lives, signal, skip, source_with, test_data, text,
    volfs, wait_until,
};

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
fn umount_of_a_folder_that_is_no_mount_point_fails() {
    let folder = tempfile::tempdir().unwrap();
    let output = volfs().arg("umount").arg(folder.path()).output().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert!(line.contains(folder.path().to_str().unwrap()), "{line}");
}

#[test]
fn umount_leaves_mounts_of_other_programs_alone() {
    let output = volfs().args(["umount", "/proc"]).output().unwrap();
    one_line_of_failure(&output, 1);
    assert!(Path::new("/proc/self/status").exists());
}

#[test]
fn a_mount_in_use_is_not_unmounted_and_the_process_is_named() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let file = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    let output = mount.umount(&[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains(&std::process::id().to_string()), "the process that uses it is not named: {stderr}");
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists(), "the mount still answers");
    drop(file);
    assert!(mount.umount(&[]).status.success());
}

#[test]
fn a_lazy_umount_does_not_wait_for_readers() {
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
fn requests_that_arrive_as_the_connection_ends_are_no_error() {
    let source = source_with(&["v3_int8.zgy"]);
    // one thread of the daemon is handed a request in the moment of the end in about one round of six
    for _ in 0..20 {
        let Some(mut mount) = Mount::in_foreground(source.path(), &[]) else { return };
        let open = || File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
        let files: Vec<File> = (0..200).map(|_| open()).collect();
        assert!(mount.umount(&["--lazy"]).status.success());
        drop(files);
        let ended = mount.take_foreground().wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", text(&ended.stderr));
    }
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
fn a_look_up_that_hangs_is_named_as_what_holds_the_mount() {
    let Some(hanging) = Hanging::new() else { return };
    let Hanging { mount, slow, .. } = &hanging;
    slow.gate.set_closed(true);
    let mut reader = Command::new("stat").arg(hanging.dataset().join("data")).spawn().unwrap();
    wait_until("the look-up hangs", || slow.gate.waiting() > 0);
    // it has no file open
    let named = format!("stat (process {}), which waits for an answer from it", reader.id());
    let mut line = String::new();
    let is_named = comes_true(SOON, || {
        line = text(&mount.umount(&[]).stderr);
        line.contains(&named)
    });
    // and cannot be killed
    reader.kill().unwrap();
    let killed = text(&mount.umount(&[]).stderr);
    slow.gate.set_closed(false);
    reader.wait().unwrap();
    assert!(is_named, "{line}");
    assert!(killed.contains(&named), "{killed}");
    assert!(mount.umount(&[]).status.success());
}

#[test]
fn a_mount_that_another_namespace_sees_is_not_said_to_wait_for_its_source() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    if !nix::unistd::getuid().is_root() {
        return skip("only root can make a mount namespace here");
    }
    let mut other = Command::new("unshare");
    other.args(["--mount", "sh", "-c", "echo && exec sleep 60"]).stdout(Stdio::piped());
    let mut other = other.spawn().unwrap();
    if other.stdout.as_mut().unwrap().read_exact(&mut [0]).is_err() {
        other.wait().unwrap();
        return skip("no mount namespace can be made here, as where the root of files is no mount");
    }
    let output = mount.umount(&[]);
    other.kill().unwrap();
    other.wait().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert!(line.contains("is unmounted here, but") && line.contains("of its mount namespace"), "{line}");
    assert!(!mount.is_mounted());
    wait_until("the daemon has gone", || !process_lives(mount.pid()));
}
