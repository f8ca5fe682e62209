//! Sources, folders, daemons and processes that hang: whatever does not wait for them goes on, readers get an answer,
//! commands end and say what does not answer, and everything can be unmounted.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self};
use std::time::{Duration, Instant};

use fuser::SessionACL;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::support::faulty_folder::Fault;
use crate::support::faulty_folder::FaultyFolder;
use crate::support::hanging::{Hanging, directly};
use crate::support::own_fs::{SLOW, SlowSource, THREADS};
use crate::support::{
    Mount, SOON, children, comes_true, copy_all, fixture, fuse_or_skip, has_stuck_thread, in_mount_namespace, json,
    names, process_lives, read_directly, set, signal, skip, source_of, source_with, stop, test_data, text, volfs,
    wait_until, within,
};

/// Generous, and longer than any command waits for an answer: calls that hang do so until the end of the test.
const LIMIT: Duration = Duration::from_secs(25);

/// At least the number of threads with which the daemon serves the kernel.
const READERS: usize = THREADS;

#[test]
fn a_file_that_hangs_while_it_is_read_does_not_hold_up_others() {
    let Some(hanging) = Hanging::new() else { return };
    let (mount, readers) = (&hanging.mount, hanging.readers(READERS));
    for _ in 0..3 {
        let status = mount.path(".volfs/status.json");
        assert!(within(LIMIT, move || fs::read(status).unwrap()).is_some(), "status.json answers");
        let top = mount.point().to_owned();
        assert_eq!(within(LIMIT, move || fs::read_dir(top).unwrap().count()), Some(3), "the top is listed");
        let path = mount.data("v3_int8.zgy", "lod0.raw");
        let samples = within(LIMIT, move || read_directly(&path)).expect("other datasets are read");
        assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
    }
    hanging.goes_on(readers);
    mount.unmount();
}

/// The mount whose daemon is stopped; when dropped, also by a panic, its daemon continues and it is unmounted.
struct Inner {
    point: PathBuf,
    pid: i32,
}

impl Inner {
    fn at(point: PathBuf) -> Self {
        let pid = json(point.join(".volfs/status.json"))["pid"].as_i64().unwrap();
        Self { point, pid: i32::try_from(pid).unwrap() }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = signal(self.pid, Signal::SIGCONT);
        let _ = volfs().args(["umount", "--lazy"]).arg(&self.point).output();
    }
}

#[test]
fn a_hanging_folder_does_not_hold_up_the_others() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    fs::create_dir(source.path().join("hang")).unwrap();
    let inner = volfs().arg("mount").arg(test_data("zgy")).arg(source.path().join("hang")).output().unwrap();
    assert!(inner.status.success(), "{inner:?}");
    let inner = Inner::at(source.path().join("hang"));
    let mount = Mount::of(source.path()).unwrap();
    let point = mount.point().to_owned();
    assert!(fs::read_dir(point.join("hang")).unwrap().count() > 10, "the datasets of the inner mount are folders here");
    stop(inner.pid);
    // the kernel answers from its cache at first
    wait_until("the kernel asks the stopped daemon again", || {
        let file = inner.point.join("v3_int16.zgy");
        within(Duration::from_millis(100), move || fs::metadata(file).is_ok()).is_none()
    });

    let hung = point.join("hang/v3_int16.zgy");
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let hung = hung.clone();
            // its folders: a layer, and the same as OME-Zarr and for xarray
            thread::spawn(move || fs::read_dir(hung).is_ok_and(|entries| entries.count() == 3))
        })
        .collect();
    for _ in 0..3 {
        let point = point.clone();
        let names = within(LIMIT, move || names(point)).expect("the folder is listed");
        assert_eq!(names, set([".volfs", "hang", "v3_int16.zgy", "v3_int8.zgy"]));
    }
    for name in ["v3_int8.zgy", "v3_int16.zgy"] {
        let path = mount.data(name, "lod0.raw");
        let samples = within(LIMIT, move || fs::read(path).unwrap()).expect("other datasets are read");
        assert!(samples == fixture(name).samples(0).unwrap());
    }
    let file = point.join(".volfs/status.json");
    assert!(within(LIMIT, move || fs::read(file).unwrap()).is_some(), "status.json answers");

    assert!(waiting.iter().all(|reader| !reader.is_finished()), "the folder hangs");
    signal(inner.pid, Signal::SIGCONT).unwrap();
    for reader in waiting {
        assert!(reader.join().unwrap(), "waiting reads are answered when the source answers again");
    }
    assert!(volfs().arg("umount").arg(mount.point()).status().unwrap().success());
    let stopped = inner.pid;
    drop(inner);
    assert!(comes_true(LIMIT, || !process_lives(stopped)));
}

