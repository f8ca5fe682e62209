//! The mount of another user, who may give it any name and any content.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, RwLock};
use std::time::SystemTime;

use fuser::{BackgroundSession, Config, Session, SessionACL};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::run;
use crate::support::own_fs::OneFile;
use crate::support::{fuse_or_skip, one_line_of_failure, skip, source_with, text, volfs};

/// The number of the other user.
const OTHER: u32 = 65533;

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
        let system = OneFile {
            path: &[".volfs", "status.json"],
            bytes: Arc::new(RwLock::new(status.into_bytes())),
            time: SystemTime::UNIX_EPOCH,
            cached: false,
            gate: Arc::default(),
        };
        let session = Session::from_fd(system, device.into(), SessionACL::All, Config::default());
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
