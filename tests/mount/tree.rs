//! The tree of a mount: its folders and files, and their names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::errno::Errno;

use crate::support::{
    Mount, SOON, comes_true, copy_all, damaged, fixture, json, names, set, source_with, test_data, wait_until,
};

/// Copies a ZGY file of the test data.
fn copy_of(name: &str, to: impl AsRef<Path>) {
    copy_all(&test_data("zgy").join(name), to.as_ref());
}

#[test]
fn names_that_do_not_exist_are_not_found() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    for name in [
        "nothing",
        "lod0.raw",
        ".volfs/nothing",
        "v3_int16.zgy/nothing",
        "v3_int16.zgy/error.txt",
        "v3_int16.zgy/data/lod7.raw",
        "v3_int16.zgy/data/lod00.raw",
        "v3_int16.zgy/data/lod0.raw.hdr",
        "v3_int16.zgy/data/.zarray",
        "V3_INT16.ZGY",
    ] {
        for _ in 0..2 {
            let error = fs::metadata(mount.path(name)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::ENOENT as i32), "{name}");
        }
    }
    let error = fs::metadata(mount.path("v3_int16.zgy/data/lod0.raw/below")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::ENOTDIR as i32));
}

#[test]
fn damaged_files_have_the_reason_and_hide_no_others() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in damaged("open") {
        let folder = mount.path(&fixture.name);
        assert_eq!(names(&folder), set(["error.txt"]), "{}", fixture.name);
        let why = fs::read_to_string(folder.join("error.txt")).unwrap();
        assert!(why.contains(fixture.expected["message"].as_str().unwrap()), "{}: {why}", fixture.name);
        assert!(why.ends_with('\n'), "{}: {why}", fixture.name);
    }
    let good = fixture("v3_int8.zgy");
    assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
}

#[test]
fn files_of_other_kinds_are_not_shown() {
    let source = source_with(&["v3_int8.zgy"]);
    fs::write(source.path().join("notes.txt"), "not a volume").unwrap();
    fs::write(source.path().join("liar.zgy"), "not a volume").unwrap();
    copy_of("v3_int16.zgy", source.path().join("by content"));
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "by content", "liar.zgy", "v3_int8.zgy"]));
    assert!(mount.data("by content", "lod0.raw").exists());
    assert_eq!(names(mount.path("liar.zgy")), set(["error.txt"]));
}

#[test]
fn folders_keep_their_place() {
    let source = source_with(&["v3_int8.zgy"]);
    copy_of("v3_int16.zgy", source.path().join("surveys/2019/base.zgy"));
    copy_of("v3_int8.zgy", source.path().join("surveys/2021/base.zgy"));
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "surveys", "v3_int8.zgy"]));
    assert_eq!(names(mount.path("surveys")), set(["2019", "2021"]));
    let samples = fs::read(mount.data("surveys/2019/base.zgy", "lod0.raw")).unwrap();
    assert!(samples == fixture("v3_int16.zgy").samples(0).unwrap());
    let samples = fs::read(mount.data("surveys/2021/base.zgy", "lod0.raw")).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
    let described = json(mount.path("surveys/2019/base.zgy/dataset.json"));
    assert_eq!(described["source"]["path"], "surveys/2019/base.zgy");
    assert_eq!(described["name"], "base.zgy");
}

#[test]
fn one_file_can_be_the_source() {
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path().join("v3_int16.zgy")) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "v3_int16.zgy"]));
    assert!(fs::read(mount.data("v3_int16.zgy", "lod0.raw")).unwrap() == fixture("v3_int16.zgy").samples(0).unwrap());
}

#[test]
fn datasets_are_named_as_their_files() {
    let source = source_with(&[]);
    let odd = ["100%.zgy", "a\tb\n.zgy", "Åsgård 3D.zgy", "100%/50%.zgy", "-rf.zgy", " .zgy"];
    for name in odd {
        copy_of("v3_int8.zgy", source.path().join(name));
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    let expected = [".volfs", "100%.zgy", "100%", "a\tb\n.zgy", "Åsgård 3D.zgy", "-rf.zgy", " .zgy"];
    assert_eq!(names(mount.point()), set(expected));
    for name in odd {
        assert!(mount.data(name, "lod0.raw").exists(), "{name}");
    }
    assert_eq!(json(mount.path("a\tb\n.zgy/dataset.json"))["name"], "a\tb\n.zgy");
}

#[test]
fn names_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let source = source_with(&[]);
    let name = std::ffi::OsStr::from_bytes(b"\xc5sg\xe5rd.zgy");
    copy_of("v3_int8.zgy", source.path().join(name));
    let Some(mount) = Mount::of(source.path()) else { return };
    let samples = fs::read(mount.path(name).join("data/lod0.raw")).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
}

#[test]
fn a_dataset_may_have_the_name_of_the_folder_dot_volfs() {
    let source = source_with(&[]);
    copy_of("v3_int8.zgy", source.path().join(".volfs"));
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set([".volfs", ".volfs~2"]));
    assert!(mount.data(".volfs~2", "lod0.raw").exists());
    assert!(mount.path(".volfs/status.json").exists());
}

#[test]
fn links_are_followed_inside_the_source_only() {
    let outside = source_with(&["v3_int16.zgy"]);
    let source = source_with(&[]);
    copy_of("v3_int8.zgy", source.path().join("folder/real.zgy"));
    symlink("folder/real.zgy", source.path().join("file.zgy")).unwrap();
    symlink("folder", source.path().join("linked")).unwrap();
    symlink("..", source.path().join("folder/circle")).unwrap();
    symlink(outside.path().join("v3_int16.zgy"), source.path().join("outside.zgy")).unwrap();
    symlink(outside.path(), source.path().join("elsewhere")).unwrap();
    symlink("nowhere", source.path().join("dangling.zgy")).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    let root = names(mount.point());
    assert!(root.is_superset(&set(["file.zgy", "folder"])), "{root:?}");
    assert!(root.is_disjoint(&set(["outside.zgy", "elsewhere", "dangling.zgy"])), "{root:?}");
    assert!(mount.data("file.zgy", "lod0.raw").exists());
    assert!(fs::metadata(mount.path("outside.zgy/data/lod0.raw")).is_err());
    if root.contains("linked") {
        assert!(mount.data("linked/real.zgy", "lod0.raw").exists());
    }
    drop(mount);
    let Some(mount) = Mount::with(source.path(), &["--follow-links"]) else { return };
    assert!(mount.data("outside.zgy", "lod0.raw").exists());
    assert!(mount.data("elsewhere/v3_int16.zgy", "lod0.raw").exists());
}

#[test]
fn a_mount_of_an_empty_folder_is_empty() {
    let source = source_with(&[]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set([".volfs"]));
}

#[test]
fn added_and_removed_files_are_noticed() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert!(!mount.path("late.zgy").exists());
    copy_of("v3_int16.zgy", source.path().join("late.zgy"));
    assert!(comes_true(SOON, || mount.data("late.zgy", "lod0.raw").exists()));
    assert!(comes_true(SOON, || names(mount.point()).contains("late.zgy")));
    fs::remove_file(source.path().join("late.zgy")).unwrap();
    wait_until("the file has gone", || !mount.path("late.zgy").exists());
    wait_until("it is not listed", || !names(mount.point()).contains("late.zgy"));
}
