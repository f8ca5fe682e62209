//! Sources that are deleted or replaced: the daemon lets go of them, so that their space on the disk becomes free.

use std::fs::{self, File};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Mount, SOON, comes_true, fixture, is_eio, read_at, replace, source_of, source_with, test_data};

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

/// Returns how often the thread that looks for deleted sources has waited.
fn waits(mount: &Mount) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", mount.pid())).unwrap().flatten();
    let name = |thread: &fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
    let thread = threads.into_iter().find(|thread| name(thread).trim_end() == "volfs-refresh").unwrap();
    let status = fs::read_to_string(thread.path().join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn a_mount_without_open_sources_sleeps() {
    let source = source_with(&["v3_int8.zgy"]);
    let folder = source.path().canonicalize().unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    let is_asleep = || {
        let before = waits(&mount);
        sleep(Duration::from_millis(2500));
        waits(&mount) == before
    };
    let listed = || fs::read_dir(mount.point()).unwrap().count();
    assert_eq!(listed(), 2);
    assert_eq!(fs::read(mount.data("v3_int8.zgy", "lod0.raw")).unwrap(), fixture("v3_int8.zgy").samples(0).unwrap());
    fs::remove_file(folder.join("v3_int8.zgy")).unwrap();
    assert!(comes_true(SOON, || !holds_deleted(&mount, folder.to_str().unwrap())), "it looks again");
    // what was written a moment ago is refreshed for a while
    assert!(comes_true(SOON, is_asleep), "after the source was deleted");
}
