//! Mounting by mount(8), as /etc/fstab and systemd do it. Each test has its own table in place of /etc/fstab.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    Point, fuse_or_skip, json, mounted_name, one_line_of_failure, process_lives, skip, source_with, text, volfs,
    wait_until,
};

/// A source, a mount point, and a table in the format of /etc/fstab with a line for them; unmounted when dropped.
struct Table {
    source: TempDir,
    folder: TempDir,
}

impl Table {
    /// Makes a table; `None` (after reporting why) if mount(8) cannot mount FUSE file systems here.
    fn new() -> Option<Self> {
        if !fuse_or_skip() || !helper_or_skip() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("mount")).unwrap();
        Some(Self { source: source_with(&["v3_int8.zgy"]), folder })
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// Writes the table: the line of this source and mount point.
    fn write(&self, options: &str) {
        self.write_with_source(self.source.path(), options);
    }

    fn write_with_source(&self, source: &Path, options: &str) {
        let (source, point, kind) = (escaped(source), escaped(&self.point()), escaped(Path::new(&kind())));
        let line = format!("{source} {point} {kind} {options} 0 0\n");
        fs::write(self.folder.path().join("fstab"), line).unwrap();
    }

    /// Runs mount(8) on the table with further arguments.
    fn mount(&self, arguments: &[&str]) -> Output {
        mount().arg("-T").arg(self.folder.path().join("fstab")).args(arguments).output().unwrap()
    }

    fn status(&self) -> Value {
        json(self.point().join(".volfs/status.json"))
    }

    fn shows_its_source(&self) {
        assert_eq!(mounted_name(&self.point()), Some(format!("volfs:{}", self.source.path().display())));
        assert!(self.point().join("v3_int8.zgy/data/lod0.raw").exists());
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if mounted_name(&self.point()).is_some() {
            let _ = volfs().arg("umount").arg("--lazy").arg(self.point()).status();
        }
    }
}

fn mount() -> Command {
    let mut command = Command::new("mount");
    command.stdin(Stdio::null());
    command
}

/// Returns the type by which mount(8) finds the program under test. An installed program has the type `fuse.volfs`, but
/// mount(8) searches only /usr/bin and /usr/local/bin for it, whatever PATH is.
fn kind() -> String {
    format!("fuse.{}", env!("CARGO_BIN_EXE_volfs"))
}

/// Escapes a path for a table of mounts.
fn escaped(path: &Path) -> String {
    path.to_str().unwrap().replace('\\', "\\134").replace(' ', "\\040")
}

fn helper_or_skip() -> bool {
    let there = |name: &str| ["/sbin", "/usr/sbin"].iter().any(|folder| Path::new(folder).join(name).exists());
    let why = match () {
        () if !nix::unistd::geteuid().is_root() => "mount(8) mounts only for root what is not in /etc/fstab",
        () if !there("mount.fuse") => "mount.fuse is missing (package fuse3)",
        () if Command::new("mount").arg("--version").output().is_err() => "mount(8) is missing",
        () => return true,
    };
    skip(why);
    false
}

/// Checks that a command succeeded, and said nothing.
fn succeeded(output: &Output) {
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.is_empty(), "{}: {said}", output.status);
}

#[test]
fn a_line_of_fstab_mounts_and_umount_unmounts() {
    let Some(table) = Table::new() else { return };
    table.write("ro,allow_other,cache_size=256MiB,threads=2,_netdev,nofail,x-systemd.automount");
    succeeded(&table.mount(&[table.point().to_str().unwrap()]));
    table.shows_its_source();
    let status = table.status();
    assert_eq!(status["options"]["cache_size"], 268_435_456);
    assert_eq!(status["options"]["threads"], 2);
    assert_eq!(status["options"]["allow_other"], true);
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(table.point().to_str().unwrap())).unwrap();
    assert!(line.contains(" fuse.volfs ro,nosuid,nodev,") && line.contains(",allow_other"), "{line}");

    let pid = i32::try_from(status["pid"].as_i64().unwrap()).unwrap();
    succeeded(&Command::new("umount").arg(table.point()).output().unwrap());
    assert_eq!(mounted_name(&table.point()), None);
    wait_until("the daemon has gone", || !process_lives(pid));
}