/// Checks that readers of the dataset that hangs, and of one beside it, get an error when a signal ends the daemon, while
/// a thread of it still hangs.
fn readers_end_after(sent: Signal) {
    let Some(hanging) = Hanging::new() else { return };
    let mut healthy = directly(&hanging.mount.data("v3_int8.zgy", "lod0.raw"));
    let reader = hanging.readers(1).remove(0);
    let Hanging { mount, slow, .. } = &hanging;
    signal(mount.pid(), sent).unwrap();
    let failed =
        within(LIMIT, move || while healthy.rewind().and_then(|()| healthy.read_to_end(&mut Vec::new())).is_ok() {});
    assert!(failed.is_some(), "a reader of the healthy dataset gets an error");
    assert!(comes_true(LIMIT, || reader.is_finished()), "the reader of the hung dataset hangs");
    assert!(reader.join().unwrap().is_err(), "the reader of the hung dataset gets an error");
    // readers are answered a moment before the daemon ends
    assert!(comes_true(LIMIT, || has_stuck_thread(mount.pid())), "the daemon still waits for the source");
    assert!(slow.gate.waiting() > 0, "the daemon still waits for the source");
    let output = mount.umount(&["--lazy"]);
    assert!(output.status.success() || !mount.is_mounted(), "{}", text(&output.stderr));
    assert!(!mount.is_mounted());
    slow.gate.set_closed(false);
    wait_until("the daemon has gone", || !process_lives(mount.pid()) && !has_stuck_thread(mount.pid()));
}

#[test]
fn readers_of_a_killed_daemon_with_a_hung_source_get_an_error() {
    readers_end_after(Signal::SIGKILL);
}

#[test]
fn readers_of_a_terminated_daemon_with_a_hung_source_get_an_error() {
    readers_end_after(Signal::SIGTERM);
}

#[test]
fn the_end_of_a_killed_daemon_is_logged_and_a_remount_works() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    signal(mount.pid(), Signal::SIGKILL).unwrap();
    wait_until("the end is logged", || mount.log().contains("ended without unmounting"));
    // a request that is in flight when the kernel closes the last file of the daemon fails in another way
    wait_until("the mount is dead, not gone", || {
        fs::read_dir(mount.point()).is_err_and(|error| error.raw_os_error() == Some(Errno::ENOTCONN as i32))
    });
    mount.mount_again(test_data("zgy"));
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
    mount.unmount();
}

#[test]
fn mounting_ends_although_the_source_begins_to_hang() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy"]);
    let slow = SlowSource::new(&source.path().join("server"), Vec::new(), SessionACL::Owner);
    slow.gate.set_closed(true);
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    let mut command = volfs();
    command.arg("mount").arg(source.path()).arg(&point);
    let output = within(LIMIT, move || command.output().unwrap());
    let healthy = point.join("v3_int8.zgy/data/lod0.raw");
    let samples = within(LIMIT, move || fs::read(healthy).unwrap());
    slow.gate.set_closed(false);
    assert!(volfs().arg("umount").arg(&point).status().unwrap().success());
    let output = output.expect("volfs mount ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 1);
    assert!(samples.expect("the healthy dataset is read") == fixture("v3_int8.zgy").samples(0).unwrap());
}

