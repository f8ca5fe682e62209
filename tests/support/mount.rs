//! The program under test: its processes, their output and state in /proc, and sources mounted in temporary folders.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::fs::{major, minor};
use serde_json::Value;
use tempfile::TempDir;

use super::{comes_true, fuse_or_skip, json, skip, wait_until};

/// Returns the path of the program under test: VOLFS_STRESS_PROGRAM, or else what cargo has built for the tests.
pub fn program() -> PathBuf {
    env::var_os("VOLFS_STRESS_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_volfs").into(), PathBuf::from)
}

/// Returns a command that runs the program under test.
pub fn volfs() -> Command {
    let mut command = Command::new(program());
    if ignores_interrupts() {
        command = Command::new("env");
        command.arg("--default-signal=HUP,INT,QUIT").arg(program());
    }
    command.stdin(Stdio::null());
    command
}

/// Returns whether SIGHUP, SIGINT or SIGQUIT are ignored here, and so in what the tests start: shells do that to what
/// they start in the background.
fn ignores_interrupts() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0b111 != 0)
}

/// Returns a program's output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that a program has failed with this status and one line on stderr, and returns the line.
pub fn one_line_of_failure(output: &Output, status: i32) -> String {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "stderr: {stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "not one line: {stderr}");
    assert_eq!(text(&output.stdout), "");
    stderr.trim_end().to_owned()
}

/// Waits until a process ends, and returns its status.
pub fn wait_for(child: &mut Child) -> ExitStatus {
    let mut status = None;
    wait_until("the process ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// Returns whether a process exists and is not a zombie.
pub fn process_lives(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

/// Returns whether a process runs the program under test.
pub fn is_volfs(pid: i32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program())
}

/// Stops a process, and waits until all its threads are: one that is not yet could still answer a request, or accept
/// one and then stop.
pub fn stop(pid: i32) {
    signal(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    wait_until("all threads are stopped", || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let state = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        threads.map(state).all(|status| status.contains("T (stopped)"))
    });
}

/// Sends a signal to one process.
pub fn signal(pid: i32, signal: nix::sys::signal::Signal) -> nix::Result<()> {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal)
}

/// Returns a figure of /proc/PID/status, in bytes.
pub fn memory(pid: i32, figure: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Returns the processes whose parent is `pid`, with their names.
pub fn children(pid: i32) -> Vec<(i32, String)> {
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|child: i32| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        let (name, fields) = (stat.split_once('(')?.1, stat.rsplit_once(") ")?.1);
        let parent = fields.split(' ').nth(1)?.parse::<i32>().ok()?;
        (parent == pid).then(|| (child, name.rsplit_once(')').map_or("", |(name, _)| name).to_owned()))
    })
    .collect()
}

/// Returns whether a thread of a process cannot end, since it waits for an answer of a file system.
pub fn has_stuck_thread(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().unwrap().starts_with(" D")
    })
}

/// Returns a command that runs a script of the shell in a mount namespace of its own, with `kept` as its `$0`; `None`
/// (after reporting why) if that is not allowed. Of the mounts of volfs only `kept` is left there: those of tests that
/// run at the same time could not end before the namespace does.
pub fn in_mount_namespace(script: &str, kept: &Path) -> Option<Command> {
    let possible = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        skip("cannot make a mount namespace");
        return None;
    }
    let leave_others = "while read -r source point _; do case $source in volfs:*) [ \"$point\" = \"$0\" ] || \
        umount -lc \"$point\";; esac; done </proc/self/mounts; ";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]).arg(leave_others.to_owned() + script).arg(kept);
    Some(command)
}

/// A source mounted in a temporary folder; unmounted when dropped, also by a panic.
pub struct Mount {
    point: PathBuf,
    foreground: Option<Child>,
    output: Option<Output>,
    pid: Option<i32>,
    folder: TempDir,
}

