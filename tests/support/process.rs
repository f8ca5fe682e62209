//! Processes: the program under test, its output, and the state of a process in /proc.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use super::wait_until;

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
