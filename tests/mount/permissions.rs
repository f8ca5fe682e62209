//! Who may read what in a mount that other users may enter. The kernel is the oracle: a user reads in the mount what the
//! same user reads in the source, and nothing else.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, XattrFlags, renameat_with, setxattr};
use tempfile::TempDir;

use crate::support::{Mount, comes_true, copy_all, fuse_or_skip, skip, test_data, text, volfs};

/// The group of a project.
const TEAM: u32 = 64_201;
/// The owner of some of its files.
const OWNER: u32 = 64_202;
/// Users, and the group of each: the owner, a member of the team, somebody else, and root.
const USERS: [(u32, u32); 4] = [(OWNER, 64_202), (64_203, TEAM), (64_204, 64_204), (0, 0)];
/// Somebody else.
const OTHER: (u32, u32) = USERS[2];
/// More than the two seconds after which nothing old is left, since the machine may be busy.
const SOON: Duration = Duration::from_secs(20);

/// A source whose files belong to several users. Everybody can reach it, and what is mounted beside it.
struct Source {
    folder: TempDir,
}

impl Source {
    /// `None` (after reporting why) where the tests cannot act as other users.
    fn new() -> Option<Self> {
        if !fuse_or_skip() {
            return None;
        }
        if !nix::unistd::geteuid().is_root() {
            skip("only root can act as other users");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        Some(Self { folder })
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn folder(&self, path: &str, owner: (u32, u32), mode: u32) -> &Self {
        fs::create_dir_all(self.at(path)).unwrap();
        self.give(path, owner, mode)
    }

    fn file(&self, path: &str, owner: (u32, u32), mode: u32) -> &Self {
        copy_all(&test_data("zgy/v3_int8.zgy"), &self.at(path));
        self.give(path, owner, mode)
    }

    fn give(&self, path: &str, (uid, gid): (u32, u32), mode: u32) -> &Self {
        chown(self.at(path), Some(uid), Some(gid)).unwrap();
        fs::set_permissions(self.at(path), Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Gives an access control list to a file: tags, rights and numbers, as the kernel has them. Returns whether the
    /// file system has such lists.
    fn give_list(&self, path: &str, entries: &[(u8, u8, u32)]) -> bool {
        let mut list = vec![2, 0, 0, 0];
        for (tag, rights, id) in entries {
            list.extend([*tag, 0, *rights, 0]);
            list.extend(id.to_le_bytes());
        }
        setxattr(self.at(path), "system.posix_acl_access", &list, XattrFlags::empty()).is_ok()
    }

    fn mount(&self, arguments: &[&str]) -> Option<Mount> {
        let mount = Mount::with(self.folder.path(), &[&["--allow-other"], arguments].concat())?;
        fs::set_permissions(mount.point().parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
        Some(mount)
    }
}

/// Returns whether a user may read a file, or list a folder.
fn reads((uid, gid): (u32, u32), path: &Path) -> bool {
    let program = if path.is_dir() { "ls" } else { "cat" };
    let mut command = Command::new(program);
    command.arg(path).uid(uid).gid(gid).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap().success()
}

/// Asserts that each user reads in the mount what the user reads in the source: a path of either.
fn assert_alike(source: &Source, mount: &Mount, pairs: &[(&str, &str)]) {
    for user in USERS {
        for (shown, stored) in pairs {
            let (shown, stored) = (mount.path(shown), source.at(stored));
            assert_eq!(reads(user, &shown), reads(user, &stored), "user {user:?}, {} in the mount", shown.display());
        }
    }
}

/// Asserts which users may read a path of the mount, in the order of [`USERS`].
fn assert_readers(mount: &Mount, path: &str, expected: [bool; 4]) {
    let readers = USERS.map(|user| reads(user, &mount.path(path)));
    assert_eq!(readers, expected, "{path}: {:o}", mount.path(path).metadata().map_or(0, |m| m.mode()));
}

const OWNED: (u32, u32) = (OWNER, TEAM);

#[test]
fn users_read_the_files_that_they_read_in_the_source() {
    let Some(source) = Source::new() else { return };
    source.file("open.zgy", OWNED, 0o644).file("team.zgy", OWNED, 0o640).file("private.zgy", OWNED, 0o600);
    source.file("of-root.zgy", (0, 0), 0o600).file("not-the-team.zgy", OWNED, 0o604).file("program.zgy", OWNED, 0o755);
    source.folder("private", OWNED, 0o700).file("private/open.zgy", OWNED, 0o644);
    source.folder("team", OWNED, 0o750).file("team/open.zgy", OWNED, 0o644).folder("team/a/b", OWNED, 0o755);
    source.file("team/a/b/private.zgy", OWNED, 0o600).file("team/a/b/open.zgy", OWNED, 0o644);
    source.folder("by-name", OWNED, 0o711).file("by-name/open.zgy", OWNED, 0o644);
    fs::hard_link(source.at("private/open.zgy"), source.at("hard.zgy")).unwrap();
    fs::hard_link(source.at("private.zgy"), source.at("team/hard.zgy")).unwrap();
    symlink("private/open.zgy", source.at("link.zgy")).unwrap();
    symlink("team/a", source.at("link")).unwrap();
    let Some(mount) = source.mount(&[]) else { return };
    let files = [
        "open.zgy",
        "team.zgy",
        "private.zgy",
        "of-root.zgy",
        "not-the-team.zgy",
        "program.zgy",
        "private/open.zgy",
        "team/open.zgy",
        "team/a/b/private.zgy",
        "team/a/b/open.zgy",
        "by-name/open.zgy",
        "hard.zgy",
        "team/hard.zgy",
        "link.zgy",
        "link/b/open.zgy",
    ];
    let inside = [
        "",
        "/dataset.json",
        "/data",
        "/data/lod0.raw",
        "/data/lod0.json",
        "/data/lod0.by-sample.npy",
        "/data/lod0.float32.npy",
        "/data/preview.png",
        "/data.ome.zarr/zarr.json",
        "/data.ome.zarr/0/zarr.json",
        "/data.zarr/lod0/zarr.json",
    ];
    for file in files {
        let shown: Vec<String> = inside.iter().map(|name| format!("{file}{name}")).collect();
        let pairs: Vec<(&str, &str)> = shown.iter().map(|shown| (&**shown, file)).collect();
        assert_alike(&source, &mount, &pairs);
    }
    let folders = ["private", "team", "team/a", "team/a/b", "by-name"];
    assert_alike(&source, &mount, &folders.map(|folder| (folder, folder)));
    for (path, mode) in [("team", 0o550), ("by-name", 0o511), ("team.zgy", 0o550), ("program.zgy/data/lod0.raw", 0o444)]
    {
        let shown = mount.path(path).metadata().unwrap();
        assert_eq!((shown.mode() & 0o7777, shown.uid(), shown.gid()), (mode, OWNER, TEAM), "{path}");
    }
}

#[test]
fn a_change_of_rights_counts_at_once() {
    let Some(source) = Source::new() else { return };
    source.folder("a", OWNED, 0o755).file("a/one.zgy", OWNED, 0o644).folder("top", OWNED, 0o755);
    source.file("top/two.zgy", OWNED, 0o644);
    let Some(mount) = source.mount(&[]) else { return };
    let shown = mount.path("a/one.zgy/data/lod0.raw");
    assert!(reads(OTHER, &shown));
    let open = fs::File::open(&shown).unwrap();
    source.give("a/one.zgy", OWNED, 0o600);
    assert!(comes_true(SOON, || !reads(OTHER, &shown)), "a file");
    assert!(reads(USERS[0], &shown));
    // who has it open may go on
    assert!(crate::support::read_at(&open, 0, 100).is_ok() && open.metadata().is_ok());
    source.give("a/one.zgy", OWNED, 0o644);
    assert!(comes_true(SOON, || reads(OTHER, &shown)), "a file again");
    source.give("a", OWNED, 0o700);
    assert!(comes_true(SOON, || !reads(OTHER, &shown)), "its folder");
    source.give("a", OWNED, 0o755).give("a/one.zgy", (0, 0), 0o640);
    assert!(comes_true(SOON, || !reads(OTHER, &shown) && !reads(USERS[0], &shown)), "its owner");
    // renamed into a folder that is closed, and replaced by a file that is
    let two = mount.path("top/two.zgy/data/lod0.raw");
    assert!(reads(OTHER, &two));
    source.file("top/new", OWNED, 0o600);
    fs::rename(source.at("top/new"), source.at("top/two.zgy")).unwrap();
    assert!(comes_true(SOON, || !reads(OTHER, &two) && reads(USERS[0], &two)), "another file");
    // the top itself
    assert!(reads(OTHER, mount.point()));
    source.give("", (0, 0), 0o700);
    assert!(comes_true(SOON, || !reads(OTHER, mount.point()) && !reads(OTHER, &mount.path("top"))), "the top");
    source.give("", (0, 0), 0o755);
    assert!(comes_true(SOON, || reads(OTHER, mount.point())), "the top again");
}

#[test]
fn datasets_that_are_folders_have_the_rights_of_folder_and_description() {
    let Some(source) = Source::new() else { return };
    for name in ["plain", "closed", "described", "layer", "header", "cube", "team", "mixed"] {
        copy_all(&test_data("demo/cells"), &source.at(name));
        source.give(name, OWNED, 0o755);
    }
    // a member of the team has written a layer and a cube
    source.give("mixed", OWNED, 0o750).give("mixed/color", (USERS[1].0, TEAM), 0o750);
    source.give("mixed/color/1/z0/y0/x0.wkw", (USERS[1].0, TEAM), 0o640);
    source.give("mixed/segmentation/1/z0/y0/x0.wkw", (USERS[1].0, TEAM), 0o640);
    source.give("closed", OWNED, 0o700).give("described/datasource-properties.json", OWNED, 0o600);
    source.give("layer/color", OWNED, 0o750).give("header/color/1/header.wkw", OWNED, 0o640).give("team", OWNED, 0o750);
    let cube = ["cube/color/1/z0/y0/x0.wkw", "team/color/1/z0/y0/x0.wkw"];
    source.give(cube[0], OWNED, 0o640).give(cube[1], OWNED, 0o640);
    // somebody else makes a dataset whose cubes are links into a closed folder, whose files are not
    source.folder("stolen", OTHER, 0o755);
    for path in ["color/1/z0/y0", "segmentation"] {
        fs::create_dir_all(source.at("stolen").join(path)).unwrap();
    }
    for path in ["datasource-properties.json", "color/1/header.wkw"] {
        copy_all(&test_data("demo/cells").join(path), &source.at("stolen").join(path));
    }
    symlink("../../../../../closed/color/1/z0/y0/x0.wkw", source.at("stolen/color/1/z0/y0/x0.wkw")).unwrap();
    symlink("../../closed/segmentation/1", source.at("stolen/segmentation/1")).unwrap();
    copy_all(&test_data("demo/cloud-survey"), &source.at("vds"));
    source.give("vds", OWNED, 0o755).give("vds/LayerStatus", OWNED, 0o640);
    let Some(mount) = source.mount(&[]) else { return };
    let (all, none, team) = ([true; 4], [false, false, false, true], [true, true, false, true]);
    let owner = [true, false, false, true];
    assert_ne!(all, none);
    for (path, readers) in [
        ("plain/color/lod0.raw", all),
        ("closed/color/lod0.raw", owner),
        ("described/color/lod0.raw", owner),
        ("described/dataset.json", owner),
        // it tells what the headers say
        ("layer/dataset.json", team),
        ("layer/segmentation/lod0.raw", all),
        ("layer/color/lod0.raw", team),
        ("layer/color.ome.zarr/zarr.json", team),
        // by other names
        ("layer/COLOR/lod0.raw", team),
        ("layer/data/lod0.raw", team),
        ("layer/data.ome.zarr/zarr.json", team),
        ("header/color/lod0.raw", team),
        ("header/segmentation/lod0.raw", all),
        // the team may read the folder, and so it may read the cube
        ("team/color/lod0.raw", team),
        ("cube/segmentation/lod0.raw", all),
        ("mixed/color/lod0.raw", [false, true, false, true]),
        // whether its owner is of the team nobody here knows
        ("mixed/segmentation/lod0.raw", [false; 4]),
        // nobody knew of this cube when the layer was shown: an error for all
        ("cube/color/lod0.raw", [false; 4]),
        ("stolen/dataset.json", owner),
        ("stolen/color/lod0.raw", [false; 4]),
        ("stolen/segmentation/lod0.raw", owner),
        ("vds/Amplitude/lod0.raw", team),
    ] {
        assert_readers(&mount, path, readers);
    }
    assert!(mount.log().contains("fewer users may read it"), "{}", mount.log());
    // what was written a moment ago is opened once more behind those who read it
    for _ in 0..15 {
        assert!(!reads(OTHER, &mount.path("stolen/color/lod0.raw")));
        std::thread::sleep(Duration::from_millis(100));
    }
    source.give("layer/color", OWNED, 0o755).give(cube[0], OWNED, 0o644);
    assert!(comes_true(SOON, || reads(OTHER, &mount.path("layer/color/lod0.raw"))));
    source.give("plain/segmentation", OWNED, 0o700);
    assert!(comes_true(SOON, || !reads(OTHER, &mount.path("plain/segmentation/lod0.raw"))));
    // files and folders that were read already
    let color = mount.path("plain/color/lod0.raw");
    for path in ["plain/color/1/z0/y0/x0.wkw", "plain/color/1/z0", "plain/color/1/header.wkw", "plain"] {
        assert!(comes_true(SOON, || reads(OTHER, &color)), "{path}");
        let mode = if source.at(path).is_dir() { [0o700, 0o755] } else { [0o600, 0o644] };
        source.give(path, OWNED, mode[0]);
        assert!(comes_true(SOON, || !reads(OTHER, &color)), "{path}");
        source.give(path, OWNED, mode[1]);
    }
    let other = ["vds/Amplitude/lod0.raw", "vds/dataset.json", "vds/outline.geojson"].map(|path| mount.path(path));
    source.give("vds/LayerStatus", OWNED, 0o644);
    assert!(comes_true(SOON, || other.iter().all(|path| reads(OTHER, path))), "a description opens");
    source.give("vds/VolumeDataLayout", OWNED, 0o600);
    assert!(comes_true(SOON, || other.iter().all(|path| !reads(OTHER, path))), "a description closes");
}

#[test]
fn virtual_datasets_have_the_rights_of_their_sources() {
    let Some(source) = Source::new() else { return };
    let files = ["virtual-latest.h5", "parts/c0.h5", "parts/c1.h5", "parts/c2.h5", "parts/p0.h5", "parts/p1.h5"];
    source.folder("parts", OWNED, 0o755);
    for name in files {
        copy_all(&test_data("hdf5").join(name), &source.at(name));
        source.give(name, OWNED, 0o644);
    }
    source.give("parts/c1.h5", OWNED, 0o640);
    let Some(mount) = source.mount(&[]) else { return };
    for (path, readers) in [("own/lod0.raw", [true; 4]), ("stacked/lod0.raw", [true, true, false, true])] {
        assert_readers(&mount, &format!("virtual-latest.h5/{path}"), readers);
    }
    let stacked = mount.path("virtual-latest.h5/stacked/lod0.raw");
    source.give("parts/c1.h5", OWNED, 0o600);
    assert!(comes_true(SOON, || !reads(USERS[1], &stacked)), "a source closes");
    source.give("parts/c1.h5", OWNED, 0o644);
    assert!(comes_true(SOON, || reads(OTHER, &stacked)), "a source opens");
    source.give("parts", OWNED, 0o700);
    assert!(comes_true(SOON, || !reads(OTHER, &stacked)), "their folder closes");
}

/// Exchanges two files or folders.
fn exchange(a: &Path, b: &Path) {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
}

#[test]
fn a_closed_folder_in_the_place_of_an_open_one_stays_closed() {
    let Some(source) = Source::new() else { return };
    source.folder("share", OTHER, 0o777).folder("share/mine", OTHER, 0o755).folder("share/closed", OWNED, 0o700);
    source.file("share/closed/open.zgy", OWNED, 0o644).file("share/mine/own.zgy", OTHER, 0o644);
    let Some(mount) = source.mount(&[]) else { return };
    let (mine, closed) = (source.at("share/mine"), source.at("share/closed"));
    let shown = mount.path("share/mine");
    for _ in 0..3 {
        assert!(comes_true(SOON, || reads(OTHER, &shown) && reads(OTHER, &shown.join("own.zgy/data/lod0.raw"))));
        exchange(&mine, &closed);
        // the kernel has let this user in a moment ago
        for _ in 0..10 {
            for path in ["open.zgy/data/lod0.raw", "open.zgy/dataset.json", "open.zgy"] {
                assert!(!reads(OTHER, &shown.join(path)), "{path}");
            }
            let listed = Command::new("ls").arg(&shown).uid(OTHER.0).gid(OTHER.1).output().unwrap();
            assert!(!text(&listed.stdout).contains("open"));
        }
        exchange(&mine, &closed);
    }
}

#[test]
fn an_open_file_reads_no_other_dataset_that_comes_in_its_place() {
    let Some(source) = Source::new() else { return };
    source.folder("share", OTHER, 0o777);
    for (name, owner, mode) in [("mine", OTHER, 0o755), ("closed", OWNED, 0o700)] {
        let path = format!("share/{name}");
        copy_all(&test_data("demo/cells"), &source.at(&path));
        source.give(&path, owner, mode);
    }
    fs::remove_dir_all(source.at("share/mine/segmentation/1/z0")).unwrap();
    let Some(mount) = source.mount(&[]) else { return };
    let open = || fs::File::open(mount.path("share/mine/segmentation/lod0.raw"));
    let size = open().unwrap().metadata().unwrap().len();
    let (mine, closed) = (source.at("share/mine"), source.at("share/closed"));
    for n in 0..4 {
        let Ok(file) = open() else { continue };
        exchange(&mine, &closed);
        let read = crate::support::read_at(&file, size / 4 * n, usize::try_from(size / 4).unwrap());
        assert!(read.is_err() || read.is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0)), "{n}");
        exchange(&mine, &closed);
    }
}

#[test]
fn lists_of_rights_let_nobody_in_whom_they_deny() {
    let Some(source) = Source::new() else { return };
    source.file("group.zgy", OWNED, 0o640).file("user.zgy", OWNED, 0o644).file("both.zgy", OWNED, 0o640);
    let (owner, group, mask, others) = ((0x01, 6, u32::MAX), 0x04, 0x10, 0x20);
    // somebody has a right that the group has not: the group bits of the mode are the mask
    let named = [owner, (0x02, 4, 1), (group, 0, u32::MAX), (mask, 4, u32::MAX), (others, 0, u32::MAX)];
    // everybody may read it but for one user
    let denied = [owner, (0x02, 0, OTHER.0), (group, 4, u32::MAX), (mask, 4, u32::MAX), (others, 4, u32::MAX)];
    // the group may, and a group besides
    let groups = [owner, (group, 4, u32::MAX), (0x08, 4, OTHER.1), (mask, 4, u32::MAX), (others, 0, u32::MAX)];
    if !source.give_list("group.zgy", &named) {
        return skip("the file system of temporary folders has no access control lists");
    }
    assert!(source.give_list("user.zgy", &denied) && source.give_list("both.zgy", &groups));
    assert_eq!(source.at("group.zgy").metadata().unwrap().mode() & 0o777, 0o640);
    let Some(mount) = source.mount(&[]) else { return };
    assert_readers(&mount, "group.zgy/data/lod0.raw", [true, false, false, true]);
    assert!(
        !reads(OTHER, &mount.path("user.zgy/data/lod0.raw")) && reads(USERS[0], &mount.path("user.zgy/data/lod0.raw"))
    );
    assert_readers(&mount, "both.zgy/data/lod0.raw", [true, true, false, true]);
    // a list that comes while it is mounted
    source.file("late.zgy", OWNED, 0o644);
    let late = mount.path("late.zgy/data/lod0.raw");
    assert!(comes_true(SOON, || reads(OTHER, &late)));
    assert!(source.give_list("late.zgy", &denied));
    assert!(comes_true(SOON, || !reads(OTHER, &late)));
}

#[test]
fn options_say_otherwise() {
    let Some(source) = Source::new() else { return };
    source.file("private.zgy", OWNED, 0o600);
    let shown = |options: &str| {
        let mount = source.mount(&["-o", options]).unwrap();
        let at = |path: &str| mount.path(path).metadata().map(|m| (m.uid(), m.gid(), m.mode() & 0o7777)).unwrap();
        let readers = USERS.map(|user| reads(user, &mount.path("private.zgy/data/lod0.raw")));
        (at("private.zgy"), at("private.zgy/data/lod0.raw"), readers)
    };
    assert_eq!(shown("umask=022"), ((OWNER, TEAM, 0o555), (OWNER, TEAM, 0o444), [true; 4]));
    let team = [true, true, false, true];
    assert_eq!(shown("uid=64202,gid=64201,umask=027"), ((OWNER, TEAM, 0o550), (OWNER, TEAM, 0o440), team));
    assert_eq!(shown(&format!("uid={}", OTHER.0)).2, [false, false, true, true]);
    let refused = |options: &str| {
        let output = volfs().args(["mount", "-o", options]).arg(source.at("")).arg("/mnt").output().unwrap();
        assert!(!output.status.success());
        text(&output.stderr).to_owned()
    };
    assert!(refused("umask=888").contains("not an octal number from 0 to 777"));
    assert!(refused("uid=no-such-user").contains("this machine does not know no-such-user"));
}

#[test]
fn a_source_that_is_one_dataset_has_its_rights() {
    let Some(source) = Source::new() else { return };
    source.folder("team", OWNED, 0o750).file("team/open.zgy", OWNED, 0o644).file("private.zgy", OWNED, 0o600);
    copy_all(&test_data("demo/cells"), &source.at("cells"));
    let readers = |path: &str, file: &str| {
        let mount = Mount::with(source.at(path), &["--allow-other"]).unwrap();
        fs::set_permissions(mount.point().parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
        USERS.map(|user| reads(user, &mount.path(file)))
    };
    assert_eq!(readers("private.zgy", "private.zgy/data/lod0.raw"), [true, false, false, true]);
    assert_eq!(readers("cells", "cells/color/lod0.raw"), [true; 4]);
    // as if its folder held nothing else
    assert_eq!(readers("team/open.zgy", "open.zgy/data/lod0.raw"), [true, true, false, true]);
}

#[test]
fn names_in_the_state_of_the_mount_are_for_its_owner() {
    let Some(source) = Source::new() else { return };
    source.folder("private", OWNED, 0o700).file("private/secret.zgy", OWNED, 0o600);
    let Some(mount) = source.mount(&[]) else { return };
    assert!(reads((0, 0), &mount.path("private/secret.zgy/data/lod0.raw")));
    let status_of = |(uid, gid): (u32, u32)| {
        let output = Command::new("cat").arg(mount.path(".volfs/status.json")).uid(uid).gid(gid).output().unwrap();
        text(&output.stdout).to_owned()
    };
    assert!(status_of((0, 0)).contains("secret.zgy"));
    let others = status_of(OTHER);
    assert!(!others.contains("secret") && !others.contains("log"), "{others}");
    let status: serde_json::Value = serde_json::from_str(&others).unwrap();
    assert!(status["counters"]["reads"].as_u64().unwrap() > 0, "{others}");
    assert!(status["other_datasets"]["count"].as_u64().unwrap() > 0, "{others}");
    assert!(!reads(OTHER, &mount.path(".volfs/log")) && reads((0, 0), &mount.path(".volfs/log")));
    // in turn, since the kernel keeps what a name led to for a moment
    assert!(status_of((0, 0)).contains("secret.zgy") && !status_of(OTHER).contains("secret"));
    let program = source.at("volfs");
    // by another process: a test beside this one may start a program while this one has the file open, and a file that
    // anybody has open for writing cannot be run
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_volfs")).arg(&program).status().unwrap().success());
    let stats = Command::new(&program).arg("stats").arg(mount.point()).uid(OTHER.0).gid(OTHER.1).output().unwrap();
    let stats = text(&stats.stdout);
    assert!(stats.contains("reads") && !stats.contains("secret"), "{stats}");
}