impl Mount {
    /// Mounts `source`; `None` (after reporting why) if this machine cannot mount.
    pub fn of(source: impl AsRef<Path>) -> Option<Self> {
        Self::with(source, &[])
    }

    /// Mounts `source` with further arguments.
    pub fn with(source: impl AsRef<Path>, arguments: &[&str]) -> Option<Self> {
        Self::start(source.as_ref(), |mount, source| mount.command(source, arguments))
    }

    /// Mounts a URL with the environment of a client and further arguments.
    pub fn of_store(url: &str, environment: &[(&str, String)], arguments: &[&str]) -> Option<Self> {
        Self::start(url.as_ref(), |mount, source| {
            let mut command = mount.command(source, arguments);
            command.envs(environment.iter().map(|(name, value)| (name, value)));
            command
        })
    }

    /// Mounts `source` by processes that may have so many open files.
    pub fn with_open_files(source: impl AsRef<Path>, environment: &[(&str, String)], limit: u32) -> Option<Self> {
        Self::start(source.as_ref(), |mount, source| {
            let command = mount.command(source, &[]);
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("ulimit -n {limit} && exec \"$0\" \"$@\""));
            shell.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
            shell.envs(environment.iter().map(|(name, value)| (name, value)));
            shell
        })
    }

    fn start(source: &Path, command: impl FnOnce(&Self, &Path) -> Command) -> Option<Self> {
        let mut mount = Self::prepare()?;
        let output = command(&mount, source).output().unwrap();
        assert!(output.status.success(), "volfs mount failed: {}\n{}", text(&output.stderr), mount.log());
        mount.output = Some(output);
        mount.pid = Some(mount.pid_from_status());
        Some(mount)
    }

    /// Mounts `source` by a process that stays in the foreground.
    pub fn in_foreground(source: impl AsRef<Path>, arguments: &[&str]) -> Option<Self> {
        let mut mount = Self::prepare()?;
        let mut command = mount.command(source.as_ref(), arguments);
        command.arg("--foreground").stdout(Stdio::null()).stderr(Stdio::piped());
        mount.foreground = Some(command.spawn().unwrap());
        wait_until("the mount answers", || mount.path(".volfs/status.json").exists());
        mount.pid = Some(mount.pid_from_status());
        Some(mount)
    }

    fn prepare() -> Option<Self> {
        if !fuse_or_skip() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().join("mount");
        fs::create_dir(&point).unwrap();
        Some(Self { point, foreground: None, output: None, pid: None, folder })
    }

    fn command(&self, source: &Path, arguments: &[&str]) -> Command {
        let mut command = volfs();
        command.arg("mount").args(arguments).arg("--log-file").arg(self.folder.path().join("log"));
        command.arg(source).arg(&self.point);
        command
    }

    /// Returns the mount point.
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// Returns a path in the mount.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.point.join(path)
    }

    /// Returns a path in the folder of the layer `data` of a dataset.
    pub fn data(&self, dataset: &str, file: &str) -> PathBuf {
        self.point.join(dataset).join("data").join(file)
    }

    /// Returns the output of `volfs mount`.
    pub fn output(&self) -> &Output {
        self.output.as_ref().unwrap()
    }

    /// Returns the daemon's process id.
    pub fn pid(&self) -> i32 {
        self.pid.unwrap()
    }

    /// Returns the foreground process, which the caller has to wait for from now on.
    pub fn take_foreground(&mut self) -> Child {
        self.foreground.take().unwrap()
    }

    /// Returns the log of the daemon so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Returns how many KiB the kernel reads ahead in the mount; `None` if it does not tell.
    pub fn kernel_read_ahead(&self) -> Option<u64> {
        let device = fs::metadata(&self.point).unwrap().dev();
        let file = format!("/sys/class/bdi/{}:{}/read_ahead_kb", major(device), minor(device));
        fs::read_to_string(file).ok()?.trim().parse().ok()
    }

    /// Reads status.json of the mount.
    pub fn status(&self) -> Value {
        json(self.path(".volfs/status.json"))
    }

    /// Reads one of the counters of status.json.
    pub fn counter(&self, name: &str) -> u64 {
        let status = self.status();
        status["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name} in {status}"))
    }

    /// Runs `volfs umount` with further arguments.
    pub fn umount(&self, arguments: &[&str]) -> Output {
        volfs().arg("umount").args(arguments).arg(&self.point).output().unwrap()
    }

    /// Unmounts, which has to succeed.
    pub fn unmount(&self) {
        let output = self.umount(&[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// Mounts a source at the place of this mount, which has ended; that has to succeed.
    pub fn mount_again(&self, source: impl AsRef<Path>) {
        let output = volfs().arg("mount").arg(source.as_ref()).arg(&self.point).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// Waits until the daemon has ended.
    pub fn wait_for_end(&self) {
        wait_until("the daemon has gone", || !process_lives(self.pid()));
    }

    /// Returns whether something is mounted there, even if its daemon does not answer.
    pub fn is_mounted(&self) -> bool {
        mounted_name(&self.point).is_some()
    }

    fn pid_from_status(&self) -> i32 {
        i32::try_from(self.status()["pid"].as_i64().expect("status.json has the pid")).unwrap()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(io::stderr(), "log of the daemon:\n{}", self.log());
        }
        while self.is_mounted() {
            let gone = self.umount(&["--lazy"]).status.success();
            if !gone && nix::mount::umount2(&self.point, nix::mount::MntFlags::MNT_DETACH).is_err() {
                let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.point).status();
                break;
            }
        }
        if let Some(mut child) = self.foreground.take() {
            let _ = child.kill();
            let _ = child.wait();
        } else if let Some(pid) = self.pid {
            comes_true(Duration::from_secs(10), || !process_lives(pid));
            if process_lives(pid) && is_volfs(pid) {
                let _ = signal(pid, nix::sys::signal::SIGKILL);
            }
        }
    }
}

/// An empty folder to mount on by hand; unmounted when dropped.
pub struct Point(TempDir);

impl Point {
    /// `None` (after reporting why) if this machine cannot mount.
    pub fn new() -> Option<Self> {
        fuse_or_skip().then(|| Self(tempfile::tempdir().unwrap()))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `volfs mount` with these arguments and the folder, after a line of the shell such as `ulimit -n 40`.
    pub fn mount(&self, line: &str, arguments: &[&OsStr]) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{line}; exec \"$@\""), "sh"]).arg(program()).arg("mount");
        command.args(arguments).arg(self.path()).stdin(Stdio::null()).output().unwrap()
    }

    /// Mounts, which has to succeed.
    pub fn mounts(&self, line: &str, arguments: &[&OsStr]) {
        let output = self.mount(line, arguments);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }

    /// Checks that the mount is refused, and returns the line that says why.
    pub fn refuses(&self, line: &str, arguments: &[&OsStr]) -> String {
        let said = one_line_of_failure(&self.mount(line, arguments), 1);
        assert!(!said.contains("panicked"), "{said}");
        wait_until("nothing is left mounted", || mounted_name(self.path()).is_none());
        said
    }

    /// Reads the samples of the layer `data` of a dataset.
    pub fn samples(&self, dataset: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path().join(dataset).join("data/lod0.raw"))
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(json(self.path().join(".volfs/status.json"))["pid"].as_i64().unwrap()).unwrap()
    }

    /// Unmounts, which has to succeed.
    pub fn unmount(&self) {
        let output = volfs().arg("umount").arg(self.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        if mounted_name(self.path()).is_some() {
            let _ = volfs().args(["umount", "--lazy"]).arg(self.path()).output();
        }
    }
}

/// Returns the source of the mount at `point`, as /proc/mounts has it.
pub fn mounted_name(point: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let name = words.next()?;
        (words.next()? == point.to_str().unwrap()).then(|| name.to_owned())
    })
}
