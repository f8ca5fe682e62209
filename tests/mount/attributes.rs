//! Attributes of files, folders and the file system, and the refusal of every change.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt, PermissionsExt, symlink};
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::support::{Mount, signal, source_with, test_data};

/// How long the kernel caches names and attributes. Nothing reports when it drops them, so a test has to sleep as long.
const KERNEL_CACHE: Duration = Duration::from_millis(750);

#[test]
fn everything_is_read_only() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    for folder in ["", ".volfs", "v3_int16.zgy", "v3_int16.zgy/data"] {
        let attributes = fs::metadata(mount.path(folder)).unwrap();
        assert!(attributes.is_dir());
        assert_eq!(attributes.permissions().mode() & 0o7777, 0o555, "{folder}");
    }
    for file in [".volfs/status.json", ".volfs/log", "v3_int16.zgy/dataset.json", "v3_int16.zgy/data/lod0.raw"] {
        let attributes = fs::metadata(mount.path(file)).unwrap();
        assert!(attributes.is_file());
        assert_eq!(attributes.permissions().mode() & 0o7777, 0o444, "{file}");
    }
}

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
fn inode_numbers_are_stable_and_unique() {
    let source = source_with(&["v3_int16.zgy", "v3_int8.zgy", "bad_version.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let walk = || {
        let mut found = Vec::new();
        let mut folders = vec![mount.point().to_owned()];
        while let Some(folder) = folders.pop() {
            found.push((folder.clone(), fs::metadata(&folder).unwrap().ino()));
            for entry in fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                let attributes = entry.metadata().unwrap();
                if attributes.is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push((entry.path(), attributes.ino()));
                }
            }
        }
        found.sort();
        found
    };
    let first = walk();
    assert_eq!(first.iter().map(|(_, inode)| inode).collect::<BTreeSet<_>>().len(), first.len());
    sleep(KERNEL_CACHE + Duration::from_millis(50));
    assert_eq!(walk(), first);
}

#[test]
fn listings_tell_the_types_and_inode_numbers_of_their_entries() {
    let source = source_with(&["v3_int16.zgy", "bad_version.zgy"]);
    fs::create_dir_all(source.path().join("folder")).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    let mut folders = vec![mount.point().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let attributes = fs::symlink_metadata(entry.path()).unwrap();
            let listed = (entry.ino(), entry.file_type().unwrap());
            assert_eq!(listed, (attributes.ino(), attributes.file_type()), "{}", entry.path().display());
            if attributes.is_dir() {
                folders.push(entry.path());
            } else {
                assert!(attributes.len() > 0 || entry.file_name() == "log", "{}", entry.path().display());
                files += 1;
            }
        }
    }
    assert!(files > 10);
}

#[test]
fn attributes_of_listed_datasets_need_no_further_request() {
    let source = source_with(&["v3_int16.zgy", "v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let dataset = mount.path("v3_int8.zgy");
    // while the daemon is stopped only the kernel's cache answers
    let is_known_without_daemon = || {
        assert!(fs::read_dir(mount.point()).unwrap().count() >= 3);
        signal(mount.pid(), Signal::SIGSTOP).unwrap();
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
fn access_lists_and_labels_are_not_supported() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    // programs that hear so ask once, and not for every file
    for name in ["security.selinux", "system.posix_acl_access", "system.posix_acl_default"] {
        let value = rustix::fs::getxattr(mount.point(), name, &mut [0_u8; 200]);
        assert_eq!(value, Err(rustix::io::Errno::OPNOTSUPP), "{name}");
    }
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
fn the_file_system_has_no_free_space() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    fs::read(mount.path("north.zgy/dataset.json")).unwrap();
    let space = rustix::fs::statvfs(mount.point()).unwrap();
    assert_eq!((space.f_bfree, space.f_bavail, space.f_ffree), (0, 0, 0));
    assert!(space.f_blocks > 0, "df hides a file system of no blocks");
    assert!(space.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
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
}
