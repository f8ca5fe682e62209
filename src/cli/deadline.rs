//! Work on a source that may hang, with a deadline.
//!
//! A side process does such work, and stays behind if it hangs: a thread that waits for a file server keeps its whole
//! process from ending. This process prints what it sends. An object store needs no side process, since each request has
//! a timeout.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::error::{Cause, CliError};
use super::output::{self, NOTE, OUTPUT, send};
use super::processes::{status, status_field};
use super::source::store_behind;
use super::text::escaped_path;
use crate::mount::SideProcess;
use crate::source::is_url;

/// The time for a source to answer.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// The time between two looks at a side process that sends nothing.
const LOOK: Duration = Duration::from_millis(500);

/// The first byte of further messages to the waiting process: the path that is looked at now, an error (with the exit
/// status in the next byte), and the end of the work.
const LOOKS: u8 = b'l';
const FAILED: u8 = b'f';
const DONE: u8 = b'd';

/// Tells which path is looked at next: if nothing more comes, this path did not answer.
pub(super) fn looks_at(path: &Path) {
    send(LOOKS, path.as_os_str().as_bytes());
}

fn report(outcome: Result<(), CliError>) {
    match outcome {
        Ok(()) => send(DONE, b"done"),
        Err(error) => send(FAILED, &[&[error.exit_status()], error.to_string().as_bytes()].concat()),
    };
}

fn reported(status: u8, text: &[u8]) -> CliError {
    CliError::new(String::from_utf8_lossy(text), "").with_status(status)
}

fn timed_out(path: &Path, limit: Duration) -> CliError {
    let what = format!("the source {} does not answer within {} s", escaped_path(path), limit.as_secs());
    CliError::new(what, "is its server reachable?").with_cause(Cause::Timeout)
}

/// Runs a command that looks at `path`, and fails if it does nothing for as long as `limit`. It must be called before there
/// are threads.
pub(super) fn run(limit: Duration, path: &Path, work: impl FnOnce() -> Result<(), CliError>) -> Result<(), CliError> {
    if is_url(path) {
        return work();
    }
    LazyLock::force(&output::COLOURED);
    let mut work = Some(work);
    let started = start(|| {
        store_behind(path).iter().for_each(|url| looks_at(url));
        report(work.take().map_or(Ok(()), |work| work()));
    });
    match (started, work) {
        (Some(process), _) => print(limit, path, &process),
        // without another process, this one may hang
        (None, work) => work.map_or(Ok(()), |work| work()),
    }
}

/// Starts a side process in the working directory of this one, to which names are relative; `None` if the system refuses,
/// this process has other threads, or the directory has no name any more.
fn start(work: impl FnOnce()) -> Option<SideProcess> {
    let here = std::env::current_dir().ok()?;
    SideProcess::start(|link| {
        output::print_there(link);
        match std::env::set_current_dir(&here) {
            Ok(()) => work(),
            Err(error) => {
                let what = format!("cannot go to the working directory {}: {error}", escaped_path(&here));
                report(Err(CliError::new(what, "use the command in another one")));
            }
        }
    })
    .ok()
}

fn print(limit: Duration, path: &Path, process: &SideProcess) -> Result<(), CliError> {
    let mut looked_at = path.to_owned();
    loop {
        match receive(process, &looked_at, limit)?.as_deref() {
            Some([OUTPUT, bytes @ ..]) => {
                if !output::part(bytes)? {
                    return Ok(());
                }
            }
            Some([NOTE, text @ ..]) => output::note(&String::from_utf8_lossy(text)),
            Some([LOOKS, path @ ..]) => looked_at = PathBuf::from(OsStr::from_bytes(path)),
            Some([FAILED, status, text @ ..]) => return Err(reported(*status, text)),
            Some(_) => return Ok(()),
            None => return Err(reported(1, b"internal error: the process that looked at the source ended")),
        }
    }
}

/// Waits for a message of a side process that looks at `path`, for as long as it does something within each `limit`: one
/// that reads a slow source does, and one that hangs does not. There is no limit for a store, whose requests end by
/// themselves. Returns `None` if the process has ended.
fn receive(process: &SideProcess, path: &Path, limit: Duration) -> Result<Option<Vec<u8>>, CliError> {
    let (mut since, mut last) = (Instant::now(), None);
    loop {
        let deadline = Instant::now() + LOOK;
        let message = process.link.receive(deadline);
        if message.is_some() || Instant::now() < deadline {
            return Ok(message);
        }
        let now = switches(process.pid());
        if now.is_none() || (last.is_some() && now != last) {
            since = Instant::now();
        }
        last = now;
        if since.elapsed() >= limit && !is_url(path) {
            return Err(timed_out(path, limit));
        }
    }
}

/// Returns how often a process has waited and was interrupted; `None` if it computes just now.
fn switches(pid: u32) -> Option<Vec<String>> {
    let status = status(pid);
    let is_running = status_field(&status, "State").is_some_and(|state| state.starts_with('R'));
    let counts = status.lines().filter(|line| line.contains("ctxt_switches:")).map(str::to_owned).collect();
    (!is_running).then_some(counts)
}

/// Checks that a first look at `path` ends within `limit`, and finds nothing wrong. It must be called before there are
/// threads.
pub(super) fn check(path: &Path, limit: Duration, look: impl FnOnce() -> Result<(), CliError>) -> Result<(), CliError> {
    let looked = start(|| report(look()));
    // without a further process, what is wrong is found later
    let Some(process) = looked else { return Ok(()) };
    let deadline = Instant::now() + limit;
    match process.link.receive(deadline).as_deref() {
        Some([FAILED, status, text @ ..]) => Err(reported(*status, text)),
        None if Instant::now() >= deadline => Err(timed_out(path, limit)),
        _ => Ok(()),
    }
}

/// Checks that a first look at a path ends within [`LIMIT`], unless it lies in an object store. It must be called before
/// there are threads.
pub(super) fn check_local(path: &Path, look: impl FnOnce()) -> Result<(), CliError> {
    if is_url(path) {
        return Ok(());
    }
    let looked = start(|| {
        if store_behind(path).is_none() {
            look();
        }
        report(Ok(()));
    });
    looked.map_or(Ok(()), |process| receive(&process, path, LIMIT).map(drop))
}
