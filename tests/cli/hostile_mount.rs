//! The mount of another user, who may give it any name and any content.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, Filesystem, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyEntry, Request, Session, SessionACL,
};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::run;
use crate::support::attributes::attributes;
use crate::support::{fuse_or_skip, one_line_of_failure, skip, source_with, text, volfs};

/// The number of the other user.
const OTHER: u32 = 65533;

/// The status file, which is found, but not listed, and its folder.
const STATUS: INodeNo = INodeNo(3);
const DOT_VOLFS: INodeNo = INodeNo(2);

/// A file system of nothing but `.volfs/status.json`.
struct OnlyStatus(String);

impl OnlyStatus {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        attributes(number, number != STATUS, self.0.len() as u64, SystemTime::UNIX_EPOCH)
    }
}

impl Filesystem for OnlyStatus {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str() {
            Some(".volfs") => reply.entry(&Duration::ZERO, &self.attributes(DOT_VOLFS), Generation(0)),
            Some("status.json") => reply.entry(&Duration::ZERO, &self.attributes(STATUS), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::ZERO, &self.attributes(number));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        _: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        reply.data(self.0.as_bytes().get(offset as usize..).unwrap_or_default());
    }
}

/// A mount that the kernel takes for that of the other user.
struct HostileMount {
    place: PathBuf,
    session: Option<BackgroundSession>,
}

impl HostileMount {
    fn new(place: PathBuf, source: &Path, status: String) -> Self {
        fs::create_dir(&place).unwrap();
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let fd = device.as_raw_fd();
        let options = format!("fd={fd},rootmode=40555,user_id={OTHER},group_id={OTHER},allow_other");
        let name = format!("volfs:{}", source.display());
        mount(Some(&*name), &place, Some("fuse.volfs"), MsFlags::MS_RDONLY, Some(&*options)).unwrap();
        let session = Session::from_fd(OnlyStatus(status), device.into(), SessionACL::All, Config::default());
        Self { place, session: Some(session.unwrap().spawn().unwrap()) }
    }
}

impl Drop for HostileMount {
    fn drop(&mut self) {
        let _ = umount2(&self.place, MntFlags::MNT_DETACH);
        drop(self.session.take().map(|session| session.guard.join()));
    }
}

#[test]
fn what_another_users_mount_says_is_not_believed() {
    if !fuse_or_skip() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can mount as another user");
    }
    let secret = source_with(&["v3_int16.zgy"]);
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    // a process of root with the name of a daemon
    fs::copy("/bin/sleep", top.join("volfs")).unwrap();
    let mut victim = Command::new(top.join("volfs")).arg("60").spawn().unwrap();
    let pid = victim.id();
    let stall = r#"{"seconds": 48, "reads_waiting": 3, "dataset": "x"}"#;
    let mount =
        HostileMount::new(top.join("mount"), secret.path(), format!(r#"{{"pid": {pid}, "source_stall": {stall}}}"#));
    symlink(&mount.place, top.join("link")).unwrap();

    for (command, path) in [
        ("ls", "mount"),
        ("ls", "link"),
        ("info", "mount/v3_int16.zgy"),
        ("verify", "mount"),
        ("cat", "mount/v3_int16.zgy/data/lod0.raw"),
    ] {
        let line = one_line_of_failure(&run(command, &[], &top.join(path)), 1);
        let parts = [format!("the mount at {}", mount.place.display()), secret.path().display().to_string()];
        let owner = format!("belongs to another user (id {OTHER})");
        assert!(line.contains(&owner) && parts.iter().all(|part| line.contains(part)), "{command} {path}: {line}");
    }
    let doctor = text(&volfs().arg("doctor").output().unwrap().stdout);
    assert!(doctor.contains("has not answered for 48 s") && !doctor.contains(&format!("kill {pid}")), "{doctor}");
    // a daemon that goes on would be waited for, and is an error
    let unmounted = run("umount", &[], &mount.place);
    assert!(unmounted.status.success(), "{}", text(&unmounted.stderr));
    let ended = victim.try_wait().unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(ended, None);
}