#[test]
fn mounting_gives_up_a_source_that_hangs_from_the_start() {
    if !fuse_or_skip() {
        return;
    }
    if std::env::var_os("VOLFS_SLOW_TESTS").is_none() {
        return skip("takes 30 s; VOLFS_SLOW_TESTS=1 runs it");
    }
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    let slow = SlowSource::new(&folder.path().join("source"), Vec::new(), SessionACL::Owner);
    slow.gate.set_closed(true);
    let mut command = volfs();
    command.current_dir(folder.path()).args(["mount", "source", "mount"]);
    let output = within(2 * LIMIT, move || command.output().unwrap()).expect("volfs mount ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("does not answer within 30 s"), "{}", text(&output.stderr));
}

/// Returns whether a thread of a daemon waits in a message to the kernel, which takes so long only if it drops pages that
/// somebody reads.
fn drops_pages(pid: i32) -> bool {
    let waiting = || -> BTreeSet<PathBuf> {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let waits = |thread: &PathBuf| {
            let call = fs::read_to_string(thread.join("syscall")).unwrap_or_default();
            call.split(' ').next() == Some(&nix::libc::SYS_writev.to_string())
        };
        threads.map(|thread| thread.path()).filter(waits).collect()
    };
    let before = waiting();
    thread::sleep(Duration::from_millis(200));
    !before.is_disjoint(&waiting())
}

#[test]
fn readers_get_an_error_although_pages_are_dropped_when_the_daemon_is_terminated() {
    // just written, so the daemon refreshes it after 1.5, 3, 6 seconds, and drops its pages
    let folder = source_of("wkw", &["bare"]);
    let Some(source) = FaultyFolder::of(folder.path()) else { return };
    let Some(mount) = Mount::of(&source.path) else { return };
    let mut file = File::open(mount.path("bare/color/lod0.raw")).unwrap();
    // the data, and not the folders and headers that a refresh reads
    source.faults.below("/x", Fault::Hang);
    let reader = thread::spawn(move || file.read(&mut [0; 4096]).is_err());
    wait_until("the source hangs", || source.faults.waiting() > 0);
    if !comes_true(LIMIT, || drops_pages(mount.pid())) {
        return skip("this system does not tell what a thread waits for");
    }
    signal(mount.pid(), Signal::SIGTERM).unwrap();
    let ended = comes_true(LIMIT, || reader.is_finished());
    assert!(source.faults.waiting() > 0);
    source.faults.end();
    assert!(ended, "the reader hangs");
    assert!(reader.join().unwrap(), "the reader gets an error");
    wait_until("the daemon has gone", || !process_lives(mount.pid()) && !has_stuck_thread(mount.pid()));
}

/// The number of the user nobody.
const USER: u32 = 65534;

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
        let slow = SlowSource::new(
            &top.join("source/server"),
            fs::read(test_data("zgy/v3_int16.zgy")).unwrap(),
            SessionACL::All,
        );
        fs::write(top.join("volfs"), "").unwrap();
        // the user may open /dev/fuse there, and run the program under test wherever it is
        let script = "mknod $0/fuse c 10 229 && chmod 666 $0/fuse && mount --bind $0/fuse /dev/fuse && \
            mount --bind $1 $0/volfs && (umount -l /sys/fs/fuse/connections 2>/dev/null; true) && \
            ($2 && mount -t fusectl none /sys/fs/fuse/connections || ! $2) && echo ready && exec cat";
        let mut command = in_mount_namespace(script, top)?;
        command.args([env!("CARGO_BIN_EXE_volfs"), if fusectl { "true" } else { "false" }]);
        let mut keeper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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
        let hanging = Path::new("server").join(SLOW).join("data/lod0.raw");
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
        mount.wait_for_end();
    }
}

/// Stops the read-ahead process at a moment at which it has a file of the mount open; `false` if many attempts do not
/// find one.
fn stop_with_open_file(mount: &Mount, process: i32) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < SOON {
        stop(process);
        let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let holds = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(mount.point()));
        if open.flatten().any(holds) {
            return true;
        }
        signal(process, Signal::SIGCONT).unwrap();
        thread::sleep(Duration::from_micros(200));
    }
    false
}

#[test]
fn a_stopped_read_ahead_process_does_not_hold_the_mount() {
    for arguments in [&[] as &[&str], &["--lazy"]] {
        let Some(mount) = Mount::of(test_data("demo")) else { return };
        let mut process = 0;
        wait_until("there is a read-ahead process", || {
            let found = children(mount.pid()).into_iter().find(|(_, name)| name == "volfs-ahead");
            process = found.map_or(0, |(pid, _)| pid);
            process > 0
        });
        let done = AtomicBool::new(false);
        let stopped = thread::scope(|scope| {
            scope.spawn(|| {
                let path = mount.data("north.zgy", "lod0.raw");
                while !done.load(Ordering::Relaxed) {
                    let mut file = File::open(&path).unwrap();
                    let size = file.metadata().unwrap().len();
                    nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED)
                        .unwrap();
                    file.rewind().unwrap();
                    let read = file.read_to_end(&mut Vec::new()).unwrap();
                    assert_eq!(read as u64, size);
                }
            });
            let stopped = stop_with_open_file(&mount, process);
            done.store(true, Ordering::Relaxed);
            stopped
        });
        if !stopped {
            return skip("the read-ahead process was never caught with an open file");
        }
        let output = mount.umount(arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(!mount.is_mounted());
        wait_until("daemon and read-ahead process have gone", || {
            !process_lives(mount.pid()) && !process_lives(process)
        });
    }
}
