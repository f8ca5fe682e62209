//! Sources that are deleted or replaced: the daemon lets go of them, so that their space on the disk becomes free.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use nix::errno::Errno;

use crate::support::{
    Mount, SOON, comes_true, copy_all, is_eio, names, read_at, replace, set, source_of, source_with, test_data, text,
    volfs,
};

/// Returns whether the daemon has a file below a folder open or mapped that has no name any more.
fn holds_deleted(mount: &Mount, folder: &str) -> bool {
    let process = format!("/proc/{}", mount.pid());
    let is_deleted = |text: &str| text.contains(folder) && text.ends_with(" (deleted)");
    let descriptors = fs::read_dir(format!("{process}/fd")).unwrap().flatten();
    let mut targets = descriptors.filter_map(|fd| fs::read_link(fd.path()).ok());
    targets.any(|target| is_deleted(&target.to_string_lossy()))
        || fs::read_to_string(format!("{process}/maps")).unwrap().lines().any(is_deleted)
}

#[test]
fn the_space_of_a_deleted_source_becomes_free_although_nobody_looks() {
    let source = source_with(&["v3_float32.zgy", "v3_int8.zgy", "v3_int16.zgy"]);
    let folder = source.path().canonicalize().unwrap();
    let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
    let reader = File::open(mount.data("v3_int16.zgy", "lod0.raw")).unwrap();
    for _ in 0..20 {
        for name in ["v3_float32.zgy", "v3_int8.zgy"] {
            fs::read(mount.data(name, "lod0.raw")).unwrap();
        }
        read_at(&reader, 0, 1000).unwrap();
    }
    for name in ["v3_float32.zgy", "v3_int16.zgy"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    replace(&folder.join("v3_int8.zgy"), fs::read(test_data("zgy/v3_int16.zgy")).unwrap());
    assert!(comes_true(SOON, || !holds_deleted(&mount, folder.to_str().unwrap())), "a deleted file is still open");
    assert!(read_at(&reader, 0, 1000).is_err_and(|error| is_eio(&error)), "an open file of a deleted source");
}

#[test]
fn the_space_of_a_deleted_folder_becomes_free_although_nobody_looks() {
    let source = source_of("wkw", &["bare", "types"]);
    let folder = source.path().canonicalize().unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    fs::read(mount.path("bare/color/lod0.raw")).unwrap();
    assert!(!holds_deleted(&mount, folder.to_str().unwrap()));
    fs::remove_dir_all(folder.join("bare")).unwrap();
    assert!(comes_true(SOON, || !holds_deleted(&mount, folder.to_str().unwrap())), "a deleted file is still open");
}

fn is_stale(listed: io::Result<fs::ReadDir>) -> bool {
    listed.is_err_and(|error| error.raw_os_error() == Some(Errno::ESTALE as i32))
}

/// Looks at everything as programs do, in vain.
fn look_at_all(mount: &Mount, readers: &[File]) {
    assert!(is_stale(fs::read_dir(mount.point())), "ls of the mount");
    for name in ["v3_int16.zgy", "bare", "none"] {
        let error = fs::read_dir(mount.path(name)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{name}: {error}");
    }
    for reader in readers {
        assert!(read_at(reader, 0, 1000).is_err());
    }
}

/// Returns the lines of the log about the source, after the one about the mount.
fn lines_about_source(mount: &Mount) -> Vec<String> {
    let log = mount.log();
    log.lines().skip(1).map(|line| line.split_once(": ").unwrap().1.to_owned()).collect()
}

#[test]
fn a_source_that_is_gone_is_named_once_and_no_empty_mount() {
    let top = source_with(&["v3_int16.zgy"]);
    let source = top.path().canonicalize().unwrap().join("source");
    let make = || {
        fs::create_dir(&source).unwrap();
        fs::copy(test_data("zgy/v3_int16.zgy"), source.join("v3_int16.zgy")).unwrap();
        copy_all(&test_data("wkw/bare"), &source.join("bare"));
    };
    make();
    let Some(mount) = Mount::with(&source, &["--direct-io"]) else { return };
    let readers =
        ["v3_int16.zgy/data/lod0.raw", "bare/color/lod0.raw"].map(|file| File::open(mount.path(file)).unwrap());
    assert!(readers.iter().all(|reader| read_at(reader, 0, 1000).is_ok()));
    fs::remove_dir_all(&source).unwrap();
    assert!(comes_true(SOON, || is_stale(fs::read_dir(mount.point()))));
    assert!(comes_true(SOON, || readers.iter().all(|reader| read_at(reader, 0, 1000).is_err())));
    for _ in 0..3 {
        look_at_all(&mount, &readers);
    }
    assert_eq!(names(mount.path(".volfs")), set(["log", "status.json"]));
    let gone = format!("the source {} is gone", source.display());
    let lines = lines_about_source(&mount);
    assert!(lines.len() == 1 && lines[0].starts_with(&gone), "{lines:?}");
    let doctor = volfs().arg("doctor").output().unwrap();
    let named = format!("the source {} of the mount at {} is gone", source.display(), mount.point().display());
    assert!(text(&doctor.stdout).contains(&named), "{}", text(&doctor.stdout));

    make();
    assert!(comes_true(SOON, || fs::read(mount.data("v3_int16.zgy", "lod0.raw")).is_ok()));
    assert_eq!(names(mount.point()), set([".volfs", "bare", "v3_int16.zgy"]));
    let lines = lines_about_source(&mount);
    assert!(lines.len() == 2 && lines[1].ends_with(" is there again"), "{lines:?}");
}

#[test]
fn a_source_of_one_file_that_is_gone_is_named() {
    let source = source_with(&["v3_int16.zgy"]);
    let file: &Path = &source.path().join("v3_int16.zgy");
    let Some(mount) = Mount::of(file) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "v3_int16.zgy"]));
    fs::remove_file(file).unwrap();
    assert!(comes_true(SOON, || is_stale(fs::read_dir(mount.point()))));
    let lines = lines_about_source(&mount);
    assert!(lines.len() == 1 && lines[0].contains("is gone"), "{lines:?}");
}
