//! A user without any rights but those of fusermount3 mounts beside a source that hangs. The tests act as such a user, in
//! a mount namespace of their own, with and without fusectl: the file system by which users end their connections.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::support::slow_source::{NAME, SlowSource};
use crate::support::{
    Mount, comes_true, copy_all, fuse_or_skip, has_stuck_thread, process_lives, signal, skip, test_data, text,
    wait_until,
};

/// The number of the user nobody.
const USER: u32 = 65534;

/// Generous: calls that hang do so until the end of the test.
const LIMIT: Duration = Duration::from_secs(20);

/// A mount namespace with a source, one of whose datasets hangs on command, and a mount of it by an ordinary user.
struct UserMount {
    /// A process in the namespace.
    keeper: Child,
    slow: SlowSource,
    daemon: i32,
    folder: TempDir,
}

impl UserMount {
    /// Mounts with or without fusectl; `None` (after reporting why) if this machine does not allow that.
    fn new(fusectl: bool) -> Option<Self> {
        if !fuse_or_skip() {
            return None;
        }
        if !nix::unistd::geteuid().is_root() {
            skip("only root can act as another user");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        fs::set_permissions(top, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["mount", "log"] {
            fs::create_dir(top.join(name)).unwrap();
            chown(top.join(name), Some(USER), Some(USER)).unwrap();
        }
        copy_all(&test_data("zgy/v3_int8.zgy"), &top.join("source/v3_int8.zgy"));
        let slow = SlowSource::shared(&top.join("source/server"), fs::read(test_data("zgy/v3_int16.zgy")).unwrap());
        fs::write(top.join("volfs"), "").unwrap();
        // the user may open /dev/fuse there, and run the program under test wherever it is
        let script = "mknod $0/fuse c 10 229 && chmod 666 $0/fuse && mount --bind $0/fuse /dev/fuse && \
            mount --bind $1 $0/volfs && (umount -l /sys/fs/fuse/connections 2>/dev/null; true) && \
            ($2 && mount -t fusectl none /sys/fs/fuse/connections || ! $2) && echo ready && exec cat";
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c", script]).arg(top);
        command.args([env!("CARGO_BIN_EXE_volfs"), if fusectl { "true" } else { "false" }]);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let Ok(mut keeper) = spawned else {
            skip("unshare (util-linux) is not installed");
            return None;
        };
        let mut ready = [0; 6];
        if keeper.stdout.as_mut().unwrap().read_exact(&mut ready).is_err() {
            skip(&format!("no mount namespace: {}", text(&keeper.wait_with_output().unwrap().stderr)));
            return None;
        }
        let mut this = Self { keeper, slow, daemon: 0, folder };
        let point = this.at("mount");
        let mut mount = this.as_user(this.at("volfs"));
        let output = mount.arg("mount").arg("--log-file").arg(this.at("log/log")).arg(this.at("source")).arg(&point);
        let output = output.stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut status = this.as_user("cat");
        let status = status.arg(point.join(".volfs/status.json")).stdout(Stdio::piped()).output().unwrap();
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        this.daemon = i32::try_from(status["pid"].as_i64().unwrap()).unwrap();
        Some(this)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a command that runs a program as the user, in the namespace.
    fn as_user(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("-t").arg(self.keeper.id().to_string()).arg("-m").arg("setpriv");
        command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}")).arg("--clear-groups");
        command.arg(program.as_ref()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Reads a file of the mount with O_DIRECT, in a process of the user. It fails if the read does.
    fn read(&self, file: &str) -> Child {
        let mut command = self.as_user("dd");
        command.arg(format!("if={}", self.at("mount").join(file).display()));
        command.args(["of=/dev/null", "iflag=direct", "bs=64k"]).spawn().unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.at("log/log")).unwrap_or_default()
    }

    /// Ends the daemon by a signal while a reader waits for the hung dataset, and checks that readers get an error
    /// although a thread of the daemon cannot end; then, that the mount can be removed.
    fn readers_end_after(self, sent: Signal) {
        let hanging = Path::new("server").join(NAME).join("data/lod0.raw");
        let hanging = hanging.to_str().unwrap();
        let healthy = "v3_int8.zgy/data/lod0.raw";
        assert!(self.read(hanging).wait().unwrap().success() && self.read(healthy).wait().unwrap().success());
        self.slow.gate.set_closed(true);
        let mut reader = self.read(hanging);
        wait_until("a thread of the daemon hangs", || self.slow.gate.waiting() > 0);
        signal(self.daemon, sent).unwrap();
        let ended = |reader: &mut Child| comes_true(LIMIT, || reader.try_wait().unwrap().is_some());
        assert!(ended(&mut reader), "the reader of the hung dataset hangs; log:\n{}", self.log());
        assert!(!reader.wait().unwrap().success(), "the reader of the hung dataset gets an error");
        // also while the daemon has not quite ended
        wait_until("readers of the healthy dataset get an error", || {
            let mut reader = self.read(healthy);
            assert!(ended(&mut reader), "a reader of the healthy dataset hangs; log:\n{}", self.log());
            !reader.wait().unwrap().success()
        });
        assert!(self.slow.gate.waiting() > 0 && has_stuck_thread(self.daemon), "the daemon still waits");
        let unmounted = self.as_user(self.at("volfs")).args(["umount", "--lazy"]).arg(self.at("mount")).status();
        let point = format!(" {} ", self.at("mount").display());
        let is_mounted = || fs::read_to_string(format!("/proc/{}/mounts", self.keeper.id())).unwrap().contains(&point);
        assert!(unmounted.unwrap().success() || !is_mounted());
        assert!(!is_mounted());
        self.slow.gate.set_closed(false);
        wait_until("the daemon has gone", || !process_lives(self.daemon) && !has_stuck_thread(self.daemon));
    }
}

impl Drop for UserMount {
    fn drop(&mut self) {
        self.slow.gate.set_closed(false);
        let _ = self.as_user(self.at("volfs")).args(["umount", "--lazy"]).arg(self.at("mount")).status();
        // the namespace ends with its last process, and all mounts in it
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        if self.daemon != 0 && !comes_true(Duration::from_secs(10), || !process_lives(self.daemon)) {
            let _ = signal(self.daemon, Signal::SIGKILL);
        }
    }
}

#[test]
fn readers_of_a_killed_daemon_of_a_user_get_an_error() {
    let Some(mount) = UserMount::new(false) else { return };
    mount.readers_end_after(Signal::SIGKILL);
}

#[test]
fn readers_of_a_killed_daemon_of_a_user_with_fusectl_get_an_error() {
    let Some(mount) = UserMount::new(true) else { return };
    mount.readers_end_after(Signal::SIGKILL);
}

#[test]
fn readers_of_a_terminated_daemon_of_a_user_get_an_error() {
    let Some(mount) = UserMount::new(false) else { return };
    mount.readers_end_after(Signal::SIGTERM);
}

#[test]
fn a_daemon_that_crashes_tells_its_watchdog_why() {
    for (sent, words) in [(Signal::SIGABRT, "it crashed (SIGABRT)"), (Signal::SIGXCPU, "it was ended by SIGXCPU")] {
        let Some(mount) = Mount::of(test_data("demo")) else { return };
        signal(mount.pid(), sent).unwrap();
        wait_until("the end is logged", || mount.log().contains("ended without unmounting"));
        assert!(mount.log().contains(words), "{}", mount.log());
        wait_until("the daemon has gone", || !process_lives(mount.pid()));
    }
}