#[test]
fn all_lines_are_mounted_but_those_with_noauto() {
    let Some(table) = Table::new() else { return };
    table.write("noauto,ro");
    succeeded(&table.mount(&["-a"]));
    assert_eq!(mounted_name(&table.point()), None);
    table.write("ro");
    for _ in 0..2 {
        // the second time there is nothing to do, which is no failure
        succeeded(&table.mount(&["-a"]));
        table.shows_its_source();
    }
}

#[test]
fn options_that_every_mount_has_are_accepted() {
    let Some(table) = Table::new() else { return };
    for options in [
        "defaults",
        "rw,dev,suid,exec",
        "ro,nosuid,nodev,noexec",
        "user,noauto",
        "users,auto,noatime,nodiratime",
        "group,relatime,async",
        "atime,sync,threads=1,follow_links,quality=3,views=raw:npy,direct_io,cache_size=64MiB",
        "_netdev,nofail,comment=ours,X-mount.mkdir,x-systemd.requires=/",
        "allow_other,uid=root,gid=0,umask=077",
    ] {
        table.write(options);
        succeeded(&table.mount(&[table.point().to_str().unwrap()]));
        table.shows_its_source();
        assert!(fs::write(table.point().join("new"), "").is_err(), "{options}: it can be written");
        succeeded(&Command::new("umount").arg(table.point()).output().unwrap());
    }
}

#[test]
fn an_unknown_option_is_refused_by_name() {
    let Some(table) = Table::new() else { return };
    for (options, named) in [
        ("ro,unheard_of", "unheard_of"),
        ("ro,umask=9", "umask=9: not an octal number"),
        ("ro,noatme", "did you mean noatime?"),
        ("cache_size=much", "much"),
        ("views=raw:tif", "did you mean tiff?"),
    ] {
        table.write(options);
        let output = table.mount(&[table.point().to_str().unwrap()]);
        assert!(!output.status.success(), "{options}");
        assert!(text(&output.stderr).contains(named), "{options}: {}", text(&output.stderr));
        assert_eq!(mounted_name(&table.point()), None, "{options}");
    }
}

#[test]
fn a_missing_source_fails_the_mount() {
    let Some(table) = Table::new() else { return };
    let missing = table.source.path().join("missing");
    let output = mount().args(["-t", &kind()]).arg(&missing).arg(table.point()).output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains(missing.to_str().unwrap()), "{}", text(&output.stderr));
    assert_eq!(mounted_name(&table.point()), None);
}

#[test]
fn the_program_may_be_named_in_the_type_or_before_the_source() {
    let Some(table) = Table::new() else { return };
    let (source, point) = (table.source.path().to_str().unwrap(), table.point());
    let before_source = format!("{}#{source}", env!("CARGO_BIN_EXE_volfs"));
    for arguments in [["-t", &kind(), source], ["-t", "fuse", &before_source]] {
        succeeded(&mount().args(arguments).arg(&point).output().unwrap());
        table.shows_its_source();
        succeeded(&Command::new("umount").arg(&point).output().unwrap());
    }
}

#[test]
fn names_may_have_spaces_and_commas() {
    let Some(table) = Table::new() else { return };
    let source = table.source.path().join("a b, c's");
    fs::create_dir(&source).unwrap();
    fs::rename(table.source.path().join("v3_int8.zgy"), source.join("v3_int8.zgy")).unwrap();
    table.write_with_source(&source, "ro");
    succeeded(&table.mount(&["-a"]));
    assert_eq!(mounted_name(&table.point()), Some(format!("volfs:{}", escaped(&source))));
    assert!(table.point().join("v3_int8.zgy/data/lod0.raw").exists());
}

#[test]
fn options_of_fstab_are_accepted_and_others_are_refused() {
    let Some(point) = Point::new() else { return };
    let source = source_with(&["v3_int8.zgy"]);
    let mount = |options: &str| volfs().arg(source.path()).arg(point.path()).args(["-o", options]).output().unwrap();
    let all = "rw,nodev,nosuid,noexec,noauto,user,nofail,_netdev,x-systemd.automount,cache_size=64MiB,threads=2";
    succeeded(&mount(all));
    assert!(point.samples("v3_int8.zgy").is_ok());
    point.unmount();
    for options in ["rw,unheard_of", "cache_size=many", "threads=0"] {
        one_line_of_failure(&mount(options), 2);
        assert_eq!(mounted_name(point.path()), None, "{options}");
    }
}
