//! The tree of a mount: names, attributes, listings, the files of each folder; and the refusal of every change.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::{Duration, SystemTime};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;

use crate::support::{
    Mount, SOON, comes_true, copy_all, damaged, fixture, json, memory, names, set, signal, source_with, stop,
    test_data, wait_until,
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
fn layers_and_axes_are_found_by_names_that_are_not_listed() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let inode = |path: &str| fs::metadata(mount.path(path)).map(|about| about.ino()).ok();
    for (typed, listed) in [
        ("south.vds/data", "south.vds/Amplitude"),
        ("south.vds/AMPLITUDE", "south.vds/Amplitude"),
        ("cloud-survey/data/lod1.raw", "cloud-survey/Amplitude/lod1.raw"),
        ("south.vds/data/lod0.by-sample.npy", "south.vds/Amplitude/lod0.by-Sample.npy"),
        ("south.vds/amplitude/lod1.slices/inline/3.png", "south.vds/Amplitude/lod1.slices/Inline/3.png"),
        ("south.vds/data.ome.zarr/lod0/image", "south.vds/Amplitude.ome.zarr/lod0/image"),
        ("cells/data/lod0.by-X.npy", "cells/color/lod0.by-x.npy"),
        ("cells/Segmentation.ome.zarr", "cells/segmentation.ome.zarr"),
        ("south.vds/data.zarr/lod0/image", "south.vds/Amplitude.zarr/lod0/image"),
        ("north.zgy/DATA", "north.zgy/data"),
    ] {
        // first as it is typed, and as it is listed; then both are known
        for _ in 0..2 {
            let found = inode(typed);
            assert!(found.is_some() && found == inode(listed), "{typed}");
        }
        let path = mount.path(typed);
        let is_file = path.is_file();
        assert!(!is_file || fs::read(&path).unwrap() == fs::read(mount.path(listed)).unwrap(), "{typed}");
    }
    let listed = names(mount.path("south.vds"));
    assert!(
        listed.contains("Amplitude") && listed.is_disjoint(&set(["data", "AMPLITUDE", "data.ome.zarr", "data.zarr"]))
    );
    assert!(!names(mount.path("south.vds/data")).contains("lod0.by-sample.npy"));
    for none in ["cells/colour", "cells/DATASET.JSON", "south.vds/data/LOD0.raw", "south.vds/Data.ZARR", "South.vds"] {
        assert_eq!(inode(none), None, "{none}");
    }
}

/// A folder has one name in the kernel's cache, which each look-up by another name changes.
#[test]
fn a_folder_may_be_read_by_two_names_at_once() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let samples = fs::read(mount.path("south.vds/Amplitude/lod1.raw")).unwrap();
    let held = File::open(mount.path("south.vds/data")).unwrap();
    let read = &|name: &str| {
        for _ in 0..300 {
            assert!(fs::read(mount.path("south.vds").join(name).join("lod1.raw")).unwrap() == samples, "{name}");
            assert!(names(mount.path("south.vds").join(name)).len() > 9);
            assert_eq!(names(mount.path("south.vds")).len(), 11);
        }
    };
    std::thread::scope(|scope| {
        for name in ["data", "Amplitude", "amplitude", "AMPLITUDE"] {
            scope.spawn(move || read(name));
        }
    });
    assert!(held.metadata().unwrap().is_dir());
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
fn folders_keep_their_place_and_files_of_other_kinds_are_not_shown() {
    let source = source_with(&["v3_int8.zgy"]);
    copy_of("v3_int16.zgy", source.path().join("surveys/2019/base.zgy"));
    copy_of("v3_int8.zgy", source.path().join("surveys/2021/base.zgy"));
    copy_of("v3_int16.zgy", source.path().join("by content"));
    fs::write(source.path().join("notes.txt"), "not a volume").unwrap();
    fs::write(source.path().join("liar.zgy"), "not a volume").unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "by content", "liar.zgy", "surveys", "v3_int8.zgy"]));
    assert_eq!(names(mount.path("surveys")), set(["2019", "2021"]));
    assert_eq!(names(mount.path("liar.zgy")), set(["error.txt"]));
    for (dataset, stored) in [
        ("surveys/2019/base.zgy", "v3_int16.zgy"),
        ("surveys/2021/base.zgy", "v3_int8.zgy"),
        ("by content", "v3_int16.zgy"),
    ] {
        assert!(fs::read(mount.data(dataset, "lod0.raw")).unwrap() == fixture(stored).samples(0).unwrap(), "{dataset}");
    }
    let described = json(mount.path("surveys/2019/base.zgy/dataset.json"));
    assert_eq!(described["source"]["path"], "surveys/2019/base.zgy");
    assert_eq!(described["name"], "base.zgy");
    drop(mount);
    let Some(mount) = Mount::of(source.path().join("by content")) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "by content"]), "one file can be the source");
    assert!(mount.data("by content", "lod0.raw").exists());
}

