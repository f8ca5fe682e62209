//! Mount points and sources: which of them are accepted, and which refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{fuse_or_skip, mounted_name, one_line_of_failure, source_with, volfs};

/// Checks that a mount is refused, and returns the reason.
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
    symlink(&inside, &link).unwrap();
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
