//! The daemon inherits nothing from the process that starts it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Mount, fuse_or_skip, json, source_with, text, volfs};

#[test]
fn the_daemon_has_none_of_the_starters_descriptors_or_folders() {
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
    let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let pid = json(point.join(".volfs/status.json"))["pid"].as_i64().unwrap();
    let held = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .any(|target| target == folder.path().join("held"));
    assert!(volfs().arg("umount").arg(&point).status().unwrap().success());
    assert!(!held, "the daemon holds a file that it has nothing to do with");
}
