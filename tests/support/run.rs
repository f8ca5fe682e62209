//! Running tests: what is skipped, waiting for a condition with a timeout, and Python.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Reports on stderr, past the capture of test output, that the running test is skipped.
pub fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // one write for the whole line, so that threads do not mix their lines
    let _ = io::stderr().write_all(format!("SKIPPED {test}: {why}\n").as_bytes());
}

/// Returns whether this machine can mount; reports why not.
pub fn fuse_or_skip() -> bool {
    let why = why_no_fuse();
    if let Some(why) = &why {
        skip(why);
    }
    why.is_none()
}

fn why_no_fuse() -> Option<String> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        return Some(format!("/dev/fuse: {error}"));
    }
    if nix::unistd::geteuid().is_root() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let set = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
        let may_mount = u64::from_str_radix(set, 16).unwrap() >> 21 & 1 == 1;
        return (!may_mount).then(|| "root lacks CAP_SYS_ADMIN".to_owned());
    }
    let found = std::env::split_paths(&std::env::var_os("PATH")?).any(|dir| dir.join("fusermount3").exists());
    (!found).then(|| "fusermount3 is missing (package fuse3)".to_owned())
}

/// The timeout of [`wait_until`]: long enough for anything on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout, on a busy machine, for a change that the mount shows within a second.
pub const SOON: Duration = Duration::from_secs(10);

/// Waits until a condition holds; fails the test if it does not within [`TIMEOUT`].
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(comes_true(TIMEOUT, condition), "waited in vain until {what}");
}

/// Waits until a condition holds or `limit` has passed, and returns whether it holds.
pub fn comes_true(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if began.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a closure in its own thread and returns its result, or `None` if it takes longer than `limit`. The thread then
/// goes on by itself.
pub fn within<T: Send + 'static>(limit: Duration, run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(run()));
    outcome.recv_timeout(limit).ok()
}

/// Waits until a value has stayed the same for `quiet`, and returns it; fails the test if it still changes after
/// [`TIMEOUT`].
pub fn settled<T: PartialEq>(quiet: Duration, value: impl Fn() -> T) -> T {
    let (mut last, mut since) = (value(), Instant::now());
    wait_until("a value stays the same", || {
        let now = value();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() >= quiet
    });
    last
}

/// Runs a script that needs NumPy; `None` (after reporting why) if this machine has no Python with NumPy.
pub fn python_with_numpy<A: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = A>) -> Option<Output> {
    let has_numpy = Command::new("python3").args(["-c", "import numpy"]).output().is_ok_and(|o| o.status.success());
    if !has_numpy {
        skip("no Python with NumPy");
        return None;
    }
    Some(Command::new("python3").args(["-c", script]).args(arguments).output().unwrap())
}