#[test]
fn datasets_are_named_as_their_files() {
    use std::os::unix::ffi::OsStrExt;
    let source = source_with(&[]);
    let odd = ["100%.zgy", "a\tb\n.zgy", "Åsgård 3D.zgy", "100%/50%.zgy", "-rf.zgy", " .zgy", ".volfs"];
    for name in odd {
        copy_of("v3_int8.zgy", source.path().join(name));
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    let expected = [".volfs", ".volfs~2", "100%.zgy", "100%", "a\tb\n.zgy", "Åsgård 3D.zgy", "-rf.zgy", " .zgy"];
    assert_eq!(names(mount.point()), set(expected));
    for name in odd.iter().map(|name| if *name == ".volfs" { ".volfs~2" } else { name }) {
        assert!(mount.data(name, "lod0.raw").exists(), "{name}");
    }
    assert!(mount.path(".volfs/status.json").exists());
    assert_eq!(json(mount.path("a\tb\n.zgy/dataset.json"))["name"], "a\tb\n.zgy");
    // names need not be UTF-8
    let name = std::ffi::OsStr::from_bytes(b"\xc5sg\xe5rd.zgy");
    copy_of("v3_int8.zgy", source.path().join(name));
    let samples = fixture("v3_int8.zgy").samples(0).unwrap();
    assert!(comes_true(SOON, || fs::read(mount.path(name).join("data/lod0.raw")).is_ok_and(|found| found == samples)));
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

/// States the names literally, so that the registry of views loses none of them.
#[test]
fn a_dataset_is_a_folder_with_its_views() {
    let source = source_with(&["v3_int16.zgy", "v3_float32.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "v3_float32.zgy", "v3_int16.zgy"]));
    assert_eq!(names(mount.path(".volfs")), set(["log", "status.json"]));
    let listed = set(["data", "data.ome.zarr", "data.zarr", "dataset.json", "outline.geojson"]);
    assert_eq!(names(mount.path("v3_int16.zgy")), listed);
    let views = |lods: usize, suffixes: &[&str]| -> BTreeSet<String> {
        (0..lods).flat_map(|lod| suffixes.iter().map(move |s| format!("lod{lod}.{s}"))).collect()
    };
    let plain = ["raw", "json", "npy", "nhdr", "mhd", "hdr", "by-crossline.npy", "by-sample.npy", "slices", "nc"];
    let of_layer = set(["lod0.sgy", "preview.png", "tiff"]);
    assert_eq!(names(mount.path("v3_float32.zgy/data")), &views(4, &plain) | &of_layer);
    let scaled = [&plain[..], &["float32.npy"]].concat();
    assert_eq!(names(mount.path("v3_int16.zgy/data")), &views(3, &scaled) | &of_layer);
    assert_eq!(names(mount.path("v3_int16.zgy/data/lod2.slices")), set(["inline", "crossline", "sample"]));
}

#[test]
fn a_mount_shows_the_views_that_are_chosen() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::with(source.path(), &["--views", "tiff,mhd"]) else { return };
    let shown = |lod: usize| ["raw", "json", "mhd"].map(|suffix| format!("lod{lod}.{suffix}"));
    let expected = (0..3).flat_map(shown).chain(["tiff".to_owned()]).collect();
    assert_eq!(names(mount.path("v3_int16.zgy/data")), expected);
    assert_eq!(mount.status()["options"]["views"], "raw,mhd,tiff");
    let about = json(mount.data("v3_int16.zgy", "lod1.json"));
    let files = ["lod1.raw", "lod1.json", "lod1.mhd", "tiff/lod1.tif"];
    assert_eq!(about["files"], serde_json::json!(files));
    assert!(!mount.data("v3_int16.zgy", "lod0.npy").exists());
}

/// How long the kernel caches names and attributes. Nothing reports when it drops them, so a test has to sleep as long.
const KERNEL_CACHE: Duration = Duration::from_millis(750);

#[test]
fn every_change_is_refused_with_erofs() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let file = mount.data("v3_int16.zgy", "lod0.raw");
    let refused = |what: &str, result: io::Result<()>| {
        let error = result.expect_err(what);
        assert_eq!(error.raw_os_error(), Some(Errno::EROFS as i32), "{what}: {error}");
    };
    refused("write", File::options().write(true).open(&file).map(drop));
    refused("append", File::options().append(true).open(&file).map(drop));
    refused("create", File::create_new(mount.path("new")).map(drop));
    refused("unlink", fs::remove_file(&file));
    refused("mkdir", fs::create_dir(mount.path("folder")));
    refused("rmdir", fs::remove_dir(mount.path("v3_int16.zgy/data")));
    refused("rename", fs::rename(&file, mount.path("other")));
    refused("link", fs::hard_link(&file, mount.path("other")));
    refused("symlink", symlink("v3_int16.zgy", mount.path("other")));
    refused("chmod", fs::set_permissions(&file, PermissionsExt::from_mode(0o600)));
    let times = fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    refused("utimes", File::open(&file).and_then(|f| f.set_times(times)));
    let name = mount.point().to_owned();
    let attribute = rustix::fs::setxattr(name, "user.x", b"1", rustix::fs::XattrFlags::empty());
    assert_eq!(attribute, Err(rustix::io::Errno::ROFS));
}

#[test]
fn attributes_are_those_of_the_source() {
    let source = source_with(&["v3_int16.zgy"]);
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let file = File::options().write(true).open(source.path().join("v3_int16.zgy")).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(long_ago)).unwrap();
    let original = file.metadata().unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    for file in ["v3_int16.zgy/data/lod0.raw", "v3_int16.zgy/data/lod0.npy", "v3_int16.zgy/dataset.json"] {
        let shown = fs::metadata(mount.path(file)).unwrap();
        assert_eq!((shown.mtime(), shown.mtime_nsec()), (original.mtime(), original.mtime_nsec()), "{file}");
        assert_eq!((shown.ctime(), shown.ctime_nsec()), (original.ctime(), original.ctime_nsec()), "{file}");
        assert_eq!((shown.uid(), shown.gid()), (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw()));
    }
}

#[test]
fn inode_numbers_are_stable_and_unique_and_nothing_can_be_written() {
    let source = source_with(&["v3_int16.zgy", "v3_int8.zgy", "bad_version.zgy"]);
    fs::create_dir_all(source.path().join("folder")).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    let walk = || {
        let mut found = vec![(mount.point().to_owned(), fs::metadata(mount.point()).unwrap().ino())];
        let mut folders = vec![mount.point().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                let (path, attributes) = (entry.path(), fs::symlink_metadata(entry.path()).unwrap());
                let listed = (entry.ino(), entry.file_type().unwrap());
                assert_eq!(listed, (attributes.ino(), attributes.file_type()), "{}", path.display());
                let mode = if attributes.is_dir() { 0o555 } else { 0o444 };
                assert_eq!(attributes.permissions().mode() & 0o7777, mode, "{}", path.display());
                assert!(attributes.len() > 0 || mode == 0o555 || path.ends_with("log"), "{}", path.display());
                found.push((path.clone(), attributes.ino()));
                if attributes.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    };
    let first = walk();
    assert!(first.len() > 20);
    assert_eq!(first.iter().map(|(_, inode)| inode).collect::<BTreeSet<_>>().len(), first.len());
    sleep(KERNEL_CACHE + Duration::from_millis(50));
    assert_eq!(walk(), first);
}

#[test]
fn attributes_of_listed_datasets_need_no_further_request() {
    let source = source_with(&["v3_int16.zgy", "v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let dataset = mount.path("v3_int8.zgy");
    // while the daemon is stopped only the kernel's cache answers
    let is_known_without_daemon = || {
        assert!(fs::read_dir(mount.point()).unwrap().count() >= 3);
        stop(mount.pid());
        let (sender, answer) = mpsc::channel();
        let look = dataset.clone();
        let thread = spawn(move || sender.send(fs::symlink_metadata(look).unwrap().mtime()));
        let known = answer.recv_timeout(Duration::from_millis(500)).is_ok();
        signal(mount.pid(), Signal::SIGCONT).unwrap();
        thread.join().unwrap().ok();
        known
    };
    // on a busy machine the cache can expire before the look
    let is_known = (0..20).any(|_| {
        sleep(KERNEL_CACHE + Duration::from_millis(50));
        is_known_without_daemon()
    });
    assert!(is_known);
    let original = fs::metadata(source.path().join("v3_int8.zgy")).unwrap();
    assert_eq!(fs::metadata(&dataset).unwrap().mtime(), original.mtime());
}

#[test]
fn arrays_have_extended_attributes() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let get = |file: &str, name: &str| {
        let mut value = [0_u8; 200];
        let length = rustix::fs::getxattr(mount.data("v3_int16.zgy", file), name, &mut value)?;
        Ok::<_, rustix::io::Errno>(String::from_utf8(value[..length].to_vec()).unwrap())
    };
    for file in ["lod0.raw", "lod0.npy"] {
        assert_eq!(get(file, "user.volfs.shape").unwrap(), "20,18,35");
        assert_eq!(get(file, "user.volfs.dtype").unwrap(), "int16");
        assert_eq!(get(file, "user.volfs.order").unwrap(), "C");
        assert_eq!(get(file, "user.volfs.format").unwrap(), "zgy");
        assert_eq!(get(file, "user.nothing"), Err(rustix::io::Errno::NODATA));
        let mut list = vec![0_u8; 500];
        let length = rustix::fs::listxattr(mount.data("v3_int16.zgy", file), &mut list).unwrap();
        let listed = String::from_utf8(list[..length].to_vec()).unwrap();
        let listed = listed.split_terminator('\0').map(str::to_owned).collect::<BTreeSet<_>>();
        let expected = ["dtype", "format", "order", "shape"].map(|name| format!("user.volfs.{name}"));
        assert_eq!(listed, BTreeSet::from(expected));
    }
}

#[test]
fn the_type_of_the_file_system_tells_what_it_is() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(mount.point().to_str().unwrap())).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let options: BTreeSet<&str> = words[3].split(',').collect();
    assert_eq!((words[0].starts_with("volfs:"), words[2]), (true, "fuse.volfs"), "{line}");
    for option in ["ro", "nosuid", "nodev", "noatime", "default_permissions"] {
        assert!(options.contains(option), "{line}");
    }
    assert!(!options.contains("allow_other"), "{line}");
    fs::read(mount.path("north.zgy/dataset.json")).unwrap();
    let space = rustix::fs::statvfs(mount.point()).unwrap();
    assert_eq!((space.f_bfree, space.f_bavail, space.f_ffree), (0, 0, 0));
    assert!(space.f_blocks > 0, "df hides a file system of no blocks");
    // programs that hear so ask once, and not for every file
    for name in ["security.selinux", "system.posix_acl_access", "system.posix_acl_default"] {
        let value = rustix::fs::getxattr(mount.point(), name, &mut [0_u8; 200]);
        assert_eq!(value, Err(rustix::io::Errno::OPNOTSUPP), "{name}");
    }
}

const NAMES: usize = 4000;
const HANDLES: usize = 100;

fn open(folder: &Path) -> Dir {
    Dir::open(folder, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty()).unwrap()
}

/// Opens a folder a hundred times at once: with a listing for each handle that was 50 MiB, and most of it stayed.
#[test]
fn handles_of_one_folder_share_its_listing() {
    let source = tempfile::tempdir().unwrap();
    let folder = source.path().join("many");
    fs::create_dir(&folder).unwrap();
    for name in 0..NAMES {
        fs::File::create(folder.join(format!("survey-{name:06}.zgy"))).unwrap();
    }
    let Some(mount) = Mount::with(source.path(), &["--cache-size", "16MiB"]) else { return };
    let many = mount.path("many");
    assert_eq!(fs::read_dir(&many).unwrap().count(), NAMES);
    let before = memory(mount.pid(), "RssAnon");
    let mut handles: Vec<Dir> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..HANDLES).map(|_| scope.spawn(|| open(&many))).collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for handle in handles.iter_mut().step_by(20) {
        // the names and `.` and `..`
        assert_eq!(handle.iter().count(), NAMES + 2);
    }
    let open = memory(mount.pid(), "RssAnon");
    drop(handles);
    assert_eq!(fs::read_dir(&many).unwrap().count(), NAMES);
    let closed = memory(mount.pid(), "RssAnon");
    let limit = before + (8 << 20);
    assert!(open < limit, "{} MiB before, {} MiB while open", before >> 20, open >> 20);
    assert!(closed < limit, "{} MiB before, {} MiB afterwards", before >> 20, closed >> 20);
    assert!(before < 20 << 20, "{} MiB for {NAMES} names", before >> 20);
}
